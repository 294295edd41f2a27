// People's orders about goods: the shops, the slots, the ground, the courier.
#include <algorithm>

#include "effects/items.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"
#include "play/person_order.hpp"
#include "rules/casting.hpp"
#include "rules/courier.hpp"
#include "rules/inventory.hpp"
#include "rules/lineup.hpp"
#include "rules/runes.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// The game's data state neither. From this near an item is laid down and taken up, a melee hero's attack range.
constexpr float kHandReach = 150;
constexpr float kMeantWithin = 300;  // what lies this near to the place aimed at is meant

const ItemDef& item_def(const Context& c, int item) { return c.tables.items[item]; }

// What could be done now towards having the item. `have`: it is there.
struct Purchase {
  bool have = false;
  Refusal refusal = Refusal::None;
};

Refusal why_not_bought(const Context& c, const HeroState& h, int item) {
  const ItemDef& def = item_def(c, item);
  const Counter counter = counter_of(c, h, item);
  if (counter == Counter::Nowhere) return Refusal::Shop;
  if (!can_afford(h, static_cast<float>(def.cost))) return Refusal::Gold;
  const bool stash = counter == Counter::Stash;
  const bool scroll = item == c.tables.game->tp_item && !stash;
  for (int slot = stash ? kStashFirst : 0; def.stackable && slot < (stash ? kTpSlot : kItemSlots); ++slot) {
    const ItemState& s = h.items[slot];
    if (s.id == item && !s.on_courier && s.charges + def.initial_charges <= kStackCharges) return Refusal::None;
  }
  const bool room = scroll ? h.items[kTpSlot].id < 0 : free_slots(h, stash) > 0;
  return room ? Refusal::None : Refusal::Full;
}

// As acquire() of buyer.cpp would go on, without doing it.
Purchase look_at(const Context& c, const HeroState& h, int item, std::uint32_t& used, bool fresh, int* at) {
  if (!fresh)
    for (int slot = 0; slot < kItemSlots; ++slot)
      if (!(used >> slot & 1u) && h.items[slot].id == item) {
        used |= 1u << slot;
        *at = slot;
        return {true};
      }
  const ItemDef& def = item_def(c, item);
  if (def.recipes.empty()) return {false, why_not_bought(c, h, item)};
  Purchase first;
  bool waits = false, far = false, near = false;
  for (const int part : choose_recipe(h, def)) {
    int slot = -1;
    const Purchase p = look_at(c, h, part, used, false, &slot);
    if (p.have) {
      const bool in_stash = slot >= kStashFirst && slot < kTpSlot;
      far |= in_stash;
      near |= !in_stash;
      if (in_stash && h.items[slot].on_courier) {
        waits = true;
        first.refusal = Refusal::Courier;
      }
      continue;
    }
    if (p.refusal == Refusal::None) return {};
    if (!waits) first.refusal = p.refusal;
    waits = true;
  }
  if (waits) return first;
  const bool bought = h.recipe == item, reach = !goes_to_stash(c, h);
  if (!bought && !can_afford(h, static_cast<float>(def.recipe_cost))) return {false, Refusal::Gold};
  if (bought && (!reach || h.recipe_on_courier)) return {false, Refusal::Courier};
  if (far && near && !reach) return {false, Refusal::Shop};
  if (!bought && !reach && near && def.recipe_cost > 0 && h.recipe >= 0) return {false, Refusal::Courier};
  return {};
}

Refusal buy(Context& c, HeroState& h, const PersonOrder& o, bool apply) {
  if (o.item < 0 || o.item >= static_cast<int>(c.tables.items.size())) return Refusal::Item;
  const ItemDef& def = item_def(c, o.item);
  if (!def.purchasable || def.excluded || !item_supported(c.tables, o.item)) return Refusal::Item;
  TeamState& team = c.world.teams[static_cast<std::size_t>(&h - c.world.heroes.data()) / 5];
  const auto& stocked = c.tables.game->stock_items;
  const std::size_t kind = std::find(stocked.begin(), stocked.end(), o.item) - stocked.begin();
  if (kind < stocked.size() && team.stock[kind] <= 0) return Refusal::Stock;
  std::uint32_t used = 0;
  int at = -1;
  if (const Purchase p = look_at(c, h, o.item, used, true, &at); p.refusal != Refusal::None) return p.refusal;
  if (!apply) return Refusal::None;
  const int bought = buy_what_can_be(c, h, o.item);
  if (bought > 0 && kind < stocked.size()) --team.stock[kind];
  h.secret_wish = -1;
  return bought > 0 ? Refusal::None : Refusal::Full;
}

bool at_shop(const Context& c, const HeroState& h) {
  if (!c.settings.courier_scripted || at_home(c, h)) return true;
  const Unit* u = c.world.get(h.unit);
  return u && u->alive &&
         std::any_of(c.tables.map->shops.begin(), c.tables.map->shops.end(),
                     [&](const MapShop& s) { return distance(s.pos, u->pos) <= c.tables.game->shop_radius; });
}

bool in_use(const Context& c, const HeroState& h, int slot) {
  const Unit* u = c.world.get(h.unit);
  return u && (u->act == Act::Channel || u->act == Act::CastWindup) && u->order.slot == 16 + slot;
}

// Whether there is something in the slot that can be moved about now.
Refusal movable(const Context& c, const HeroState& h, int slot, bool may_be_empty) {
  if (slot < 0 || slot >= kItemSlots) return Refusal::Slot;
  const ItemState& s = h.items[slot];
  if (s.id < 0) return may_be_empty ? Refusal::None : Refusal::Slot;
  if (s.on_courier) return Refusal::Courier;
  return in_use(c, h, slot) ? Refusal::Busy : Refusal::None;
}

