#include "rules/inventory.hpp"

#include <algorithm>
#include <utility>

#include "effects/gold.hpp"
#include "effects/items.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr float kPickUpReach = 150;  // distance at which the script picks up ground items

// What an item is worth a place in the inventory for; the Aegis works nowhere else.
float place_value(const Context& c, const ItemState& s) {
  return s.id >= 0 && s.id == c.tables.game->aegis_item ? 1e9f : item_value(c, s);
}

bool usable_slot(int slot) { return slot < kInventory; }

// Moves an item that comes into the inventory from the backpack: it works only after the swap delay.
void swap_slots(Context& c, HeroState& h, int inside, int outside) {
  std::swap(h.items[inside], h.items[outside]);
  ItemState& in = h.items[inside];
  if (in.id >= 0 && outside < kStashFirst) in.enabled_at = c.world.time + c.tables.game->backpack_delay;
}

}  // namespace

void move_item(Context& c, HeroState& h, int from, int to) {
  const int inside = std::min(from, to), outside = std::max(from, to);
  if (usable_slot(inside) && !usable_slot(outside))
    swap_slots(c, h, inside, outside);
  else
    std::swap(h.items[inside], h.items[outside]);
  items_changed(c, h);
}

bool at_home(const Context& c, const HeroState& h) {
  const Unit* u = c.world.get(h.unit);
  return u && distance(u->pos, u->spawn) <= c.tables.game->fountain_radius;
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
    const ItemState& s = h.items[slot];
    if (s.id < 0) continue;
    const bool in_use = u && u->act == Act::Channel && u->order.slot == 16 + slot;
    const ItemDef& def = c.tables.items[s.id];
    if (def.consumable && def.initial_charges > 0 && s.charges <= 0 && !in_use) take_item(c, h, slot);
    if (s.id == c.tables.game->aegis_item && s.id >= 0 && w.due(h.aegis_expires)) expire_item(c, h, slot);
  }
  if (h.by_hand()) return;
  const bool reach_stash = !c.settings.courier_scripted || at_home(c, h);
  if (!h.items_changed && !reach_stash) return;
  h.items_changed = false;

  // Free places first: stash into inventory or backpack, backpack into inventory.
  for (int from = kTpSlot - 1; from >= kBackpackFirst; --from) {
    const ItemState& s = h.items[from];
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
      if (h.items[to].id < 0) {
        swap_slots(c, h, to, from);
        items_changed(c, h);
        break;
      }
  }
  // Then the cheapest inside against the dearest outside, one pair at a time.
  int cheap = -1, dear = -1;
  for (int slot = 0; slot < kStashFirst; ++slot) {
    const ItemState& s = h.items[slot];
    if (s.id < 0) continue;
    int& best = usable_slot(slot) ? cheap : dear;
    const float value = place_value(c, s);
    if (best < 0 ||
        (usable_slot(slot) ? value < place_value(c, h.items[best]) : value > place_value(c, h.items[best])))
      best = slot;
  }
  if (cheap >= 0 && dear >= 0 && place_value(c, h.items[dear]) > place_value(c, h.items[cheap])) {
    swap_slots(c, h, cheap, dear);
    items_changed(c, h);
  }
}

void restock(Context& c) {
  World& w = c.world;
  for (TeamState& t : w.teams)
    for (std::size_t k = 0; k < t.stock.size(); ++k) {
      const int id = c.tables.game->stock_items[k];
      if (id < 0) continue;
      const ItemDef& def = c.tables.items[id];
      if (t.stock[k] >= def.stock_max) {
        t.stock_next[k] = w.time + def.stock_time;
      } else if (w.due(t.stock_next[k])) {
        ++t.stock[k];
        t.stock_next[k] = w.time + def.stock_time;
      }
    }
}

}  // namespace dota
