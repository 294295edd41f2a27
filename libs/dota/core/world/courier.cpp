#include "map/map_data.hpp"
#include "world/casting.hpp"
#include "world/game_rules.hpp"
#include "world/inventory.hpp"

namespace dota {
namespace {

enum CourierState : std::uint8_t { kWaiting, kDelivering, kReturning };

// A delivery is made from this near.
constexpr float kHandOver = 200;
// It shields itself from an enemy hero who can strike it or is this much short of it.
constexpr float kDanger = 150;

bool has_stash(const HeroState& h) {
  for (int slot = kStashFirst; slot < kTpSlot; ++slot)
    if (h.items[static_cast<std::size_t>(slot)].id >= 0) return true;
  return false;
}

void put_back(HeroState& h) {
  for (ItemState& s : h.items)
    s.on_courier = false;
}

void hand_over(Context& c, HeroState& h) {
  put_back(h);
  for (int slot = kStashFirst; slot < kTpSlot; ++slot) {
    const ItemState held = h.items[static_cast<std::size_t>(slot)];
    if (held.id < 0) continue;
    h.items[static_cast<std::size_t>(slot)] = ItemState{};
    for (int to = 0; to < kItemSlots; ++to)  // the stash is last: it is where what finds no room stays
      if (to != kTpSlot && h.items[static_cast<std::size_t>(to)].id < 0) {
        h.items[static_cast<std::size_t>(to)] = held;
        break;
      }
  }
  ++h.courier_trips;
  h.items_changed = true;
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
    const HeroState& h = w.heroes[static_cast<std::size_t>(i)];
    const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive || at_home(c, h) || !has_stash(h)) continue;
    float value = 0;
    bool room = false;
    for (int slot = 0; slot < kTpSlot; ++slot) {
      const ItemState& s = h.items[static_cast<std::size_t>(slot)];
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

void fly(Context& c, int team, Unit& courier) {
  World& w = c.world;
  TeamState& t = w.teams[static_cast<std::size_t>(team)];
  const Vec2 home = courier.spawn;
  if (t.courier_state == kWaiting) {
    rest(c, courier);
    if (w.frame % kPurchaseFrames != team) return;
    const int customer = choose_customer(c, team);
    if (customer < 0) return;
    HeroState& h = w.heroes[static_cast<std::size_t>(customer)];
    for (int slot = kStashFirst; slot < kTpSlot; ++slot)
      if (h.items[static_cast<std::size_t>(slot)].id >= 0)
        h.items[static_cast<std::size_t>(slot)].on_courier = true;
    t.courier_for = h.unit;
    t.courier_state = kDelivering;
    return;
  }
  if (t.courier_state == kDelivering) {
    Unit* hero = w.get(t.courier_for);
    HeroState* h = hero && hero->hero >= 0 ? &w.heroes[static_cast<std::size_t>(hero->hero)] : nullptr;
    if (!h || !hero->alive) {
      if (h) put_back(*h);
      t.courier_state = kReturning;
      return;
    }
    if (distance(courier.pos, hero->pos) <= kHandOver) {
      hand_over(c, *h);
      t.courier_state = kReturning;
      return;
    }
    return keep_moving(c, courier, hero->pos);
  }
  if (distance(courier.pos, home) > kArrive) return keep_moving(c, courier, home);
  t.courier_state = kWaiting;
  t.courier_for = Handle{};
  rest(c, courier);
}

}  // namespace

void courier_frame(Context& c) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  for (int team = 0; team < kTeams; ++team) {
    TeamState& t = w.teams[static_cast<std::size_t>(team)];
    Unit* courier = w.get(t.courier);
    const bool flies = w.time >= g.courier_flying_at;
    if (!courier) {
      if (w.time < t.courier_respawn) continue;
      // What the lost courier carried is back in the stash.
      for (int i = team * 5; i < team * 5 + 5; ++i)
        put_back(w.heroes[static_cast<std::size_t>(i)]);
      courier = spawn_unit(c, flies ? g.flying_courier_unit : g.courier_unit, team,
                           c.tables.map->hero_spawn[static_cast<std::size_t>(team)], 0);
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
