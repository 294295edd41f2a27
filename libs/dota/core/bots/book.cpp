#include "bots/book.hpp"

#include <algorithm>

#include "effects/interpreter.hpp"
#include "effects/program_node.hpp"
#include "view/actions.hpp"

namespace dota {
namespace {

// Whom a node's effect is for, when it does not say so.
bool for_enemies(const EffectNode& n, const AbilityDef& a) {
  switch (n.to) {
    case Who::Enemies:
    case Who::HitEnemies:
    case Who::EnemyHeroes:
    case Who::EnemiesInvisible:
    case Who::EnemiesAndBuildings:
    case Who::BehindTarget:
    case Who::CreepTarget:
      return true;
    case Who::Self:
    case Who::AlliedHeroes:
    case Who::Allies:
    case Who::AlliesAndSelf:
    case Who::AlliesAndBuildings:
    case Who::AlliedHeroesAndBuildings:
      return false;
    default:
      return a.target_enemy || a.target == TargetType::UnitOffset || a.target == TargetType::Point;
  }
}

std::uint32_t uses_of(const EffectNode& n, const AbilityDef& a) {
  const bool hostile = for_enemies(n, a);
  switch (n.prim) {
    case Prim::Stun:
    case Prim::Hex:
    case Prim::Root:
    case Prim::Silence:
    case Prim::Taunt:
    case Prim::Leash:
    case Prim::Leap:
    case Prim::PullToCaster:
      return (n.prim == Prim::Leap ? std::uint32_t{kMoves} : 0u) | (hostile ? kDisables : 0u);
    case Prim::Damage:
    case Prim::Dot:
    case Prim::DamageMissingHp:
    case Prim::DamagePctMaxHp:
    case Prim::Execute:
    case Prim::DelayedAoe:
    case Prim::RandomExplosions:
    case Prim::RandomTargetHits:
    case Prim::PeriodicStrike:
    case Prim::HpLostBurst:
    case Prim::ManaBurn:
    case Prim::ManaDrain:
    case Prim::Drain:
    case Prim::StatDrain:
    case Prim::RingProjectiles:
    case Prim::ExpandingRing:
    case Prim::RadialLines:
    case Prim::Spirits:
    case Prim::Echo:
    case Prim::Chain:
    case Prim::MissileUnit:
    case Prim::AttackAllInRadius:
    case Prim::AttackRandomInRadius:
    case Prim::Summon:
      return n.to == Who::Self ? 0u : kHarms;
    case Prim::Disarm:
    case Prim::Break:
    case Prim::Mute:
      return hostile ? kWeakens : 0u;
    case Prim::Mod:
    case Prim::ReductionShield:
      if (hostile && n.to != Who::Default) return kWeakens;
      if (n.to == Who::Self) return kBuffsSelf;
      if (n.to == Who::Default) return a.target_enemy ? kWeakens : (a.target_friendly ? kBuffsAllies : kBuffsSelf);
      return a.target_enemy && n.to == Who::Target ? kWeakens : kBuffsAllies;
    case Prim::GroundArea: {
      if (!hostile) return 0;
      const bool hurts = n.given(Role::Dps) || n.given(Role::Amount);
      return (hurts ? std::uint32_t{kHarms} : 0u) |
             (n.status & (kStunned | kSilenced | kRooted) ? kDisables : kWeakens);
    }
    case Prim::AttackModifier:
      return n.instant_attack ? kHarms : a.autocast ? std::uint32_t{kWeakens} : 0u;
    case Prim::NextAttackMod:
    case Prim::MultiAttack:
    case Prim::DamageReturn:
    case Prim::AmplifyAbility:
      return kBuffsSelf;
    case Prim::Heal:
    case Prim::Hot:
      return kHeals;
    case Prim::ManaGain:
    case Prim::ManaOverTime:
    case Prim::SacrificeAllyCreep:
      return kRestoresMana;
    case Prim::SpellImmune:
    case Prim::Ethereal:
      return kProtects;
    case Prim::EvadeVision:  // one that ends near enemies helps in no fight
      return n.given(Role::RevealR) ? kHides : kProtects;
    case Prim::PhysicalImmune:
      return n.to == Who::Self ? std::uint32_t{kProtects} : kProtects | kBuffsAllies;
    case Prim::Banish:
      return n.to == Who::Self ? kProtects : kRemoves;
    case Prim::Cyclone:
      return kRemoves;
    case Prim::Invis:
      return kHides;
    case Prim::Blink:
      return kMoves;
    case Prim::ForcePush:
      return kPushes;
    case Prim::TrueSight:
      return n.to == Who::EnemiesInvisible ? kReveals : 0u;
    case Prim::PlaceWard:
      return kPlacesWard;
    case Prim::Smoke:
      return kSmokes;
    case Prim::Teleport:
      return kTeleports;
    default:
      return 0;
  }
}

bool acts(const EffectNode& n) {
  return !n.passive && n.on != Trigger::Passive && n.on != Trigger::Attacked && n.on != Trigger::AttackLanded &&
         n.on != Trigger::Interval && n.on != Trigger::OwnAbilityCast && n.on != Trigger::KillUnit &&
         n.on != Trigger::KillHeroWithin3s && n.on != Trigger::DamagedByEnemy && n.on != Trigger::Auto &&
         n.on != Trigger::BeforeOwnAbilityCast && n.on != Trigger::OwnAbilityHits;
}

// A radius that covers the map.
Num everywhere() {
  Num r;
  r.n = 1;
  r.v[0] = kGlobal;
  return r;
}

void widen(Num& most, const Value* v) {
  if (!v || !v->base.given()) return;
  if (!most.given() || v->base.at(1) > most.at(1)) most = v->base;
}

void read(const AbilityDef& a, const Program& p, std::uint16_t index, Usefulness& out) {
  const EffectNode& n = p.nodes[index];
  const bool orb = a.autocast && n.prim == Prim::AttackModifier;
  if (!acts(n) && !orb) return;
  out.uses |= uses_of(n, a);
  widen(out.radius, n.value(Role::R));
  if (n.global_radius) out.radius = everywhere();
  if (n.prim == Prim::RadialLines || n.prim == Prim::ExpandingRing) widen(out.radius, n.value(Role::Len));
  if (n.prim == Prim::Damage || n.prim == Prim::Execute) widen(out.damage, n.value(Role::Amount));
  if (n.at == Where::Front && n.given(Role::Dist)) {
    out.strikes_front = true;
    out.ahead = n.value(Role::Dist)->base.at(1);
  }
  for (std::uint16_t k = 0; k < n.then_count; ++k)
    read(a, p, static_cast<std::uint16_t>(n.then_first + k), out);
}

}  // namespace

BotBook make_bot_book(const Tables& tables, const ActionVocabulary& actions) {
  BotBook book;
  book.abilities.resize(tables.abilities.size());
  for (std::size_t i = 0; i < tables.abilities.size(); ++i) {
    const AbilityDef& a = tables.abilities[i];
    for (const std::uint16_t root : a.program.roots)
      read(a, a.program, root, book.abilities[i]);
    for (const EffectNode& n : a.program.nodes) {
      if (n.prim == Prim::RefreshCooldown && a.is_item >= 0) book.abilities[i].uses |= kRefreshes;
      if (n.prim != Prim::Quelling) continue;
      if (n.given(Role::Melee)) book.abilities[i].creep_damage[0] = n.value(Role::Melee)->base.at(1);
      if (n.given(Role::Ranged)) book.abilities[i].creep_damage[1] = n.value(Role::Ranged)->base.at(1);
    }
  }
  const auto action = [&](const char* name) { return std::max(actions.find(name), -1); };
  book.tango = action("item_tango");
  book.tango_single = action("item_tango_single");
  book.flask = action("item_flask");
  book.clarity = action("item_clarity");
  book.faerie = action("item_faerie_fire");
  book.bottle = action("item_bottle");
  book.wand = action("item_magic_wand");
  book.stick = action("item_magic_stick");
  book.treads = action("item_power_treads");
  book.teleport = action("item_tpscroll");
  book.dust = action("item_dust");
  book.smoke = action("item_smoke_of_deceit");
  book.observer = action("item_ward_observer");
  book.sentry = action("item_ward_sentry");
  book.cheese = action("item_cheese");
  return book;
}

}  // namespace dota
