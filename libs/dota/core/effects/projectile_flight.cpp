// How projectiles fly, arrive, turn round and jump on.
#include <algorithm>
#include <cmath>

#include "base/math.hpp"
#include "effects/attack.hpp"
#include "effects/damage.hpp"
#include "effects/modifiers.hpp"
#include "effects/projectile.hpp"
#include "effects/running.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

Invocation invocation_of(const Projectile& p) {
  Invocation inv;
  inv.caster = p.source;
  inv.team = p.team;
  inv.ability = p.ability;
  inv.level = p.level;
  inv.target = p.target;
  inv.point = inv.centre = p.pos;
  return inv;
}

// Strikes and turns home, or is home and ready to go again.
void spirit_arrives(Context& c, const Projectile& was, const EffectNode& n, Invocation& inv, Unit& target) {
  Area* home = area_of(c.world, was.source, was.ability, was.node);
  if (!home) return;  // the time of the spirits is over
  if (was.returning) {
    ++home->at_home;
    return;
  }
  const Vec2 from = target.pos;
  const float low = number(c, inv, n, Role::DamageMin), high = number(c, inv, n, Role::DamageMax);
  home->gathered += ability_damage(c, inv, target, low + (high - low) * c.world.rng.uniform(), n.type);
  Invocation back = inv;
  back.target = was.source;
  if (Projectile* p = new_projectile(c, back, was.node, Projectile::Kind::Homing, from)) {
    p->speed = was.speed;
    p->returning = true;
    if (const Unit* caster = c.world.get(was.source)) p->goal = caster->pos;
  }
}

// A spirit whose prey is gone, or too far from its caster, turns round.
bool spirit_turns(Context& c, Projectile& p) {
  if (p.ability < 0 || p.returning) return false;
  const EffectNode& n = node_of(c, p.ability, p.node);
  const Unit* caster = c.world.get(p.source);
  if (n.prim != Prim::Spirits || !caster || !caster->alive) return false;
  const Unit* prey = c.world.get(p.target);
  const bool lost = !prey || !prey->alive || p.disjointed ||
                    distance(prey->pos, caster->pos) > number(c, invocation_of(p), n, Role::GiveUp);
  if (!lost) return false;
  p.target = p.source;
  p.returning = true;
  p.disjointed = false;
  return true;
}

// An attack that goes on to the nearest enemy hero within w0 that it has not struck (Death Ward with the scepter).
void attack_jumps(Context& c, const Projectile& was, Vec2 from) {
  if (was.jumps_left == 0) return;
  World& w = c.world;
  const Unit* next = nullptr;
  for (const HeroState& h : w.heroes) {
    const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive || u->team == was.team || (u->status & (kInvulnerable | kBanished | kUntargetable)))
      continue;
    const int id = h.unit.index;
    if (h.unit == was.target || ((was.hit[id / 64] >> (id % 64)) & 1u) || distance(u->pos, from) > was.w0)
      continue;
    if (!next || distance(u->pos, from) < distance(next->pos, from)) next = u;
  }
  Projectile* p = next ? free_projectile(w) : nullptr;
  if (!p) return;
  const std::uint16_t generation = p->generation;
  *p = was;
  p->generation = generation;
  p->target = w.handle(*next);
  p->pos = p->origin = from;
  p->goal = next->pos;
  p->jumps_left = static_cast<std::uint8_t>(was.jumps_left - 1);
  p->hit[was.target.index / 64] |= 1ull << (was.target.index % 64);
}

void arrive(Context& c, Projectile& p, Unit& target) {
  World& w = c.world;
  const Projectile was = p;
  p.kind = Projectile::Kind::None;
  if (was.kind == Projectile::Kind::Attack) {
    land_attack(c, w.get(was.source), target, was.damage, was.crit);
    return attack_jumps(c, was, target.pos);
  }
  const EffectNode& n = node_of(c, was.ability, was.node);
  Invocation inv = invocation_of(was);
  inv.point = inv.centre = target.pos;
  if (n.prim == Prim::MultiAttack) {
    deal_damage(c, {.source = w.get(was.source), .target = &target, .amount = was.damage, .attack = true});
    return;
  }
  if (n.prim == Prim::Spirits) return spirit_arrives(c, was, n, inv, target);
  const bool ally = target.team == was.team;
  const bool to_allies = ally && n.prim == Prim::RingProjectiles;
  const Vec2 from = target.pos;
  run_on(c, inv, to_allies ? n.alt_first : n.then_first, to_allies ? n.alt_count : n.then_count, target);
  if (n.prim != Prim::Bounce || was.jumps_left == 0) return;
  Unit* next = next_link(c, inv, n, from, number(c, inv, n, Role::Range), nullptr, was.target);
  if (!next) return;
  inv.target = w.handle(*next);
  if (Projectile* q = new_projectile(c, inv, was.node, Projectile::Kind::Homing, from)) {
    q->speed = was.speed;
    q->goal = next->pos;
    q->jumps_left = was.jumps_left == kEndless ? kEndless : static_cast<std::uint8_t>(was.jumps_left - 1);
    q->waits = number(c, inv, n, Role::Delay);
  }
}

