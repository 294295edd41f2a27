// State of a unit: type, capabilities, order and current action.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "data/tables.hpp"
#include "world/values.hpp"

namespace dota {

// Bits a unit is under, rebuilt from its modifiers whenever these change (plus kind-inherent ones).
enum Status : std::uint32_t {
  kStunned = 1u << 0,
  kRooted = 1u << 1,
  kSilenced = 1u << 2,
  kDisarmed = 1u << 3,
  kHexed = 1u << 4,
  kMuted = 1u << 5,
  kInvisible = 1u << 6,
  kSpellImmune = 1u << 7,
  kInvulnerable = 1u << 8,
  kBanished = 1u << 9,
  kEthereal = 1u << 10,
  kPhased = 1u << 11,
  kBroken = 1u << 12,
  kTaunted = 1u << 13,
  kLeashed = 1u << 14,
  kFlyingVision = 1u << 15,
  kTrueSighted = 1u << 16,
  kForcedMotion = 1u << 17,
  kGlyphed = 1u << 18,
  kAttackImmune = 1u << 19,
  kUntargetable = 1u << 20,
  kTrueStrike = 1u << 21,
  kRevealed = 1u << 22,
  kUnseen = 1u << 23,         // invisible to true sight too
  kGuarded = 1u << 24,        // neither takes nor deals damage
  kScepter = 1u << 25,        // holds what upgrades its ultimate
  kDeniable = 1u << 26,       // a hero whom his own side may kill
  kUndeniable = 1u << 27,     // his own side may not kill it, however weak it is
  kPhysicalImmune = 1u << 28  // takes no physical damage
};

enum class OrderType : std::uint8_t {
  None,
  Stop,
  Hold,
  MoveTo,
  AttackUnit,
  AttackMove,
  CastNoTarget,
  CastPoint,
  CastUnit,
  FollowLane,
  Pickup
};
struct Order {
  OrderType type = OrderType::None;
  std::int8_t slot = -1;   // ability slot 0-5, or 16 + item slot
  Handle target;           // unit target
  Vec2 point;              // ground target
  std::int16_t tree = -1;  // tree target (tango)
};

enum class Act : std::uint8_t {
  Idle,
  Walk,
  AttackWindup,
  AttackBackswing,
  CastWindup,
  CastBackswing,
  Channel,
  Dead
};

constexpr float kNever = -99;  // a game time before any game

// The first line of memory is what loops over all units look at, the second and the third what a unit's own frame
// and its sight need besides; the rest is looked at now and then.
struct alignas(64) Unit {
  UnitKind kind = UnitKind::None;  // set by set_kind() alone, which keeps World::of_kind
  std::uint8_t team = kNeutralTeam;
  std::int8_t hero = -1;      // index into World::heroes
  std::int8_t lane = -1;      // lane creeps and buildings
  std::uint8_t tier = 0;      // buildings: 1-4; camps: tier
  std::uint8_t building = 0;  // index into the map's building list + 1
  bool alive = false;
  bool stats_dirty = true;
  std::uint16_t type = 0;  // Tables::units
  std::uint16_t generation = 0;
  std::uint32_t status = 0;
  Vec2 pos;
  Vec2 velocity;  // of this frame, set by motion; units per second
  float hp = 0, mana = 0;
  // Here and below, what is marked "derived" is derived by refresh_stats() and written nowhere else.
  float max_hp = 0, max_mana = 0, hp_regen = 0, mana_regen = 0;  // derived
  float radius = 8;                                              // derived
  float expires = 0;                                             // wards, summons: game time; 0 = never

  Order order;
  Act act = Act::Idle;
  std::int8_t hits_left = 0;  // > 0: hit points count blows; what a hero's and a tower's take:
  std::int8_t hits_hero = 1, hits_tower = 0;
  float facing = 0;            // radians
  float act_until = 0;         // game time at which the windup, backswing or channel ends
  double attack_ready = -999;  // earliest game time of the next attack's start; of a swing: when it began
  Handle attack_target, aggro_target;
  float aggro_until = -99;
  float move_speed = 0, attack_range = 0, turn_rate = 0.5f;  // derived

  std::int16_t path = -1;  // map/path: kind of the path it is on
  std::uint8_t path_n = 0, path_i = 0;
  std::int8_t path_side = 0;  // side it last passed another unit on
  std::int8_t camp = -1;
  std::int16_t waypoint = 0;  // lane creeps
  float path_until = 0;       // game time at which the path is planned again
  Vec2 path_goal;             // what the path was planned for
  Vec2 path_end;              // path_goal, or the walkable place nearest to it
  Vec2 spawn;
  float vision_day = 0, vision_night = 0, true_sight = 0;  // derived
  std::array<Vec2, kPathPoints> path_points{};             // corners ahead, path_i the next of path_n

  float armor = 0, magic_resist = 0;  // derived; resist: fraction
  float attack_speed = 100, attack_interval = 1, attack_point = 0, dmg_min = 0, dmg_max = 0, dmg_bonus = 0;
  float evasion = 0, miss = 0, lifesteal = 0, spell_amp = 0, status_resist = 0, heal_amp = 1, attack_taken = 1,
        dmg_dealt = 1, dmg_taken = 1;
  float str = 0, agi = 0, intellect = 0;
  float cooldown_red = 0, mana_cost_red = 0, cast_range = 0, gold_per_10s = 0, xp_bonus = 0, spell_lifesteal = 0;

  std::int16_t loadout = -1;    // its abilities and items in World::loadouts; a hero's are in its HeroState
  std::int16_t modifiers = -1;  // head of its list in World::modifiers
  float last_attack = -99;      // game time the last attack was launched
  float last_damaged_by_player = kNever;
  float shown_until = -99;  // it attacked out of the fog: its victims' team sees it
  float aggro_ready = -99;
  Handle last_attacker;
  Handle owner;  // wards, summons
  Order queued;  // resumed after a cast

  // Growth and randomisation, added to the type's base by refresh_stats().
  float extra_hp = 0, extra_dmg = 0, extra_armor = 0, extra_gold = 0, extra_ms = 0, extra_hp_regen = 0,
        extra_mana_regen = 0, extra_mr = 0, extra_as = 0;
  std::array<float, 3> extra_attr{};
  float aura_armor = 0;  // heroes: of the allied tower near

  float shrine_ready = 0, shrine_until = 0;   // shrines: usable from; healing until
  float backdoor_until = 0, backdoor_hp = 0;  // buildings: protection is off until; hp it regenerates to
  float credited = 1;                         // buildings: share of health that signals have counted
  float died_at = 0;
  // Camps' creeps, indices into World::heroes: who drew them out of their camp, until they are back; whose stack
  // they are.
  std::int8_t drawn_by = -1, stacker = -1;
  std::uint8_t first_wave = 0;  // side lanes' first wave leaves heroes alone until it meets creeps
  float paced_until = 0;        // lane creeps: game time at which extra_ms, their lane's pace, ends
  // One entry a timestep, newest at World::step_index % kHistory; a line of memory of its own.
  alignas(64) std::array<float, kHistory> hp_history{};
};
// With an even number the first lines of all units would share a fraction of a cache's sets.
static_assert(sizeof(Unit) / 64 % 2 == 1, "a unit takes an odd number of lines of memory");

// Here and where else a value is mostly what it was: written only where it changes, since a line of memory that
// was written to goes all the way back when another game takes its turn.
inline void stand_still(Unit& u) {
  if (std::bit_cast<std::uint64_t>(u.velocity) != 0) u.velocity = Vec2{};
}

}  // namespace dota
