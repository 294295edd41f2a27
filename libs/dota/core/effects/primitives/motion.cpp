// Primitives of the group "motion".
#include <algorithm>
#include <cmath>

#include "base/math.hpp"
#include "effects/modifiers.hpp"
#include "effects/running.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

// A leash does not hold who blinks or teleports away (tooltip of Pounce in 7.19), nor who is pushed (patch 7.20).
void break_leashes(Context& c, Unit& u) {
  each_modifier(c, u, [&](Modifier&, const EffectNode& n, int i) {
    if (n.prim == Prim::Leash) remove_modifier(c, i);
  });
}

void jump(Context& c, Unit& u, Vec2 p) {
  break_leashes(c, u);
  unlist_unit(c.world, u);  // the unit must not block itself
  place_unit(c.world, u, free_place(c.world, *c.tables.map, p, u.radius));
  u.velocity = Vec2{};
  u.path = -1;
}

void blink(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* u = c.world.get(inv.caster);
  if (!u) return;
  Vec2 goal = inv.point;
  if (n.to == Who::BehindTarget || n.to == Who::Target) {
    const Unit* t = c.world.get(inv.target);
    if (!t) return;
    const bool behind = n.to == Who::BehindTarget;
    const Vec2 d = t->pos - u->pos;
    const float far = d.length();
    const Vec2 along = behind || far < 1 ? heading(t->facing) : d * (1 / far);
    goal = t->pos - along * (t->radius + u->radius);
    u->facing = behind || far < 1 ? t->facing : angle_of(d.y, d.x);
    if (n.given(Role::AttacksTarget) && t->team != u->team) {
      u->queued = Order{};
      u->queued.type = OrderType::AttackUnit;
      u->queued.target = inv.target;
    }
  } else {
    const Vec2 d = goal - u->pos;
    const float far = d.length(), max = number(c, inv, n, Role::Max);
    const float min = number(c, inv, n, Role::Min);
    if (far > max) goal = u->pos + d * (number(c, inv, n, Role::OvershootTo, nullptr, max) / far);
    if (far < min) goal = u->pos + (far > 1 ? d * (1 / far) : heading(u->facing)) * min;
  }
  if (n.given(Role::Disjoint)) disjoint(c, *u);
  jump(c, *u, goal);
}

void shove(Context& c, const Invocation& inv, const EffectNode& n, int node, Unit& u, Vec2 along) {
  const float dist = number(c, inv, n, Role::Dist), dur = number(c, inv, n, Role::Dur);
  if (dist <= 0 || dur <= 0) return;
  if (Modifier* m = add_modifier(c, u, inv, n, node, dur)) m->motion = along * (dist / dur);
}

void knockback(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  const Unit* target = c.world.get(inv.target);
  for (Unit& u : select_targets(c, inv, n)) {
    const Unit* from = &u == caster ? target : caster;
    Vec2 d = from ? u.pos - from->pos : u.pos - inv.centre;
    const float len = d.length();
    d = len > 1 ? d * (1 / len) : (from ? heading(from->facing) : heading(u.facing));
    shove(c, inv, n, node, u, d);
  }
}

// Walks the target towards the caster, by a share of the way in the time it lasts.
void pull(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  for (Unit& u : select_targets(c, inv, n)) {
    const float dur = number(c, inv, n, Role::Dur);
    if (Modifier* m = add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u)))
      m->motion = (caster->pos - u.pos) * (number(c, inv, n, Role::MovesToPctOfDistance) / 100 / dur);
  }
}

void force_push(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n)) {
    break_leashes(c, u);
    shove(c, inv, n, node, u, heading(u.facing));
  }
}

