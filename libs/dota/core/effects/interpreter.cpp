#include "effects/interpreter.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "effects/damage.hpp"
#include "effects/modifiers.hpp"
#include "effects/triggers.hpp"
#include "map/vision.hpp"

namespace dota {

namespace {

// Whether the unit is invisible and no true sight of the team shows it. Fog alone hides nobody.
bool hidden(const Context& c, int team, const Unit& u) {
  if (!(u.status & kInvisible)) return false;
  return (u.status & kUnseen) || (!(u.status & kTrueSighted) && !unit_visible(c.world, team, u));
}

bool condition(const Context& c, const Invocation& inv, const EffectNode& n) {
  switch (n.cond) {
    case Cond::Ally:
    case Cond::Enemy: {
      const Unit* t = c.world.get(inv.target);
      const bool ally = t == nullptr || t->team == inv.team;
      return ally == (n.cond == Cond::Ally);
    }
    case Cond::Killed:
      return inv.killed;
    case Cond::KilledHero:
      return inv.killed_hero;
    case Cond::NotInvisible: {
      const Unit* t = c.world.get(inv.target);
      return !t || !hidden(c, inv.team, *t);
    }
    default:
      return true;  // conditions of passives are looked at while they last
  }
}

// Primitives whose "delay" says when the whole effect happens; the others read it themselves.
bool waits(Prim p) {
  return p == Prim::Damage || p == Prim::DamageMissingHp || p == Prim::HpCost || p == Prim::Dispel ||
         p == Prim::TreeCut;
}

bool goes_with_pulses(const EffectNode& n) { return n.given(Role::Pulses) || n.given(Role::AmountFracOfTotal); }

}  // namespace

const EffectNode* pulsing_node(const Context& c, int ability) {
  const Program& p = program_of(c, ability);
  for (const std::uint16_t root : p.roots)
    if (p.nodes[root].prim == Prim::DelayedAoe) return &p.nodes[root];
  return nullptr;
}

Invocation invocation_of(const Context& c, const Unit& caster, int ability, int level) {
  Invocation inv;
  inv.caster = c.world.handle(caster);
  inv.team = caster.team;
  inv.ability = static_cast<std::int16_t>(ability);
  inv.level = level;
  inv.point = inv.centre = caster.pos;
  return inv;
}

float evaluate(const Context& c, const Invocation& inv, const Value& v, const Unit* target) {
  float x = v.base.at(inv.level);
  const Unit* caster = c.world.get(inv.caster);
  if (v.scepter.given() && caster && (caster->status & kScepter)) x = v.scepter.at(inv.level);
  if (v.talents && caster && caster->hero >= 0) {
    const std::uint32_t taken = c.world.heroes[caster->hero].talents;
    for (int i = 0; i < v.talents; ++i) {
      const TalentTerm& t = v.talent[i];
      if ((taken >> t.talent) & 1u) x += t.value;
    }
  }
  if (v.reaches && caster) x += caster->cast_range;
  if (v.factor == Factor::One) return x;
  float counter = 0;
  switch (v.factor) {
    case Factor::OwnStacks:
      if (const Modifier* m = caster ? find_modifier(c.world, *caster, v.stack) : nullptr) counter = m->stacks;
      break;
    case Factor::TargetStacks:
      if (const Modifier* m = target ? find_modifier(c.world, *target, v.stack) : nullptr)
        if (m->source == inv.caster) counter = m->stacks;
      break;
    case Factor::Minutes:
      counter = std::max(0.0f, std::floor(c.world.time / 60.0f));
      break;
    case Factor::Charges:
    case Factor::One:
      break;
  }
  if (!v.divides) return counter * x;
  return x == 0 ? 0 : counter / x;
}

float number(const Context& c, const Invocation& inv, const EffectNode& n, Role r, const Unit* target,
             float otherwise) {
  const Value* v = n.value(r);
  return v ? evaluate(c, inv, *v, target) : otherwise;
}

bool is_ranged(const Context& c, const Unit& u) { return c.tables.units[u.type].projectile_speed > 0; }
bool is_basic(const Unit& u) {
  return u.kind != UnitKind::None && u.kind != UnitKind::Hero && u.kind != UnitKind::Ward && !is_building(u.kind);
}

void run_node(Context& c, Invocation& inv, int node) {
  const EffectNode& n = node_of(c, inv.ability, node);
  const PrimitiveSpec* spec = primitive_spec(n.prim);
  if (!spec || inv.level < n.from_rank || !condition(c, inv, n) || !upgraded(c, c.world.get(inv.caster), n))
    return;
  const RecursionGuard effect(c);
  if (!effect) return;
  if (!inv.late && n.given(Role::Delay) && waits(n.prim)) {
    // Effects tied to the pulses of an area strike (Dark Pact) run with each pulse.
    const EffectNode* strike = goes_with_pulses(n) ? pulsing_node(c, inv.ability) : nullptr;
    const int pulses = strike ? static_cast<int>(number(c, inv, *strike, Role::Pulses, nullptr, 1)) : 1;
    const float every = strike ? number(c, inv, *strike, Role::PulseInterval) : 0;
    for (int i = 0; i < pulses; ++i)
      delay(c, inv, node, number(c, inv, n, Role::Delay) + every * static_cast<float>(i));
    return;
  }
  spec->run(c, inv, n, node);
}

void run_range(Context& c, Invocation& inv, int first, int count) {
  for (int i = 0; i < count; ++i)
    run_node(c, inv, first + i);
}

void run_trigger(Context& c, Invocation& inv, Trigger t) {
  const Program& p = program_of(c, inv.ability);
  if (!p.has(t)) return;
  for (const std::uint16_t root : p.roots) {
    const EffectNode& n = p.nodes[root];
    if (n.on == t && !n.passive) run_node(c, inv, root);
  }
}

void run_on(Context& c, const Invocation& inv, int first, int count, Unit& target) {
  Invocation child = inv;
  child.child = true;
  child.late = false;
  child.target = c.world.handle(target);
  child.point = child.centre = target.pos;
  run_range(c, child, first, count);
}

float ability_damage(Context& c, Invocation& inv, Unit& target, float amount, DamageType type, bool nonlethal,
                     bool hp_removal) {
  inv.hit[c.world.handle(target).index / 64] |= 1ull << (c.world.handle(target).index % 64);
  if (amount <= 0) return 0;
  // Effects that reach through spell immunity still do no magical damage to it.
  if (type == DamageType::Magical && target.team != inv.team && (target.status & kSpellImmune)) return 0;
  const bool hero = target.kind == UnitKind::Hero;
  const Handle h = c.world.handle(target);
  on_ability_hits(c, inv, target);
  DamageInfo d;
  d.source = c.world.get(inv.caster);
  d.target = &target;
  d.amount = amount;
  d.type = type;
  d.ability = inv.ability;
  d.nonlethal = nonlethal;
  d.hp_removal = hp_removal;
  const float lost = deal_damage(c, d);
  const Unit* after = c.world.get(h);
  if (!after || !after->alive) {
    inv.killed = true;
    inv.killed_hero = inv.killed_hero || hero;
  }
  return lost;
}

bool pseudo_random(Context& c, float chance_pct, std::uint8_t& counter) {
  // C of the distribution whose n-th trial in a row succeeds with chance n * C, per percent of long-run chance.
  static const std::array<float, 101> kC = [] {
    const auto rate = [](double k) {  // long-run chance: one over the mean number of trials
      double mean = 0, none_yet = 1;
      for (int n = 1; none_yet > 1e-12 && n < 100000; ++n) {
        const double p = std::min(1.0, n * k);
        mean += n * p * none_yet;
        none_yet *= 1 - p;
      }
      return 1 / mean;
    };
    std::array<float, 101> t{};
    t[100] = 1;
    for (int pct = 1; pct < 100; ++pct) {
      double lo = 0, hi = pct / 100.0;
      for (int i = 0; i < 50; ++i) {
        const double mid = (lo + hi) / 2;
        (rate(mid) < pct / 100.0 ? lo : hi) = mid;
      }
      t[pct] = static_cast<float>((lo + hi) / 2);
    }
    return t;
  }();
  if (chance_pct <= 0) return false;
  if (chance_pct >= 100) return true;
  const int below = static_cast<int>(chance_pct);
  const float part = chance_pct - static_cast<float>(below);
  const float k = kC[below] * (1 - part) + kC[below + 1] * part;
  if (counter < 255) ++counter;
  if (c.world.rng.uniform() >= k * static_cast<float>(counter)) return false;
  counter = 0;
  return true;
}

Area* new_area(Context& c, const Invocation& inv, int node, Vec2 pos, float radius, float duration) {
  for (Area& a : c.world.areas) {
    if (a.active) continue;
    const auto generation = static_cast<std::uint16_t>(a.generation + 1);
    a = Area{};
    a.generation = generation;
    a.active = true;
    c.world.areas_end = std::max(c.world.areas_end, static_cast<std::int16_t>(&a - c.world.areas.data() + 1));
    a.team = inv.team;
    a.level = static_cast<std::uint8_t>(inv.level);
    a.owner = inv.caster;
    a.pos = pos;
    a.radius = radius;
    a.start = c.world.time;
    a.until = c.world.time + duration;
    a.next_tick = c.world.time;
    a.ability = inv.ability;
    a.node = static_cast<std::int16_t>(node);
    return &a;
  }
  ++c.world.dropped[ordinal(StatePool::Areas)];
  return nullptr;
}

Projectile* free_projectile(World& w) {
  for (int i = 0; i < kMaxProjectiles; ++i) {
    Projectile& p = w.projectiles[i];
    if (p.kind != Projectile::Kind::None) continue;
    const auto generation = static_cast<std::uint16_t>(p.generation + 1);
    p = Projectile{};
    p.generation = generation;
    w.projectiles_end = std::max(w.projectiles_end, static_cast<std::int16_t>(i + 1));
    return &p;
  }
  ++w.dropped[ordinal(StatePool::Projectiles)];
  return nullptr;
}

Projectile* new_projectile(Context& c, const Invocation& inv, int node, Projectile::Kind kind, Vec2 from) {
  Projectile* p = free_projectile(c.world);
  if (!p) return nullptr;
  p->kind = kind;
  p->team = inv.team;
  p->level = static_cast<std::uint8_t>(inv.level);
  p->source = inv.caster;
  p->target = inv.target;
  p->pos = p->origin = from;
  p->ability = inv.ability;
  p->node = static_cast<std::int16_t>(node);
  return p;
}

void delay(Context& c, const Invocation& inv, int node, float seconds) {
  for (Delayed& d : c.world.delayed) {
    if (d.active) continue;
    d = Delayed{};
    d.active = true;
    c.world.delayed_end =
        std::max(c.world.delayed_end, static_cast<std::int16_t>(&d - c.world.delayed.data() + 1));
    d.team = inv.team;
    d.level = static_cast<std::uint8_t>(inv.level);
    d.owner = inv.caster;
    d.target = inv.target;
    d.point = inv.child ? inv.centre : inv.point;
    d.at = c.world.time + seconds;
    d.ability = inv.ability;
    d.node = static_cast<std::int16_t>(node);
    d.step = inv.step;
    return;
  }
  ++c.world.dropped[ordinal(StatePool::Delayed)];
}

int slot_of(const Context& c, const Unit& u, int ability) {
  if (ability < 0) return -1;
  for (int i = 0; i < kAbilitySlots; ++i)
    if (const AbilityState* s = ability_state(c.world, u, i); s && s->id == ability) return i;
  const int item = c.tables.abilities[ability].is_item;
  for (int i = 16; item >= 0 && i < 16 + kInventory; ++i)
    if (const ItemState* s = item_state(c.world, u, i); s && s->id == item) return i;
  return -1;
}

}  // namespace dota
