// The whole state of one game. Plain data of fixed capacity: a snapshot is a copy, a hash is a checksum.
// Nothing here points into memory; references between things are indices and handles.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "data/tables.hpp"

namespace dota {

constexpr int kTeams = 2, kRadiant = 0, kDire = 1, kNeutralTeam = 2;
constexpr int kMaxHeroes = 10;  // team t's hero i is t * 5 + i
constexpr int kMaxUnits = 384, kMaxModifiers = 1536, kMaxProjectiles = 384, kMaxAreas = 128, kMaxDelayed = 256;
constexpr int kAbilitySlots = 6, kItemSlots = 16;  // items: 6 inventory, 3 backpack, 6 stash, 1 town portal
constexpr int kInventory = 6, kBackpackFirst = 6, kStashFirst = 9, kTpSlot = 15;
constexpr int kMaxTrees = 2560, kMaxCamps = 24, kMaxPickups = 6, kHistory = 16;
constexpr int kNavCells = 260;  // navigation cells of 64 world units a side
constexpr int kPathPoints = 6;  // corners of a planned path that a unit keeps
constexpr int kHashCells = 66;  // spatial hash cells of 256 world units a side, with a margin
constexpr int kFramesPerStep = 4;
constexpr float kDt = 1.0f / 30.0f;

struct Vec2 {
  float x = 0, y = 0;
  friend Vec2 operator+(Vec2 a, Vec2 b) { return {a.x + b.x, a.y + b.y}; }
  friend Vec2 operator-(Vec2 a, Vec2 b) { return {a.x - b.x, a.y - b.y}; }
  friend Vec2 operator*(Vec2 a, float s) { return {a.x * s, a.y * s}; }
  float dot(Vec2 b) const { return x * b.x + y * b.y; }
  float length() const { return std::sqrt(x * x + y * y); }
};
inline float distance(Vec2 a, Vec2 b) { return (a - b).length(); }

// A unit's slot and the generation it was given out in; a dead unit's handle resolves to nothing.
struct Handle {
  std::int16_t index = -1;
  std::uint16_t generation = 0;
  friend bool operator==(Handle a, Handle b) { return a.index == b.index && a.generation == b.generation; }
};

// Counter-free, splittable, 8 bytes of state: every random draw of a game comes from World::rng.
struct Rng {
  std::uint64_t state = 0x9E3779B97F4A7C15ull;
  std::uint32_t next() {  // PCG-XSH-RR 64/32
    const std::uint64_t old = state;
    state = old * 6364136223846793005ull + 1442695040888963407ull;
    const auto x = static_cast<std::uint32_t>(((old >> 18u) ^ old) >> 27u);
    const auto r = static_cast<std::uint32_t>(old >> 59u);
    return (x >> r) | (x << ((32u - r) & 31u));
  }
  float uniform() { return static_cast<float>(next() >> 8) * (1.0f / 16777216.0f); }  // [0, 1)
  int below(int n) {
    return static_cast<int>((static_cast<std::uint64_t>(next()) * static_cast<std::uint32_t>(n)) >> 32);
  }
  int between(int lo, int hi) { return lo + below(hi - lo + 1); }
};

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
  kRevealed = 1u << 22
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

struct Unit {
  UnitKind kind = UnitKind::None;
  std::uint8_t team = kNeutralTeam;
  std::int8_t hero = -1;      // index into World::heroes
  std::int8_t lane = -1;      // lane creeps and buildings
  std::uint8_t tier = 0;      // buildings: 1-4; camps: tier
  std::uint8_t building = 0;  // index into the map's building list + 1
  bool alive = false;
  std::uint16_t type = 0;  // Tables::units
  std::uint16_t generation = 0;
  Handle owner;  // wards, summons
  Vec2 pos, spawn;
  float facing = 0;  // radians
  float hp = 0, mana = 0;

