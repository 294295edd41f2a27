// What the game's tables are called to an agent: the ids of dota.registry, which no patch and no order of a file
// moves.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/tables.hpp"
#include "world/map_state.hpp"
#include "world/unit.hpp"

namespace dota {

constexpr int kAnimations = static_cast<int>(Act::Dead) + 1, kPickupKinds = static_cast<int>(PickupKind::Count);
// Names of enum Act and enum PickupKind in the registry.
extern const std::array<const char*, kAnimations> kAnimationNames;
extern const std::array<const char*, kPickupKinds> kPickupNames;

// Per index of a table its id. `casts` names, per action of the vocabulary, the ability or item of this patch that
// it casts; '' where it casts none.
struct RegistryIds {
  using List = std::vector<std::uint16_t>;
  List unit, modifier, ability, item, build, animation, pickup;
  std::vector<std::string> casts;

  // Returns the id of an index; 0 (none) for an index out of range.
  static std::uint16_t of(const List& ids, int index) {
    return index >= 0 && index < static_cast<int>(ids.size()) ? ids[index] : std::uint16_t{0};
  }
  // Throws std::runtime_error naming the space whose list has another length than its table.
  void check(const Tables& tables) const;
};

}  // namespace dota