bool stashed(int slot) { return slot >= kStashFirst && slot < kTpSlot; }

Refusal sell(Context& c, HeroState& h, const PersonOrder& o, bool apply) {
  if (const Refusal r = movable(c, h, o.slot, false); r != Refusal::None) return r;
  const int item = h.items[o.slot].id;
  if (!item_def(c, item).sellable || item == c.tables.game->aegis_item) return Refusal::Item;
  if (!stashed(o.slot) && !at_shop(c, h)) return Refusal::Shop;
  if (apply) sell_item(c, h, o.slot);
  return Refusal::None;
}

// Scrolls join those in the slot that is theirs.
Refusal put_scrolls_by(Context& c, HeroState& h, int from, bool apply) {
  const ItemState held = h.items[from];
  if (held.id < 0 || held.id != c.tables.game->tp_item) return Refusal::Slot;
  const ItemState& own = h.items[kTpSlot];
  if (own.id >= 0 && (own.id != held.id || own.charges + held.charges > kStackCharges)) return Refusal::Full;
  if (!apply) return Refusal::None;
  take_item(c, h, from);
  place_item(c, h, held.id, held.charges, false);
  return Refusal::None;
}

Refusal swap(Context& c, HeroState& h, const PersonOrder& o, bool apply) {
  if (o.slot == o.to || o.slot == kTpSlot) return Refusal::Slot;
  if (const Refusal r = movable(c, h, o.slot, false); r != Refusal::None) return r;
  if (const Refusal r = movable(c, h, o.to, true); r != Refusal::None) return r;
  if (stashed(o.slot) != stashed(o.to) && c.settings.courier_scripted && !at_home(c, h)) return Refusal::Shop;
  if (o.to == kTpSlot) return put_scrolls_by(c, h, o.slot, apply);
  if (apply) move_item(c, h, o.slot, o.to);
  return Refusal::None;
}

Outcome drop(Context& c, HeroState& h, Unit& u, const PersonOrder& o, bool apply) {
  if (!o.aimed) return {Refusal::Target};
  if (const Refusal r = movable(c, h, o.slot, false); r != Refusal::None) return {r};
  const ItemState held = h.items[o.slot];
  if (stashed(o.slot) || !item_def(c, held.id).droppable) return {Refusal::Item};
  // Ground items keep only their charges, so an item on cooldown cannot be dropped.
  if (!c.world.due(held.ready) || !c.world.due(held.enabled_at)) return {Refusal::Cooldown};
  if (held.toggle != 0) return {Refusal::Item};
  auto& ground = c.world.ground;
  const auto place = std::find_if(ground.begin(), ground.end(), [](const GroundItem& g) { return g.id < 0; });
  if (place == ground.end()) return {Refusal::Full};
  if (distance(o.at, u.pos) > kHandReach) {
    if (apply) walk_to(c, u, o.at);
    return {Refusal::None, true};
  }
  if (!apply) return {};
  *place = {held.id, held.charges, o.at};
  take_item(c, h, o.slot);
  return {};
}

Outcome pick_up(Context& c, HeroState& h, Unit& u, const PersonOrder& o, bool apply) {
  if (!o.aimed) return {Refusal::Target};
  World& w = c.world;
  float nearest = kMeantWithin;
  int rune = -1;
  GroundItem* item = nullptr;
  // Where the team believes one to be: whether it is still there is seen on arrival.
  for (int k = 0; k < kMaxPickups; ++k) {
    const Pickup& p = w.pickups[k];
    if (p.known[u.team] != 1 || distance(p.pos, o.at) >= nearest) continue;
    nearest = distance(p.pos, o.at);
    rune = k;
  }
  for (GroundItem& g : w.ground) {
    if (g.id < 0 || !cell_visible(w, u.team, g.pos) || distance(g.pos, o.at) >= nearest) continue;
    nearest = distance(g.pos, o.at);
    item = &g;
  }
  if (item) {
    if (distance(item->pos, u.pos) > kHandReach) {
      if (apply) walk_to(c, u, item->pos);
      return {Refusal::None, true};
    }
    if (!hands_take(c, h, item->id, item->charges)) return {Refusal::Full};
    if (apply && take_up(c, h, item->id, item->charges)) *item = GroundItem{};
    return {};
  }
  if (rune < 0) return {Refusal::Target};
  const Vec2 there = w.pickups[rune].pos;
  if (distance(there, u.pos) > kPickupReach) {
    if (apply) walk_to(c, u, there);
    return {Refusal::None, true};
  }
  if (apply) take_pickup(c, u, rune);
  return {};
}

}  // namespace

Outcome order_goods(Context& c, HeroState& h, const PersonOrder& o, bool apply) {
  switch (o.kind) {
    case PersonKind::Buy:
      return {buy(c, h, o, apply)};
    case PersonKind::Sell:
      return {sell(c, h, o, apply)};
    case PersonKind::Swap:
      return {swap(c, h, o, apply)};
    case PersonKind::Courier:
      if (o.errand == Errand::None) return {Refusal::Unknown};
      return {o.errand == Errand::Deliver ? send_courier(c, h, apply) : recall_courier(c, h, apply)};
    default:
      break;
  }
  Unit* u = c.world.get(h.unit);
  if (!u || !u->alive) return {Refusal::Dead};
  return o.kind == PersonKind::Drop ? drop(c, h, *u, o, apply) : pick_up(c, h, *u, o, apply);
}

}  // namespace dota
