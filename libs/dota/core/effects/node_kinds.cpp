// What sort of thing a node is: whether it leaves a modifier, is a passive, sets bits of status.
#include "effects/compile.hpp"
#include "world/world.hpp"

namespace dota {

bool leaves_modifier(const EffectNode& n) {
  if (n.given(Role::RevealsTargetWhileCasting) || n.given(Role::Over)) return true;
  if (n.prim == Prim::GroundArea) return !n.stats.empty() || n.status != 0;
  const PrimitiveSpec* spec = primitive_spec(n.prim);
  return spec && spec->stay == kLasts;
}

bool passive_at_root(const EffectNode& n, bool passive_behavior) {
  switch (n.prim) {
    case Prim::Aura:
      // Ring of Basilius only chooses whether creeps share in it; it is always on.
      return (n.on == Trigger::Cast && !n.given(Role::Dur)) || n.on == Trigger::ToggleIncludeCreeps;
    case Prim::AttackModifier:
      return !n.instant_attack && n.on != Trigger::Then;
    case Prim::Proc:
      return passive_behavior && n.on != Trigger::TargetAttacked;
    case Prim::StackGain:
      return n.on == Trigger::KillUnit || n.on == Trigger::KillHeroWithin3s;
    case Prim::TrueSight:
      return n.to == Who::Default;
    default:
      break;
  }
  if (n.on == Trigger::Passive || n.on == Trigger::Auto || n.on == Trigger::Interval) return true;
  const PrimitiveSpec* spec = primitive_spec(n.prim);
  return spec && spec->on == kHeld;
}

}  // namespace dota
