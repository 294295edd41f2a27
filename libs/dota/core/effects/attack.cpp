#include <algorithm>
#include <cmath>

#include "effects/attack.hpp"
#include "effects/damage.hpp"
#include "effects/interpreter.hpp"
#include "effects/triggers.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/protection.hpp"
#include "map/vision.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// Seconds for which an attack from fog or high ground shows the attacker (Liquipedia, Vision, 2017).
constexpr float kShownSeconds = 2;

bool can_deny(const Context& c, const Unit& target) {
  const Rules& r = c.tables.rules;
  const float share = target.hp / std::max(1.0f, target.max_hp);
  if (target.status & kUndeniable) return false;
  switch (target.kind) {
    case UnitKind::LaneCreep:
      return share < r.deny_creep_frac;
    case UnitKind::Tower:
      return share < r.deny_tower_frac;
    case UnitKind::Hero:
      return (target.status & kDeniable) && share < r.deny_hero_frac;
    default:
      return false;
  }
}

void launch(Context& c, Unit& u, Unit& target) {
  World& w = c.world;
  const UnitDef& def = c.tables.units[u.type];
  const bool ranged = def.projectile_speed > 0;
  const int low = floor_to_int(u.dmg_min), high = floor_to_int(u.dmg_max);
  AttackRoll roll;
  roll.base = static_cast<float>(low + w.rng.below(std::max(0, high - low) + 1));
  roll.damage = roll.base + u.dmg_bonus;
  u.last_attack = w.time;
  if (target.team < kTeams && target.team != u.team && !cell_visible(w, target.team, u.pos))
    u.shown_until = w.time + kShownSeconds;
  on_attack_start(c, u, target, roll);
  const bool missed = !roll.true_strike && attack_misses(c, u, target, ranged);
  if (!ranged) {
    land_attack(c, &u, target, missed ? -1 : roll.damage, roll.crit);
    if (missed && roll.sure > 0) deal_damage(c, {.source = &u, .target = &target, .amount = roll.sure});
    return;
  }
  Projectile* p = free_projectile(w);
  if (!p) return;
  p->kind = Projectile::Kind::Attack;
  p->team = u.team;
  p->source = w.handle(u);
  p->target = w.handle(target);
  p->pos = p->origin = u.pos;
  p->goal = target.pos;
  p->speed = def.projectile_speed;
  p->damage = missed ? -1 : roll.damage;
  p->crit = roll.crit;
}

}  // namespace

bool attack_misses(Context& c, const Unit& a, const Unit& b, bool ranged) {
  World& w = c.world;
  if (a.status & kTrueStrike) return false;
  float hit = (1 - a.miss) * (1 - b.evasion);
  if (ranged && a.kind != UnitKind::Tower && a.kind != UnitKind::Fountain &&
      elevation(*c.tables.map, b.pos) > elevation(*c.tables.map, a.pos))
    hit *= 1 - c.tables.rules.uphill_miss_pct / 100;
  if (hit >= 1) return false;
  const float accuracy = c.tables.units[a.type].accuracy;
  return w.rng.uniform() >= accuracy + (1 - accuracy) * hit;
}

bool can_attack(const Context& c, const Unit& a, const Unit& b) {
  if (!b.alive || &a == &b) return false;
  if (b.status & (kInvulnerable | kBanished | kUntargetable | kEthereal | kAttackImmune)) return false;
  if (b.kind == UnitKind::Summon && b.max_hp <= 0) return false;
  if (a.team == b.team) return a.hero >= 0 && can_deny(c, b);
  if (b.building && building_protected(c, b)) return false;
  if (a.team < kTeams) return unit_visible(c.world, a.team, b);
  return !(b.status & kInvisible);
}

bool in_attack_range(const Unit& a, const Unit& b) {
  const float reach = a.attack_range + a.radius + b.radius;
  const Vec2 d = b.pos - a.pos;
  return d.dot(d) <= reach * reach;
}

void attack_frame(Context& c, Unit& u, Unit& target) {
  World& w = c.world;
  u.attack_target = w.handle(target);
  if (u.act == Act::AttackWindup) {
    // The swing is lost when the target leaves the reach by more than the buffer, or the attacker is stopped.
    const float reach = u.attack_range + u.radius + target.radius + c.tables.game->attack_range_buffer;
    if (!can_attack(c, u, target) || (u.status & (kStunned | kDisarmed | kHexed)) ||
        distance(u.pos, target.pos) > reach) {
      u.act = Act::Idle;
      return;
    }
    if (w.due(u.act_until)) {
      // From where the swing began, which no float has rounded, unless the attack speed changed on the way.
      const double ends = u.attack_ready + u.attack_point;
      if (std::abs(ends - u.act_until) > kTimeSlack)
        u.attack_ready = static_cast<double>(u.act_until) - u.attack_point;
      u.attack_ready += u.attack_interval;
      u.act = Act::AttackBackswing;
      u.act_until = static_cast<float>(u.attack_ready);
      launch(c, u, target);
    }
    return;
  }
  if (u.status & (kStunned | kDisarmed | kHexed)) return;
  if (!in_attack_range(u, target)) {
    if (u.act == Act::AttackBackswing) u.act = Act::Idle;
    if (u.move_speed <= 0 || (u.status & kRooted)) return;
    u.act = Act::Walk;
    move_towards(c, u, target.pos, u.attack_range + u.radius + target.radius - 1);
    return;
  }
  if (u.move_speed > 0 && !turn_towards(c, u, target.pos)) return;
  if (!w.due(u.attack_ready)) {
    if (u.act == Act::Walk) u.act = Act::Idle;
    return;
  }
  u.act = Act::AttackWindup;
  // An interval that ended within the last frame starts the next swing where it ended, so that no time is lost.
  if (u.attack_ready <= w.time - kDt - kTimeSlack) u.attack_ready = w.time;
  u.act_until = static_cast<float>(u.attack_ready + u.attack_point);
  if (w.due(u.act_until)) attack_frame(c, u, target);
}

void strike_at_once(Context& c, Unit& source, Unit& target, AttackRoll roll) {
  const int low = floor_to_int(source.dmg_min), high = floor_to_int(source.dmg_max);
  roll.base = static_cast<float>(c.world.rng.between(low, std::max(low, high)));
  roll.damage = roll.base + source.dmg_bonus;
  roll.instant = true;
  on_attack_start(c, source, target, roll);
  land_attack(c, &source, target, roll.damage, roll.crit);
}

void land_attack(Context& c, Unit* source, Unit& target, float damage, bool crit) {
  (void)crit;
  if (damage < 0 || !target.alive) return;
  if (target.status & (kInvulnerable | kBanished | kEthereal | kAttackImmune)) return;
  const float extra = source ? before_attack_lands(c, *source, target) : 0;
  const float dealt = deal_damage(c, {.source = source,
                                      .target = &target,
                                      .amount = damage + extra,
                                      .type = DamageType::Physical,
                                      .attack = true});
  if (!source || !source->alive) return;
  if (source->lifesteal > 0 && dealt > 0 && !target.building) heal(c, *source, dealt * source->lifesteal);
  on_attack_landed(c, *source, target, dealt, damage);
}

}  // namespace dota
