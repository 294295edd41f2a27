// Primitives of the group "projectile", and how projectiles fly.
#include <algorithm>
#include <cmath>

#include "effects/modifiers.hpp"
#include "world/math.hpp"

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

// At the target, or at each of those around it.
void homing(Context& c, Invocation& inv, const EffectNode& n, int node) {
  if (n.shape == Shape::None) {
    launch_homing(c, inv, n, node);
    return;
  }
  UnitList list;
  select_targets(c, inv, n, list);
  for (int i = 0; i < list.n; ++i) {
    Invocation one = inv;
    one.target = c.world.handle(c.world.units[static_cast<std::size_t>(list.ids[static_cast<std::size_t>(i)])]);
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
  UnitList near;
  select_around(c, inv, n, n.to, caster->pos + along * (len / 2), len / 2 + w, near);
  for (int i = 0; i < near.n; ++i) {
    Unit& u = c.world.units[static_cast<std::size_t>(near.ids[static_cast<std::size_t>(i)])];
    const Vec2 d = u.pos - caster->pos;
    const float t = std::clamp(d.dot(along), 0.0f, len);
    if (distance(d, along * t) <= w) run_on(c, inv, n.then_first, n.then_count, u);
  }
}

// One projectile to each unit around: `then` (or `enemies`) for enemies, `allies` for allies.
void ring(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  UnitList near;
  select_around(c, inv, n, Who::All, caster->pos, number(c, inv, n, Role::R), near);
  for (int i = 0; i < near.n; ++i) {
    const Unit& u = c.world.units[static_cast<std::size_t>(near.ids[static_cast<std::size_t>(i)])];
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

Unit* next_link(Context& c, const Invocation& inv, const EffectNode& n, Vec2 from, float range,
                const std::uint64_t* taken, Handle not_this) {
  UnitList near;
  select_around(c, inv, n, Who::Enemies, from, range, near);
  Unit* best = nullptr;
  for (int i = 0; i < near.n; ++i) {
    const int id = near.ids[static_cast<std::size_t>(i)];
    Unit& u = c.world.units[static_cast<std::size_t>(id)];
    if ((taken && ((taken[id / 64] >> (id % 64)) & 1u)) || c.world.handle(u) == not_this) continue;
    if (u.team < kTeams || is_basic(u) || u.hero >= 0)
      if (!best || distance(u.pos, from) < distance(best->pos, from)) best = &u;
  }
  return best;
}

// Jumps from enemy to enemy, the nearest not yet struck within reach; each jump comes a delay after the one
// before.
void chain(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* at = c.world.get(inv.target);
  if (!at) return;
  if (inv.late) {
    const float loss = number(c, inv, n, Role::LossPct) / 100;
    ability_damage(c, inv, *at, number(c, inv, n, Role::Amount) * whole_power(1 - loss, inv.step), n.type);
    return;
  }
  const int count = static_cast<int>(number(c, inv, n, Role::Count));
  const float range = number(c, inv, n, Role::Range), wait = number(c, inv, n, Role::Delay);
  Invocation jump = inv;
  std::uint64_t taken[(kMaxUnits + 63) / 64] = {};
  for (int i = 0; i < count && at; ++i) {
    const int id = c.world.handle(*at).index;
    taken[id / 64] |= 1ull << (id % 64);
    jump.step = static_cast<std::uint8_t>(i);
    jump.target = c.world.handle(*at);
    delay(c, jump, node, wait * static_cast<float>(i));
    at = next_link(c, inv, n, at->pos, range, taken, Handle{});
  }
}

// A projectile that, where it hits, starts again towards another enemy near, as long as jumps are left.
void bounce(Context& c, Invocation& inv, const EffectNode& n, int node) {
  if (Projectile* p = launch_homing(c, inv, n, node))
    p->jumps_left = static_cast<std::uint8_t>(number(c, inv, n, Role::Count));
}

// From every enemy near, a hit on every enemy around it.
void echo(Context& c, Invocation& inv, const EffectNode& n, int) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  UnitList found, around;
  select_around(c, inv, n, Who::Enemies, caster->pos, number(c, inv, n, Role::SearchR), found);
  for (int i = 0; i < found.n; ++i) {
    const Unit& from = c.world.units[static_cast<std::size_t>(found.ids[static_cast<std::size_t>(i)])];
    const int times = static_cast<int>(number(c, inv, n, from.hero >= 0 ? Role::PerHero : Role::PerUnit));
    const Vec2 at = from.pos;
    const std::int16_t self = found.ids[static_cast<std::size_t>(i)];
    select_around(c, inv, n, Who::Enemies, at, number(c, inv, n, Role::R), around);
    for (int k = 0; k < around.n; ++k) {
      const std::int16_t id = around.ids[static_cast<std::size_t>(k)];
      if (id == self) continue;
      for (int t = 0; t < times; ++t)
        if (Unit& u = c.world.units[static_cast<std::size_t>(id)]; u.alive)
          ability_damage(c, inv, u, number(c, inv, n, Role::Amount), n.type);
    }
  }
}

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
    q->jumps_left = static_cast<std::uint8_t>(was.jumps_left - 1);
    q->waits = number(c, inv, n, Role::Delay);
  }
}

