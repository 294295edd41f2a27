#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/attack.hpp"
#include "effects/modifiers.hpp"
#include "effects/orders.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "rules/casting.hpp"
#include "rules/creeps.hpp"
#include "rules/orders.hpp"
#include "rules/runes.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// Idle and attack-moving units look for enemies once in this many frames, each unit on a frame of its own.
constexpr int kSearchFrames = 5;

bool same(const Order& a, const Order& b) {
  return a.type == b.type && a.slot == b.slot && a.target == b.target && a.tree == b.tree &&
         a.point.x == b.point.x && a.point.y == b.point.y;
}

// Attacks what is near when there is nothing else to do. `reach_only`: never leaves its place for it (Hold).
void attack_nearby(Context& c, Unit& u, bool reach_only) {
  World& w = c.world;
  Unit* target = w.get(u.attack_target);
  // Nobody gives himself away without an order (tooltip of Cloak and Dagger).
  const bool hides = (u.status & kInvisible) != 0;
  if (target && (hides || !can_attack(c, u, *target) || !is_enemy(u, *target))) target = nullptr;
  const float acquisition = c.tables.units[u.type].acquisition_range;
  if (target && reach_only && !in_attack_range(u, *target)) target = nullptr;
  if (target && distance(u.pos, target->pos) > acquisition + u.radius + target->radius) target = nullptr;
  const int index = w.handle(u).index;
  if (!target && !hides && (w.frame + index) % kSearchFrames == 0)
    target = nearest_enemy(c, u, reach_only ? u.attack_range : acquisition);
  if (!target) {
    u.attack_target = Handle{};
    stop_motion(u);
    return;
  }
  attack_frame(c, u, *target);
}

// To the spot of the rune that was meant, which another may take meanwhile: whether it is still there is seen from
// near.
void run_pickup(Context& c, Unit& u) {
  World& w = c.world;
  int meant = -1;
  float nearest = kPickupReach;
  for (int i = 0; i < kMaxPickups; ++i) {
    const Pickup& p = w.pickups[i];
    if (p.kind < 0 || distance(p.pos, u.order.point) >= nearest) continue;
    nearest = distance(p.pos, u.order.point);
    meant = i;
  }
  const Pickup* p = meant < 0 ? nullptr : &w.pickups[meant];
  if (!p || u.team >= kTeams || (!p->present && p->known[u.team] == 2)) {
    end_order(c, u);
    return;
  }
  u.act = Act::Walk;
  if (move_towards(c, u, p->pos, kPickupReach)) {
    take_pickup(c, u, meant);
    end_order(c, u);
  }
}

}  // namespace

void end_order(Context& c, Unit& u) {
  (void)c;
  u.order = u.queued.type == OrderType::None ? idle_order(u) : u.queued;
  u.queued = Order{};
  if (u.act != Act::AttackBackswing) u.act = Act::Idle;
  u.velocity = Vec2{};
}

namespace {

// 0 for who attacks a hero of u's side, 1 for who attacks anyone on it, else 2.
int urgency(const World& w, const Unit& u, const Unit& other) {
  if (other.act != Act::AttackWindup && other.act != Act::AttackBackswing) return 2;
  const Unit* victim = w.get(other.attack_target);
  if (!victim || !victim->alive || victim->team != u.team) return 2;
  return victim->kind == UnitKind::Hero ? 0 : 1;
}

// The enemy of the lowest rank, of several the nearest.
template <class Rank>
Unit* first_enemy(Context& c, Unit& u, float range, std::uint32_t kinds, Rank&& rank) {
  World& w = c.world;
  if (!others_near(w, u.team, u.pos, range + u.radius)) return nullptr;
  Unit* best = nullptr;
  int best_rank = 0;
  float best_distance = 1e9f;
  for (Unit& other : units_near(c, u.pos, range + u.radius)) {
    if (!other.alive || !is_enemy(u, other) || other.kind == UnitKind::Courier || other.kind == UnitKind::Ward)
      continue;
    if (!(kinds & kind_bit(other.kind))) continue;
    // Nobody starts on neutrals by himself; lane creeps fight those that are angry (a camp that was pulled to
    // them).
    if (other.team == kNeutralTeam && u.team != kNeutralTeam &&
        (u.kind != UnitKind::LaneCreep || other.aggro_target.index < 0))
      continue;
    const float d = distance(u.pos, other.pos) - other.radius;
    if (d > range + u.radius) continue;
    const int r = rank(other);
    if (best && (r != best_rank ? r > best_rank : d >= best_distance)) continue;
    if (!can_attack(c, u, other)) continue;
    best = &other;
    best_rank = r;
    best_distance = d;
  }
  return best;
}

}  // namespace

