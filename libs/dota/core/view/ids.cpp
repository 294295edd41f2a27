#include "view/ids.hpp"

#include <stdexcept>

namespace dota {

const std::array<const char*, kAnimations> kAnimationNames = {
    "idle", "walk", "attack_windup", "attack_backswing", "cast_windup", "cast_backswing", "channel", "dead"};
const std::array<const char*, kPickupKinds> kPickupNames = {"bounty",       "double_damage", "haste",
                                                            "invisibility", "regeneration",  "arcane"};

void RegistryIds::check(const Tables& tables) const {
  const auto fits = [](const char* space, std::size_t ids, std::size_t names) {
    if (ids != names)
      throw std::runtime_error(std::string("ids: ") + std::to_string(ids) + " for " + std::to_string(names) +
                               " names of " + space);
  };
  fits("unit", unit.size(), tables.units.size());
  fits("modifier", modifier.size(), tables.modifiers.size());
  fits("ability", ability.size(), tables.abilities.size());
  fits("item", item.size(), tables.items.size());
  fits("build", build.size(), tables.heroes.size());
  fits("animation", animation.size(), kAnimationNames.size());
  fits("pickup", pickup.size(), kPickupNames.size());
}

}  // namespace dota
