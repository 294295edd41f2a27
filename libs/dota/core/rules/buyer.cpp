#include <algorithm>
#include <limits>

#include "effects/gold.hpp"
#include "effects/items.hpp"
#include "effects/program_node.hpp"
#include "map/map_data.hpp"
#include "rules/inventory.hpp"
#include "rules/lineup.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// From when on a team buys these, and until when: game time, seconds. Not from a source: the usual times of league
// games, when the first creeps are no longer all that matters.
constexpr float kDetectionFrom = 300, kSmokeFrom = 480, kGemFrom = 1200, kRaindropsUntil = 1500;

// Have: it is there; Bought: a part of it was bought or assembled; Done: it itself was; Wait: not enough gold or
// room.
enum class Step { Have, Bought, Done, Wait };

// Spends unreliable gold first. Items for the courier emit no GoldSpent signal.
void spend(HeroState& h, float cost, bool by_courier) {
  const float loose = std::min(h.gold, cost);
  h.gold -= loose;
  h.reliable -= cost - loose;
  h.spent += cost;
  if (!by_courier) signal(h, Signal::GoldSpent, cost);
}

bool is_part_of(const Tables& t, int part, int whole) {
  for (const auto& recipe : t.items[whole].recipes)
    for (int component : recipe)
      if (component == part || is_part_of(t, part, component)) return true;
  return false;
}

// Sells the least valuable item that no later item of the build is made of, worth at most so much, to make room.
bool sell_cheapest(Context& c, HeroState& h, float most) {
  const HeroDef& def = c.tables.heroes[h.def];
  int worst = -1;
  for (int slot = 0; slot < kStashFirst; ++slot) {
    const ItemState& s = h.items[slot];
    if (s.id < 0 || s.id == c.tables.game->aegis_item) continue;
    if (item_value(c, s) > most) continue;
    bool needed = h.build_insert >= 0 && is_part_of(c.tables, s.id, h.build_insert);
    for (std::size_t k = h.build_next; k < def.item_order.size() && !needed; ++k)
      needed = is_part_of(c.tables, s.id, def.item_order[k]);
    if (!needed && (worst < 0 || item_value(c, s) < item_value(c, h.items[worst]))) worst = slot;
  }
  if (worst < 0) return false;
  sell_item(c, h, worst);
  return true;
}

Step buy_basic(Context& c, HeroState& h, int item) {
  const ItemDef& def = c.tables.items[item];
  const Counter counter = counter_of(c, h, item);
  if (counter == Counter::Nowhere) h.secret_wish = static_cast<std::int16_t>(item);
  if (counter == Counter::Nowhere || !can_afford(h, static_cast<float>(def.cost))) return Step::Wait;
  const bool stash = counter == Counter::Stash;
  // A consumable never replaces a more expensive item.
  const float most = def.consumable ? static_cast<float>(def.cost) : std::numeric_limits<float>::infinity();
  if ((item != c.tables.game->tp_item || stash) && free_slots(h, stash) == 0) {
    const bool stacks = def.stackable && held_charges(h, item) > 0;
    if (!stacks && (stash || h.by_hand() || !sell_cheapest(c, h, most))) return Step::Wait;
  }
  return buy_at(c, h, item, stash, stash) ? Step::Done : Step::Wait;
}