Unit* nearest_enemy(Context& c, Unit& u, float range, std::uint32_t kinds) {
  return first_enemy(c, u, range, kinds, [](const Unit&) { return 0; });
}

Unit* most_urgent_enemy(Context& c, Unit& u, float range, std::uint32_t kinds, Handle avoid) {
  return first_enemy(c, u, range, kinds, [&](const Unit& other) {
    return c.world.handle(other) == avoid ? 3 : urgency(c.world, u, other);
  });
}

void issue_order(Context& c, Unit& u, const Order& o) {
  const bool taunted = u.status & kTaunted;
  if (!u.alive || (taunted && !is_cast(o.type))) return;
  World& w = c.world;
  if (is_cast(o.type)) {
    int level = 0;
    const AbilityDef* a = slot_ability(c, u, o.slot, &level);
    if (!a || !castable(c, u, o.slot)) return;
    const bool at_once = a->immediate || (a->ignore_channel && u.act == Act::Channel);  // the channel goes on
    if (at_once && !a->channelled && (o.type == OrderType::CastNoTarget || cast_in_range(c, u, *a, level, o))) {
      if (o.type == OrderType::CastUnit) {
        const Unit* target = w.get(o.target);
        if (!target || !valid_cast_target(c, u, *a, *target)) return;
      }
      if (u.act == Act::Channel && !a->ignore_channel) break_channel(c, u);
      cast_now(c, u, o);
      return;
    }
    if (taunted) return;
  }
  if (o.type == OrderType::AttackUnit)
    if (Unit* target = w.get(o.target)) notify_attack_order(c, u, *target);
  if (same(u.order, o)) return;
  take_order(c, u, o);
}

void carry_out_order(Context& c, Unit& u) {
  World& w = c.world;
  if (u.act == Act::Channel) {
    run_channel(c, u);
    return;
  }
  if (u.status & (kStunned | kForcedMotion)) {
    if (is_cast(u.order.type) && u.act == Act::CastWindup) end_order(c, u);
    if (u.act == Act::Walk || u.act == Act::AttackWindup) u.act = Act::Idle;
    if (!(u.status & kForcedMotion)) u.velocity = Vec2{};
    return;
  }
  switch (u.order.type) {
    case OrderType::None:
    case OrderType::Stop:
      attack_nearby(c, u, false);
      break;
    case OrderType::Hold:
      attack_nearby(c, u, true);
      break;
    case OrderType::MoveTo: {
      if (u.status & kRooted) {
        stop_motion(u);
        break;
      }
      const Unit* leader = u.order.target.index >= 0 ? w.get(u.order.target) : nullptr;
      if (u.order.target.index >= 0 && (!leader || !leader->alive)) {
        end_order(c, u);
        break;
      }
      if (u.act != Act::Walk) u.act = Act::Walk;
      const Vec2 goal = leader ? leader->pos : u.order.point;
      const float arrive = leader ? kFollowDistance + leader->radius + u.radius : kArrive;
      if (move_towards(c, u, goal, arrive)) {
        if (leader)
          stop_motion(u);
        else
          end_order(c, u);
      }
      break;
    }
    case OrderType::AttackUnit: {
      Unit* target = w.get(u.order.target);
      if (!target || !can_attack(c, u, *target)) {
        if (u.act == Act::AttackWindup) u.act = Act::Idle;
        end_order(c, u);
        break;
      }
      attack_frame(c, u, *target);
      break;
    }
    case OrderType::AttackMove: {
      Unit* target = w.get(u.attack_target);
      if (target &&
          (!can_attack(c, u, *target) ||
           distance(u.pos, target->pos) > c.tables.units[u.type].acquisition_range + u.radius + target->radius))
        target = nullptr;
      if (!target && (w.frame + w.handle(u).index) % kSearchFrames == 0)
        target = nearest_enemy(c, u, c.tables.units[u.type].acquisition_range);
      if (target) {
        attack_frame(c, u, *target);
        break;
      }
      u.attack_target = Handle{};
      if (u.status & kRooted) break;
      u.act = Act::Walk;
      if (move_towards(c, u, u.order.point, kArrive)) end_order(c, u);
      break;
    }
    case OrderType::CastNoTarget:
    case OrderType::CastPoint:
    case OrderType::CastUnit:
      run_cast(c, u);
      break;
    case OrderType::FollowLane:
      follow_lane(c, u);
      break;
    case OrderType::Pickup:
      if (u.status & kRooted)
        stop_motion(u);
      else
        run_pickup(c, u);
      break;
  }
}

}  // namespace dota
