// What modifiers do as time passes: ticks, fading, decay, forced motion, expiry.
#include <algorithm>
#include <bit>
#include <cmath>

#include "effects/abilities.hpp"
#include "effects/damage.hpp"
#include "effects/modifiers.hpp"
#include "effects/orders.hpp"
#include "effects/running.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"

namespace dota {

namespace {

void tick_damage(Context& c, Modifier& m, const EffectNode& n, Unit& u) {
  Invocation inv = invocation_of(c, m);
  float amount = m.per_tick;
  if (n.prim == Prim::HpLostBurst)
    amount = std::max(0.0f, m.hp_before - u.hp) * number(c, inv, n, Role::Pct) / 100;
  // Not per_tick alone: these follow the health the target has at the tick.
  if (n.given(Role::DpsPerPctMissingHp))
    amount +=
        number(c, inv, n, Role::DpsPerPctMissingHp) * 100 * (1 - u.hp / std::max(u.max_hp, 1.0f)) * m.interval;
  if (n.given(Role::PctCurrentHpPerSec))
    amount += number(c, inv, n, Role::PctCurrentHpPerSec) / 100 * u.hp * m.interval;
  ability_damage(c, inv, u, amount, static_cast<DamageType>(m.damage_type));
}

// Health and mana over time flow without steps: what is due since the last look, up to the end.
void flow(Context& c, Modifier& m, const EffectNode& n, Unit& u) {
  const float now = std::min(c.world.time, m.until);
  const float seconds = now - static_cast<float>(m.next_tick);
  if (seconds <= 0) return;
  m.next_tick = now;
  Invocation inv = invocation_of(c, m);
  const float pct = number(c, inv, n, Role::PctMaxPerSec) / 100;
  if (n.prim == Prim::Hot || n.prim == Prim::Heal) {
    const float current = number(c, inv, n, Role::PctCurrentHpPerSec) / 100;
    heal_by(c, m.source, u, (-m.per_tick + pct * u.max_hp + current * u.hp) * seconds);
  } else if (n.prim == Prim::ManaOverTime) {
    give_mana(c, u, (m.mana_per_tick + pct * u.max_mana) * seconds);
  } else if (n.prim == Prim::HpCost) {
    const float floor = n.given(Role::Nonlethal) ? 1.0f : 0.0f;
    u.hp = std::max(std::min(u.hp, floor), u.hp - m.per_tick * seconds);
  }
}

bool full(const Unit& u) { return u.hp >= u.max_hp && u.mana >= u.max_mana; }

void expire(Context& c, int index, Modifier& m, const EffectNode& n) {
  Unit& u = c.world.units[m.owner];
  const Handle h = c.world.handle(u);
  Invocation inv = invocation_of(c, m);
  const float gathered = m.gathered;
  const bool moved = (m.motion.x != 0 || m.motion.y != 0);
  remove_modifier(c, index);
  if (n.prim == Prim::Leap)
    leap_lands(c, inv, n, u);
  else if (moved)
    settle(c, u);
  if (n.prim == Prim::Silence && n.given(Role::EndDamagePctOfTaken) && gathered > 0)
    ability_damage(c, inv, u, gathered * number(c, inv, n, Role::EndDamagePctOfTaken) / 100, n.type);
  if (n.prim == Prim::Cyclone && u.team != inv.team && c.world.get(h))
    ability_damage(c, inv, u, number(c, inv, n, Role::LandDamage), DamageType::Magical);
}

// Nobody leaves the circle he is tied to.
void hold_back(Context& c, const Modifier& m, const EffectNode& n, Unit& u) {
  const float r = number(c, invocation_of(c, m), n, Role::R);
  const Vec2 d = u.pos - m.anchor;
  const float far = d.length();
  if (far > r) place_unit(c.world, u, m.anchor + d * (r / far));
}

// What ends an invisibility besides attacks and casts, and a taunt: its caster's death. True: it is over.
bool given_away(Context& c, Modifier& m, const EffectNode& n, const Unit& u) {
  if (n.prim == Prim::Taunt) {
    const Unit* caster = c.world.get(m.source);
    return !caster || !caster->alive;
  }
  if (n.prim == Prim::Invis) return n.given(Role::RequiresStandingStill) && u.act == Act::Walk;
  if (!n.given(Role::RevealR)) return false;
  const Invocation inv = invocation_of(c, m);
  for (const Unit& other : units_near(c, u.pos, number(c, inv, n, Role::RevealR))) {
    const bool watches = other.kind == UnitKind::Hero || (other.kind == UnitKind::Tower && n.prim == Prim::Smoke);
    if (!other.alive || !watches || other.team == u.team) continue;
    if (!n.given(Role::RevealAfter)) return true;
    m.until = std::min(m.until, c.world.time + number(c, inv, n, Role::RevealAfter));
    return false;
  }
  return false;
}

// What a unit has while no enemy sees it comes and goes with the same delay: `gathered` counts the seconds in
// sight.
void be_seen(Context& c, Modifier& m, const EffectNode& n, const Unit& u) {
  const World& w = c.world;
  const float delay = number(c, invocation_of(c, m), n, Role::Delay);
  if (m.ready == Modifier{}.ready) m.ready = w.time + delay;  // it was just learned
  const bool works = w.due(m.ready);
  if (!unit_visible(w, 1 - u.team, u)) {
    m.gathered = 0;
    return;
  }
  m.gathered += kFramesPerStep * kDt;
  if (works && m.gathered + kTimeSlack < delay) return;
  m.ready = std::max(m.ready, w.time + delay);
}

// Passive conditions, fading strengths, bonuses by charges: looked at once a timestep.
void follow(Context& c, Modifier& m, const EffectNode& n, Unit& u) {
  const bool counts_charges =
      std::any_of(n.stats.begin(), n.stats.end(), [](const NodeStat& s) { return s.set == StatSet::PerCharge; });
  if (n.decay == Decay::None && n.cond == Cond::Always && !counts_charges && !n.given(Role::LowHpPct) &&
      !is_aimed(n))
    return;
  if (n.cond == Cond::NotVisibleToEnemy && u.team < kTeams) be_seen(c, m, n, u);
  if (counts_charges)
    if (const ItemState* item = item_state(c.world, u, slot_of(c, u, m.ability)))
      m.charges = static_cast<std::uint8_t>(std::max<int>(item->charges, 0));
  if (fill_stats(c, invocation_of(c, m), n, u, m)) u.stats_dirty = true;
}

// What a passive does by itself every so often.
void act_by_interval(Context& c, Modifier& m, const EffectNode& n, Unit& u) {
  if (n.on != Trigger::Interval || !u.alive || !active(u, m) || !c.world.due(m.ready)) return;
  if (n.ability >= 0) {
    const AbilityState* other = ability_state(c.world, u, slot_of(c, u, n.ability));
    if (!other || !other->toggled) return;
  }
  Invocation inv = invocation_of(c, u, m.ability, m.level);
  // From when it was due, so that timesteps do not lengthen the intervals.
  const bool in_time = m.ready > c.world.time - kRenewed;
  m.ready = (in_time ? m.ready : c.world.time) + number(c, inv, n, Role::Interval);
  if (n.prim == Prim::RandomTargetHits || n.prim == Prim::PeriodicStrike)
    strike(c, inv, n, u.pos, number(c, inv, n, Role::R));
  if (n.prim == Prim::AttackRandomInRadius) strike_at_random(c, inv, n, u.pos, number(c, inv, n, Role::R));
}

// While a hero takes aim with such an ability, everyone sees whom he aims at.
void reveal_aimed_at(Context& c, const Unit& u) {
  if (u.act != Act::CastWindup) return;
  int level = 0;
  const AbilityDef* a = slot_ability(c, u, u.order.slot, &level);
  Unit* target = c.world.get(u.order.target);
  if (!a || !target) return;
  for (const std::uint16_t root : a->program.roots) {
    const EffectNode& n = a->program.nodes[root];
    if (!n.given(Role::RevealsTargetWhileCasting) || !upgraded(c, &u, n)) continue;
    const Invocation inv = invocation_of(c, u, a->id, level);
    add_modifier(c, *target, inv, n, root, kRenewed);
  }
}

// Whether a modifier has something to do in this frame. `slow`: the last frame of a timestep.
bool acts(const World& w, const Modifier& m, bool slow) {
  if (m.owner < 0 || m.node < 0) return false;
  if (m.interval > 0) return true;
  if (m.until >= kForever) return slow;
  return !m.rests || m.motion.x != 0 || m.motion.y != 0 || w.due(m.until);
}

void modifier_frame(Context& c, int i, bool slow) {
  World& w = c.world;
  Modifier& m = w.modifiers[i];
  const bool over = m.until < kForever && w.due(m.until);
  Unit& u = w.units[m.owner];
  const EffectNode& n = node_of(c, m.ability, m.node);

  if (n.status && !m.status && w.due(m.ready) && !over) {  // faded in
    m.status = n.status;
    fill_stats(c, invocation_of(c, m), n, u, m);
    mark_dirty(c, u);
    if (n.prim == Prim::Invis) vanish(c, u);
  }
  if ((m.motion.x != 0 || m.motion.y != 0) && w.time > m.start + kTimeSlack)
    place_unit(w, u, u.pos + m.motion * std::min(kDt, m.until - w.time + kDt));
  if (n.prim == Prim::Leap && leap_meets(c, m, n, i, u)) return;
  if (n.prim == Prim::Leash) hold_back(c, m, n, u);
  if (m.interval > 0 && u.alive) {
    const std::uint16_t generation = m.generation;
    while (m.owner >= 0 && m.generation == generation && m.interval > 0 && w.due(m.next_tick) &&
           m.next_tick <= m.until + kTimeSlack) {
      m.next_tick += m.interval;
      tick_damage(c, m, n, u);
    }
    if (m.owner < 0 || m.generation != generation) return;  // the tick killed its bearer
  }
  if ((slow || over) && (n.prim == Prim::Hot || n.prim == Prim::Heal || n.prim == Prim::ManaOverTime ||
                         (n.prim == Prim::HpCost && n.given(Role::PerSec)))) {
    flow(c, m, n, u);
    if (n.ends_on == EndsOn::DamageOrFull && full(u)) {
      remove_modifier(c, i);
      return;
    }
  }
  if (slow && !over) {
    const std::uint16_t generation = m.generation;
    const auto gone = [&] { return m.owner < 0 || m.generation != generation; };
    if (n.prim == Prim::Aura && !(m.flags & kModAura)) aura_frame(c, m, n);
    if (gone()) return;
    if (given_away(c, m, n, u)) {
      remove_modifier(c, i);
      return;
    }
    follow(c, m, n, u);
    act_by_interval(c, m, n, u);
    if (gone()) return;
    if (m.until >= kForever && m.interval <= 0) w.modifiers_slow[i >> 6] |= 1ull << (i & 63);
  }
  if (over) expire(c, i, m, n);
}

}  // namespace

void modifiers_frame(Context& c) {
  World& w = c.world;
  const bool slow = w.frame % kFramesPerStep == 0;
  // By slot of the pool, not by unit: a tick may kill, and with that free modifiers anywhere.
  for (std::size_t word = 0; word < w.modifiers_watched.size(); ++word)
    for (std::uint64_t ahead = ~0ull;;) {
      const std::uint64_t left = w.modifiers_watched[word] & ahead & (slow ? ~0ull : ~w.modifiers_slow[word]);
      if (left == 0) break;
      const int bit = std::countr_zero(left);
      ahead = ~1ull << bit;
      const int i = static_cast<int>(word * 64) + bit;
      if (acts(w, w.modifiers[i], slow)) modifier_frame(c, i, slow);
    }
  if (!slow) return;
  stack_ends_frame(c);
  for (const HeroState& h : w.heroes) {
    Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive) continue;
    reveal_aimed_at(c, *u);
    bottles_frame(c, *u);
    const bool enabled = std::any_of(h.items.begin(), h.items.begin() + kInventory, [&](const ItemState& i) {
      return i.id >= 0 && w.due(i.enabled_at) && !w.due(i.enabled_at + kFramesPerStep * kDt + 2 * kTimeSlack);
    });
    if (enabled) apply_learned(c, *u);  // an item from the backpack starts to work
  }
}

}  // namespace dota
