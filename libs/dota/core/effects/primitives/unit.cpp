// Primitives of the group "unit".
#include <algorithm>
#include <cmath>

#include "base/math.hpp"
#include "effects/modifiers.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

// A summon that stands for as long as its caster channels: nothing touches it, and its area shoots for it.
void guard(Context& c, const Invocation& inv, const EffectNode& n, int node, Unit& u) {
  if (Modifier* m = add_modifier(c, u, inv, n, node, kForever)) {
    m->status = kInvulnerable | kUntargetable | kDisarmed;
    refresh_status(c, u);
  }
  Area* a = new_area(c, inv, node, u.pos, 0, number(c, inv, n, Role::Dur));
  if (!a) return;
  a->follow = c.world.handle(u);
  a->interval = u.attack_interval;
  a->next_tick = c.world.time + a->interval;
}

void summon(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (n.unit < 0) return;
  const int count = static_cast<int>(number(c, inv, n, Role::Count, nullptr, 1));
  const Vec2 at = n.at == Where::Point ? inv.point : caster ? caster->pos : inv.centre;
  const float facing = caster ? caster->facing : 0;
  for (int i = 0; i < count; ++i) {
    Unit* u = spawn_unit(c, n.unit, inv.team, free_place(c.world, *c.tables.map, at, 16), facing);
    if (!u) return;
    u->owner = inv.caster;
    if (n.on == Trigger::Channel) guard(c, inv, n, node, *u);
    const float life = number(c, inv, n, Role::Dur);
    if (life > 0) u->expires = c.world.time + life;
    if (n.given(Role::AttackDamage)) u->extra_dmg = number(c, inv, n, Role::AttackDamage) - u->dmg_min;
    if (n.given(Role::HitsToKill))
      u->hits_hero = static_cast<std::int8_t>(
          std::max(1.0f, static_cast<float>(u->hits_left) / number(c, inv, n, Role::HitsToKill)));
    if (!n.stats.empty() && n.on != Trigger::Channel) add_modifier(c, *u, inv, n, node, kForever);
    u->stats_dirty = true;
    run_on(c, inv, n.then_first, n.then_count, *u);
  }
}

// A missile that waits, then flies at its target, faster and faster; blows of heroes and towers bring it down.
void missile(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  Unit* target = c.world.get(inv.target);
  if (!caster || !target || n.unit < 0) return;
  Unit* u = spawn_unit(c, n.unit, inv.team, caster->pos, caster->facing);
  if (!u) return;
  u->owner = inv.caster;
  const int hero = static_cast<int>(number(c, inv, n, Role::HitsToKill, nullptr, 1));
  const int tower = static_cast<int>(number(c, inv, n, Role::HitsToKillTower, nullptr, static_cast<float>(hero)));
  u->hits_left = static_cast<std::int8_t>(hero * tower);
  u->hits_hero = static_cast<std::int8_t>(tower);
  u->hits_tower = static_cast<std::int8_t>(hero);
  u->aggro_target = inv.target;
  Area* a = new_area(c, inv, node, u->pos, 0, kForever);
  if (!a) return remove_unit(c, *u);
  a->follow = c.world.handle(*u);
  a->interval = kDt;
  a->next_tick = c.world.time + number(c, inv, n, Role::Windup);
}

}  // namespace

void fly_missile(Context& c, Area& a, const EffectNode& n) {
  World& w = c.world;
  Unit* u = w.get(a.follow);
  Unit* target = u ? w.get(u->aggro_target) : nullptr;
  const Unit* caster = w.get(a.owner);
  if (!u || !target || !target->alive || !caster) {
    a.active = false;
    if (u) remove_unit(c, *u);
    return;
  }
  Invocation inv = invocation_of(c, *caster, a.ability, a.level);
  inv.target = w.handle(*target);
  const float flown = w.time - a.start - number(c, inv, n, Role::Windup);
  const float step =
      (number(c, inv, n, Role::Speed) + number(c, inv, n, Role::Accel) * std::max(0.0f, flown)) * kDt;
  const Vec2 d = target->pos - u->pos;
  const float far = d.length();
  if (far > step + target->radius) {
    a.gathered += step;
    u->facing = angle_of(d.y, d.x);
    return place_unit(w, *u, u->pos + d * (step / far));
  }
  // The farther it flew, the harder it strikes.
  const float low = number(c, inv, n, Role::DamageMin), high = number(c, inv, n, Role::DamageMax);
  const float share = std::min(1.0f, a.gathered / std::max(1.0f, number(c, inv, n, Role::MaxAtDist)));
  a.active = false;
  const int node = a.node;
  remove_unit(c, *u);
  if (!affects(c, inv, n, *target)) return;
  const float lasts = number(c, inv, n, Role::Stun) * (1 - target->status_resist);
  if (Modifier* m = add_modifier(c, *target, inv, n, node, lasts)) {
    m->status |= kStunned;
    refresh_status(c, *target);
  }
  ability_damage(c, inv, *target, low + (high - low) * share, n.type);
}

std::span<const PrimitiveSpec> unit_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Summon, summon, kActs, kLasts, 0,
       "unit dur count attack_damage targets stats bounces bounce_r true_strike hits_to_kill then", ""},
      {Prim::MissileUnit, missile, kActs, kLasts, 0,
       "windup speed accel hits_to_kill hits_to_kill_tower damage_min damage_max max_at_dist stun",
       "reveals_target: a missile's owner sees what it flies at by the missile's own eyes"},
  };
  return kSpecs;
}

}  // namespace dota
