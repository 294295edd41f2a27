// What creatures do with their abilities: camps' creeps, Roshan and summons cast whatever is ready and reaches
// somebody. They decide; the order goes the way of everybody's.
#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/modifiers.hpp"
#include "effects/orders.hpp"
#include "map/spatial.hpp"
#include "rules/casting.hpp"
#include "rules/creature_ai.hpp"
#include "rules/orders.hpp"
#include "world/loadout.hpp"

namespace dota {
namespace {

// How far an untargeted ability reaches around its caster: its widest circle.
float reach_around(const Context& c, const Unit& u, const AbilityDef& a, int level) {
  const Invocation inv = invocation_of(c, u, a.id, level);
  float reach = 0;
  for (const std::uint16_t root : a.program.roots)
    reach = std::max(reach, number(c, inv, a.program.nodes[root], Role::R));
  return reach;
}

bool restores_health(const AbilityDef& a) {
  return std::any_of(a.program.roots.begin(), a.program.roots.end(), [&](std::uint16_t root) {
    return a.program.nodes[root].prim == Prim::Heal || a.program.nodes[root].prim == Prim::Hot;
  });
}

bool carries(const World& w, const AbilityDef& a, const Unit& u) {
  return std::any_of(a.program.roots.begin(), a.program.roots.end(), [&](std::uint16_t root) {
    const int modifier = a.program.nodes[root].modifier;
    return modifier >= 0 && find_modifier(w, u, modifier) != nullptr;
  });
}

// The ally in reach that a friendly spell helps most: the weakest for a heal, else the nearest without the effect.
Unit* whom_to_help(Context& c, const Unit& u, const AbilityDef& a, int level) {
  World& w = c.world;
  const bool heals = restores_health(a);
  Unit* best = nullptr;
  float best_worth = heals ? 0.85f : 1e9f;  // a share of health; a distance
  for (Unit& ally : units_near(c, u.pos, a.at(a.cast_range, level) + u.cast_range + u.radius)) {
    if (ally.team != u.team || !ally.alive || !valid_cast_target(c, u, a, ally) || carries(w, a, ally)) continue;
    const float worth = heals ? ally.hp / std::max(1.0f, ally.max_hp) : distance(ally.pos, u.pos);
    if (worth >= best_worth) continue;
    best = &ally;
    best_worth = worth;
  }
  return best;
}

// The order that casts this ability in a fight with `enemy`; type None when it is of no use now.
Order cast_order(Context& c, Unit& u, Unit& enemy, const AbilityDef& a, int slot, int level) {
  Order o;
  o.slot = static_cast<std::int8_t>(slot);
  if (a.attack_behavior) return o;  // rides on its attacks by itself
  switch (a.target) {
    case TargetType::None: {
      const float reach = reach_around(c, u, a, level);
      if (reach <= 0 || distance(u.pos, enemy.pos) <= reach) o.type = OrderType::CastNoTarget;
      return o;
    }
    case TargetType::Unit: {
      Unit* target = &enemy;
      if (a.target_friendly && !a.target_enemy) target = whom_to_help(c, u, a, level);
      if (!target || !valid_cast_target(c, u, a, *target)) return o;
      o.target = c.world.handle(*target);
      o.point = target->pos;
      o.type = OrderType::CastUnit;
      break;
    }
    case TargetType::Point:
    case TargetType::UnitOffset:
      o.point = enemy.pos;
      o.type = OrderType::CastPoint;
      break;
    default:
      return o;
  }
  if (!cast_in_range(c, u, a, level, o)) o.type = OrderType::None;
  return o;
}

}  // namespace

bool creature_casts(Context& c, Unit& u, Unit& enemy) {
  if (u.loadout < 0) return false;
  for (int slot = 0; slot < kAbilitySlots; ++slot) {
    int level = 0;
    const AbilityDef* a = slot_ability(c, u, slot, &level);
    if (!a || !castable(c, u, slot)) continue;
    const Order o = cast_order(c, u, enemy, *a, slot, level);
    if (o.type == OrderType::None) continue;
    issue_order(c, u, o);
    return true;
  }
  return false;
}

bool busy_casting(const Unit& u) {
  return u.act == Act::CastWindup || u.act == Act::Channel || u.order.type == OrderType::CastNoTarget ||
         u.order.type == OrderType::CastPoint || u.order.type == OrderType::CastUnit;
}

void keep_attacking(Context& c, Unit& u, const Unit& target) {
  const Handle h = c.world.handle(target);
  if (u.order.type == OrderType::AttackUnit && u.order.target == h) return;
  Order o;
  o.type = OrderType::AttackUnit;
  o.target = h;
  take_order(c, u, o);
}

void keep_moving(Context& c, Unit& u, Vec2 goal) {
  if (u.order.type == OrderType::MoveTo && u.order.target.index < 0 && u.order.point.x == goal.x &&
      u.order.point.y == goal.y)
    return;
  Order o;
  o.type = OrderType::MoveTo;
  o.point = goal;
  take_order(c, u, o);
}

void rest(Context& c, Unit& u) {
  if (u.order.type == OrderType::None) return;
  take_order(c, u, Order{});
}

}  // namespace dota
