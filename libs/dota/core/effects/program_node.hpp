// A node of a compiled effect program.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/program.hpp"
#include "data/tables.hpp"
#include "effects/primitive.hpp"

namespace dota {

// What a formula's number is multiplied (or divides) by.
enum class Factor : std::uint8_t { One, OwnStacks, TargetStacks, Minutes, Charges };

struct TalentTerm {
  std::int8_t talent = -1;  // index into the owner's HeroDef::talents
  float value = 0;          // added to the number once the talent is taken
};

// A talent by name: the value that it adds to (sign 1) or takes off (-1) a number; "" is the value of most
// talents.
struct UnlinkedTalent {
  std::string talent, field;
  float sign = 1;
};

// A number of a node: per rank, changed by talents, times or over a counter of the game.
struct Value {
  Num base;
  Factor factor = Factor::One;
  bool divides = false;     // factor / number instead of factor * number
  bool reaches = false;     // a cast range: the caster's bonus to cast ranges is added
  std::int16_t stack = -1;  // the counter's modifier name, for OwnStacks and TargetStacks
  std::uint8_t talents = 0;
  Num scepter;  // what the number is instead for who holds Aghanim's Scepter; absent: the same
  std::array<TalentTerm, 2> talent{};
  std::vector<UnlinkedTalent> unlinked;  // until link_programs() resolves them
};

// Which units a stat of a modifier is for.
enum class StatSet : std::uint8_t {
  Main,
  Self,
  Creep,
  Ranged,
  Ally,
  Enemy,
  Else,
  PerStack,
  PerCharge,
  LowHp,
  Unseen
};
struct NodeStat {
  Stat stat = Stat::Count;
  StatSet set = StatSet::Main;
  Value value, far;  // far: the value at the far end, for a node whose strength goes by distance
};

enum class Shape : std::uint8_t { None, Circle, Line };
enum class Cond : std::uint8_t {
  Always,
  Ally,
  Enemy,
  Killed,
  KilledHero,
  NotBroken,
  NoDamageForCooldown,
  NotVisibleToEnemy,
  InRiver,
  NoEnemyLaneCreepNear,
  NotInvisible
};
enum class EndsOn : std::uint8_t { Never, DamageByPlayerOrRoshan, ShieldConsumed, TargetKillsUnit, DamageOrFull };
enum class Decay : std::uint8_t { None, LinearToZero, StepByPurgeRate, EachSecond };
// Which damage a shield or a block takes.
enum class Against : std::uint8_t { Any, Attack, AttackPhysical, Magical };

struct EffectNode {
  Prim prim = Prim::Count;
  Trigger on = Trigger::Cast;
  Who to = Who::Default;
  Where at = Where::Default;
  Shape shape = Shape::None;
  Cond cond = Cond::Always;
  EndsOn ends_on = EndsOn::Never;
  Decay decay = Decay::None;
  Against against = Against::Any;
  DamageType type = DamageType::Magical;
  bool global_radius = false, until_action = false, until_ability_end = false, by_distance = false, strong = false,
       dispels = false, unlimited_range = false;
  bool stacking = false, separate = false;  // modifier: a second application adds a stack; or a separate instance
  bool per_target = false;  // one on the caster for each target, as long as the target bears the cast's debuff
  bool own_only = false, instant_attack = false;
  bool dur_is_cooldown = false;    // lasts as long as the cooldown of the cast
  bool transferable = false;       // spell block: its item lends it to an ally
  bool any_attack_breaks = false;  // passive stats: lost by attacks on anyone, not on heroes alone
  bool hits_all = false;           // periodic strike: everyone in reach at once
  bool closest = false;            // periodic strike: the closest in reach
  bool heroes_first = false;       // a random attack: another unit only where there is no hero
  bool reappears = false;          // invis: an attack or a cast shows its bearer until it has faded again
  bool counts_landed = false;      // mod: missed attacks do not use up its attacks
  // Its modifier, and its aura's modifier on other units, need no work before they end: modifiers_frame().
  bool rests = false, rests_on_others = false;
  bool fixed = false;    // an aura: what it gives follows from its rank and from who bears it
  bool passive = false;  // there whenever the ability is learned or the item is held
  // What its caster must have for the node to be there at all (upgraded()): a talent, or not that talent;
  // Aghanim's Scepter (1), or not (0).
  std::string talent;
  std::int8_t talent_index = -1;  // into HeroDef::talents; -1: the hero of this patch does not have it
  bool unless_talent = false;
  std::int8_t scepter = -1;   // -1: either
  std::int8_t from_rank = 0;  // a lower rank does not have it
  // Whether a dispel takes its modifier, where it is not as the ability says.
  std::optional<Dispellable> dispellable;
  std::uint32_t status = 0;    // bits its modifier sets
  std::int16_t modifier = -1;  // Tables::modifiers
  std::int16_t unit = -1;      // Tables::units
  std::int16_t item = -1;      // Tables::items
  std::int16_t ability = -1;   // Tables::abilities: another one that it casts, or that is on while it acts
  std::int16_t stack = -1;     // modifier name of a named stack
  std::uint16_t then_first = 0, then_count = 0, alt_first = 0, alt_count = 0;
  std::string family;                      // of effects that reach a unit once in a time
  std::string name;                        // unit or item named by the node, until link_programs()
  std::array<std::int8_t, kRoles> role{};  // index into values; -1: not given
  std::vector<Value> values;
  std::vector<NodeStat> stats;

  EffectNode() { role.fill(-1); }
  const Value* value(Role r) const {
    const int i = role[ordinal(r)];
    return i < 0 ? nullptr : &values[i];
  }
  bool given(Role r) const { return role[ordinal(r)] >= 0; }
};

// Whether a modifier is for its bearer's attacks on one target alone.
inline bool is_aimed(const EffectNode& n) { return n.unlimited_range || n.given(Role::OnTargetOnly); }

// "ability#n" as an entry of tables.modifiers; the same name gives the same index.
std::int16_t intern_modifier(Tables& tables, const std::string& name);

}  // namespace dota
