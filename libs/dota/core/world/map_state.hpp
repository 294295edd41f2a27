// Mutable state of the map: runes, camps, vision of a team, walkability.
#pragma once

#include <array>
#include <cstdint>

#include "world/values.hpp"

namespace dota {

// Runes. World::pickups[0-3] are the bounty spots, [4-5] the power spots, in the map's order.
enum class PickupKind : std::int8_t { Bounty, DoubleDamage, Haste, Invisibility, Regeneration, Arcane, Count };
struct Pickup {  // runes
  bool present = false;
  std::int8_t kind = -1;  // PickupKind
  Vec2 pos;
  float until = 0;
  std::array<std::uint8_t, kTeams> known{};  // 0 unknown, 1 present, 2 absent, as far as the team has seen
};

// Item on the ground (Gem, Divine Rapier).
struct GroundItem {
  std::int16_t id = -1;  // Tables::items; -1: nothing
  std::int8_t charges = 0;
  Vec2 pos;
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

// What each team sees by its buildings and wards, kept while nothing of that changes. Follows from the rest of the
// world, so that the checksum leaves it out.
struct StillFog {
  bool made = false;
  std::uint64_t key = 0;
  std::array<Fog, kTeams> fog{};
};

// Which felled trees affect a unit's sight, as last computed. Valid while the unit stays in its cell and no tree
// near it falls or grows back. Derived from the rest of the world, so that the checksum leaves it out.
struct VisibilityCache {
  std::int32_t viewer = -1;          // navigation cell; -1: nothing
  std::int32_t reach = 0;            // cells
  std::uint32_t trees = 0;           // Nav::tree_changes
  std::uint64_t near = 0, seen = 0;  // trees that are down within the standing map's sight, within this sight
};

// What a search around a place reads of a listed unit, four to a line of memory: the rest of the unit is looked at
// where it is near enough.
struct Body {
  Vec2 pos;
  float radius = 0;
  std::int16_t next = -1;  // Nav::next
};

// What map/ derives from trees, buildings and positions; written there only.
struct Nav {
  std::array<std::uint64_t, (kNavCells * kNavCells + 63) / 64> blocked{};  // cells no ground unit may enter now
  std::uint64_t buildings = 0;  // buildings_standing that `blocked` was made for
  bool ready = false;
  std::uint8_t blocks = 0;  // areas that block cells
  std::int16_t trees_down = 0;
  float next_regrow = 0;                                       // earliest tree_regrow, when trees_down > 0
  std::array<std::uint64_t, kMaxTrees / 64> felled{};          // the trees that are down, from tree_regrow
  std::uint32_t tree_changes = 0;                              // of `felled`
  std::array<std::int16_t, kHashCells * kHashCells> head{};    // spatial hash: first unit of the cell, -1 none
  std::array<std::int16_t, kMaxUnits> next{}, prev{}, cell{};  // lists of a cell's units; cell -1: not listed
  // What follows from the rest, so that the checksum leaves it out: units that build_spatial() has to look at in
  // the next frame, when it has listed all before; cells in which a team's units were listed in this timestep, a
  // bit each by rows: where none stood, no list is read.
  bool listed = false;
  std::array<std::uint64_t, kMaxUnits / 64> stale{};
  std::array<std::array<std::array<std::uint64_t, 2>, kHashCells>, kTeams + 1> held{};
  std::array<Body, kMaxUnits> bodies{};  // of the units that are listed: relist_unit()
};

}  // namespace dota