// Where a teleport to the target or point arrives: beside the allied building (or unit) nearest to it.
bool arrival(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& caster, Vec2& out,
             Handle& at) {
  const World& w = c.world;
  const Unit* anchor = nullptr;
  float best = 0;
  for (int i = 0; i < w.units_end; ++i) {
    const Unit& u = w.units[i];
    if (!u.alive || u.team != inv.team || &u == &caster) continue;
    const bool creep = u.kind == UnitKind::LaneCreep;
    bool allowed = is_building(u.kind) && u.kind != UnitKind::Filler;
    if (n.to == Who::AlliedBuildingOrCreep) allowed = allowed || creep;
    if (n.to == Who::AlliedBuildingCreepOrHero) allowed = allowed || creep || u.kind == UnitKind::Hero;
    if (!allowed) continue;
    if (w.handle(u) == inv.target) {
      anchor = &u;
      break;
    }
    const float d = distance(u.pos, inv.point);
    if (!anchor || d < best) {
      anchor = &u;
      best = d;
    }
  }
  if (!anchor) return false;
  at = w.handle(*anchor);
  Vec2 d = inv.point - anchor->pos;
  const float far = d.length();
  const float max = number(c, inv, n, Role::MaxDist), min = number(c, inv, n, Role::MinDist);
  if (far < 1) d = Vec2{1, 0};
  const float keep = std::clamp(far, std::min(min + anchor->radius, max), max);
  out = anchor->pos + d * (keep / std::max(far, 1.0f));
  return true;
}

// The oldest entry makes room.
void note_arrival(World& w, const Unit& u, Handle anchor) {
  if (u.team >= kTeams) return;
  auto& list = w.teams[u.team].arrivals;
  *std::min_element(list.begin(), list.end(), [](const Arrival& a, const Arrival& b) { return a.at < b.at; }) = {
      anchor, w.time, u.hero};
}

void teleport(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* u = c.world.get(inv.caster);
  Vec2 goal;
  Handle anchor;
  if (!u || !arrival(c, inv, n, *u, goal, anchor)) return;
  note_arrival(c.world, *u, anchor);
  // The destination waits in an area that the end of the channel finds.
  new_area(c, inv, node, goal, 0, kForever);
}

// Flies ahead until it meets somebody (leap_meets) or is at its end.
void leap(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* u = c.world.get(inv.caster);
  const float speed = number(c, inv, n, Role::Speed);
  if (!u || speed <= 0) return;
  disjoint(c, *u);
  if (Modifier* m = add_modifier(c, *u, inv, n, node, number(c, inv, n, Role::Dist) / speed))
    m->motion = heading(u->facing) * speed;
}

}  // namespace

bool leap_meets(Context& c, Modifier& m, const EffectNode& n, int index, Unit& u) {
  Invocation inv = invocation_of(c, m);
  const UnitList near =
      select_around(c, inv, n, Who::EnemyHeroes, u.pos, number(c, inv, n, Role::HitR) + u.radius);
  if (near.empty()) return false;
  Unit& met = near[0];
  remove_modifier(c, index);
  leap_lands(c, inv, n, u);
  run_on(c, inv, n.then_first, n.then_count, met);
  return true;
}

void leap_lands(Context& c, const Invocation& inv, const EffectNode& n, Unit& u) {
  if (n.given(Role::TreesR)) cut_trees(c.world, c.tables, u.pos, number(c, inv, n, Role::TreesR));
  settle(c, u);
}

void settle(Context& c, Unit& u) {
  unlist_unit(c.world, u);  // the unit must not block itself
  place_unit(c.world, u, free_place(c.world, *c.tables.map, u.pos, u.radius));
}

void finish_teleport(Context& c, Unit& u, Vec2 goal) {
  disjoint(c, u);
  jump(c, u, goal);
}

std::span<const PrimitiveSpec> motion_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Blink, blink, kActs, kOnce, 0,
       "max min overshoot_to disjoint disabled_after_damage_by_player attacks_target", ""},
      {Prim::Knockback, knockback, kActs, kLasts, kForcedMotion, "dist dur", ""},
      {Prim::ForcePush, force_push, kActs, kLasts, kForcedMotion, "dist dur", ""},
      {Prim::PullToCaster, pull, kActs, kLasts, kStunned | kForcedMotion, "dur moves_to_pct_of_distance", ""},
      {Prim::Teleport, teleport, kActs, kOnce, 0, "max_dist min_dist", ""},
      {Prim::Leap, leap, kActs, kLasts, kForcedMotion, "dist speed hit_r hits then trees_r",
       "accel: of its arc's height"},
  };
  return kSpecs;
}

}  // namespace dota
