#include "world/loadout.hpp"

namespace dota {

void give_loadout(World& w, const Tables& t, Unit& u) {
  if (u.loadout >= 0) return;
  std::array<AbilityState, kAbilitySlots> abilities{};
  std::size_t n = 0;
  for (const int id : t.units[u.type].abilities) {
    const AbilityDef& a = t.abilities[id];
    if (a.passive || a.program.roots.empty() || !a.program.missing.empty() || n >= abilities.size()) continue;
    abilities[n].id = static_cast<std::int16_t>(id);
    abilities[n].level = 1;
    abilities[n++].autocast = a.autocast;
  }
  if (n == 0) return;
  for (std::size_t k = 0; k < w.loadouts.size(); ++k) {
    if (w.loadouts[k].used) continue;
    w.loadouts[k] = Loadout{};
    w.loadouts[k].used = true;
    w.loadouts[k].abilities = abilities;
    u.loadout = static_cast<std::int16_t>(k);
    return;
  }
  ++w.dropped[ordinal(StatePool::Loadouts)];
}

void drop_loadout(World& w, Unit& u) {
  if (u.loadout >= 0) w.loadouts[u.loadout] = Loadout{};
  u.loadout = -1;
}

AbilityState* ability_state(World& w, const Unit& u, int slot) {
  if (slot < 0 || slot >= kAbilitySlots) return nullptr;
  if (u.hero >= 0) return &w.heroes[u.hero].abilities[slot];
  return u.loadout >= 0 ? &w.loadouts[u.loadout].abilities[slot] : nullptr;
}
const AbilityState* ability_state(const World& w, const Unit& u, int slot) {
  return ability_state(const_cast<World&>(w), u, slot);
}

int item_slots(const Unit& u) { return u.hero >= 0 ? kItemSlots : u.loadout >= 0 ? kInventory : 0; }

ItemState* item_state(World& w, const Unit& u, int slot) {
  const int at = slot - 16;
  if (at < 0 || at >= item_slots(u)) return nullptr;
  if (u.hero >= 0) return &w.heroes[u.hero].items[at];
  return &w.loadouts[u.loadout].items[at];
}
const ItemState* item_state(const World& w, const Unit& u, int slot) {
  return item_state(const_cast<World&>(w), u, slot);
}

}  // namespace dota
