// Primitives of the group "attack". What attacks carry is rolled and applied by the triggers; here is what casts
// do.
#include <algorithm>

#include "effects/attack.hpp"
#include "effects/modifiers.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

// An attack that needs no swing, on the target of the cast.
void attack_modifier(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* u = c.world.get(inv.caster);
  Unit* target = c.world.get(inv.target);
  if (!n.instant_attack || !u || !target || target->team == u->team) return;
  AttackRoll roll;
  roll.crit_pct = number(c, inv, n, Role::MultPct, nullptr, 100);
  roll.share = number(c, inv, n, Role::SharePct, nullptr, 100) / 100;
  roll.plus = number(c, inv, n, Role::BonusDamage);
  c.sure_proc = n.ability;
  strike_at_once(c, *u, *target, roll);
  c.sure_proc = -1;
}

void attack_all(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* u = c.world.get(inv.caster);
  if (!u) return;
  AttackRoll roll;
  roll.plus = number(c, inv, n, Role::BonusDamage);
  for (Unit& target : select_around(c, inv, n, Who::Enemies, u->pos, number(c, inv, n, Role::R)))
    if (target.alive) strike_at_once(c, *u, target, roll);
}

// A proc that goes with a timed modifier; passive ones are put on when they are learned.
void attach(Context& c, Invocation& inv, const EffectNode& n, int node) {
  if (!n.passive) add_to_targets(c, inv, n, node);
}

// Switched on by being learned or held; the triggers read it there.
void carried(Context&, Invocation&, const EffectNode&, int) {}

// Strikes one enemy around every interval, for as long as it is channelled: the area does it (strike_at_random).
void strikes_at_random(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* u = c.world.get(inv.caster);
  Area* a = u ? new_area(c, inv, node, u->pos, number(c, inv, n, Role::R), kForever) : nullptr;
  if (!a) return;
  a->follow = inv.caster;
  a->interval = number(c, inv, n, Role::Interval);
  a->next_tick = c.world.time + a->interval;
}

void flak(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* u = c.world.get(inv.caster);
  Modifier* m = u ? add_modifier(c, *u, inv, n, node, number(c, inv, n, Role::Dur)) : nullptr;
  if (m) m->attacks_left = static_cast<std::uint8_t>(number(c, inv, n, Role::Attacks));
}

}  // namespace

void strike_at_random(Context& c, Invocation& inv, const EffectNode& n, Vec2 p, float r) {
  Unit* u = c.world.get(inv.caster);
  if (!u) return;
  UnitList near = select_around(c, inv, n, n.heroes_first ? Who::EnemyHeroes : Who::Enemies, p, r);
  if (near.empty() && n.heroes_first) near = select_around(c, inv, n, Who::Enemies, p, r);
  UnitList open(c.world.units);
  for (const Unit& target : near)
    if (!n.given(Role::VisibleOnly) || can_attack(c, *u, target)) open.add(c.world.handle(target).index);
  if (open.empty()) return;
  Unit& target = open[c.world.rng.below(open.size())];
  AttackRoll roll;
  roll.from_anywhere = n.given(Role::AlwaysBackstab);
  strike_at_once(c, *u, target, roll);
}

std::span<const PrimitiveSpec> attack_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::AttackModifier, attack_modifier, kActs | kHeld, kLasts, 0,
       "autocast then what mult_pct share_pct bonus_damage hits_buildings procs",
       "mana: the ability's own cost, which casting it takes"},
      {Prim::AttackAllInRadius, attack_all, kActs, kLasts, 0, "bonus_damage spares_roshan",
       "once: one attack on each"},
      {Prim::Proc, attach,
       on(Trigger::AttackLanded, Trigger::Attacked, Trigger::DamagedByEnemy, Trigger::OwnAbilityCast,
          Trigger::TargetAttacked, Trigger::BeforeOwnAbilityCast, Trigger::OwnAbilityHits),
       kLasts, 0, "chance_pct icd max_range true_strike then allied_creeps", ""},
      {Prim::Crit, carried, kHeld, kLasts, 0, "chance_pct mult_pct", ""},
      {Prim::Cleave, carried, kHeld, kLasts, 0, "pct w0 w1 len melee_only", ""},
      {Prim::Splash, carried, kHeld, kLasts, 0, "r pct rings", ""},
      {Prim::Bash, carried, kHeld, kLasts, 0,
       "chance_pct chance_melee_pct chance_ranged_pct icd after damage dur dur_creep pierces_immunity", ""},
      {Prim::AttackStacks, carried, kHeld, kLasts, 0, "damage dur dur_roshan", ""},
      {Prim::AmplifyAbility, attach, kActs, kLasts, 0, "ability factor dur", ""},
      {Prim::Lifesteal, carried, kHeld, kLasts, 0, "pct", ""},
      {Prim::DoubleAttack, carried, kHeld, kLasts, 0, "icd then", ""},
      {Prim::TrueStrikeProc, carried, kHeld, kLasts, 0, "chance_pct damage", ""},
      {Prim::OrbCorruption, carried, kHeld, kLasts, 0, "armor dur", ""},
      {Prim::Quelling, carried, kHeld, kLasts, 0, "melee ranged melee_pct ranged_pct", ""},
      {Prim::MultiAttack, flak, kActs, kLasts, 0, "attacks dur proj_speed damage", ""},
      {Prim::AttackRandomInRadius, strikes_at_random, kActs | on(Trigger::Interval), kLasts, 0,
       "interval r always_backstab prefer visible_only pierces_immunity", ""},
      {Prim::SpellLifesteal, carried, kHeld, kLasts, 0, "hero_pct creep_pct", ""},
      {Prim::Backstab, carried, kHeld, kLasts, 0, "agi_factor angle_deg", ""},
  };
  return kSpecs;
}

}  // namespace dota
