#include "effects/primitive.hpp"

#include <array>

namespace dota {

namespace {

// Built primitives. A key that is in neither list of its primitive makes the program incomplete
// ("mod.reactivate"), so that nothing in the data is dropped without being seen.
constexpr PrimitiveSpec kSpecs[] = {
    // damage
    {Prim::Damage, "amount amount_creep amount_building plus base primary_attr_factor total min max dist delay",
     ""},
    {Prim::Dot,
     "dps dps_ranged dps_building dps_per_pct_missing_hp pct_current_hp_per_sec per_tick total total_creep "
     "interval dur "
     "dur_creep",
     ""},
    {Prim::DamageMissingHp, "factor delay", ""},
    {Prim::DamagePctMaxHp, "pct_per_sec interval", ""},
    {Prim::Execute, "hp_below else_damage", ""},
    {Prim::DelayedAoe, "delay pulses pulse_interval then", ""},
    {Prim::RandomExplosions, "interval dur min_dist max_dist r amount pattern", ""},
    {Prim::RandomTargetHits, "dur rate amount interval then", "count: one at a time is the only number"},
    {Prim::PeriodicStrike, "dur interval amount pick then", "hits_buildings: enemies are units, not buildings"},
    {Prim::ManaBurn, "amount damage_factor", ""},
    {Prim::HpLostBurst, "bursts interval pct", ""},
    // resource
    {Prim::Heal, "amount per_charge over cost_mana_pct", ""},
    {Prim::Hot, "per_sec pct_max_per_sec total interval dur ends_on", ""},
    {Prim::ManaGain, "amount per_charge",
     "temporary: mana given for a time only, as by Soul Ring, is spent at once"},
    {Prim::ManaOverTime, "per_sec pct_max_per_sec total interval dur ends_on", ""},
    {Prim::HpCost, "amount per_sec nonlethal", ""},
    {Prim::ManaDrain, "per_sec interval dur break_dist", ""},
    {Prim::Drain, "dps dps_pct_max_hp interval dur heal_pct break_dist", ""},
    {Prim::XpGain, "amount", ""},
    {Prim::SacrificeAllyCreep, "mana_pct_of_hp", ""},
    {Prim::RefreshCooldown, "what", "consumes: the item is consumable, and casting takes it"},
    {Prim::Charges, "max restore", ""},
    // modifier
    {Prim::Mod,
     "stats ranged_stats ally_stats enemy_stats dur dur_creep dur_ranged ends_on decay attacks uses_charge "
     "proc_on_damaged stack until",
     "self_loses_own_bonus: the item's own stats are given to the target by its numbers"},
    {Prim::Aura,
     "r stats self_stats creep_stats ranged_stats low_hp_pct low_hp_stats linger dur interval then mana_per_sec",
     ""},
    {Prim::StackGain, "stack amount amount_hero amount_hero_extra max dur per_stack lost_on_death_frac", ""},
    {Prim::StatDrain, "stat amount per_sec dur hold break_dist", ""},
    {Prim::NextAttackMod, "stats expires", ""},
    {Prim::PassiveStats, "stats else_stats per_charge broken_for",
     "breaks_on: attacks made on heroes and attacks suffered are the only words"},
    {Prim::ReductionShield, "amount plus_caster_str_factor dur per_instance min_damage icd",
     "uses: the item's charges are the uses"},
    {Prim::DamageBlock, "amount chance_pct melee ranged", ""},
    {Prim::RespawnAdd, "amount", ""},
    {Prim::Dispel, "delay", ""},
    {Prim::DispelOnDamage, "threshold reset_after counts", ""},
    // status
    {Prim::Stun, "dur dur_creep pierces_immunity", ""},
    {Prim::Silence, "dur end_damage_pct_of_taken attackers_crit_pct true_strike", ""},
    {Prim::Root, "dur dur_creep", ""},
    {Prim::Disarm, "dur dur_creep dur_vs_ranged", ""},
    {Prim::Hex, "dur ms_set", "kills_illusions: the game has no illusions"},
    {Prim::Taunt, "dur pierces_immunity", ""},
    {Prim::Mute, "dur", ""},
    {Prim::Break, "dur", ""},
    {Prim::Invis, "dur fade stats break_bonus_damage", "phase: a unit that cannot be seen is walked through"},
    {Prim::Ethereal, "dur mr_pct", ""},
    {Prim::SpellImmune, "dur level_up_per_use", ""},
    {Prim::Phase, "dur", ""},
    {Prim::Cyclone, "dur land_damage", ""},
    {Prim::Banish, "dur can_move", ""},
    {Prim::PullToCaster, "dur moves_to_pct_of_distance", ""},
    // motion
    {Prim::Blink, "max min overshoot_to disabled_after_damage_by_player", "disjoint: every blink does"},
    {Prim::Knockback, "dist dur", ""},
    {Prim::ForcePush, "dist dur", ""},
    {Prim::Teleport, "max_dist min_dist", ""},
    // projectile
    {Prim::Projectile, "speed then vision_r reveals_target_while_casting", ""},
    {Prim::ProjectilePoint, "speed then", ""},
    {Prim::LinearWave, "len w0 w1 speed then", ""},
    {Prim::LineStrike, "len w then", ""},
    {Prim::RingProjectiles, "speed enemies allies", ""},
    {Prim::ExpandingRing, "r speed then returns", ""},
    {Prim::RadialLines, "count len w0 w1 speed then on_death_souls_frac", ""},
    {Prim::Bounce, "count range speed delay then", "can_repeat: every bounce may come back"},
    {Prim::Echo, "search_r r per_unit per_hero amount", ""},
    {Prim::Chain, "count range delay amount loss_pct", ""},
    // area
    {Prim::GroundArea, "dur delay dps interval stats linger", "hits_buildings: enemies are units, not buildings"},
    {Prim::Vision, "r dur", ""},
    {Prim::TrueSight, "dur", ""},
    {Prim::TreeCut, "", ""},
    // unit
    {Prim::Summon, "unit dur count attack_damage targets", ""},
    // attack
    {Prim::Proc, "chance_pct icd max_range then", ""},
    {Prim::AttackModifier, "autocast then what", "mana: the ability's own cost, which casting it takes"},
    {Prim::AttackAllInRadius, "bonus_damage", "once: one attack on each"},
    {Prim::Crit, "chance_pct mult_pct", ""},
    {Prim::Cleave, "pct w0 w1 len melee_only", ""},
    {Prim::Splash, "r pct", ""},
    {Prim::Bash, "chance_pct chance_melee_pct chance_ranged_pct icd damage dur", ""},
    {Prim::Lifesteal, "pct", ""},
    {Prim::DoubleAttack, "icd then", ""},
    {Prim::TrueStrikeProc, "chance_pct damage", ""},
    {Prim::OrbCorruption, "armor dur", ""},
    {Prim::Quelling, "melee ranged", ""},
    // special
    {Prim::Reincarnate, "", "delay: rules.json's aegis_delay_s; expires: rules.json's aegis_expires_s"},
    {Prim::SpellBlock, "icd", "transferable: it is never given away"},
    {Prim::ChargeOnNearbyCast, "r max", ""},
    {Prim::ChargeOnNearbyDeath, "r first then lose_on_death", ""},
    {Prim::ToggleStat, "stats amount", ""},
    {Prim::PlaceWard, "unit life",
     "vision: the ward's row of units.json; true_sight: the ward's row of units.json"},
    {Prim::Transmute, "gold xp_mult", ""},
    {Prim::RuneStore, "", ""},
    {Prim::ItemTransferCharge, "gives", ""},
};

constexpr const char* kPrimNames[] = {
#define X(id, name) name,
    DOTA_PRIMITIVES(X)
#undef X
};
constexpr const char* kRoleNames[] = {
#define X(id, name) name,
    DOTA_ROLES(X)
#undef X
};

}  // namespace

const char* primitive_name(Prim p) { return kPrimNames[static_cast<std::size_t>(p)]; }
const char* role_name(Role r) { return kRoleNames[static_cast<std::size_t>(r)]; }

bool parse_primitive(const std::string& name, Prim& out) {
  for (int i = 0; i < kPrims; ++i)
    if (name == kPrimNames[i]) {
      out = static_cast<Prim>(i);
      return true;
    }
  return false;
}

bool parse_role(const std::string& name, Role& out) {
  for (int i = 0; i < kRoles; ++i)
    if (name == kRoleNames[i]) {
      out = static_cast<Role>(i);
      return true;
    }
  return false;
}

const PrimitiveSpec* primitive_spec(Prim p) {
  static const std::array<const PrimitiveSpec*, kPrims> table = [] {
    std::array<const PrimitiveSpec*, kPrims> t{};
    for (const PrimitiveSpec& s : kSpecs)
      t[static_cast<std::size_t>(s.prim)] = &s;
    return t;
  }();
  return table[static_cast<std::size_t>(p)];
}

}  // namespace dota