// Takes the next step towards owning `item`: finds it among the slots not yet `used`, or buys or assembles one
// thing.
Step acquire(Context& c, HeroState& h, int item, std::uint32_t& used, bool fresh, int* at) {
  if (!fresh)
    for (int slot = 0; slot < kItemSlots; ++slot)
      if (!(used >> slot & 1u) && h.items[slot].id == item) {
        used |= 1u << slot;
        *at = slot;
        return Step::Have;
      }
  const ItemDef& def = c.tables.items[item];
  if (def.recipes.empty()) return buy_basic(c, h, item);

  const std::vector<int>& recipe = choose_recipe(h, def);
  std::uint32_t parts = 0;
  bool waiting = false;
  for (int component : recipe) {
    int slot = -1;
    const Step s = acquire(c, h, component, used, false, &slot);
    if (s == Step::Bought || s == Step::Done) return Step::Bought;
    if (s == Step::Wait)
      waiting = true;
    else
      parts |= 1u << slot;
  }
  const bool bought = h.recipe == item;
  if (waiting || (!bought && !can_afford(h, static_cast<float>(def.recipe_cost)))) return Step::Wait;
  // Parts must lie together: all with the hero, or all in the stash; the courier brings the rest.
  const std::uint32_t stash_bits = ((1u << kTpSlot) - 1) & ~((1u << kStashFirst) - 1);
  const bool any_stash = parts & stash_bits, all_stash = !(parts & ~stash_bits);
  const bool reach = !goes_to_stash(c, h);
  for (int slot = kStashFirst; slot < kTpSlot; ++slot)
    if ((parts >> slot & 1u) && h.items[slot].on_courier) return Step::Wait;
  if (bought && (!reach || h.recipe_on_courier)) return Step::Wait;  // it is on its way
  if (any_stash && !all_stash && !reach) return Step::Wait;
  if (!bought && !reach && !all_stash && def.recipe_cost > 0) {
    // Bought at home, to be flown to the parts that the hero has.
    if (h.recipe >= 0) return Step::Wait;
    spend(h, static_cast<float>(def.recipe_cost), true);
    h.recipe = static_cast<std::int16_t>(item);
    return Step::Bought;
  }
  if (bought)
    h.recipe = -1;
  else
    spend(h, static_cast<float>(def.recipe_cost), !reach);
  int charges = 0;
  for (int slot = 0; slot < kItemSlots; ++slot) {
    if (!(parts >> slot & 1u)) continue;
    charges += c.tables.items[h.items[slot].id].requires_charges ? h.items[slot].charges : 0;
    h.items[slot] = ItemState{};
  }
  place_item(c, h, item, std::max(charges, def.initial_charges), any_stash && all_stash && !reach);
  record_hero_event(c, EventKind::Assembled, h, nullptr, item);
  return Step::Done;
}

// The item the build wants now, or -1 when it is complete; past entries that are left out.
int wanted_item(const Context& c, HeroState& h) {
  const HeroDef& def = c.tables.heroes[h.def];
  while (h.build_next < static_cast<int>(def.item_order.size())) {
    const int item = def.item_order[h.build_next];
    const bool dropped = h.build_next < 32 && (h.build_skip >> h.build_next & 1u);
    if (!dropped && item_supported(c.tables, item)) break;
    ++h.build_next;
  }
  return next_item(c, h);
}

// Upkeep (consumables, scrolls, wards) stays within its share of all the gold that the hero has had: without such
// a bound a hero that uses what it holds buys nothing else.
bool upkeep_allows(const Context& c, const HeroState& h, int item) {
  const float cost = static_cast<float>(c.tables.items[item].cost);
  return !(h.upkeep + cost > c.settings.upkeep_share * h.income);
}

bool buy_upkeep(Context& c, HeroState& h, int item) {
  if (!upkeep_allows(c, h, item) || buy_basic(c, h, item) != Step::Done) return false;
  h.upkeep += static_cast<float>(c.tables.items[item].cost);
  return true;
}

bool keep_stocked(Context& c, HeroState& h, int item, int target) {
  if (item < 0 || target <= 0 || held_charges(h, item) >= target || !item_supported(c.tables, item)) return false;
  return buy_upkeep(c, h, item);
}

// The next entry of the build, when it was this one.
void advance_past(const Context& c, HeroState& h, int item) {
  const HeroDef& def = c.tables.heroes[h.def];
  if (item == h.build_insert)
    h.build_insert = -1;
  else if (h.build_next < static_cast<int>(def.item_order.size()) && def.item_order[h.build_next] == item)
    ++h.build_next;
}

// One step of the build; false when it is complete or has to wait for gold or room.
bool advance_build(Context& c, HeroState& h) {
  const int item = wanted_item(c, h);
  if (item < 0) return false;
  std::uint32_t used = 0;
  int at = -1;
  const Step taken = acquire(c, h, item, used, true, &at);
  if (taken == Step::Done) advance_past(c, h, item);
  return taken == Step::Done || taken == Step::Bought;
}

