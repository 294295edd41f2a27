// What sort of thing a node is: whether it leaves a modifier, is a passive, sets bits of status.
#include "effects/compile.hpp"
#include "world/world.hpp"

namespace dota {

bool leaves_modifier(const EffectNode& n) {
  if (n.given(Role::RevealsTargetWhileCasting) || n.given(Role::Over)) return true;
  switch (n.prim) {
    case Prim::Damage:
    case Prim::DamageMissingHp:
    case Prim::Execute:
    case Prim::DelayedAoe:
    case Prim::RandomExplosions:
    case Prim::ManaBurn:
    case Prim::Heal:
    case Prim::ManaGain:
    case Prim::XpGain:
    case Prim::SacrificeAllyCreep:
    case Prim::RefreshCooldown:
    case Prim::Dispel:
    case Prim::Blink:
    case Prim::Teleport:
    case Prim::Projectile:
    case Prim::ProjectilePoint:
    case Prim::LinearWave:
    case Prim::LineStrike:
    case Prim::Bounce:
    case Prim::RingProjectiles:
    case Prim::ExpandingRing:
    case Prim::RadialLines:
    case Prim::Echo:
    case Prim::Chain:
    case Prim::Vision:
    case Prim::TreeCut:
    case Prim::PlantTree:
    case Prim::PlaceWard:
    case Prim::RuneStore:
    case Prim::Transmute:
    case Prim::Deliver:
    case Prim::ItemTransferCharge:
    case Prim::RespawnAdd:
      return false;
    case Prim::GroundArea:
      return !n.stats.empty() || n.status != 0;
    default:
      return true;
  }
}

bool passive_at_root(const EffectNode& n, bool passive_behavior) {
  switch (n.prim) {
    case Prim::PassiveStats:
    case Prim::Crit:
    case Prim::Cleave:
    case Prim::Splash:
    case Prim::Bash:
    case Prim::Lifesteal:
    case Prim::SpellLifesteal:
    case Prim::Backstab:
    case Prim::DoubleAttack:
    case Prim::TrueStrikeProc:
    case Prim::OrbCorruption:
    case Prim::Quelling:
    case Prim::DamageBlock:
    case Prim::OnHitStatSteal:
    case Prim::Reincarnate:
    case Prim::SpellBlock:
    case Prim::LowHpGuard:
    case Prim::ChargeOnNearbyCast:
    case Prim::ChargeOnNearbyDeath:
    case Prim::ToggleStat:
    case Prim::DropOnDeath:
    case Prim::AncientScepter:
    case Prim::DispelOnDamage:
    case Prim::AttackModifier:
      return true;
    case Prim::Aura:
      // Ring of Basilius only chooses whether creeps share in it; it is always on.
      return (n.on == Trigger::Cast && !n.given(Role::Dur)) || n.on == Trigger::ToggleIncludeCreeps;
    case Prim::Proc:
      return passive_behavior;
    case Prim::StackGain:
      return n.on == Trigger::KillUnit || n.on == Trigger::KillHeroWithin3s;
    case Prim::TrueSight:
      return n.to == Who::Default;
    default:
      return n.on == Trigger::Passive || n.on == Trigger::Auto || n.on == Trigger::Interval;
  }
}

std::uint32_t inherent_bits(Prim p) {
  switch (p) {
    case Prim::Stun:
      return kStunned;
    case Prim::Silence:
      return kSilenced;
    case Prim::Root:
      return kRooted;
    case Prim::Disarm:
      return kDisarmed;
    case Prim::Leash:
      return kLeashed;
    case Prim::Hex:
      return kHexed | kSilenced | kDisarmed | kMuted;
    case Prim::Taunt:
      return kTaunted;
    case Prim::Mute:
      return kMuted;
    case Prim::Break:
      return kBroken;
    case Prim::Invis:
      return kInvisible;
    case Prim::Banish:
      return kBanished | kInvulnerable | kUntargetable;
    case Prim::Ethereal:
      return kEthereal | kAttackImmune | kDisarmed;
    case Prim::SpellImmune:
      return kSpellImmune;
    case Prim::Phase:
      return kPhased;
    case Prim::Cyclone:
      return kStunned | kInvulnerable | kUntargetable;
    case Prim::Knockback:
    case Prim::ForcePush:
    case Prim::Leap:
      return kForcedMotion;
    case Prim::PullToCaster:
      return kStunned | kForcedMotion;
    case Prim::TrueSight:
      return kTrueSighted;
    case Prim::EvadeVision:
      return kInvisible;
    default:
      return 0;
  }
}

}  // namespace dota
