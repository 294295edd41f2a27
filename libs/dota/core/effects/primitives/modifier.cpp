// Primitives of the group "modifier".
#include <algorithm>

#include "effects/modifiers.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

void mod(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n)) {
    const float lasts = n.until_ability_end ? inv.until - c.world.time : duration_on(c, inv, n, u);
    const Unit* target = n.per_target ? c.world.get(inv.target) : nullptr;
    if (n.per_target && (!target || !affects(c, inv, n, *target))) continue;
    Modifier* m =
        n.per_target ? add_per_target(c, u, inv, n, node, lasts) : add_modifier(c, u, inv, n, node, lasts);
    if (m && (n.stacking || n.by_distance)) {
      const float most = number(c, inv, n, Role::Max, nullptr, 255);
      if (n.stacking && static_cast<float>(m->stacks) < most) ++m->stacks;
      m->share = inv.share;
      if (fill_stats(c, inv, n, u, *m)) u.stats_dirty = true;
    }
    if (m && is_aimed(n)) {
      m->aim = inv.target;
      if (fill_stats(c, inv, n, u, *m)) u.stats_dirty = true;
    }
    if (m && n.given(Role::Attacks)) m->attacks_left = static_cast<std::uint8_t>(number(c, inv, n, Role::Attacks));
  }
}

// Puts the aura's carrier on its centre: the caster, or the target of the cast.
void aura(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* u = c.world.get(n.at == Where::Target ? inv.target : inv.caster);
  if (u && u->alive)
    add_modifier(c, *u, inv, n, node, n.given(Role::Dur) ? number(c, inv, n, Role::Dur) : kForever);
}

void stack_gain(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n))
    gain_stack(c, u, inv, n, node, static_cast<int>(number(c, inv, n, Role::Amount)));
}

void next_attack_mod(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* u = c.world.get(inv.caster);
  if (u) add_modifier(c, *u, inv, n, node, number(c, inv, n, Role::Expires, nullptr, kForever));
}

void reduction_shield(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  for (Unit& u : select_targets(c, inv, n)) {
    Modifier* m = add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
    if (!m) continue;
    m->shield = number(c, inv, n, Role::Amount);
    if (caster) m->shield += number(c, inv, n, Role::PlusCasterStrFactor) * caster->str;
  }
}

void dispel_now(Context& c, Invocation& inv, const EffectNode& n, int) {
  for (Unit& u : select_targets(c, inv, n)) {
    dispel(c, u, u.team == inv.team, n.strong);
  }
}

// A death while it lasts is the caster's kill, and takes longer to come back from: hero_death() reads it.
void respawn_add(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n))
    add_modifier(c, u, inv, n, node, number(c, inv, n, Role::Dur));
}

// Runs its effects on the targets that nothing of the same family has reached for so long. A limit that is the
// cooldown is that of the cast, shortened as it is (patch 7.21, Mekansm).
void once_per_unit(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  const float share = caster && n.dur_is_cooldown ? 1 - caster->cooldown_red : 1;
  for (Unit& u : select_targets(c, inv, n)) {
    bool reached = false;
    each_modifier(c, u, [&](Modifier&, const EffectNode& other, int) {
      reached = reached || (other.prim == Prim::OncePerUnit && other.family == n.family);
    });
    if (reached || !add_modifier(c, u, inv, n, node, share * number(c, inv, n, Role::Dur))) continue;
    run_on(c, inv, n.then_first, n.then_count, u);
  }
}

// Draws a stat from the target to the caster: so much at once, or more with each second of a link.
void stat_drain(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* target = c.world.get(inv.target);
  Unit* caster = c.world.get(inv.caster);
  if (!target || !caster || !affects(c, inv, n, *target)) return;
  if (n.given(Role::PerSec)) {
    if (Area* a = new_area(c, inv, node, target->pos, 0, number(c, inv, n, Role::Dur))) {
      a->follow = inv.target;
      a->interval = kFramesPerStep * kDt;
      a->next_tick = c.world.time + a->interval;
    }
    return;
  }
  const float lasts = number(c, inv, n, Role::Dur);
  for (Unit* u : {target, caster})
    if (Modifier* m = n.per_target && u == caster ? add_per_target(c, *u, inv, n, node, lasts)
                                                  : add_modifier(c, *u, inv, n, node, lasts)) {
      m->drawn = number(c, inv, n, Role::Amount);
      if (fill_stats(c, inv, n, *u, *m)) u->stats_dirty = true;
    }
}

