// Primitives of the group "projectile": what is launched. Its flight is in projectile_flight.cpp.
#include <algorithm>
#include <array>

#include "base/math.hpp"
#include "effects/modifiers.hpp"
#include "effects/projectile.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"

namespace dota {

namespace {

Vec2 direction_to(const Unit& from, Vec2 p) {
  const Vec2 d = p - from.pos;
  const float len = d.length();
  return len > 1 ? d * (1 / len) : heading(from.facing);
}

Projectile* launch_homing(Context& c, const Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  const Unit* target = c.world.get(inv.target);
  if (!caster || !target) return nullptr;
  Projectile* p = new_projectile(c, inv, node, Projectile::Kind::Homing, caster->pos);
  if (!p) return nullptr;
  p->speed = number(c, inv, n, Role::Speed);
  p->goal = target->pos;
  return p;
}

// At as many others than the target as the node counts, drawn from those around that the caster's team sees.
void at_some(Context& c, const Invocation& inv, const EffectNode& n, int node) {
  if (inv.team >= kTeams) return;
  std::array<Handle, kMaxUnits> near{};
  int left = 0;
  for (const Unit& u : select_targets(c, inv, n))
    if (const Handle h = c.world.handle(u); !(h == inv.target) && unit_visible(c.world, inv.team, u))
      near[left++] = h;
  for (int count = static_cast<int>(number(c, inv, n, Role::Count)); count > 0 && left > 0; --count) {
    const int drawn = static_cast<int>(c.world.rng.below(left));
    Invocation one = inv;
    one.target = near[drawn];
    near[drawn] = near[--left];
    launch_homing(c, one, n, node);
  }
}

// At the target, or at each of those around it, or at some of them.
void homing(Context& c, Invocation& inv, const EffectNode& n, int node) {
  if (n.shape == Shape::None) {
    launch_homing(c, inv, n, node);
    return;
  }
  if (n.given(Role::Count)) return at_some(c, inv, n, node);
  for (const Unit& u : select_targets(c, inv, n)) {
    if (n.given(Role::VisibleOnly) && !unit_visible(c.world, inv.team, u)) continue;
    Invocation one = inv;
    one.target = c.world.handle(u);
    launch_homing(c, one, n, node);
  }
}

void to_point(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  if (Projectile* p = new_projectile(c, inv, node, Projectile::Kind::Point, caster->pos)) {
    p->speed = number(c, inv, n, Role::Speed);
    p->goal = inv.point;
  }
}

void launch_line(Context& c, const Invocation& inv, const EffectNode& n, int node, Vec2 from, Vec2 along) {
  Projectile* p = new_projectile(c, inv, node, Projectile::Kind::Linear, from);
  if (!p) return;
  p->target = Handle{};
  p->direction = along;
  p->speed = number(c, inv, n, Role::Speed);
  p->length = number(c, inv, n, Role::Len);
  p->w0 = number(c, inv, n, Role::W0);
  p->w1 = number(c, inv, n, Role::W1, nullptr, p->w0);
}

void linear_wave(Context& c, Invocation& inv, const EffectNode& n, int node) {
  if (const Unit* caster = c.world.get(inv.caster))
    launch_line(c, inv, n, node, caster->pos, direction_to(*caster, inv.point));
}

// Lines in all directions, the first along the caster's facing. `inv.step` > 0: how many, whatever the node
// counts.
void radial_lines(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  const int count = inv.step > 0 ? inv.step : static_cast<int>(number(c, inv, n, Role::Count));
  for (int i = 0; i < count; ++i) {
    const float angle = caster->facing + 6.2831853f * static_cast<float>(i) / static_cast<float>(count);
    launch_line(c, inv, n, node, caster->pos, heading(angle));
  }
}

// Everything on a line at once.
void line_strike(Context& c, Invocation& inv, const EffectNode& n, int) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  const float len = number(c, inv, n, Role::Len), w = number(c, inv, n, Role::W);
  const Vec2 along = direction_to(*caster, inv.point);
  for (Unit& u : select_around(c, inv, n, n.to, caster->pos + along * (len / 2), len / 2 + w)) {
    const Vec2 d = u.pos - caster->pos;
    const float t = std::clamp(d.dot(along), 0.0f, len);
    if (distance(d, along * t) <= w) run_on(c, inv, n.then_first, n.then_count, u);
  }
}

// One projectile to each unit around: `then` (or `enemies`) for enemies, `allies` for allies.
void ring(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  for (const Unit& u : select_around(c, inv, n, Who::All, caster->pos, number(c, inv, n, Role::R))) {
    if (u.team == inv.team ? n.alt_count == 0 : n.then_count == 0) continue;
    Invocation one = inv;
    one.target = c.world.handle(u);
    if (Projectile* p = new_projectile(c, one, node, Projectile::Kind::Homing, caster->pos)) {
      p->speed = number(c, inv, n, Role::Speed);
      p->goal = u.pos;
    }
  }
}

// A ring that grows from the caster and reaches each unit as it passes: a wave without a direction.
void expanding_ring(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  Projectile* p = new_projectile(c, inv, node, Projectile::Kind::Linear, caster->pos);
  if (!p) return;
  p->target = Handle{};
  p->speed = number(c, inv, n, Role::Speed);
  p->length = number(c, inv, n, Role::R);
}

// Jumps from enemy to enemy, each time to the nearest one that it has not struck.
void chain(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* first = c.world.get(inv.target);
  if (first && number(c, inv, n, Role::Count) >= 1) strike_chain(c, inv, n, node, *first, Projectile{});
}

// A projectile that, where it hits, starts again towards another enemy near, as long as jumps are left.
void bounce(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Projectile* p = launch_homing(c, inv, n, node);
  if (!p) return;
  const Unit* caster = c.world.get(inv.caster);
  const bool endless = n.given(Role::EndlessWithScepter) && caster && (caster->status & kScepter);
  p->jumps_left = endless ? kEndless : static_cast<std::uint8_t>(number(c, inv, n, Role::Count));
}

// From every enemy near, a hit on every enemy around it.
void echo(Context& c, Invocation& inv, const EffectNode& n, int) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  for (const Unit& from : select_around(c, inv, n, Who::Enemies, caster->pos, number(c, inv, n, Role::SearchR))) {
    const int times = static_cast<int>(number(c, inv, n, from.hero >= 0 ? Role::PerHero : Role::PerUnit));
    for (Unit& u : select_around(c, inv, n, Who::Enemies, from.pos, number(c, inv, n, Role::R))) {
      if (&u == &from) continue;
      for (int t = 0; t < times; ++t)
        if (u.alive) ability_damage(c, inv, u, number(c, inv, n, Role::Amount), n.type);
    }
  }
}

