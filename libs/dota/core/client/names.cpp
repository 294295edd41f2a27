#include "client/names.hpp"

namespace dota {
namespace {

constexpr std::size_t kMaxUnknown = 1000;  // names that are counted apart; the rest is "other"

UnitKind kind_of_type(ClientUnitType type) {
  switch (type) {
    case ClientUnitType::Hero:
      return UnitKind::Hero;
    case ClientUnitType::LaneCreep:
      return UnitKind::LaneCreep;
    case ClientUnitType::JungleCreep:
      return UnitKind::Neutral;
    case ClientUnitType::Roshan:
      return UnitKind::Roshan;
    case ClientUnitType::Tower:
      return UnitKind::Tower;
    case ClientUnitType::Barracks:
      return UnitKind::Barracks;
    case ClientUnitType::Shrine:
      return UnitKind::Shrine;
    case ClientUnitType::Fort:
      return UnitKind::Fort;
    case ClientUnitType::Building:
      return UnitKind::Filler;
    case ClientUnitType::Courier:
      return UnitKind::Courier;
    case ClientUnitType::Ward:
      return UnitKind::Ward;
    default:
      return UnitKind::Summon;
  }
}

}  // namespace

int ClientNames::count(const char* space, std::string_view name) {
  std::string key = std::string(space) + " " + std::string(name.substr(0, 100));
  if (unknown_.size() >= kMaxUnknown && !unknown_.contains(key)) key = std::string(space) + " other";
  ++unknown_[key];
  return -1;
}

int ClientNames::number(const char* space, const ClientIds::Map& map, std::uint32_t id) {
  const auto found = map.find(id);
  return found != map.end() ? found->second : count(space, std::to_string(id));
}

int ClientNames::modifier(std::string_view name) {
  const auto found = modifiers_.find(std::string(name));
  return found != modifiers_.end() ? found->second : count("modifier", name);
}

int ClientNames::unit(std::string_view name) {
  const auto found = tables_.unit_index.find(std::string(name));
  return found != tables_.unit_index.end() ? found->second : count("unit", name);
}

UnitKind ClientNames::kind_of(const ClientUnit& u, int type) const {
  return type >= 0 ? tables_.units[type].kind : kind_of_type(u.unit_type);
}

int ClientNames::stand_in(UnitKind kind, int team) const {
  int any = -1;
  for (std::size_t i = 0; i < tables_.units.size(); ++i) {
    if (tables_.units[i].kind != kind) continue;
    const bool dire = tables_.units[i].name.find("badguys") != std::string::npos;
    if (any < 0 || (team == 1 && dire)) any = static_cast<int>(i);
    if (team != 1 || dire) break;
  }
  return any;
}

}  // namespace dota
