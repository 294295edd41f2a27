// Primitives of the group "damage".
#include <algorithm>
#include <cmath>

#include "effects/damage.hpp"
#include "effects/modifiers.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

// Who dies within this of a blow counts for kill_hero_within_3s.
constexpr float kKillWindow = 3;

float primary_attribute(const Context& c, const Unit* u) {
  const HeroState* h = u ? hero_of(c.world, *u) : nullptr;
  if (!h) return 0;
  switch (c.tables.heroes[h->def].primary) {
    case Attribute::Str:
      return u->str;
    case Attribute::Agi:
      return u->agi;
    case Attribute::Int:
      return u->intellect;
  }
  return 0;
}

void mark_for_kill(Context& c, const Invocation& inv, Unit& target) {
  const Program& p = program_of(c, inv.ability);
  if (!p.has(Trigger::KillHeroWithin3s) || target.kind != UnitKind::Hero) return;
  for (const std::uint16_t root : p.roots) {
    if (p.nodes[root].on == Trigger::KillHeroWithin3s)
      add_modifier(c, target, inv, p.nodes[root], root, kKillWindow);
  }
}

// A share of what one pulse of the ability's area does.
float share_of_pulse(const Context& c, const Invocation& inv, const EffectNode& n) {
  const EffectNode* strike = n.given(Role::AmountFracOfTotal) ? pulsing_node(c, inv.ability) : nullptr;
  if (!strike) return 0;
  const EffectNode& blow = node_of(c, inv.ability, strike->then_first);
  return number(c, inv, n, Role::AmountFracOfTotal) * number(c, inv, blow, Role::Total) /
         number(c, inv, *strike, Role::Pulses, nullptr, 1);
}

void damage(Context& c, Invocation& inv, const EffectNode& n, int) {
  const float of_pulse = share_of_pulse(c, inv, n);
  for (Unit& u : select_targets(c, inv, n)) {
    if (!u.alive) continue;
    Role r = Role::Amount;
    if (is_building(u.kind) && n.given(Role::AmountBuilding)) r = Role::AmountBuilding;
    if (is_basic(u) && n.given(Role::AmountCreep)) r = Role::AmountCreep;
    float amount = of_pulse + number(c, inv, n, r, &u) + number(c, inv, n, Role::Plus, &u) +
                   number(c, inv, n, Role::Base, &u);
    if (n.given(Role::PrimaryAttrFactor))
      amount += number(c, inv, n, Role::PrimaryAttrFactor) * primary_attribute(c, c.world.get(inv.caster));
    if (n.by_distance) {
      const float near = number(c, inv, n, Role::Min, &u), far = number(c, inv, n, Role::Max, &u);
      amount += near + (far - near) * inv.share;
    }
    if (n.given(Role::PctHp)) amount += number(c, inv, n, Role::PctHp, &u) / 100 * u.hp;
    // A total is shared by the pulses of the area that carries the node.
    if (n.given(Role::Total))
      amount += number(c, inv, n, Role::Total) / static_cast<float>(std::max<int>(inv.step, 1));
    mark_for_kill(c, inv, u);
    ability_damage(c, inv, u, amount, n.type, n.given(Role::Nonlethal), n.given(Role::HpRemoval));
  }
}

// Runs its effects on each of its targets.
void each(Context& c, Invocation& inv, const EffectNode& n, int) {
  for (Unit& u : select_targets(c, inv, n))
    if (u.alive) run_on(c, inv, n.then_first, n.then_count, u);
}

void dot(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  const float interval = number(c, inv, n, Role::Interval, nullptr, 1);
  for (Unit& u : select_targets(c, inv, n)) {
    const bool creep = creep_numbers(c, inv, n, u);
    Role r = Role::Dps;
    if (caster && is_ranged(c, *caster) && n.given(Role::DpsRanged)) r = Role::DpsRanged;
    if (is_building(u.kind) && n.given(Role::DpsBuilding)) r = Role::DpsBuilding;
    float each = number(c, inv, n, r, &u) * interval + number(c, inv, n, Role::PerTick, &u);
    if (!n.given(Role::Dur)) {  // carried by an aura: one interval's worth
      ability_damage(c, inv, u, each, n.type);
      continue;
    }
    if (n.given(Role::Total)) {
      const float whole = number(c, inv, n, creep && n.given(Role::DurCreep) ? Role::DurCreep : Role::Dur, &u);
      const float total =
          number(c, inv, n, creep && n.given(Role::TotalCreep) ? Role::TotalCreep : Role::Total, &u);
      each += total / std::max(1.0f, std::floor(whole / interval + 0.5f));
    }
    Modifier* m = add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
    if (!m) continue;
    if (m->interval <= 0) m->next_tick = c.world.time + interval;
    m->interval = interval;
    m->per_tick = each;
  }
}

void damage_missing_hp(Context& c, Invocation& inv, const EffectNode& n, int) {
  for (Unit& u : select_targets(c, inv, n)) {
    ability_damage(c, inv, u, number(c, inv, n, Role::Factor) * (u.max_hp - u.hp), n.type);
  }
}

void damage_pct_max_hp(Context& c, Invocation& inv, const EffectNode& n, int) {
  const float pct = number(c, inv, n, Role::PctPerSec) * number(c, inv, n, Role::Interval);
  for (Unit& u : select_targets(c, inv, n)) {
    if (n.given(Role::SparesAncients) && c.tables.units[u.type].ancient) continue;
    ability_damage(c, inv, u, pct / 100 * u.max_hp, n.type);
  }
}