void spirits(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  Area* a = caster ? new_area(c, inv, node, caster->pos, number(c, inv, n, Role::R), number(c, inv, n, Role::Dur))
                   : nullptr;
  if (!a) return;
  a->follow = inv.caster;
  a->to_come = static_cast<std::uint8_t>(number(c, inv, n, Role::Count));
  a->interval = number(c, inv, n, Role::SpawnInterval);
}

}  // namespace

Unit* next_link(Context& c, const Invocation& inv, const EffectNode& n, Vec2 from, float range,
                const std::uint64_t* taken, Handle not_this) {
  Unit* best = nullptr;
  for (Unit& u : select_around(c, inv, n, Who::Enemies, from, range)) {
    const int id = c.world.handle(u).index;
    if (n.given(Role::VisibleOnly) && inv.team < kTeams && !unit_visible(c.world, inv.team, u)) continue;
    if ((taken && ((taken[id / 64] >> (id % 64)) & 1u)) || c.world.handle(u) == not_this) continue;
    if (u.team < kTeams || is_basic(u) || u.hero >= 0)
      if (!best || distance(u.pos, from) < distance(best->pos, from)) best = &u;
  }
  return best;
}

std::span<const PrimitiveSpec> projectile_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Projectile, homing, kActs, kOnce, 0,
       "speed count then vision_r reveals_target_while_casting follows_invisible visible_only", ""},
      {Prim::ProjectilePoint, to_point, kActs, kOnce, 0, "speed then", ""},
      {Prim::LinearWave, linear_wave, kActs, kOnce, 0, "len w0 w1 speed then", ""},
      {Prim::RadialLines, radial_lines, kActs, kOnce, 0,
       "count len w0 w1 speed then on_death_souls_frac return_damage_pct return_heal_pct pierces_immunity", ""},
      {Prim::LineStrike, line_strike, kActs, kOnce, 0, "len w then", ""},
      {Prim::RingProjectiles, ring, kActs, kOnce, 0, "speed enemies allies undisjointable", ""},
      {Prim::ExpandingRing, expanding_ring, kActs, kOnce, 0, "r speed then returns", ""},
      {Prim::Chain, chain, kActs, kOnce, 0, "count range delay amount loss_pct visible_only then", ""},
      {Prim::Bounce, bounce, kActs, kOnce, 0,
       "count range speed delay vision_r undisjointable endless_with_scepter then",
       "can_repeat: every bounce may come back"},
      {Prim::Echo, echo, kActs, kOnce, 0, "search_r r per_unit per_hero amount", ""},
      {Prim::Spirits, spirits, kActs, kOnce, 0,
       "count dur r speed give_up damage spawn_interval heal_pct_of_damage_on_end",
       "max_dist: beyond what they give up at; hits_buildings: they do"},
  };
  return kSpecs;
}

}  // namespace dota
