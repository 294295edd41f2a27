// The closed set of primitives that effect programs are made of, and the roles their numbers play.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/program.hpp"

namespace dota {

// clang-format off
// Names as abilities.json lists them, a group after another: damage, resource, modifier, status, motion, projectile,
// area, unit, attack, special.
#define DOTA_PRIMITIVES(X)                                                                                         \
  X(Damage, "damage") X(Dot, "dot") X(DamageMissingHp, "damage_missing_hp")                                        \
  X(DamagePctMaxHp, "damage_pct_max_hp") X(Execute, "execute") X(DelayedAoe, "delayed_aoe")                        \
  X(RandomExplosions, "random_explosions") X(RandomTargetHits, "random_target_hits")                               \
  X(PeriodicStrike, "periodic_strike") X(HpLostBurst, "hp_lost_burst") X(ManaBurn, "mana_burn")                    \
  X(DamageReturn, "damage_return") X(Each, "each")                                                                                 \
  X(Heal, "heal") X(Hot, "hot") X(ManaGain, "mana_gain") X(ManaOverTime, "mana_over_time") X(HpCost, "hp_cost")    \
  X(ManaDrain, "mana_drain") X(Drain, "drain") X(XpGain, "xp_gain")                                                \
  X(SacrificeAllyCreep, "sacrifice_ally_creep") X(RefreshCooldown, "refresh_cooldown") X(Charges, "charges")       \
  X(Mod, "mod") X(Aura, "aura") X(StackGain, "stack_gain") X(StatDrain, "stat_drain")                              \
  X(OnHitStatSteal, "on_hit_stat_steal") X(NextAttackMod, "next_attack_mod") X(PassiveStats, "passive_stats")      \
  X(ReductionShield, "reduction_shield") X(DamageBlock, "damage_block") X(RespawnAdd, "respawn_add")               \
  X(OncePerUnit, "once_per_unit") X(Dispel, "dispel") X(DispelOnDamage, "dispel_on_damage")                        \
  X(Stun, "stun") X(Silence, "silence") X(Root, "root") X(Disarm, "disarm") X(Leash, "leash") X(Hex, "hex")        \
  X(Taunt, "taunt") X(Mute, "mute") X(Break, "break") X(Invis, "invis") X(Banish, "banish")                        \
  X(Ethereal, "ethereal") X(SpellImmune, "spell_immune") X(Phase, "phase") X(EvadeVision, "evade_vision")          \
  X(Fear, "fear") X(PhysicalImmune, "physical_immune")                                                                                                  \
  X(PullToCaster, "pull_to_caster") X(Cyclone, "cyclone")                                                          \
  X(Blink, "blink") X(Knockback, "knockback") X(ForcePush, "force_push") X(Leap, "leap")                           \
  X(Teleport, "teleport")                                                                                          \
  X(Projectile, "projectile") X(ProjectilePoint, "projectile_point") X(LinearWave, "linear_wave")                  \
  X(LineStrike, "line_strike") X(Bounce, "bounce") X(RingProjectiles, "ring_projectiles")                          \
  X(ExpandingRing, "expanding_ring") X(RadialLines, "radial_lines") X(Spirits, "spirits") X(Echo, "echo")          \
  X(Chain, "chain")                                                                                                \
  X(GroundArea, "ground_area") X(Vision, "vision") X(TrueSight, "true_sight") X(TerrainBlock, "terrain_block")     \
  X(TreeCut, "tree_cut") X(PlantTree, "plant_tree")                                                                \
  X(Summon, "summon") X(MissileUnit, "missile_unit")                                                               \
  X(Proc, "proc") X(AttackModifier, "attack_modifier") X(Crit, "crit") X(Cleave, "cleave") X(Splash, "splash")     \
  X(Bash, "bash") X(MultiAttack, "multi_attack") X(AttackAllInRadius, "attack_all_in_radius")                      \
  X(AttackRandomInRadius, "attack_random_in_radius") X(Lifesteal, "lifesteal")                                     \
  X(SpellLifesteal, "spell_lifesteal") X(Backstab, "backstab") X(DoubleAttack, "double_attack")                    \
  X(TrueStrikeProc, "true_strike_proc") X(OrbCorruption, "orb_corruption") X(Quelling, "quelling")                 \
  X(AttackStacks, "attack_stacks") X(AmplifyAbility, "amplify_ability")                                            \
  X(Reincarnate, "reincarnate") X(SpellBlock, "spell_block") X(SpellReflect, "spell_reflect")                      \
  X(LowHpGuard, "low_hp_guard") X(ChargeOnNearbyCast, "charge_on_nearby_cast")                                     \
  X(ChargeOnNearbyDeath, "charge_on_nearby_death") X(ToggleStat, "toggle_stat") X(Smoke, "smoke")                  \
  X(PlaceWard, "place_ward") X(RuneStore, "rune_store") X(ConsumePermanent, "consume_permanent")                   \
  X(Transmute, "transmute") X(Deliver, "deliver") X(AncientScepter, "ancient_scepter")                             \
  X(DropOnDeath, "drop_on_death") X(ItemTransferCharge, "item_transfer_charge")                                    \
  X(CastAbility, "cast_ability") X(CastWhileDisabled, "cast_while_disabled")

// clang-format on
enum class Prim : std::uint8_t {
#define X(id, name) id,
  DOTA_PRIMITIVES(X)
#undef X
      Count
};
constexpr int kPrims = static_cast<int>(Prim::Count);

// clang-format off
// What a number of a node means. The names are the node's keys in the data.
#define DOTA_ROLES(X)                                                                                              \
  X(Amount, "amount") X(AmountHero, "amount_hero") X(AmountHeroExtra, "amount_hero_extra")                         \
  X(AmountCreep, "amount_creep") X(AmountBuilding, "amount_building") X(Plus, "plus") X(Base, "base")              \
  X(PrimaryAttrFactor, "primary_attr_factor") X(Total, "total") X(TotalCreep, "total_creep") X(Dps, "dps")         \
  X(DpsRanged, "dps_ranged") X(DpsBuilding, "dps_building") X(DpsPctMaxHp, "dps_pct_max_hp")                       \
  X(DpsPerPctMissingHp, "dps_per_pct_missing_hp") X(PctCurrentHpPerSec, "pct_current_hp_per_sec")                  \
  X(PctMaxPerSec, "pct_max_per_sec") X(PerTick, "per_tick") X(PerSec, "per_sec") X(PctPerSec, "pct_per_sec")       \
  X(PerCharge, "per_charge") X(Interval, "interval") X(Dur, "dur") X(DurCreep, "dur_creep")                        \
  X(DurRanged, "dur_ranged") X(DurVsRanged, "dur_vs_ranged") X(DurRoshan, "dur_roshan") X(Delay, "delay") X(R, "r") X(Len, "len")             \
  X(W, "w") X(W0, "w0") X(W1, "w1") X(Speed, "speed") X(Dist, "dist") X(Max, "max") X(Min, "min")                  \
  X(Count, "count") X(Rate, "rate") X(ChancePct, "chance_pct") X(ChanceMeleePct, "chance_melee_pct")               \
  X(ChanceRangedPct, "chance_ranged_pct") X(Icd, "icd") X(Damage, "damage") X(Pct, "pct") X(Factor, "factor")      \
  X(HpBelow, "hp_below") X(ElseDamage, "else_damage") X(MultPct, "mult_pct") X(Melee, "melee")                     \
  X(Ranged, "ranged") X(Armor, "armor") X(BreakDist, "break_dist") X(MaxRange, "max_range")                        \
  X(Restore, "restore") X(MinDist, "min_dist") X(MaxDist, "max_dist") X(MsSet, "ms_set") X(Fade, "fade")           \
  X(Linger, "linger") X(VisionR, "vision_r") X(Life, "life") X(Vision, "vision") X(TrueSight, "true_sight")        \
  X(Expires, "expires") X(LostOnDeathFrac, "lost_on_death_frac") X(OnDeathSoulsFrac, "on_death_souls_frac")        \
  X(PlusCasterStrFactor, "plus_caster_str_factor") X(OvershootTo, "overshoot_to")                                  \
  X(DisabledAfterDamageByPlayer, "disabled_after_damage_by_player") X(BreakBonusDamage, "break_bonus_damage")      \
  X(Phase, "phase") X(RevealsTargetWhileCasting, "reveals_target_while_casting")                                   \
  X(HitsBuildings, "hits_buildings") X(MeleeOnly, "melee_only") X(PiercesImmunity, "pierces_immunity")             \
  X(Autocast, "autocast") X(Mana, "mana") X(LevelUpPerUse, "level_up_per_use") X(BrokenFor, "broken_for")          \
  X(Pulses, "pulses") X(PulseInterval, "pulse_interval") X(UsesCharge, "uses_charge") X(Attacks, "attacks")        \
  X(MrPct, "mr_pct") X(DamageFactor, "damage_factor") X(LossPct, "loss_pct") X(Range, "range")                     \
  X(Temporary, "temporary") X(CostManaPct, "cost_mana_pct") X(Over, "over") X(HealPct, "heal_pct")                 \
  X(Hold, "hold") X(SearchR, "search_r") X(PerUnit, "per_unit") X(PerHero, "per_hero")                             \
  X(CanRepeat, "can_repeat") X(Returns, "returns") X(DamageMin, "damage_min") X(DamageMax, "damage_max")           \
  X(Gold, "gold") X(XpMult, "xp_mult") X(PlusPerTeamUse, "plus_per_team_use") X(Threshold, "threshold")            \
  X(ThresholdPct, "threshold_pct") X(ResetAfter, "reset_after") X(HeroPct, "hero_pct") X(CreepPct, "creep_pct")    \
  X(AgiFactor, "agi_factor") X(AngleDeg, "angle_deg") X(ProjSpeed, "proj_speed")                                   \
  X(EndDamagePctOfTaken, "end_damage_pct_of_taken") X(AttackersCritPct, "attackers_crit_pct")                      \
  X(TrueStrike, "true_strike") X(Nonlethal, "nonlethal") X(ManaPerSec, "mana_per_sec")                              \
  X(TargetLosesEachAttr, "target_loses_each_attr") X(PerInstance, "per_instance") X(MinDamage, "min_damage")       \
  X(Uses, "uses") X(LowHpPct, "low_hp_pct") X(LandDamage, "land_damage")                \
  X(AttackDamage, "attack_damage") X(RevealR, "reveal_r") X(Windup, "windup") X(Accel, "accel")                    \
  X(HitsToKill, "hits_to_kill") X(HitsToKillTower, "hits_to_kill_tower") X(MaxAtDist, "max_at_dist")               \
  X(Stun, "stun") X(RevealsTarget, "reveals_target") X(CanMove, "can_move")                                        \
  X(AmountFracOfTotal, "amount_frac_of_total") X(First, "first") X(LoseOnDeath, "lose_on_death")                   \
  X(BonusDamage, "bonus_damage") X(Once, "once") X(HitR, "hit_r") X(AlwaysBackstab, "always_backstab")             \
  X(MovesToPctOfDistance, "moves_to_pct_of_distance") X(Disjoint, "disjoint") X(Strikes, "strikes")                \
  X(Chance, "chance") X(Consumes, "consumes") X(SpawnInterval, "spawn_interval") X(GiveUp, "give_up")              \
  X(ManaPctOfHp, "mana_pct_of_hp") X(HealPctOfDamageOnEnd, "heal_pct_of_damage_on_end")        \
  X(RequiresStandingStill, "requires_standing_still") X(DisabledByNeutralDamage, "disabled_by_neutral_damage")     \
  X(DamageDealtAndTaken, "damage_dealt_and_taken") X(LostFracKept, "lose_on_death_frac_kept")    \
  X(After, "after") X(Bounces, "bounces") X(BounceR, "bounce_r") X(ReturnDamagePct, "return_damage_pct")           \
  X(ReturnHealPct, "return_heal_pct") X(RMid, "r_mid") X(PctMid, "pct_mid") X(RFar, "r_far") X(PctFar, "pct_far") \
  X(TicksAtStart, "ticks_at_start") X(CreepLevel, "creep_level") X(SparesAncients, "spares_ancients")              \
  X(PrefersLinked, "prefers_linked") X(CountsOnce, "counts_once") X(OnePerTarget, "one_per_target")                \
  X(ClosestOnly, "closest_only") X(AgiKeptOnDeath, "agi_kept_on_death") X(SharePct, "share_pct")                    \
  X(RevealAfter, "reveal_after") X(OnTargetOnly, "on_target_only") X(AttacksTarget, "attacks_target")              \
  X(KeptWithin, "kept_within") X(TreesR, "trees_r") X(AlliedCreeps, "allied_creeps")                               \
  X(FollowsInvisible, "follows_invisible") X(VisibleOnly, "visible_only") X(SparesRoshan, "spares_roshan")         \
  X(TowerBonusPct, "tower_bonus_pct") X(OutlivesCaster, "outlives_caster") X(ManaPerPulse, "mana_per_pulse")       \
  X(Undisjointable, "undisjointable") X(EndlessWithScepter, "endless_with_scepter") X(PctHp, "pct_hp")             \
  X(HpRemoval, "hp_removal") X(MeleePct, "melee_pct") X(RangedPct, "ranged_pct")              \
  X(Refreshes, "refreshes")

// clang-format on
enum class Role : std::uint8_t {
#define X(id, name) id,
  DOTA_ROLES(X)
#undef X
      End
};
constexpr int kRoles = static_cast<int>(Role::End);

const char* primitive_name(Prim p);
const char* role_name(Role r);
// False when the name is in neither list.
bool parse_primitive(const std::string& name, Prim& out);
bool parse_role(const std::string& name, Role& out);

struct Context;
struct Invocation;
struct EffectNode;
using Execute = void (*)(Context&, Invocation&, const EffectNode&, int node);

// Sets of triggers.
template <class... T>
constexpr std::uint32_t on(T... triggers) {
  return ((1u << static_cast<int>(triggers)) | ...);
}
// What does something when it is run: by a cast, a channel, a switch, an attack out of invisibility, a death, or
// by another effect.
constexpr std::uint32_t kActs = on(Trigger::Cast, Trigger::Channel, Trigger::ChannelEnd, Trigger::Toggle,
                                   Trigger::InvisBreakAttack, Trigger::Death, Trigger::Expired, Trigger::Then);
// Triggers of effects that last while the ability is learned or the item is held. A root node may omit them.
constexpr std::uint32_t kHeld = on(Trigger::Cast, Trigger::Passive);
enum Stay : bool { kOnce = false, kLasts = true };  // kLasts: it leaves a modifier that carries its name

// A primitive says once, in its group's file, all that the compiler and the interpreter have to know of it.
struct PrimitiveSpec {
  Prim prim;
  Execute run;       // what being run does
  std::uint32_t on;  // triggers that it supports
  Stay stay;
  std::uint32_t status;  // bits its modifier sets
  const char* reads;     // space-separated keys, without those of every node (p, on, to, at, shape, type, if)
  const char* ignores;   // "key: reason; key: reason" of keys it may drop, or ""
};
// nullptr: the primitive is not built.
const PrimitiveSpec* primitive_spec(Prim p);

std::span<const PrimitiveSpec> damage_primitives();
std::span<const PrimitiveSpec> resource_primitives();
std::span<const PrimitiveSpec> modifier_primitives();
std::span<const PrimitiveSpec> status_primitives();
std::span<const PrimitiveSpec> motion_primitives();
std::span<const PrimitiveSpec> projectile_primitives();
std::span<const PrimitiveSpec> area_primitives();
std::span<const PrimitiveSpec> unit_primitives();
std::span<const PrimitiveSpec> attack_primitives();
std::span<const PrimitiveSpec> special_primitives();

}  // namespace dota
