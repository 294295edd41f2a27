#include <algorithm>

#include "effects/interpreter.hpp"
#include "effects/items.hpp"
#include "effects/program_node.hpp"
#include "effects/running.hpp"
#include "map/map_data.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"
#include "world/loadout.hpp"

namespace dota {

void items_changed(Context& c, HeroState& h) {
  h.items_changed = true;
  Unit* u = c.world.get(h.unit);
  if (!u) return;
  u->stats_dirty = true;
  if (u->alive) apply_learned(c, *u);
}

int held_charges(const HeroState& h, int item) {
  int n = 0;
  for (const ItemState& s : h.items)
    if (s.id == item) n += std::max<int>(1, s.charges);
  return n;
}

namespace {

// Slot of a stack of the item's kind that so many more go onto; -1: none.
int stack_slot(const Context& c, const HeroState& h, int item, int charges, bool in_stash) {
  if (!c.tables.items[item].stackable) return -1;
  for (int slot = 0; slot < kItemSlots; ++slot) {
    const ItemState& s = h.items[slot];
    if ((slot >= kStashFirst && slot < kTpSlot) != in_stash) continue;
    if (s.id == item && !s.on_courier && s.charges + charges <= kStackCharges) return slot;
  }
  return -1;
}

// The first free one of these slots; -1: none.
int free_slot(const HeroState& h, int first, int end) {
  for (int slot = first; slot < end; ++slot)
    if (h.items[slot].id < 0) return slot;
  return -1;
}

// Where in a hero's hands the item would get a slot of its own: the inventory, the backpack, the scroll's slot.
int free_in_hands(const Context& c, const HeroState& h, int item) {
  return item == c.tables.game->tp_item ? free_slot(h, kTpSlot, kTpSlot + 1) : free_slot(h, 0, kStashFirst);
}

void fill_slot(Context& c, HeroState& h, int slot, int item, int charges) {
  ItemState& s = h.items[slot];
  s = ItemState{};
  s.id = static_cast<std::int16_t>(item);
  s.charges = static_cast<std::int8_t>(charges);
  if (item == c.tables.game->aegis_item) h.aegis_expires = c.world.time + c.tables.game->aegis_expires;
  items_changed(c, h);
}

}  // namespace

// Adds charges to a stack in the stash if `in_stash`, else to a stack carried by the hero. The two are kept apart,
// because a stack moved out of the stash would be added to itself. Returns false if no stack has room.
bool stack_item(Context& c, HeroState& h, int item, int charges, bool in_stash) {
  const int slot = stack_slot(c, h, item, charges, in_stash);
  if (slot < 0) return false;
  ItemState& s = h.items[slot];
  s.charges = static_cast<std::int8_t>(s.charges + charges);
  items_changed(c, h);
  return true;
}

bool place_item(Context& c, HeroState& h, int item, int charges, bool to_stash, int* at) {
  if (stack_item(c, h, item, charges, to_stash)) return true;
  const bool scroll = item == c.tables.game->tp_item && !to_stash;  // it has a slot of its own
  const int slot = scroll ? free_in_hands(c, h, item) : free_slot(h, to_stash ? kStashFirst : 0, kTpSlot);
  if (slot < 0) return false;
  if (at) *at = slot;
  fill_slot(c, h, slot, item, charges);
  return true;
}

bool hands_take(const Context& c, const HeroState& h, int item, int charges) {
  return stack_slot(c, h, item, charges, false) >= 0 || free_in_hands(c, h, item) >= 0;
}

bool take_up(Context& c, HeroState& h, int item, int charges) {
  if (!hands_take(c, h, item, charges)) return false;
  if (!stack_item(c, h, item, charges, false)) fill_slot(c, h, free_in_hands(c, h, item), item, charges);
  if (item == c.tables.game->aegis_item) record_hero_event(c, EventKind::Aegis, h);
  return true;
}

bool lay_down(Context& c, int item, int charges, Vec2 at) {
  for (GroundItem& g : c.world.ground) {
    if (g.id >= 0) continue;
    g = {static_cast<std::int16_t>(item), static_cast<std::int8_t>(charges), at};
    return true;
  }
  ++c.world.dropped[ordinal(StatePool::GroundItems)];
  return false;
}

void take_item(Context& c, HeroState& h, int slot) {
  h.items[slot] = ItemState{};
  items_changed(c, h);
}

void expire_item(Context& c, HeroState& h, int slot) {
  const int ability = c.tables.items[h.items[slot].id].ability;
  take_item(c, h, slot);
  const Unit* u = c.world.get(h.unit);
  if (!u || !u->alive || ability < 0) return;
  Invocation inv = invocation_of(c, *u, ability, 1);
  run_trigger(c, inv, Trigger::Expired);
}

void take_item(Context& c, Unit& u, int slot) {
  if (u.hero >= 0) return take_item(c, c.world.heroes[u.hero], slot - 16);
  ItemState* s = item_state(c.world, u, slot);
  if (!s) return;
  *s = ItemState{};
  u.stats_dirty = true;
  apply_learned(c, u);
}

void drop_items(Context& c, Unit& hero) {
  World& w = c.world;
  if (hero.hero < 0) return;
  HeroState& h = w.heroes[hero.hero];
  for (int slot = 0; slot < kInventory; ++slot) {
    const ItemState held = h.items[slot];
    const int ability = held.id < 0 ? -1 : c.tables.items[held.id].ability;
    if (ability < 0) continue;
    const Program& p = c.tables.abilities[ability].program;
    if (std::none_of(p.roots.begin(), p.roots.end(),
                     [&](std::uint16_t r) { return p.nodes[r].prim == Prim::DropOnDeath; }))
      continue;
    if (lay_down(c, held.id, held.charges, hero.pos)) take_item(c, h, slot);
  }
}

}  // namespace dota
