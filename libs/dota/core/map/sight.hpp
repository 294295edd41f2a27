// Line of sight. What a viewer can see from a navigation cell, as a mask of fog cells around it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "map/map_data.hpp"

namespace dota {

constexpr float kFogCell = 128.0f;
constexpr int kSightReach = 15;                  // fog cells to each side of the viewer's
constexpr int kSightRows = 2 * kSightReach + 1;  // rows of a mask; bit i of a row is the cell i - kSightReach over
constexpr float kSightStep = 50.0f;              // radii of vision are cut down to multiples of it
constexpr int kSightRadii = 39;                  // 0, 50, ... 1900: what kSightReach covers

struct SightMask {
  std::array<std::uint32_t, kSightRows> rows;
};

// `touched` marks fog cells any part of which sight comes to: what stands elsewhere does not matter to `seen`.
struct StandingMask {
  SightMask seen, touched;
};

// Masks of the standing map, made when first asked for. A mask depends on the map and the cell alone, so that it
// does not matter which world asked first.
struct Sight {
  std::uint64_t id = 0;  // no two maps of a process share one
  std::vector<std::int8_t>
      block_level;  // per navigation cell: blocks the sight of viewers of this level and below
  std::array<std::array<SightMask, 4>, kSightRadii> circles;  // [radius / kSightStep][odd row * 2 + odd column]
  std::unique_ptr<StandingMask[]> masks;                      // per navigation cell
  std::unique_ptr<std::atomic<std::uint8_t>[]> made;          // 0 not yet, 1 being made, 2 ready

  // Thread-safe. `spare` is written and returned while another thread makes the cell's mask.
  const StandingMask& standing(const MapData& map, Cell viewer, StandingMask& spare) const;
  const SightMask& circle(Cell viewer, float radius) const;
};

std::unique_ptr<Sight> make_sight(const MapData& map);

// Highest level of viewer whose sight the cell blocks, with the standing trees given by the callback.
std::int8_t block_level(const MapData& map, int cell, bool (*stands)(const void*, int tree), const void* context);

// Casts sight from a cell over navigation cells up to `reach` away. A fog cell is seen when at least half of its
// navigation cells are.
void cast_sight(const MapData& map, const std::vector<std::int8_t>& block_level, Cell viewer, int reach,
                SightMask& seen, SightMask* touched = nullptr);

}  // namespace dota