// What a team holds one of for all of it (wards, dust, smoke): its poorest hero buys it, if it has room for it.
// `stock`: index into TeamState::stock; -1: the shop never runs out.
bool buy_shared(Context& c, HeroState& h, int item, int stock) {
  World& w = c.world;
  const int index = static_cast<int>(&h - w.heroes.data()), team = index / 5;
  TeamState& t = w.teams[team];
  // What fails most often is asked first.
  if (item < 0 || w.heroes_per_team < 2 || !upkeep_allows(c, h, item) || (stock >= 0 && t.stock[stock] <= 0) ||
      free_slots(h, false) == 0 || !item_supported(c.tables, item))
    return false;
  for (int i = team * 5; i < team * 5 + 5; ++i)
    if (w.heroes[i].in_game && held_charges(w.heroes[i], item) > 0) return false;
  const float own = net_worth(c, h);
  for (int i = team * 5; i < team * 5 + 5; ++i) {
    const HeroState& mate = w.heroes[i];
    if (!mate.in_game || i == index) continue;
    const float other = net_worth(c, mate);
    if (other < own || (other == own && i < index)) return false;
  }
  if (!buy_upkeep(c, h, item)) return false;
  if (stock >= 0) --t.stock[stock];
  return true;
}

// Whether one of the other team's heroes can become invisible by itself: that is known from the draft.
bool enemies_hide(const Context& c, int team) {
  for (int i = (1 - team) * 5; i < (1 - team) * 5 + 5; ++i) {
    const HeroState& h = c.world.heroes[i];
    if (h.in_game && c.tables.heroes[h.def].hides) return true;
  }
  return false;
}

// Buys one gem for the team. It is expensive, so a hero must have saved for it from its upkeep share.
bool buy_gem(Context& c, HeroState& h) {
  World& w = c.world;
  const int item = c.tables.game->stock_items[0], team = static_cast<int>(&h - w.heroes.data()) / 5;
  TeamState& t = w.teams[team];
  if (item < 0 || w.time < kGemFrom || t.stock[0] <= 0 || !upkeep_allows(c, h, item) || free_slots(h, false) == 0)
    return false;
  for (int i = team * 5; i < team * 5 + 5; ++i)
    if (held_charges(w.heroes[i], item) > 0) return false;
  if (!enemies_hide(c, team) || !buy_upkeep(c, h, item)) return false;
  --t.stock[0];
  return true;
}

// Each hero for itself, while the enemy's spells are what kills it.
bool buy_raindrops(Context& c, HeroState& h) {
  TeamState& t = c.world.teams[static_cast<std::size_t>(&h - c.world.heroes.data()) / 5];
  const int item = c.tables.game->stock_items[3];
  if (item < 0 || c.world.time > kRaindropsUntil || t.stock[3] <= 0 || held_charges(h, item) > 0 ||
      free_slots(h, false) == 0 || !item_supported(c.tables, item) || !buy_upkeep(c, h, item))
    return false;
  --t.stock[3];
  return true;
}

// What a team of more than one keeps besides: sight, what shows the invisible, smoke.
void buy_for_team(Context& c, HeroState& h) {
  const GameRules& g = *c.tables.game;
  if (c.world.heroes_per_team < 2) return;
  if (buy_shared(c, h, g.observer_item, 2)) return;
  const int team = static_cast<int>(&h - c.world.heroes.data()) / 5;
  if (c.world.time > kDetectionFrom) {
    if (buy_shared(c, h, g.sentry_item, -1)) return;
    if (enemies_hide(c, team) && buy_shared(c, h, g.dust_item, -1)) return;
    if (buy_gem(c, h)) return;
  }
  if (c.world.time > kSmokeFrom && buy_shared(c, h, g.stock_items[1], 1)) return;
  buy_raindrops(c, h);
}

}  // namespace

bool goes_to_stash(const Context& c, const HeroState& h) { return c.settings.courier_scripted && !at_home(c, h); }

int free_slots(const HeroState& h, bool stash) {
  int n = 0;
  for (int slot = stash ? kStashFirst : 0; slot < kTpSlot; ++slot)
    n += h.items[slot].id < 0;
  return n;
}

int next_item(const Context& c, const HeroState& h) {
  if (h.build_insert >= 0 && h.build_next > 0) return h.build_insert;
  const auto& order = c.tables.heroes[h.def].item_order;
  const std::size_t next = std::max<int>(h.build_next, 0);
  return next < order.size() ? order[next] : -1;
}

