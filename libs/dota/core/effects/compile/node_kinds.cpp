// Kinds of nodes: those that leave a modifier, those whose modifier needs no work, passives.
#include <algorithm>

#include "effects/compile/compile.hpp"
#include "world/world.hpp"

namespace dota {

bool leaves_modifier(const EffectNode& n) {
  if (n.given(Role::RevealsTargetWhileCasting) || n.given(Role::Over)) return true;
  if (n.prim == Prim::GroundArea) return !n.stats.empty() || n.status != 0;
  const PrimitiveSpec* spec = primitive_spec(n.prim);
  return spec && spec->stay == kLasts;
}

namespace {

// Returns whether the node's stats never change after they were applied.
bool steady(const EffectNode& n) {
  const bool by_charges =
      std::any_of(n.stats.begin(), n.stats.end(), [](const NodeStat& s) { return s.set == StatSet::PerCharge; });
  return n.status == 0 && n.on != Trigger::Interval && !n.given(Role::Interval) && !n.given(Role::Fade) &&
         n.decay == Decay::None && n.cond == Cond::Always && !by_charges && !n.given(Role::LowHpPct) &&
         !is_aimed(n);
}

}  // namespace

// An aura's carrier looks around each timestep; what it gives to others needs no work before it ends.
bool rests_on_others(const EffectNode& n) { return n.rests || (n.prim == Prim::Aura && steady(n)); }

bool gives_fixed_stats(const EffectNode& n) {
  return n.prim == Prim::Aura && steady(n) && !n.stacking &&
         std::all_of(n.stats.begin(), n.stats.end(), [](const NodeStat& s) {
           const bool of_bearer = s.set == StatSet::Main || s.set == StatSet::Creep || s.set == StatSet::Ranged;
           return of_bearer && s.value.factor == Factor::One && s.value.talents == 0 && !s.value.scepter.given() &&
                  !s.far.base.given();
         });
}

bool rests_while_it_lasts(const EffectNode& n) {
  switch (n.prim) {
    case Prim::Mod:
    case Prim::PassiveStats:
    case Prim::StackGain:
    case Prim::OnHitStatSteal:
    case Prim::DamageReturn:
    case Prim::ReductionShield:
    case Prim::DamageBlock:
    case Prim::RespawnAdd:
    case Prim::Proc:
    case Prim::AttackModifier:
    case Prim::Crit:
    case Prim::Cleave:
    case Prim::Splash:
    case Prim::Bash:
    case Prim::Lifesteal:
    case Prim::SpellLifesteal:
    case Prim::Backstab:
    case Prim::DoubleAttack:
    case Prim::TrueStrikeProc:
    case Prim::Quelling:
    case Prim::AttackStacks:
    case Prim::AmplifyAbility:
    case Prim::SpellBlock:
    case Prim::ToggleStat:
    case Prim::DropOnDeath:
      break;
    default:
      return false;  // ticks, flows, moves, looks around or fades: or is too rare to matter
  }
  return steady(n);
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