  // Derived by refresh_stats(); written nowhere else.
  float max_hp = 0, max_mana = 0, hp_regen = 0, mana_regen = 0, armor = 0, magic_resist = 0;  // resist: fraction
  float move_speed = 0, attack_speed = 100, attack_interval = 1, attack_point = 0, attack_range = 0;
  float dmg_min = 0, dmg_max = 0, dmg_bonus = 0, turn_rate = 0.5f, vision_day = 0, vision_night = 0,
        true_sight = 0;
  float evasion = 0, miss = 0, lifesteal = 0, spell_amp = 0, status_resist = 0, heal_amp = 1, phys_taken = 1,
        dmg_dealt = 1;
  float str = 0, agi = 0, intellect = 0, radius = 8;
  float cooldown_red = 0, mana_cost_red = 0, cast_range = 0, gold_per_10s = 0, xp_bonus = 0, spell_lifesteal = 0;
  std::uint32_t status = 0;
  bool stats_dirty = true;

  // Growth and randomisation, added to the type's base by refresh_stats().
  float extra_hp = 0, extra_dmg = 0, extra_armor = 0, extra_gold = 0, extra_ms = 0, extra_hp_regen = 0,
        extra_mana_regen = 0, extra_mr = 0, extra_as = 0;
  std::array<float, 3> extra_attr{};
  float aura_armor = 0;  // heroes: of the allied tower near