const std::vector<int>& choose_recipe(const HeroState& h, const ItemDef& def) {
  const std::vector<int>* best = &def.recipes.front();
  int most = -1;
  for (const auto& recipe : def.recipes) {
    int have = 0;
    for (int component : recipe)
      for (const ItemState& s : h.items)
        have += s.id == component;
    if (have > most) {
      most = have;
      best = &recipe;
    }
  }
  return *best;
}

void sell_item(Context& c, HeroState& h, int slot) {
  // Recently bought items are refunded in full.
  const ItemState sold = h.items[slot];
  const bool fresh = !c.world.due(sold.bought_at + c.tables.game->full_refund);
  const float gold = item_value(c, sold) * (fresh ? 1.0f : c.tables.game->sell_fraction);
  h.gold += gold;
  record_hero_event(c, EventKind::Sold, h, nullptr, sold.id, gold);
  take_item(c, h, slot);
}

int buy_what_can_be(Context& c, HeroState& h, int item) {
  constexpr int kMostParts = 32;
  for (int bought = 0; bought < kMostParts; ++bought) {
    std::uint32_t used = 0;
    int at = -1;
    const Step taken = acquire(c, h, item, used, true, &at);
    if (taken == Step::Done) return bought + 1;
    if (taken != Step::Bought) return bought;
  }
  return kMostParts;
}

void skip_owned(const Context& c, HeroState& h) {
  std::uint32_t counted = 0;
  for (;;) {
    const int item = wanted_item(c, h);
    if (item < 0 || item == h.build_insert) return;
    int slot = 0;
    while (slot < kItemSlots && ((counted >> slot & 1u) || h.items[slot].id != item))
      ++slot;
    if (slot == kItemSlots) return;
    counted |= 1u << slot;
    ++h.build_next;
  }
}

bool can_afford(const HeroState& h, float cost) { return h.gold + h.reliable >= cost; }

bool buy_at(Context& c, HeroState& h, int item, bool to_stash, bool by_courier, int* at) {
  const ItemDef& def = c.tables.items[item];
  int slot = -1;
  if (!place_item(c, h, item, def.initial_charges, to_stash, &slot)) return false;
  if (slot >= 0) h.items[slot].bought_at = c.world.time;
  if (at) *at = slot;
  spend(h, static_cast<float>(def.cost), by_courier);
  record_hero_event(c, EventKind::Bought, h, nullptr, item, static_cast<float>(def.cost));
  return true;
}

void finish_recipe(Context& c, HeroState& h) {
  const int item = h.recipe;
  if (item < 0) return;
  h.recipe = -1;
  h.recipe_on_courier = false;
  const ItemDef& def = c.tables.items[item];
  std::uint32_t parts = 0;
  int charges = 0;
  for (const int component : choose_recipe(h, def)) {
    int found = -1;
    for (int slot = 0; slot < kStashFirst && found < 0; ++slot)
      if (!(parts >> slot & 1u) && h.items[slot].id == component) found = slot;
    if (found < 0) {
      h.gold += static_cast<float>(def.recipe_cost);
      h.spent -= static_cast<float>(def.recipe_cost);
      return;
    }
    parts |= 1u << found;
    if (c.tables.items[component].requires_charges) charges += h.items[found].charges;
  }
  for (int slot = 0; slot < kStashFirst; ++slot)
    if (parts >> slot & 1u) h.items[slot] = ItemState{};
  place_item(c, h, item, std::max(charges, def.initial_charges), false);
  record_hero_event(c, EventKind::Assembled, h, nullptr, item);
  advance_past(c, h, item);
}

void purchase(Context& c, HeroState& h) {
  const GameRules& g = *c.tables.game;
  h.secret_wish = -1;
  if (advance_build(c, h)) return;
  if (keep_stocked(c, h, g.tp_item, h.keep[3])) return;
  if (c.world.time < h.keep_until) {
    if (keep_stocked(c, h, g.tango_item, h.keep[0]) || keep_stocked(c, h, g.salve_item, h.keep[1]) ||
        keep_stocked(c, h, g.clarity_item, h.keep[2]))
      return;
  }
  buy_for_team(c, h);
}

}  // namespace dota
