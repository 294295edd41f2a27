// Effect programs in their compiled form: flat nodes, numbers resolved per rank, nothing looked up by name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/enums.hpp"
#include "data/node.hpp"

namespace dota {

// Stats that items, modifiers and talents change. Percentages are plain numbers (12 means 12 %).
enum class Stat : std::uint8_t {
  MsPct,
  MsFlat,
  MsSet,
  BootsMsPct,
  As,
  Armor,
  MrPct,
  Dmg,
  BaseDmgPct,
  Str,
  Agi,
  Int,
  All,
  Range,
  RangeRangedOnly,
  HpRegen,
  ManaRegen,
  HpRegenPctMax,
  HpFlat,
  ManaFlat,
  HealAmpPct,
  LifestealPct,
  MissPct,
  EvasionPct,
  StatusResPct,
  MaxHpPct,
  AttackTakenPct,
  DmgDealtPct,
  SpellAmpPct,
  ManaRegenAmpPct,
  HpRegenAmpPct,
  CooldownRedPct,
  CastRange,
  GoldPer10s,
  XpPct,
  VisionFlat,
  RespawnRed,
  ManaCostRedPct,
  SpellLifestealPct,
  VisionNight,
  DmgPct,
  ArmorPct,
  Block,
  DmgMelee,
  DmgRanged,
  TrueSightR,
  ManaRegenPlain,  // not multiplied by what increases mana regeneration by a share
  DmgTakenPct,
  BootsMsFlat,
  TurnRateSet,
  HealGivenAmpPct,
  MsBase,
  Count
};
constexpr int kStats = static_cast<int>(Stat::Count);

constexpr float kShortestInterval = 0.001f;  // seconds between two ticks of an effect

// A number that depends on the rank: up to 7 ranks, the last repeats.
struct Num {
  std::array<float, 7> v{};
  std::uint8_t n = 0;  // 0: absent
  bool given() const { return n > 0; }
  float at(int level) const { return n == 0 ? 0.0f : v[level < 1 ? 0 : (level > n ? n - 1 : level - 1)]; }
};

enum class Trigger : std::uint8_t {
  Cast,
  Passive,
  Channel,
  ChannelEnd,
  Toggle,
  Interval,
  AttackLanded,
  Attacked,
  DamagedByEnemy,
  OwnAbilityCast,
  KillUnit,
  KillHeroWithin3s,
  Death,
  Then,
  Auto,
  InvisBreakAttack,
  TargetAttacked,
  ToggleIncludeCreeps,
  Expired,
  BeforeOwnAbilityCast,
  OwnAbilityHits,
  Count
};
enum class Who : std::uint8_t {
  Default,
  Self,
  Target,
  Enemies,
  AlliedHeroes,
  Allies,
  Source,
  HitEnemies,
  All,
  EnemyHeroes,
  EnemiesInvisible,
  AlliesAndSelf,
  TargetAndSelf,
  CreepTarget,
  BehindTarget,
  SelfOrEnemy,
  EnemiesAndBuildings,
  AlliesAndBuildings,
  AlliedHeroesAndBuildings,
  AlliedBuilding,
  AlliedBuildingOrCreep,
  AlliedBuildingCreepOrHero,
  Creep,
  TargetOrClosestHero
};
enum class Where : std::uint8_t { Default, Point, Self, Target, Front };
enum class DamageType : std::uint8_t { Physical, Magical, Pure, HpLoss };

struct EffectNode;  // effects/program_node.hpp

enum class Dispellable : std::uint8_t { No, Yes, Strong };

// An ability's or item's effects: nodes in one array, children addressed by range.
struct Program {
  std::vector<EffectNode> nodes;
  std::vector<std::uint16_t> roots;
  // What the core cannot do yet: "taunt", or "mod.proc_on_damaged" for a part of a built primitive. The game
  // refuses a hero whose abilities have any, by name.
  std::vector<std::string> missing;
  bool passive_missing = false;  // some of it is passive: an item would give less than it says by being held
  bool inert = false;            // a talent of which the data does not say what it does: taking it changes nothing
  std::string owner;             // hero or unit that has the ability; "" for an item
  Dispellable dispellable = Dispellable::Yes;
  bool pierces_immunity = false;  // its effects reach enemies that are spell immune
  bool levels_with_use = false;   // an item whose rank is 1 + ItemState::toggle, growing with every use
  int fixed_level = 1;            // rank of an item's effects
  std::int16_t charges = -1, next_attack = -1, orb = -1,  // node of that primitive: charges, next_attack_mod, ...
      while_disabled = -1,                                // cast_while_disabled
      single_link = -1,                                   // of the link that a target may bear only once
      per_target = -1;                                    // of what the caster has for each target
  bool has(Trigger t) const { return (triggers >> static_cast<int>(t)) & 1u; }
  std::uint32_t triggers = 0;  // bit per trigger among its nodes
  Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;
  ~Program();
};

}  // namespace dota