  Order order, queued;  // queued: resumed after a cast
  Act act = Act::Idle;
  float act_until = 0;        // game time at which the windup, backswing or channel ends
  float attack_ready = -999;  // earliest game time of the next attack start
  float last_attack = -99;    // game time the last attack was launched
  float last_damaged_by_hero = -99;
  Handle attack_target, last_attacker, aggro_target;
  float aggro_until = -99, aggro_ready = -99;
  float expires = 0;  // wards, summons: game time; 0 = never
  std::int8_t hits_left = 0;
  std::int16_t waypoint = 0;  // lane creeps
  std::int8_t camp = -1;
  Vec2 velocity;                                // of this frame, set by motion; units per second
  std::int16_t path = -1;                       // map/path: kind of the path it is on
  Vec2 path_goal;                               // what the path was planned for
  Vec2 path_end;                                // path_goal, or the walkable place nearest to it
  std::array<Vec2, kPathPoints> path_points{};  // corners ahead, path_i the next of path_n
  std::uint8_t path_n = 0, path_i = 0;
  std::int8_t path_side = 0;    // side it last passed another unit on
  float path_until = 0;         // game time at which the path is planned anew
  std::int16_t modifiers = -1;  // head of its list in World::modifiers
  std::uint16_t bash_counter = 0, crit_counter = 0;
  std::array<float, kHistory> hp_history{};   // one entry a timestep, newest at World::step_index % kHistory
  float shrine_ready = 0, shrine_until = 0;   // shrines: usable from; healing until
  float backdoor_until = 0, backdoor_hp = 0;  // buildings: protection is off until; hp it regenerates to
  float credited = 1;                         // buildings: health fraction already told as signals
  std::uint8_t first_wave = 0;                // side lanes' first wave leaves heroes alone until it meets creeps
  float died_at = 0;
};

// One stat change of a modifier.
struct StatChange {
  Stat stat = Stat::Count;
  float value = 0;
};

struct Modifier {
  std::int16_t next = -1;
  std::int16_t name = -1;     // Tables::modifiers
  std::int16_t ability = -1;  // Tables::abilities
  std::int16_t node = -1;     // effect node in that ability's program
  Handle source;
  float until = 0, start = 0;  // game time; until = infinity for auras and passives
  float next_tick = 0, interval = 0;
  float per_tick = 0;  // damage (> 0) or healing (< 0) a tick
  float mana_per_tick = 0;
  float shield = 0;  // absorption left
  std::uint32_t status = 0;
  std::uint8_t damage_type = 0, level = 1, stacks = 0;
  std::uint8_t flags = 0;  // kModDispellable etc., effects/modifiers.hpp
  std::array<StatChange, 6> stats{};
  std::int16_t owner = -1;   // unit slot it sits on; -1: this slot of the pool is free
  std::uint8_t counter = 0;  // pseudo-random counter of a proc, attacks left of an attack-limited buff
  float ready = -999;        // game time a proc's own cooldown ends
  Vec2 motion;               // forced motion, units per second
  Handle aim;                // the one target it is for (Hurricane Pike)
};

struct Projectile {
  enum class Kind : std::uint8_t { None, Attack, Homing, Point, Linear } kind = Kind::None;
  std::uint8_t team = kNeutralTeam, level = 1;
  bool crit = false, disjointed = false;
  Handle source, target;
  Vec2 pos, origin, direction;
  Vec2 goal;
  float speed = 0, travelled = 0, length = 0, w0 = 0, w1 = 0;
  float damage = 0;  // attacks: rolled before armor; < 0: decided at launch to miss
  std::int16_t ability = -1, node = -1;
  std::uint64_t hit[(kMaxUnits + 63) / 64] = {};  // linear: each unit once
};

// A place on the ground that keeps acting: shrapnel, nethertoxin, a delayed strike, a channelled field.
struct Area {
  bool active = false;
  std::uint8_t team = kNeutralTeam, level = 1, counter = 0;
  Handle owner, follow;  // follow: moves with this unit
  Vec2 pos;
  float radius = 0, start = 0, until = 0, next_tick = 0, interval = 0;
  std::int16_t ability = -1, node = -1;
};

// An effect that fires later (Finger of Death's 0.25 s).
struct Delayed {
  bool active = false;
  std::uint8_t team = kNeutralTeam, level = 1, step = 0;  // step: number of the jump, pulse or burst
  Handle owner, target;
  Vec2 point;
  float at = 0;
  std::int16_t ability = -1, node = -1;
};

struct AbilityState {
  std::int16_t id = -1;  // Tables::abilities
  std::int8_t level = 0, charges = 0, stacks = 0;
  bool autocast = false, toggled = false;
  float ready = -999;  // game time
  float next_charge = 0;
};
struct ItemState {
  std::int16_t id = -1;  // Tables::items
  std::int8_t charges = 0, toggle = 0;
  bool on_courier = false;  // a stash item the courier is flying; cannot be used or taken until delivered
  float ready = -999, enabled_at = -999;  // enabled_at: after a backpack swap
  float stored_until = 0;                 // a bottle's rune, whose PickupKind is `toggle`, is used by then
};

// One primary action with its parameters, resolved against the observation it was chosen from.
struct Command {
  std::int16_t action = 0;  // action id of the vocabulary (0: none)
  std::uint8_t delay = 0;   // frame 0-3 of the step in which it fires
  Handle target, teleport;
  std::int8_t dx = 0, dy = 0;  // -4..4
};

// What happened to a hero since its team was last observed; cleared by the encoder. The order is that of
// dota.rewards.SIGNALS.
enum class Signal : std::uint8_t {
  Win,
  HeroDeath,
  CourierDeath,
  Xp,
  Gold,
  GoldSpent,
  Health,
  Mana,
  KilledHero,
  LastHit,
  Deny,
  Aegis,
  AncientHp,
  Megas,
  Tower1,
  Tower2,
  Tower3,
  Tower4,
  Shrine,
  Barracks,
  LaneAssign,
  Count
};
constexpr int kSignals = static_cast<int>(Signal::Count);

struct HeroState {
  Handle unit;
  std::int16_t def = -1;  // Tables::heroes
  std::uint8_t level = 1, ability_points = 0, streak = 0, skill_next = 0;
  bool in_game = false;
  float xp = 0, gold = 0, reliable = 0, spent = 0;  // gold: unreliable part
  std::uint16_t kills = 0, deaths = 0, assists = 0, last_hits = 0, denies = 0, wards_placed = 0;
  float damage_dealt = 0;
  float respawn_at = 0, death_penalty = 0, buyback_ready = 0, last_teleport = -99;
  std::array<AbilityState, kAbilitySlots> abilities{};
  std::array<ItemState, kItemSlots> items{};
  std::uint32_t talents = 0;  // bit per talent taken
  std::int16_t build_next = 0;
  std::uint16_t build_id = 0;
  std::uint32_t build_skip = 0;  // randomisation: bit per item of the order left out
  std::int16_t build_insert = -1;
  std::uint8_t lanes_allowed = 7;  // bit per lane; 7 = all
  float lanes_until = 0;
  Vec2 seen_pos[kTeams];  // last seen by each team
  float seen_at[kTeams] = {-99, -99};
  std::array<float, kTeams> damage_credit_until{};
  std::array<float, kMaxHeroes> hurt_by{};  // game time of the last damage from each hero, for assists and kills
  Command pending, previous;                // pending: applied in the next step; previous: what was last sampled
  std::int16_t previous_target_slot = -1;
  std::array<float, kSignals> signals{};
  float prev_hp_frac = 1, prev_mana_frac = 1;
  std::uint8_t courier_trips = 0;
  float fountain_until = -99, shrine_until = -99;  // healing lasts until
  float aegis_expires = 0;
  bool rising = false;             // dead, and to rise on the spot at respawn_at (Aegis)
  std::uint32_t skill_swaps = 0;   // randomisation: bit k = entries k and k + 1 of the skill order change places
  bool items_changed = true;       // the inventory is to be put in order
  std::int32_t passive_ticks = 0;  // passive gold payments so far
};

// What lies on the ground. World::pickups[0-3] are the bounty spots, [4-5] the power spots, in the map's order.
enum class PickupKind : std::int8_t { Bounty, DoubleDamage, Haste, Invisibility, Regeneration, Arcane, Count };
struct Pickup {  // runes
  bool present = false;
  std::int8_t kind = -1;  // PickupKind
  Vec2 pos;
  float until = 0;
  std::array<std::uint8_t, kTeams> known{};  // 0 unknown, 1 present, 2 absent, as far as the team has seen
};

struct TeamState {
  Handle courier, fort;
  float courier_respawn = 0, glyph_ready = 0, glyph_until = 0, courier_seen[kTeams] = {-99, -99};
  std::uint8_t kills = 0, towers_lost = 0;
  std::uint8_t super_melee = 0, super_ranged = 0;  // bit per lane
  bool megas = false;
  std::array<std::int8_t, 4> stock{};  // gem, smoke, observer, infused raindrop
  std::array<float, 4> stock_next{};
  Handle courier_for;  // hero it carries for
  std::uint8_t courier_state = 0;
};

struct Camp {
  float next_spawn = 0;
  std::int8_t last_set = -1;
  std::uint8_t living = 0;
};

// Fog on a grid of 128-unit cells, one bit a cell, rebuilt once a timestep by map/vision.
constexpr int kFogCells = 130;
struct Fog {
  std::array<std::uint64_t, (kFogCells * kFogCells + 63) / 64> visible{}, true_sight{};
};

// What map/ derives from trees, buildings and positions; written there only.
struct Nav {
  std::array<std::uint64_t, (kNavCells * kNavCells + 63) / 64> blocked{};  // cells no ground unit may enter now
  std::uint64_t buildings = 0;  // buildings_standing that `blocked` was made for
  bool ready = false;
  std::int16_t trees_down = 0;
  float next_regrow = 0;                                       // earliest tree_regrow, when trees_down > 0
  std::array<std::int16_t, kHashCells * kHashCells> head{};    // spatial hash: first unit of the cell, -1 none
  std::array<std::int16_t, kMaxUnits> next{}, prev{}, cell{};  // lists of a cell's units; cell -1: not listed
};

enum class Winner : std::uint8_t { None = 0, Radiant = 1, Dire = 2, Draw = 3 };

struct World {
  std::uint64_t seed = 0;
  Rng rng;
  std::int32_t frame = 0;       // engine frames since the world was made
  std::int32_t step_index = 0;  // timesteps
  float time = 0;               // game time in seconds; negative before the horn
  Winner winner = Winner::None;
  std::uint8_t heroes_per_team = 5;
  bool is_day = true;
  std::array<Unit, kMaxUnits> units{};
  std::int16_t units_end = 0;  // one past the highest slot in use
  std::array<Modifier, kMaxModifiers> modifiers{};
  std::int16_t modifier_free = -1, modifiers_end = 0;
  std::array<Projectile, kMaxProjectiles> projectiles{};
  std::int16_t projectiles_end = 0;
  std::array<Area, kMaxAreas> areas{};
  std::array<Delayed, kMaxDelayed> delayed{};
  std::array<HeroState, kMaxHeroes> heroes{};
  std::array<TeamState, kTeams> teams{};
  std::array<Camp, kMaxCamps> camps{};
  std::array<Pickup, kMaxPickups> pickups{};
  std::uint64_t buildings_standing = 0;        // bit per building of the map's list
  std::array<float, kMaxTrees> tree_regrow{};  // 0: standing; else game time it regrows
  std::array<Fog, kTeams> fog{};
  Nav nav{};
  float next_wave = 0;
  std::int32_t waves = 0;
  float roshan_respawn = 0, roshan_health_scale = 1, roshan_died = -1;
  std::uint8_t roshan_kills = 0;
  bool first_blood = false;
  float next_power_rune = 0, next_bounty = 0;
  std::int8_t last_rune_kind = -1;