void as_learned(Context& c, Invocation& inv, const EffectNode& n, int node) { add_to_targets(c, inv, n, node); }

}  // namespace

void gain_stack(Context& c, Unit& bearer, const Invocation& inv, const EffectNode& n, int node, int amount) {
  // Stacks that run out, each at its own time or all with the last, sit beside the passive that gains them;
  // lasting ones are counted on it.
  const bool timed = n.given(Role::Dur);
  const bool beside = timed && n.passive;
  int before = 0;
  each_modifier(c, bearer, [&](Modifier& m, const EffectNode&, int) {
    if (m.name == n.modifier && m.source == inv.caster && ((m.flags & kModAura) != 0) == beside) before = m.stacks;
  });
  Modifier* m = add_modifier(c, bearer, inv, n, node, timed ? number(c, inv, n, Role::Dur) : kForever, beside);
  if (!m) return;
  int limit = 255;
  if (n.given(Role::Max)) limit = std::min(limit, static_cast<int>(number(c, inv, n, Role::Max)));
  m->stacks = static_cast<std::uint8_t>(std::clamp(before + amount, 0, limit));
  if (timed && m->stacks > before && !n.given(Role::Refreshes))
    end_stacks_later(c, *m, m->stacks - before, number(c, inv, n, Role::Dur));
  if (!timed) {
    m->flags |= kModKept;
    if (AbilityState* a = ability_state(c.world, bearer, slot_of(c, bearer, inv.ability)))
      a->stacks = static_cast<std::int8_t>(std::min<int>(m->stacks, 127));
  }
  if (fill_stats(c, inv, n, bearer, *m)) bearer.stats_dirty = true;
}

std::span<const PrimitiveSpec> modifier_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Mod, mod, kActs | kHeld, kLasts, 0,
       "stats ranged_stats ally_stats enemy_stats dur dur_creep dur_ranged ends_on decay attacks counts "
       "uses_charge proc_on_damaged stack max until pierces_immunity on_target_only spares_roshan",
       ""},
      {Prim::Aura, aura, kActs | kHeld | on(Trigger::ToggleIncludeCreeps), kLasts, 0,
       "r stats self_stats creep_stats ranged_stats low_hp_pct low_hp_stats linger dur interval "
       "then mana_per_sec mana_per_pulse after",
       ""},
      {Prim::StackGain, stack_gain, kActs | on(Trigger::KillUnit, Trigger::KillHeroWithin3s), kLasts, 0,
       "stack amount amount_hero amount_hero_extra max dur per_stack lost_on_death_frac refreshes", ""},
      {Prim::NextAttackMod, next_attack_mod, kActs, kLasts, 0, "stats expires true_strike", ""},
      {Prim::PassiveStats, as_learned, kHeld, kLasts, 0,
       "stats else_stats per_charge broken_for breaks_on melee ranged delay disabled_by_neutral_damage", ""},
      {Prim::DamageBlock, as_learned, kHeld, kLasts, 0, "amount chance_pct melee ranged", ""},
      {Prim::DispelOnDamage, as_learned, kHeld, kLasts, 0, "threshold reset_after counts", ""},
      {Prim::StatDrain, stat_drain, kActs, kLasts, 0, "stat amount per_sec dur hold break_dist stack", ""},
      {Prim::ReductionShield, reduction_shield, kActs | on(Trigger::Auto), kLasts, 0,
       "amount plus_caster_str_factor dur per_instance min_damage icd", "uses: the item's charges are the uses"},
      {Prim::Dispel, dispel_now, kActs, kOnce, 0, "delay pulses", ""},
      {Prim::RespawnAdd, respawn_add, kActs, kLasts, 0, "amount dur", ""},
      {Prim::OncePerUnit, once_per_unit, kActs, kLasts, 0, "family dur then", ""},
      {Prim::OnHitStatSteal, as_learned, kHeld, kLasts, 0,
       "target_loses_each_attr self_gains dur stack agi_kept_on_death kept_within", ""},
  };
  return kSpecs;
}

}  // namespace dota
