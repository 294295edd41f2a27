// Primitives of the group "attack". What attacks carry is rolled and applied by the triggers; here is what casts
// do.
#include <algorithm>

#include "effects/modifiers.hpp"

namespace dota {

namespace {

float rolled(Context& c, const Unit& u) {
  const int low = static_cast<int>(u.dmg_min), high = static_cast<int>(u.dmg_max);
  return static_cast<float>(c.world.rng.between(low, std::max(low, high))) + u.dmg_bonus;
}

// An attack that needs no swing, on the target of the cast.
void attack_modifier(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* u = c.world.get(inv.caster);
  Unit* target = c.world.get(inv.target);
  if (n.instant_attack && u && target && target->team != u->team) land_attack(c, u, *target, rolled(c, *u), false);
}

void attack_all(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* u = c.world.get(inv.caster);
  if (!u) return;
  UnitList near;
  select_around(c, inv, n, Who::Enemies, u->pos, number(c, inv, n, Role::R), near);
  for (int i = 0; i < near.n; ++i) {
    Unit& target = c.world.units[static_cast<std::size_t>(near.ids[static_cast<std::size_t>(i)])];
    if (target.alive) land_attack(c, u, target, rolled(c, *u) + number(c, inv, n, Role::BonusDamage), false);
  }
}

// A proc that goes with a timed modifier; passive ones are put on when they are learned.
void attach(Context& c, Invocation& inv, const EffectNode& n, int node) {
  if (!n.passive) add_to_targets(c, inv, n, node);
}

// Switched on by being learned or held; the triggers read it there.
void carried(Context&, Invocation&, const EffectNode&, int) {}

}  // namespace

Execute execute_attack(Prim p) {
  switch (p) {
    case Prim::AttackModifier:
      return attack_modifier;
    case Prim::AttackAllInRadius:
      return attack_all;
    case Prim::Proc:
      return attach;
    case Prim::Crit:
    case Prim::Cleave:
    case Prim::Splash:
    case Prim::Bash:
    case Prim::Lifesteal:
    case Prim::DoubleAttack:
    case Prim::TrueStrikeProc:
    case Prim::OrbCorruption:
    case Prim::Quelling:
      return carried;
    default:
      return nullptr;
  }
}

}  // namespace dota
