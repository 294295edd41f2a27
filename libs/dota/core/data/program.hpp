// Effect programs in their compiled form: flat nodes, numbers resolved per rank, nothing looked up by name.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "data/node.hpp"

namespace dota {

// Stats that items, modifiers and talents change. Percentages are plain numbers (12 means 12 %).
enum class Stat : std::uint8_t {
  MsPct, MsFlat, MsSet, BootsMsPct, As, Armor, MrPct, Dmg, BaseDmgPct, Str, Agi, Int, All, Range, RangeRangedOnly,
  HpRegen, ManaRegen, HpRegenPctMax, HpFlat, ManaFlat, HealAmpPct, LifestealPct, MissPct, EvasionPct, StatusResPct,
  MaxHpPct, PhysTakenPct, DmgDealtPct, SpellAmpPct, ManaRegenAmpPct, HpRegenAmpPct, CooldownRedPct, CastRange,
  GoldPer10s, XpPct, VisionFlat, RespawnRed, ManaCostRedPct, SpellLifestealPct, VisionNight, DmgPct, ArmorPct, Block,
  Count
};
constexpr int kStats = static_cast<int>(Stat::Count);

// A number that depends on the rank: up to 7 ranks, the last repeats. `stacks` >= 0 multiplies by a stack counter.
struct Num {
  std::array<float, 7> v{};
  std::uint8_t n = 0;  // 0: absent
  bool given() const { return n > 0; }
  float at(int level) const { return n == 0 ? 0.0f : v[level < 1 ? 0 : (level > n ? n - 1 : level - 1)]; }
};

enum class Trigger : std::uint8_t {
  Cast, Passive, Channel, ChannelEnd, Toggle, Interval, AttackLanded, Attacked, DamagedByEnemy, OwnAbilityCast,
  KillUnit, KillHeroWithin3s, Death, Then, Count
};
enum class Who : std::uint8_t { Default, Self, Target, Enemies, AlliedHeroes, Allies, Source, HitEnemies, All };
enum class Where : std::uint8_t { Default, Point, Self, Target, Front };
enum class DamageType : std::uint8_t { Physical, Magical, Pure, HpLoss };

struct EffectNode;  // effects/interpreter.hpp owns the node's fields and the primitives' list

// An ability's or item's effects: nodes in one array, children addressed by range.
struct Program {
  std::vector<EffectNode> nodes;
  std::vector<std::uint16_t> roots;
  std::vector<std::string> missing;  // primitives that are not built yet: the game refuses a hero that has any
  Program();
  Program(const Program&);
  Program(Program&&) noexcept;
  Program& operator=(const Program&);
  Program& operator=(Program&&) noexcept;
  ~Program();
};

}  // namespace dota