void execute(Context& c, Invocation& inv, const EffectNode& n, int) {
  for (Unit& u : select_targets(c, inv, n)) {
    if (n.given(Role::HpBelow) && u.hp >= number(c, inv, n, Role::HpBelow)) {
      ability_damage(c, inv, u, number(c, inv, n, Role::ElseDamage), n.type);
      continue;
    }
    inv.killed = true;
    inv.killed_hero = inv.killed_hero || u.kind == UnitKind::Hero;
    kill(c, u, c.world.get(inv.caster));
  }
}

// Lands after a delay at the point, or where the caster is then, once or in pulses.
void delayed_aoe(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  const bool at_self = n.at == Where::Self && caster;
  const int pulses = std::max(1, static_cast<int>(number(c, inv, n, Role::Pulses, nullptr, 1)));
  const float every = number(c, inv, n, Role::PulseInterval);
  const float wait = number(c, inv, n, Role::Delay);
  Area* a = new_area(c, inv, node,
                     at_self                ? caster->pos
                     : n.at == Where::Point ? inv.point
                                            : inv.centre,
                     number(c, inv, n, Role::R), wait + every * static_cast<float>(pulses - 1));
  if (!a) return;
  if (at_self) a->follow = inv.caster;
  a->next_tick = c.world.time + wait;
  a->interval = std::max(every, kDt);
  a->pulses = static_cast<std::uint8_t>(pulses);
}

void field(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Handle centre = n.at == Where::Target ? inv.target : inv.caster;
  Unit* u = c.world.get(centre);
  if (!u) return;
  const float lasts = number(c, inv, n, Role::Dur);
  Area* a = new_area(c, inv, node, u->pos, number(c, inv, n, Role::R), lasts);
  if (!a) return;
  // A buff that shows it, and whose dispel ends it.
  if (shown_by_buff(n)) add_modifier(c, *u, inv, n, node, lasts + kDt);
  a->follow = centre;
  const float rate = number(c, inv, n, Role::Rate), strikes = number(c, inv, n, Role::Strikes);
  a->interval = strikes > 0 ? number(c, inv, n, Role::Dur) / strikes
                : rate > 0  ? 1 / rate
                            : number(c, inv, n, Role::Interval, nullptr, kFramesPerStep * kDt);
  a->next_tick = c.world.time + a->interval;
  if (!n.given(Role::TicksAtStart)) return;
  a->next_tick = c.world.time;
  a->until -= a->interval;  // as many ticks, each an interval earlier
}

void mana_burn(Context& c, Invocation& inv, const EffectNode& n, int) {
  for (Unit& u : select_targets(c, inv, n)) {
    const float burned = take_mana(u, number(c, inv, n, Role::Amount));
    ability_damage(c, inv, u, burned * number(c, inv, n, Role::DamageFactor), n.type);
  }
}

// Deals damage every few seconds: a share of the health that the target lost since the curse began.
void hp_lost_burst(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const float every = number(c, inv, n, Role::Interval);
  for (Unit& u : select_targets(c, inv, n)) {
    Modifier* m = add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
    if (!m) continue;
    m->interval = every;
    m->next_tick = c.world.time + every;
    m->hp_before = u.hp;
  }
}

// Returned by the triggers, when its bearer is struck.
void as_buff(Context& c, Invocation& inv, const EffectNode& n, int node) { add_to_targets(c, inv, n, node); }

}  // namespace

std::span<const PrimitiveSpec> damage_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Damage, damage, kActs, kOnce, 0,
       "amount amount_creep amount_building plus base primary_attr_factor total min max dist "
       "delay amount_frac_of_total nonlethal spares_roshan pct_hp hp_removal",
       ""},
      {Prim::Dot, dot, kActs, kLasts, 0,
       "dps dps_ranged dps_building dps_per_pct_missing_hp pct_current_hp_per_sec per_tick total "
       "total_creep interval dur dur_creep creep_level",
       ""},
      {Prim::DamageMissingHp, damage_missing_hp, kActs, kOnce, 0, "factor delay", ""},
      {Prim::DamagePctMaxHp, damage_pct_max_hp, kActs, kLasts, 0, "pct_per_sec interval spares_ancients", ""},
      {Prim::Execute, execute, kActs, kOnce, 0, "hp_below else_damage", ""},
      {Prim::DelayedAoe, delayed_aoe, kActs, kOnce, 0, "delay pulses pulse_interval then", ""},
      {Prim::RandomExplosions, field, kActs, kOnce, 0, "interval dur min_dist max_dist r amount pattern", ""},
      {Prim::RandomTargetHits, field, kActs | on(Trigger::Interval), kLasts, 0,
       "dur rate strikes ticks_at_start visible_only amount tower_bonus_pct interval while_on outlives_caster "
       "then",
       "count: one at a time is the only number"},
      {Prim::PeriodicStrike, field, kActs | on(Trigger::Interval), kLasts, 0,
       "dur interval icd amount pick prefers_linked hits_buildings then", ""},
      {Prim::ManaBurn, mana_burn, kActs, kOnce, 0, "amount damage_factor", ""},
      {Prim::HpLostBurst, hp_lost_burst, kActs, kLasts, 0, "dur interval pct", ""},
      {Prim::Each, each, kActs, kOnce, 0, "r then", ""},
      {Prim::DamageReturn, as_buff, kActs, kLasts, 0, "dur pct",
       "pre_reduction: what is returned is always what was dealt"},
  };
  return kSpecs;
}

}  // namespace dota
