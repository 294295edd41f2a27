#include "world/kit.hpp"

namespace dota {

void give_kit(World& w, const Tables& t, Unit& u) {
  if (u.kit >= 0) return;
  std::array<AbilityState, kAbilitySlots> abilities{};
  std::size_t n = 0;
  for (const int id : t.units[u.type].abilities) {
    const AbilityDef& a = t.abilities[static_cast<std::size_t>(id)];
    if (a.passive || a.program.roots.empty() || !a.program.missing.empty() || n >= abilities.size()) continue;
    abilities[n].id = static_cast<std::int16_t>(id);
    abilities[n].level = 1;
    abilities[n++].autocast = a.autocast;
  }
  if (n == 0) return;
  for (std::size_t k = 0; k < w.kits.size(); ++k) {
    if (w.kits[k].used) continue;
    w.kits[k] = Kit{};
    w.kits[k].used = true;
    w.kits[k].abilities = abilities;
    u.kit = static_cast<std::int16_t>(k);
    return;
  }
  ++w.dropped[static_cast<std::size_t>(StatePool::Kits)];
}

void drop_kit(World& w, Unit& u) {
  if (u.kit >= 0) w.kits[static_cast<std::size_t>(u.kit)] = Kit{};
  u.kit = -1;
}

AbilityState* ability_state(World& w, const Unit& u, int slot) {
  if (slot < 0 || slot >= kAbilitySlots) return nullptr;
  const auto at = static_cast<std::size_t>(slot);
  if (u.hero >= 0) return &w.heroes[static_cast<std::size_t>(u.hero)].abilities[at];
  return u.kit >= 0 ? &w.kits[static_cast<std::size_t>(u.kit)].abilities[at] : nullptr;
}
const AbilityState* ability_state(const World& w, const Unit& u, int slot) {
  return ability_state(const_cast<World&>(w), u, slot);
}

int item_slots(const Unit& u) { return u.hero >= 0 ? kItemSlots : u.kit >= 0 ? kInventory : 0; }

ItemState* item_state(World& w, const Unit& u, int slot) {
  const int at = slot - 16;
  if (at < 0 || at >= item_slots(u)) return nullptr;
  if (u.hero >= 0) return &w.heroes[static_cast<std::size_t>(u.hero)].items[static_cast<std::size_t>(at)];
  return &w.kits[static_cast<std::size_t>(u.kit)].items[static_cast<std::size_t>(at)];
}
const ItemState* item_state(const World& w, const Unit& u, int slot) {
  return item_state(const_cast<World&>(w), u, slot);
}

}  // namespace dota
