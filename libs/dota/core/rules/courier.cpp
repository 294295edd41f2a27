#include "rules/courier.hpp"

#include "effects/abilities.hpp"
#include "effects/gold.hpp"
#include "effects/items.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"
#include "rules/casting.hpp"
#include "rules/creature_ai.hpp"
#include "rules/inventory.hpp"
#include "rules/orders.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

enum CourierState : std::uint8_t { kWaiting, kDelivering, kReturning, kShopping };

// A delivery is made from this near.
constexpr float kHandOver = 200;
// It shields itself from an enemy hero who can strike it or is this much short of it.
constexpr float kDanger = 150;

bool has_stash(const HeroState& h) {
  for (int slot = kStashFirst; slot < kTpSlot; ++slot)
    if (h.items[slot].id >= 0) return true;
  return h.recipe >= 0;
}

void put_back(HeroState& h) {
  for (ItemState& s : h.items)
    s.on_courier = false;
  h.recipe_on_courier = false;
}

// Moves all items of the stash to the courier.
void load(HeroState& h) {
  for (int slot = kStashFirst; slot < kTpSlot; ++slot)
    if (h.items[slot].id >= 0) h.items[slot].on_courier = true;
  h.recipe_on_courier = h.recipe >= 0;
}

void hand_over(Context& c, HeroState& h) {
  const bool recipe = h.recipe_on_courier;
  put_back(h);
  for (int slot = kStashFirst; slot < kTpSlot; ++slot) {
    const ItemState held = h.items[slot];
    if (held.id < 0) continue;
    h.items[slot] = ItemState{};
    if (stack_item(c, h, held.id, held.charges, false)) continue;
    if (held.id == c.tables.game->tp_item && h.items[kTpSlot].id < 0) {  // it has a slot of its own
      h.items[kTpSlot] = held;
      continue;
    }
    for (int to = 0; to < kItemSlots; ++to)  // the stash is last: it is where what finds no room stays
      if (to != kTpSlot && h.items[to].id < 0) {
        h.items[to] = held;
        break;
      }
  }
  ++h.courier_trips;
  h.items_changed = true;
  if (recipe) finish_recipe(c, h);
  if (Unit* u = c.world.get(h.unit)) {
    u->stats_dirty = true;
    apply_learned(c, *u);
  }
}

// The next hero to fly to: alive, away from home, with room and something in the stash; the richest stash first.
int choose_customer(const Context& c, int team) {
  const World& w = c.world;
  int best = -1;
  float best_value = 0;
  for (int i = team * 5; i < team * 5 + 5; ++i) {
    const HeroState& h = w.heroes[i];
    const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive || h.by_hand() || at_home(c, h) || !has_stash(h)) continue;
    float value = 0;
    bool room = h.recipe >= 0;  // it takes no slot
    if (h.recipe >= 0) value = static_cast<float>(c.tables.items[h.recipe].recipe_cost);
    for (int slot = 0; slot < kTpSlot; ++slot) {
      const ItemState& s = h.items[slot];
      if (slot >= kStashFirst)
        value += item_value(c, s);
      else
        room |= s.id < 0;
    }
    if (room && value > best_value) {
      best = i;
      best_value = value;
    }
  }
  return best;
}

// Returns the next hero with an errand to the secret shop, enough gold and room in the stash; -1 if none has one.
int choose_errand(const Context& c, int team) {
  for (int i = team * 5; i < team * 5 + 5; ++i) {
    const HeroState& h = c.world.heroes[i];
    if (!h.in_game || h.by_hand() || h.secret_wish < 0 ||
        !can_afford(h, static_cast<float>(c.tables.items[h.secret_wish].cost)))
      continue;
    for (int slot = kStashFirst; slot < kTpSlot; ++slot)
      if (h.items[slot].id < 0) return i;
  }
  return -1;
}

// At the secret shop: buys what is still wanted and can be paid. False: there is nothing more to do here.
bool buy_secretly(Context& c, HeroState& h, const Unit& courier) {
  const int item = h.secret_wish;
  if (item < 0 || !within_shop(c, courier.pos, item) ||
      !can_afford(h, static_cast<float>(c.tables.items[item].cost)))
    return false;
  int slot = -1;
  if (!buy_at(c, h, item, true, true, &slot)) return false;
  if (slot >= 0) h.items[slot].on_courier = true;
  h.secret_wish = -1;
  return true;
}

// Its shield, when an enemy hero is near enough to strike it.
void guard(Context& c, Unit& courier) {
  World& w = c.world;
  for (const HeroState& h : w.heroes) {
    const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive || u->team == courier.team || !unit_visible(w, courier.team, *u)) continue;
    if (distance(u->pos, courier.pos) > u->attack_range + u->radius + courier.radius + kDanger) continue;
    for (int slot = 0; slot < kAbilitySlots; ++slot) {
      if (!castable(c, courier, slot)) continue;
      Order o;
      o.type = OrderType::CastNoTarget;
      o.slot = static_cast<std::int8_t>(slot);
      return issue_order(c, courier, o);
    }
    return;
  }
}