// A chain waits where it struck last, moves with that unit while it lives, and jumps from there.
void wait_and_jump(Context& c, Projectile& p, const EffectNode& n) {
  if (const Unit* last = c.world.get(p.target); last && last->alive) p.pos = last->pos;
  p.waits -= kDt;
  if (p.waits > kTimeSlack) return;
  const Projectile was = p;
  p.kind = Projectile::Kind::None;
  Invocation inv = invocation_of(was);
  if (Unit* next = next_link(c, inv, n, was.pos, number(c, inv, n, Role::Range), was.hit, Handle{}))
    strike_chain(c, inv, n, was.node, *next, was);
}

void fly_homing(Context& c, Projectile& p) {
  if (p.ability >= 0)
    if (const EffectNode& n = node_of(c, p.ability, p.node); n.prim == Prim::Chain) return wait_and_jump(c, p, n);
  spirit_turns(c, p);
  Unit* target = c.world.get(p.target);
  if (!target || !target->alive || p.disjointed || (target->status & kBanished)) {
    p.kind = Projectile::Kind::None;
    return;
  }
  const float step = p.speed * kDt;
  if (p.waits > 0) {
    p.waits -= kDt;
    return;
  }
  p.goal = target->pos;
  const Vec2 d = p.goal - p.pos;
  const float far = d.length();
  if (far <= step + target->radius) return arrive(c, p, *target);
  p.pos = p.pos + d * (step / far);
}

void fly_to_point(Context& c, Projectile& p) {
  const float step = p.speed * kDt;
  const Vec2 d = p.goal - p.pos;
  const float far = d.length();
  if (far > step) {
    p.pos = p.pos + d * (step / far);
    return;
  }
  const Projectile was = p;
  p.kind = Projectile::Kind::None;
  const EffectNode& n = node_of(c, was.ability, was.node);
  Invocation inv = invocation_of(was);
  inv.target = Handle{};
  inv.point = inv.centre = was.goal;
  run_range(c, inv, n.then_first, n.then_count);
}

bool has_scepter(const Context& c, const Projectile& p) {
  const Unit* caster = c.world.get(p.source);
  return caster && (caster->status & kScepter);
}

// The same line flown back to where it came from.
void turn_round(Projectile& p) {
  p.returning = true;
  p.origin = p.origin + p.direction * p.length;
  p.direction = p.direction * -1.0f;
  p.travelled = 0;
  std::swap(p.w0, p.w1);
  std::fill(std::begin(p.hit), std::end(p.hit), 0);
}

// Handles a hit of Requiem's returning lines: a share of the first damage, which heals the caster by that amount.
void strike_on_return(Context& c, Invocation& inv, const EffectNode& n, Unit& u) {
  const EffectNode& blow = node_of(c, inv.ability, n.then_first);
  const float amount = number(c, inv, blow, Role::Amount) * number(c, inv, n, Role::ReturnDamagePct) / 100;
  const float taken = ability_damage(c, inv, u, amount, blow.type);
  if (Unit* caster = c.world.get(inv.caster))
    heal(c, *caster, taken * number(c, inv, n, Role::ReturnHealPct) / 100);
}

