// Routes over the standing map: for each region, the way to it from everywhere, made when first asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "map/map_data.hpp"

namespace dota {

// The eight neighbours of a cell; odd ones are diagonal and cost kDiagonal, the others kStraight.
constexpr int kStepX[8] = {1, 1, 0, -1, -1, -1, 0, 1};
constexpr int kStepY[8] = {0, 1, 1, 1, 0, -1, -1, -1};
constexpr int kStraight = 10, kDiagonal = 14;
constexpr std::uint8_t kAtGoal = 8, kNoWay = 15;

// The first step towards a region's centre from every cell: kStepX/kStepY index, kAtGoal or kNoWay. Two cells a
// byte, in tiles of 16 x 8 cells that take a line of memory each: a way along the field reads few lines.
struct FlowField {
  static constexpr int kTileX = 16, kTileY = 8;
  static constexpr int kTilesX = (kGrid + kTileX - 1) / kTileX, kTilesY = (kGrid + kTileY - 1) / kTileY;
  struct alignas(64) Tile {
    std::array<std::uint8_t, kTileX * kTileY / 2> steps;
  };
  std::array<Tile, kTilesX * kTilesY> tiles;
  // `c` is inside of the grid.
  std::uint8_t at(Cell c) const {
    const unsigned x = static_cast<unsigned>(c.x), y = static_cast<unsigned>(c.y);
    const std::uint8_t two =
        tiles[y / kTileY * kTilesX + x / kTileX].steps[(y % kTileY * kTileX + x % kTileX) / 2];
    return x & 1 ? two >> 4 : two & 15;
  }
};

// The cost of the way along a region's field from every cell; -1: no way leads there.
using WayCosts = std::vector<std::int32_t>;

// Tables that are made when they are first asked for. Thread-safe.
template <class T>
class LazyTables {
 public:
  explicit LazyTables(std::size_t tables) : kept_(tables), ready_(new std::atomic<const T*>[tables]()) {}
  // Returns table `i`, which make() returns as a std::unique_ptr<T> when it is missing.
  template <class Make>
  const T& get(int i, Make&& make) const {
    const std::size_t at = i;
    if (const T* table = ready_[at].load(std::memory_order_acquire)) return *table;
    std::unique_ptr<T> made = make();
    const std::lock_guard lock(making_);
    if (const T* table = ready_[at].load(std::memory_order_acquire)) return *table;
    kept_[at] = std::move(made);
    ready_[at].store(kept_[at].get(), std::memory_order_release);
    return *kept_[at];
  }

 private:
  mutable std::vector<std::unique_ptr<T>> kept_;
  std::unique_ptr<std::atomic<const T*>[]> ready_;
  mutable std::mutex making_;
};

// Regions are the connected pieces of the standing map within squares of 8 x 8 cells. A field is a pure function
// of the map and its region, so it does not matter to a game which world asked first.
struct Routes {
  std::vector<std::int16_t> region;        // per cell; -1 blocked at the start
  std::vector<std::int32_t> centre;        // per region: its cell nearest to its middle
  std::vector<std::int32_t> nearest_main;  // per cell: a near cell of the component with the fountains
  std::vector<std::int16_t> goal_region;   // per cell: the region of that cell; -1: none
  std::vector<std::uint64_t> open;         // bit per cell: not blocked at the start
  std::unique_ptr<LazyTables<FlowField>> fields;
  std::unique_ptr<LazyTables<WayCosts>> costs;

  // Thread-safe.
  const FlowField& field(const MapData& map, int region_id) const;
  // For the few goals whose distance is asked for again and again: a table is eight times as large as a field.
  const WayCosts& costs_to(const MapData& map, int region_id) const;
  bool main_part(int cell) const { return nearest_main[cell] == cell; }
  bool open_at_start(int cell) const { return (open[cell >> 6] >> (cell & 63)) & 1u; }
};

std::unique_ptr<Routes> make_routes(const MapData& map);

}  // namespace dota
