// The whole state of one game. Plain data of fixed capacity: a snapshot is a copy, a hash is a checksum.
// Nothing here points into memory; references between things are indices and handles.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>

#include "data/tables.hpp"
#include "world/damage_log.hpp"
#include "world/effect_state.hpp"
#include "world/event.hpp"
#include "world/hero_state.hpp"
#include "world/map_state.hpp"
#include "world/settings.hpp"
#include "world/unit.hpp"
#include "world/values.hpp"

namespace dota {

// A teleport that was begun: repeated ones to one place take longer.
struct Arrival {
  Handle anchor;    // what it arrives at
  float at = -999;  // game time of its beginning
  std::int8_t hero = -1;
};
constexpr int kArrivals = 8;
// Items that the shop can run out of; observations show the first kStockSeen of them.
constexpr int kStocked = 5, kStockSeen = 4;

struct TeamState {
  Handle courier, fort;
  float courier_respawn = 0, glyph_ready = 0, courier_seen[kTeams] = {-99, -99};
  float glyph_until = 0;  // game time; 0: it was never used
  std::uint8_t kills = 0, towers_lost = 0;
  std::uint8_t super_melee = 0, super_ranged = 0;  // bit per lane
  bool megas = false;
  std::array<std::int8_t, kStocked> stock{};  // what the shop has left, in the order of GameRules::stock_items
  std::array<float, kStocked> stock_next{};   // game time of the next
  Handle courier_for;                         // hero it carries for
  std::uint8_t courier_state = 0;
  std::uint8_t tomes = 0;  // Tomes of Knowledge it has read
  std::array<Arrival, kArrivals> arrivals{};
  float scan_ready = 0, scan_until = -999;  // game time; before the horn that is below 0
  Vec2 scan_at;
  bool scan_found = false;  // an enemy hero was in it
};

// The pools of a world. What finds its pool full does not happen, and is counted in World::dropped.
enum class StatePool : std::uint8_t {
  Units,
  Loadouts,
  Modifiers,
  Projectiles,
  Areas,
  Delayed,
  StackEnds,
  GroundItems,
  Events,
  Consequences,  // of one blow, one out of the other: Context::depth
  Count
};

// How much earlier than its float a time has come, in seconds: a thirtieth of a frame, and more than what rounding
// adds to "now plus a duration" in games of up to 8,192 s. Without it the frame in which half a second ends would
// depend on when it began.
constexpr float kTimeSlack = 1e-3f;

// A set of unit slots.
using UnitSet = std::array<std::uint64_t, kMaxUnits / 64>;
static_assert(kMaxUnits % 64 == 0 && kMaxModifiers % 64 == 0);

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
  std::int16_t units_end = 0;                 // one past the highest slot in use
  std::array<UnitSet, kUnitKinds> of_kind{};  // slots by kind, follows from `units`: set_kind()
  UnitSet freed{};  // slots freed in this frame: a loop may still have them ahead, so nothing born in it takes one
  std::array<Loadout, kMaxLoadouts> loadouts{};
  std::array<std::uint32_t, ordinal(StatePool::Count)> dropped{};
  std::array<Modifier, kMaxModifiers> modifiers{};
  std::int16_t modifier_free = -1, modifiers_end = 0;
  // Those that modifiers_frame() looks at: all but some that would have nothing to do. Follows from `modifiers`,
  // so that the checksum leaves it out.
  std::array<std::uint64_t, kMaxModifiers / 64> modifiers_watched{};
  // Those of them that only the last frame of a timestep looks at: they do not end and do not tick. A modifier
  // that was given or renewed since is not among them. Follows from `modifiers` too.
  std::array<std::uint64_t, kMaxModifiers / 64> modifiers_slow{};
  std::array<Projectile, kMaxProjectiles> projectiles{};
  std::int16_t projectiles_end = 0;
  std::array<Area, kMaxAreas> areas{};
  std::array<Delayed, kMaxDelayed> delayed{};
  std::int16_t areas_end = 0, delayed_end = 0;  // behind the last that is active; the checksum leaves them out
  std::array<StackEnd, kMaxStackEnds> stack_ends{};
  std::int16_t stack_ends_count = 0;  // the first so many are in use
  std::array<HeroState, kMaxHeroes> heroes{};
  std::array<TeamState, kTeams> teams{};
  std::array<Camp, kMaxCamps> camps{};
  std::array<Pickup, kMaxPickups> pickups{};
  std::array<GroundItem, kMaxGroundItems> ground{};
  std::uint64_t buildings_standing = 0;        // bit per building of the map's list
  std::array<float, kMaxTrees> tree_regrow{};  // 0: standing; else game time it regrows
  std::array<Fog, kTeams> fog{};
  StillFog still{};
  std::array<VisibilityCache, kMaxUnits> visibility_caches{};
  Nav nav{};
  float next_wave = 0;
  std::int32_t waves = 0;
  float roshan_respawn = 0, roshan_health_scale = 1, roshan_died = -1;
  std::uint8_t roshan_kills = 0;
  bool first_blood = false;
  float next_power_rune = 0, next_bounty = 0;
  std::int8_t last_rune_kind = -1;
  std::int16_t event_count = 0;
  std::array<Event, kMaxEvents> events{};  // of the last timestep, or of the start; decide nothing