  Unit* get(Handle h) {
    if (h.index < 0) return nullptr;
    Unit& u = units[static_cast<std::size_t>(h.index)];
    return u.kind != UnitKind::None && u.generation == h.generation ? &u : nullptr;
  }
  const Unit* get(Handle h) const { return const_cast<World*>(this)->get(h); }
  Handle handle(const Unit& u) const { return {static_cast<std::int16_t>(&u - units.data()), u.generation}; }
};
static_assert(std::is_trivially_copyable_v<World>);

struct ActionVocabulary;  // view/actions.hpp

// What a game is played with; fixed while it runs. Filled from dota.config.GameConfig.
struct GameSettings {
  int heroes_per_team = 5;
  bool mode_1v1_mid = false;
  int kills_to_win = 0;     // 1v1: 2
  bool tower_wins = false;  // 1v1: the first tier 1 tower of mid ends the game
  bool lane_enabled[3] = {true, true, true};
  bool neutrals = true, roshan = true, runes = true, courier_scripted = false;
  float max_game_s = 3600;  // then a draw
  float start_s = -90;      // game time at which play begins
  float offset_cell = 100;  // world units an offset step is worth
  bool buyback = true;
  bool commit_windups = false;  // a policy that begins an attack or a cast is offered nothing else until it is out
  // Consumables the scripted buyer keeps in stock (charges held) until the game time given.
  int keep_tango = 1, keep_salve = 1, keep_clarity = 1, keep_teleport = 1;
  float consumables_until_s = 600;
  // Randomisation: standard deviations as fractions, probabilities; all 0 = off.
  float random_stats = 0, random_gold = 0, random_xp = 0, random_level = 0, random_item_drop = 0,
        random_item_insert = 0, random_lane = 0, random_skill = 0, random_roshan = 0;
  const ActionVocabulary* actions = nullptr;  // what Command::action indexes; owned by whoever made the game
};

// Everything a system gets: the state it may change and the constants it may read.
struct Context {
  World& world;
  const Tables& tables;
  const GameSettings& settings;
};

}  // namespace dota
