// Routes over the standing map: for each region, the way to it from everywhere, made when first asked for.
#pragma once

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

// The first step towards a region's centre from every cell: kStepX/kStepY index, kAtGoal or kNoWay, two cells a
// byte.
struct FlowField {
  std::vector<std::uint8_t> steps;
  std::uint8_t at(int cell) const {
    const std::uint8_t two = steps[cell >> 1];
    return cell & 1 ? two >> 4 : two & 15;
  }
};

// Regions are the connected pieces of the standing map within squares of 8 x 8 cells. A field is a pure function
// of the map and its region, so it does not matter to a game which world asked first.
struct Routes {
  std::vector<std::int16_t> region;        // per cell; -1 blocked at the start
  std::vector<std::int32_t> centre;        // per region: its cell nearest to its middle
  std::vector<std::int32_t> nearest_main;  // per cell: a near cell of the component with the fountains
  mutable std::vector<std::unique_ptr<FlowField>> fields;
  std::unique_ptr<std::atomic<const FlowField*>[]> ready;
  mutable std::mutex making;

  // Thread-safe.
  const FlowField& field(const MapData& map, int region_id) const;
  bool main_part(int cell) const { return nearest_main[cell] == cell; }
};

std::unique_ptr<Routes> make_routes(const MapData& map);

}  // namespace dota