  Unit* get(Handle h) {
    if (h.index < 0) return nullptr;
    Unit& u = units[h.index];
    return u.kind != UnitKind::None && u.generation == h.generation ? &u : nullptr;
  }
  const Unit* get(Handle h) const { return const_cast<World*>(this)->get(h); }
  // Whether that time has come.
  bool due(double at) const { return static_cast<double>(time) + kTimeSlack >= at; }
  std::span<const Event> last_events() const { return std::span(events).first(event_count); }
  std::span<Area> areas_in_use() { return std::span(areas).first(areas_end); }
  std::span<const Area> areas_in_use() const { return std::span(areas).first(areas_end); }
  Handle handle(const Unit& u) const { return {static_cast<std::int16_t>(&u - units.data()), u.generation}; }
};
static_assert(std::is_trivially_copyable_v<World>);

inline void set_kind(World& w, Unit& u, UnitKind kind) {
  const std::size_t slot = &u - w.units.data();
  const std::uint64_t bit = 1ull << (slot & 63);
  w.of_kind[ordinal(u.kind)][slot >> 6] &= ~bit;
  if (kind != UnitKind::None) w.of_kind[ordinal(kind)][slot >> 6] |= bit;
  u.kind = kind;
}

// Runs f on the units of these kinds by ascending slot, as a loop over all slots would meet them: those that come
// or go on the way as well.
template <UnitKind... kinds, class AnyWorld, class F>
void each_unit(AnyWorld& w, F&& f) {
  for (std::size_t word = 0; word < UnitSet{}.size(); ++word)
    for (std::uint64_t ahead = ~0ull; ahead != 0;) {
      const std::uint64_t left = (w.of_kind[ordinal(kinds)][word] | ...) & ahead;
      if (left == 0) break;
      const int bit = std::countr_zero(left);
      ahead = bit == 63 ? 0 : ~0ull << (bit + 1);
      f(w.units[word * 64 + bit]);
    }
}
template <class AnyWorld, class F>
void each_building(AnyWorld& w, F&& f) {
  each_unit<UnitKind::Tower, UnitKind::Barracks, UnitKind::Fort, UnitKind::Filler, UnitKind::Shrine,
            UnitKind::Fountain>(w, f);
}

// Everything a system gets: the state it may change and the constants it may read.
struct Context {
  World& world;
  const Tables& tables;
  const GameSettings& settings;
  int depth = 0;                    // consequences of consequences under way
  int sure_proc = -1;               // ability whose procs the attack that lands now triggers without a chance
  DamageLog* damage_log = nullptr;  // where damage to heroes is noted; may be null
};

// Depth limit of consequences that cause each other. Two units whose passives answer every blow with another one
// would otherwise recurse until one of them dies; nothing in the data comes near the limit.
constexpr int kDeepestConsequence = 32;

// Increments Context::depth for its lifetime. It is false beyond the limit: the consequence then does not happen,
// and World::dropped counts it.
class RecursionGuard {
 public:
  explicit RecursionGuard(Context& c) : c_(c), allowed_(c.depth < kDeepestConsequence) {
    ++c.depth;
    if (!allowed_) ++c.world.dropped[ordinal(StatePool::Consequences)];
  }
  ~RecursionGuard() { --c_.depth; }
  RecursionGuard(const RecursionGuard&) = delete;
  RecursionGuard& operator=(const RecursionGuard&) = delete;
  explicit operator bool() const { return allowed_; }

 private:
  Context& c_;
  bool allowed_;
};

}  // namespace dota