void take_errand(Context& c, int team) {
  World& w = c.world;
  TeamState& t = w.teams[team];
  const int customer = choose_customer(c, team), errand = customer < 0 ? choose_errand(c, team) : -1;
  if (customer < 0 && errand < 0) return;
  HeroState& h = w.heroes[customer < 0 ? errand : customer];
  load(h);
  t.courier_for = h.unit;
  t.courier_state = customer < 0 ? kShopping : kDelivering;
}

void fly(Context& c, int team, Unit& courier) {
  World& w = c.world;
  TeamState& t = w.teams[team];
  const bool decides = w.frame % kPurchaseFrames == team;
  if (t.courier_state == kWaiting) {
    rest(c, courier);
    if (decides) take_errand(c, team);
    return;
  }
  if (t.courier_state == kDelivering || t.courier_state == kShopping) {
    Unit* hero = w.get(t.courier_for);
    HeroState* h = hero && hero->hero >= 0 ? &w.heroes[hero->hero] : nullptr;
    if (!h || (t.courier_state == kDelivering && !hero->alive)) {
      t.courier_state = kReturning;  // what it carries is in the stash again when it is home
      return;
    }
    if (t.courier_state == kShopping) {
      const Vec2 shop = nearest_secret_shop(c, courier.pos);
      if (distance(courier.pos, shop) > kHandOver) return keep_moving(c, courier, shop);
      rest(c, courier);
      // The buyer names what it wants next before the courier looks again.
      if (decides && !buy_secretly(c, *h, courier)) t.courier_state = kDelivering;
      return;
    }
    if (distance(courier.pos, hero->pos) <= kHandOver) {
      hand_over(c, *h);
      t.courier_state = kReturning;
      return;
    }
    return keep_moving(c, courier, hero->pos);
  }
  if (distance(courier.pos, courier.spawn) > kArrive) return keep_moving(c, courier, courier.spawn);
  if (Unit* hero = w.get(t.courier_for); hero && hero->hero >= 0) put_back(w.heroes[hero->hero]);
  t.courier_state = kWaiting;
  t.courier_for = Handle{};
  rest(c, courier);
}

}  // namespace

Refusal send_courier(Context& c, HeroState& h, bool apply) {
  const int team = static_cast<int>(&h - c.world.heroes.data()) / 5;
  TeamState& t = c.world.teams[team];
  const Unit* hero = c.world.get(h.unit);
  const Unit* courier = c.settings.courier_scripted ? c.world.get(t.courier) : nullptr;
  if (!courier || !has_stash(h)) return Refusal::Courier;
  if (!hero || !hero->alive) return Refusal::Dead;
  if (t.courier_state != kWaiting || distance(courier->pos, courier->spawn) > kArrive) return Refusal::Busy;
  if (!apply) return Refusal::None;
  load(h);
  t.courier_for = h.unit;
  t.courier_state = kDelivering;
  return Refusal::None;
}

Refusal recall_courier(Context& c, HeroState& h, bool apply) {
  const int team = static_cast<int>(&h - c.world.heroes.data()) / 5;
  TeamState& t = c.world.teams[team];
  const bool away = t.courier_state == kDelivering || t.courier_state == kShopping;
  if (!c.settings.courier_scripted || !c.world.get(t.courier) || !away || !(t.courier_for == h.unit))
    return Refusal::Courier;
  if (apply) t.courier_state = kReturning;
  return Refusal::None;
}

void courier_frame(Context& c) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  for (int team = 0; team < kTeams; ++team) {
    TeamState& t = w.teams[team];
    Unit* courier = w.get(t.courier);
    const bool flies = w.time >= g.courier_flying_at;
    if (!courier) {
      if (!w.due(t.courier_respawn)) continue;
      // What the lost courier carried is back in the stash.
      for (int i = team * 5; i < team * 5 + 5; ++i)
        put_back(w.heroes[i]);
      courier =
          spawn_unit(c, flies ? g.flying_courier_unit : g.courier_unit, team, c.tables.map->hero_spawn[team], 0);
      if (!courier) continue;
      t.courier = w.handle(*courier);
      t.courier_state = kWaiting;
    }
    if (flies && courier->type != static_cast<std::uint16_t>(g.flying_courier_unit)) {
      courier->type = static_cast<std::uint16_t>(g.flying_courier_unit);
      courier->status = inherent_status(c, *courier);
      refresh_stats(c, *courier);
    }
    if (!c.settings.courier_scripted) continue;
    if (w.frame % kPurchaseFrames == 0) guard(c, *courier);
    fly(c, team, *courier);
  }
}

}  // namespace dota
