#include "effects/primitive.hpp"

#include <array>

namespace dota {

namespace {

constexpr const char* kPrimNames[] = {
#define X(id, name) name,
    DOTA_PRIMITIVES(X)
#undef X
};
constexpr const char* kRoleNames[] = {
#define X(id, name) name,
    DOTA_ROLES(X)
#undef X
};

}  // namespace

const char* primitive_name(Prim p) { return kPrimNames[ordinal(p)]; }
const char* role_name(Role r) { return kRoleNames[ordinal(r)]; }

bool parse_primitive(const std::string& name, Prim& out) {
  for (int i = 0; i < kPrims; ++i)
    if (name == kPrimNames[i]) {
      out = static_cast<Prim>(i);
      return true;
    }
  return false;
}

bool parse_role(const std::string& name, Role& out) {
  for (int i = 0; i < kRoles; ++i)
    if (name == kRoleNames[i]) {
      out = static_cast<Role>(i);
      return true;
    }
  return false;
}

const PrimitiveSpec* primitive_spec(Prim p) {
  static const std::array<const PrimitiveSpec*, kPrims> table = [] {
    std::array<const PrimitiveSpec*, kPrims> t{};
    for (const auto& group : {damage_primitives(), resource_primitives(), modifier_primitives(),
                              status_primitives(), motion_primitives(), projectile_primitives(), area_primitives(),
                              unit_primitives(), attack_primitives(), special_primitives()})
      for (const PrimitiveSpec& s : group)
        t[ordinal(s.prim)] = &s;
    return t;
  }();
  return table[ordinal(p)];
}

}  // namespace dota
