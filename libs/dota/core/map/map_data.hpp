// The map of one patch: grids, trees, buildings, lanes, camps and spots. Read-only, shared by every world.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/node.hpp"
#include "data/tables.hpp"
#include "world/world.hpp"

namespace dota {

constexpr float kCell = 64.0f;       // side of a navigation cell, world units
constexpr int kGrid = kNavCells;     // cells a side
constexpr float kMapMin = -8320.0f;  // x and y of the lower left corner

// A cell of the navigation grid. Cell (c, r) covers x in [kMapMin + 64c, kMapMin + 64(c+1)).
struct Cell {
  int x = 0, y = 0;
  bool inside() const { return x >= 0 && y >= 0 && x < kGrid && y < kGrid; }
  int index() const { return y * kGrid + x; }
  friend bool operator==(Cell a, Cell b) { return a.x == b.x && a.y == b.y; }
};
// What no int holds becomes one that is far from every cell.
inline int floor_to_int(float v) {
  constexpr float kFar = 1e9f;
  const float held = std::min(std::max(-kFar, v), kFar);
#ifdef __SSE4_1__
  return static_cast<int>(std::floor(held));
#else
  // std::floor is a library call on baseline x86-64.
  const int i = static_cast<int>(held);
  return i - (held < static_cast<float>(i));
#endif
}
inline Cell cell_of(Vec2 p) {
  return {floor_to_int((p.x - kMapMin) / kCell), floor_to_int((p.y - kMapMin) / kCell)};
}
inline Vec2 cell_center(Cell c) {
  return {kMapMin + (static_cast<float>(c.x) + 0.5f) * kCell, kMapMin + (static_cast<float>(c.y) + 0.5f) * kCell};
}
inline Cell cell_at(int index) { return {index % kGrid, index / kGrid}; }

struct MapBuilding {
  std::string id;
  UnitKind kind = UnitKind::None;
  int team = 0, tier = 0;  // tier: towers 1-4, else 0
  Lane lane = Lane::None;  // None: base towers, fort, fillers, shrines, fountain
  bool melee = false;      // barracks: melee or ranged
  int unit = -1;           // Tables::units, which holds its stats
  Vec2 pos;
  float bounds = 0;  // half side of its footprint
};

// Straight pieces of a lane, from a waypoint to the next, by coordinate: a loop over them takes several at once.
// Places behind the last piece hold one that is far from everything.
struct LanePieces {
  static constexpr int kPieces = 16;
  std::array<float, kPieces> x{}, y{}, dx{}, dy{}, length2{};
};

struct MapLane {
  Vec2 spawn;
  std::vector<Vec2> waypoints;  // in walking order; the last is at the enemy's Ancient
  std::vector<LanePieces> pieces;
};

struct MapCamp {
  std::string id;
  int side = 0;  // team whose jungle it is in
  int tier = 0;  // 0 small, 1 medium, 2 large, 3 ancient
  Vec2 pos, box_min, box_max;
};

struct MapTree {
  Vec2 pos;               // where the 2 x 2 cells it blocks meet
  std::int8_t level = 0;  // ground level
};

struct MapShop {
  enum class Kind : std::uint8_t { Home, Side, Secret } kind = Kind::Home;
  int team = -1;  // home shops only
  Vec2 pos;
};

struct Routes;  // map/routes.hpp: flow fields of the standing map
struct Sight;   // map/sight.hpp: line-of-sight masks of the standing map

struct MapData {
  std::vector<std::int8_t> elevation;  // level of a cell; world z = level * 128; -9 void
  std::vector<std::uint8_t> terrain_blocked, fow_blocker, no_ward;  // 0 or 1 a cell
  std::vector<std::uint8_t> tree_count;     // standing trees that cover the cell at the start
  std::vector<std::uint8_t> building_cell;  // building index + 1 whose footprint holds the cell; 0 none
  std::vector<std::uint8_t> blocked_at_start;
  std::vector<MapTree> trees;
  std::vector<std::uint16_t> tree_first;  // per cell (+1): range in tree_ids of the trees that cover it
  std::vector<std::uint16_t> tree_ids;
  std::vector<MapBuilding> buildings;
  std::array<std::array<MapLane, 3>, kTeams> lanes;  // [team][Lane]
  std::vector<MapCamp> camps;
  std::vector<Vec2> bounty_runes, power_runes;
  std::vector<MapShop> shops;
  Vec2 roshan, roshan_min, roshan_max;  // spot, box of the pit
  std::array<Vec2, kTeams> hero_spawn;
  Vec2 bounds_min, bounds_max;
  std::unique_ptr<Routes> routes;
  std::unique_ptr<Sight> sight;

  MapData();
  ~MapData();
  MapData(const MapData&) = delete;
  MapData& operator=(const MapData&) = delete;
};

// Reads map.json; `tables` must hold the units already. Throws std::runtime_error naming the key.
std::shared_ptr<const MapData> read_map(const Node& map, const Tables& tables);
// Expands a flat run-length list [value, count, ...] to `cells` values; throws when the counts do not sum to it.
std::vector<int> decode_runs(const Node& runs, std::size_t cells, const std::string& name);

inline bool nav_blocked(const World& w, int cell) { return (w.nav.blocked[cell >> 6] >> (cell & 63)) & 1u; }

}  // namespace dota