void fly_line(Context& c, Projectile& p) {
  const EffectNode& n = node_of(c, p.ability, p.node);
  const bool grows = n.prim == Prim::ExpandingRing;
  const bool home = p.returning && !grows;  // a line on its way back
  const bool back = p.returning && grows;
  const float before = p.travelled;
  p.travelled = back ? std::max(0.0f, before - p.speed * kDt) : std::min(p.length, before + p.speed * kDt);
  const Vec2 last = p.pos;
  if (!grows) p.pos = p.origin + p.direction * p.travelled;
  const float share = p.length > 0 ? p.travelled / p.length : 1;
  const float width = grows ? std::max(before, p.travelled) : p.w0 + (p.w1 - p.w0) * share;
  Invocation inv = invocation_of(p);
  const float length = std::max(p.length, 1.0f), inner = back ? p.travelled : 0;
  const UnitList near =
      select_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to,
                    grows ? p.origin : (last + p.pos) * 0.5f, width + std::fabs(p.travelled - before) / 2);
  const Vec2 origin = p.origin, along = p.direction;
  for (Unit& u : near) {
    const int id = c.world.handle(u).index;
    std::uint64_t& word = p.hit[id / 64];
    if ((word >> (id % 64)) & 1u) continue;
    if (!u.alive) continue;
    const Vec2 d = u.pos - origin;
    const float t = grows ? 0 : std::clamp(d.dot(along), before, p.travelled);
    const float off = distance(d, along * t);
    if (off > width || off < inner) continue;
    inv.share = std::min(1.0f, d.length() / length);
    word |= 1ull << (id % 64);
    if (home)
      strike_on_return(c, inv, n, u);
    else
      run_on(c, inv, n.then_first, n.then_count, u);
  }
  if (grows && !back && p.travelled >= p.length && n.given(Role::Returns)) {
    p.returning = true;
    std::fill(std::begin(p.hit), std::end(p.hit), 0);
  } else if (!grows && !home && p.travelled >= p.length && n.given(Role::ReturnDamagePct) && has_scepter(c, p)) {
    turn_round(p);
  } else if (back ? p.travelled <= 0 : p.travelled >= p.length) {
    p.kind = Projectile::Kind::None;
  }
}

}  // namespace

void strike_chain(Context& c, Invocation& inv, const EffectNode& n, int node, Unit& u, const Projectile& before) {
  const Vec2 at = u.pos;
  const Handle struck = c.world.handle(u);
  const int strikes = before.jumps_left + 1;
  inv.target = struck;
  const float loss = number(c, inv, n, Role::LossPct) / 100;
  ability_damage(c, inv, u, number(c, inv, n, Role::Amount, &u) * whole_power(1 - loss, strikes - 1), n.type);
  if (u.alive) run_on(c, inv, n.then_first, n.then_count, u);
  if (strikes >= static_cast<int>(number(c, inv, n, Role::Count))) return;
  Projectile* p = new_projectile(c, inv, node, Projectile::Kind::Homing, at);
  if (!p) return;
  p->goal = at;
  p->jumps_left = static_cast<std::uint8_t>(strikes);
  p->waits = number(c, inv, n, Role::Delay) + before.waits;
  std::copy(std::begin(before.hit), std::end(before.hit), std::begin(p->hit));
  p->hit[struck.index / 64] |= 1ull << (struck.index % 64);
}

void launch_spirit(Context& c, Area& a, const EffectNode& n, const Unit& target) {
  const Unit* caster = c.world.get(a.owner);
  if (!caster) return;
  Invocation inv = invocation_of(c, *caster, a.ability, a.level);
  inv.target = c.world.handle(target);
  if (Projectile* p = new_projectile(c, inv, a.node, Projectile::Kind::Homing, caster->pos)) {
    p->speed = number(c, inv, n, Role::Speed);
    p->goal = target.pos;
    --a.at_home;
  }
}

void projectiles_frame(Context& c) {
  World& w = c.world;
  for (int i = 0; i < w.projectiles_end; ++i) {
    Projectile& p = w.projectiles[i];
    switch (p.kind) {
      case Projectile::Kind::None:
        break;
      case Projectile::Kind::Attack:
      case Projectile::Kind::Homing:
        fly_homing(c, p);
        break;
      case Projectile::Kind::Point:
        fly_to_point(c, p);
        break;
      case Projectile::Kind::Linear:
        fly_line(c, p);
        break;
    }
  }
  while (w.projectiles_end > 0 && w.projectiles[w.projectiles_end - 1].kind == Projectile::Kind::None)
    --w.projectiles_end;
}

namespace {

// Whether the projectile still finds a unit that becomes invisible (Assassinate).
bool follows_invisible(const Context& c, const Projectile& p) {
  return p.ability >= 0 && p.node >= 0 && node_of(c, p.ability, p.node).given(Role::FollowsInvisible);
}

}  // namespace

void disjoint(Context& c, Unit& u, bool by_vanishing) {
  const Handle h = c.world.handle(u);
  for (int i = 0; i < c.world.projectiles_end; ++i) {
    Projectile& p = c.world.projectiles[i];
    if (p.kind == Projectile::Kind::None || !(p.target == h)) continue;
    const bool holds_on = p.ability >= 0 && node_of(c, p.ability, p.node).given(Role::Undisjointable);
    if (!holds_on && (!by_vanishing || !follows_invisible(c, p))) p.disjointed = true;
  }
}

}  // namespace dota