void fly_homing(Context& c, Projectile& p) {
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

// Requiem's lines on their way home: a share of the first blow, which heals its caster by what it took.
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
  UnitList near;
  select_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to, grows ? p.origin : (last + p.pos) * 0.5f,
                width + std::fabs(p.travelled - before) / 2, near);
  const Vec2 origin = p.origin, along = p.direction;
  for (int i = 0; i < near.n; ++i) {
    const int id = near.ids[static_cast<std::size_t>(i)];
    std::uint64_t& word = p.hit[id / 64];
    if ((word >> (id % 64)) & 1u) continue;
    Unit& u = c.world.units[static_cast<std::size_t>(id)];
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
    Projectile& p = w.projectiles[static_cast<std::size_t>(i)];
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
  while (w.projectiles_end > 0 &&
         w.projectiles[static_cast<std::size_t>(w.projectiles_end - 1)].kind == Projectile::Kind::None)
    --w.projectiles_end;
}

void disjoint(Context& c, Unit& u) {
  const Handle h = c.world.handle(u);
  for (int i = 0; i < c.world.projectiles_end; ++i) {
    Projectile& p = c.world.projectiles[static_cast<std::size_t>(i)];
    if (p.kind != Projectile::Kind::None && p.target == h) p.disjointed = true;
  }
}

std::span<const PrimitiveSpec> projectile_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Projectile, homing, kActs, kOnce, 0, "speed then vision_r reveals_target_while_casting", ""},
      {Prim::ProjectilePoint, to_point, kActs, kOnce, 0, "speed then", ""},
      {Prim::LinearWave, linear_wave, kActs, kOnce, 0, "len w0 w1 speed then", ""},
      {Prim::RadialLines, radial_lines, kActs, kOnce, 0,
       "count len w0 w1 speed then on_death_souls_frac return_damage_pct return_heal_pct", ""},
      {Prim::LineStrike, line_strike, kActs, kOnce, 0, "len w then", ""},
      {Prim::RingProjectiles, ring, kActs, kOnce, 0, "speed enemies allies", ""},
      {Prim::ExpandingRing, expanding_ring, kActs, kOnce, 0, "r speed then returns", ""},
      {Prim::Chain, chain, kActs, kOnce, 0, "count range delay amount loss_pct", ""},
      {Prim::Bounce, bounce, kActs, kOnce, 0, "count range speed delay then",
       "can_repeat: every bounce may come back"},
      {Prim::Echo, echo, kActs, kOnce, 0, "search_r r per_unit per_hero amount", ""},
      {Prim::Spirits, spirits, kActs, kOnce, 0,
       "count dur r speed give_up damage spawn_interval heal_pct_of_damage_on_end",
       "max_dist: beyond what they give up at; hits_buildings: they do"},
  };
  return kSpecs;
}

}  // namespace dota
