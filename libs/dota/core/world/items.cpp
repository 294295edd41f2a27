#include <algorithm>

#include "effects/program_node.hpp"
#include "effects/running.hpp"
#include "map/map_data.hpp"
#include "world/game_rules.hpp"
#include "world/heroes.hpp"
#include "world/inventory.hpp"
#include "world/items.hpp"
#include "world/kit.hpp"
#include "world/signals.hpp"

namespace dota {
namespace {

constexpr float kPickUpReach = 150;  // of what lies on the ground; the script picks it up

void changed(Context& c, HeroState& h) {
  h.items_changed = true;
  Unit* u = c.world.get(h.unit);
  if (!u) return;
  u->stats_dirty = true;
  if (u->alive) apply_learned(c, *u);
}

// What an item is worth a place in the inventory for; the Aegis works nowhere else.
float place_value(const Context& c, const ItemState& s) {
  return s.id >= 0 && s.id == c.tables.game->aegis_item ? 1e9f : item_value(c, s);
}

bool usable_slot(int slot) { return slot < kInventory; }

// Moves an item that comes into the inventory from the backpack: it works only after the swap delay.
void swap_slots(Context& c, HeroState& h, int inside, int outside) {
  std::swap(h.items[static_cast<std::size_t>(inside)], h.items[static_cast<std::size_t>(outside)]);
  ItemState& in = h.items[static_cast<std::size_t>(inside)];
  if (in.id >= 0 && outside < kStashFirst) in.enabled_at = c.world.time + c.tables.game->backpack_delay;
}

}  // namespace

void move_item(Context& c, HeroState& h, int from, int to) {
  const int inside = std::min(from, to), outside = std::max(from, to);
  if (usable_slot(inside) && !usable_slot(outside))
    swap_slots(c, h, inside, outside);
  else
    std::swap(h.items[static_cast<std::size_t>(inside)], h.items[static_cast<std::size_t>(outside)]);
  changed(c, h);
}

bool at_home(const Context& c, const HeroState& h) {
  const Unit* u = c.world.get(h.unit);
  return u && distance(u->pos, u->spawn) <= c.tables.game->fountain_radius;
}

float item_value(const Context& c, const ItemState& s) {
  if (s.id < 0) return 0;
  const ItemDef& def = c.tables.items[static_cast<std::size_t>(s.id)];
  const float cost = static_cast<float>(def.cost);
  if (!def.consumable || def.initial_charges <= 0) return cost;
  return cost * static_cast<float>(s.charges) / static_cast<float>(def.initial_charges);
}

float net_worth(const Context& c, const HeroState& h) {
  float sum = h.gold + h.reliable;
  for (const ItemState& s : h.items)
    sum += item_value(c, s);
  if (h.recipe >= 0) sum += static_cast<float>(c.tables.items[static_cast<std::size_t>(h.recipe)].recipe_cost);
  return sum;
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
  if (!c.tables.items[static_cast<std::size_t>(item)].stackable) return -1;
  for (int slot = 0; slot < kItemSlots; ++slot) {
    const ItemState& s = h.items[static_cast<std::size_t>(slot)];
    if ((slot >= kStashFirst && slot < kTpSlot) != in_stash) continue;
    if (s.id == item && !s.on_courier && s.charges + charges <= kStackCharges) return slot;
  }
  return -1;
}

// The first free one of these slots; -1: none.
int free_slot(const HeroState& h, int first, int end) {
  for (int slot = first; slot < end; ++slot)
    if (h.items[static_cast<std::size_t>(slot)].id < 0) return slot;
  return -1;
}

// Where in a hero's hands the item would get a slot of its own: the inventory, the backpack, the scroll's slot.
int free_in_hands(const Context& c, const HeroState& h, int item) {
  return item == c.tables.game->tp_item ? free_slot(h, kTpSlot, kTpSlot + 1) : free_slot(h, 0, kStashFirst);
}

void fill_slot(Context& c, HeroState& h, int slot, int item, int charges) {
  ItemState& s = h.items[static_cast<std::size_t>(slot)];
  s = ItemState{};
  s.id = static_cast<std::int16_t>(item);
  s.charges = static_cast<std::int8_t>(charges);
  if (item == c.tables.game->aegis_item) h.aegis_expires = c.world.time + c.tables.game->aegis_expires;
  changed(c, h);
}

}  // namespace

// Onto the same kind in the stash, else onto what the hero has with it, never from one to the other: who moves a
// stack out of the stash would add it to itself. False: there is none with room.
bool stack_item(Context& c, HeroState& h, int item, int charges, bool in_stash) {
  const int slot = stack_slot(c, h, item, charges, in_stash);
  if (slot < 0) return false;
  ItemState& s = h.items[static_cast<std::size_t>(slot)];
  s.charges = static_cast<std::int8_t>(s.charges + charges);
  changed(c, h);
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
  if (item == c.tables.game->aegis_item) hero_event(c, EventKind::Aegis, h);
  return true;
}

bool lay_down(Context& c, int item, int charges, Vec2 at) {
  for (GroundItem& g : c.world.ground) {
    if (g.id >= 0) continue;
    g = {static_cast<std::int16_t>(item), static_cast<std::int8_t>(charges), at};
    return true;
  }
  ++c.world.dropped[static_cast<std::size_t>(StatePool::GroundItems)];
  return false;
}

bool give_item(Context& c, HeroState& h, int item, int charges) { return place_item(c, h, item, charges, false); }

void take_item(Context& c, HeroState& h, int slot) {
  h.items[static_cast<std::size_t>(slot)] = ItemState{};
  changed(c, h);
}

void take_item(Context& c, Unit& u, int slot) {
  if (u.hero >= 0) return take_item(c, c.world.heroes[static_cast<std::size_t>(u.hero)], slot - 16);
  ItemState* s = item_state(c.world, u, slot);
  if (!s) return;
  *s = ItemState{};
  u.stats_dirty = true;
  apply_learned(c, u);
}

void drop_items(Context& c, Unit& hero) {
  World& w = c.world;
  if (hero.hero < 0) return;
  HeroState& h = w.heroes[static_cast<std::size_t>(hero.hero)];
  for (int slot = 0; slot < kInventory; ++slot) {
    const ItemState held = h.items[static_cast<std::size_t>(slot)];
    const int ability = held.id < 0 ? -1 : c.tables.items[static_cast<std::size_t>(held.id)].ability;
    if (ability < 0) continue;
    const Program& p = c.tables.abilities[static_cast<std::size_t>(ability)].program;
    if (std::none_of(p.roots.begin(), p.roots.end(),
                     [&](std::uint16_t r) { return p.nodes[r].prim == Prim::DropOnDeath; }))
      continue;
    if (lay_down(c, held.id, held.charges, hero.pos)) take_item(c, h, slot);
  }
}

void pick_up(Context& c) {
  World& w = c.world;
  for (GroundItem& g : w.ground) {
    if (g.id < 0) continue;
    HeroState* nearest = nullptr;
    float best = kPickUpReach;
    for (HeroState& h : w.heroes) {
      const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
      if (!u || !u->alive || h.by_hand() || distance(u->pos, g.pos) >= best) continue;
      if (!hands_take(c, h, g.id, g.charges)) continue;
      nearest = &h;
      best = distance(u->pos, g.pos);
    }
    if (nearest && take_up(c, *nearest, g.id, g.charges)) g = GroundItem{};
  }
}

void arrange_items(Context& c, HeroState& h) {
  World& w = c.world;
  const Unit* u = w.get(h.unit);
  for (int slot = 0; slot < kItemSlots; ++slot) {
    const ItemState& s = h.items[static_cast<std::size_t>(slot)];
    if (s.id < 0) continue;
    const bool in_use = u && u->act == Act::Channel && u->order.slot == 16 + slot;
    const ItemDef& def = c.tables.items[static_cast<std::size_t>(s.id)];
    if (def.consumable && def.initial_charges > 0 && s.charges <= 0 && !in_use) take_item(c, h, slot);
    if (s.id == c.tables.game->aegis_item && s.id >= 0 && w.due(h.aegis_expires)) take_item(c, h, slot);
  }
  if (h.by_hand()) return;
  const bool reach_stash = !c.settings.courier_scripted || at_home(c, h);
  if (!h.items_changed && !reach_stash) return;
  h.items_changed = false;

  // Free places first: stash into inventory or backpack, backpack into inventory.
  for (int from = kTpSlot - 1; from >= kBackpackFirst; --from) {
    const ItemState& s = h.items[static_cast<std::size_t>(from)];
    if (s.id < 0 || (from >= kStashFirst && (!reach_stash || s.on_courier))) continue;
    if (from >= kStashFirst && stack_item(c, h, s.id, s.charges, false)) {
      take_item(c, h, from);
      continue;
    }
    if (from >= kStashFirst && s.id == c.tables.game->tp_item) {  // it has a slot of its own
      if (place_item(c, h, s.id, s.charges, false)) take_item(c, h, from);
      continue;
    }
    const int places = from >= kStashFirst ? kStashFirst : kInventory;
    for (int to = 0; to < places; ++to)
      if (h.items[static_cast<std::size_t>(to)].id < 0) {
        swap_slots(c, h, to, from);
        changed(c, h);
        break;
      }
  }
  // Then the cheapest inside against the dearest outside, one pair at a time.
  int cheap = -1, dear = -1;
  for (int slot = 0; slot < kStashFirst; ++slot) {
    const ItemState& s = h.items[static_cast<std::size_t>(slot)];
    if (s.id < 0) continue;
    int& best = usable_slot(slot) ? cheap : dear;
    const float value = place_value(c, s);
    if (best < 0 || (usable_slot(slot) ? value < place_value(c, h.items[static_cast<std::size_t>(best)])
                                       : value > place_value(c, h.items[static_cast<std::size_t>(best)])))
      best = slot;
  }
  if (cheap >= 0 && dear >= 0 &&
      place_value(c, h.items[static_cast<std::size_t>(dear)]) >
          place_value(c, h.items[static_cast<std::size_t>(cheap)])) {
    swap_slots(c, h, cheap, dear);
    changed(c, h);
  }
}

void restock(Context& c) {
  World& w = c.world;
  for (TeamState& t : w.teams)
    for (std::size_t k = 0; k < t.stock.size(); ++k) {
      const int id = c.tables.game->stock_items[k];
      if (id < 0) continue;
      const ItemDef& def = c.tables.items[static_cast<std::size_t>(id)];
      if (t.stock[k] >= def.stock_max) {
        t.stock_next[k] = w.time + def.stock_time;
      } else if (w.due(t.stock_next[k])) {
        ++t.stock[k];
        t.stock_next[k] = w.time + def.stock_time;
      }
    }
}

}  // namespace dota
