#include "map/routes.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <stdexcept>

namespace dota {

namespace {

constexpr int kCells = kGrid * kGrid;
constexpr int kRegionSide = 8;

bool open_at_start(const MapData& map, int x, int y) {
  return Cell{x, y}.inside() && !map.blocked_at_start[y * kGrid + x];
}

// A step is allowed when its cell is open and, for a diagonal, both cells it passes between.
bool step_allowed(const MapData& map, int x, int y, int s) {
  if (!open_at_start(map, x + kStepX[s], y + kStepY[s])) return false;
  return s % 2 == 0 || (open_at_start(map, x + kStepX[s], y) && open_at_start(map, x, y + kStepY[s]));
}

// Cells of the same square that connect to `start` within it, which get the region's number.
std::vector<int> flood_region(const MapData& map, Routes& r, int start, int id) {
  std::vector<int> cells{start};
  r.region[start] = static_cast<std::int16_t>(id);
  const int bx = start % kGrid / kRegionSide, by = start / kGrid / kRegionSide;
  for (std::size_t i = 0; i < cells.size(); ++i)
    for (int s = 0; s < 8; s += 2) {
      const int x = cells[i] % kGrid + kStepX[s], y = cells[i] / kGrid + kStepY[s];
      if (!open_at_start(map, x, y) || x / kRegionSide != bx || y / kRegionSide != by) continue;
      std::int16_t& q = r.region[y * kGrid + x];
      if (q >= 0) continue;
      q = static_cast<std::int16_t>(id);
      cells.push_back(y * kGrid + x);
    }
  return cells;
}

int middle_cell(const std::vector<int>& cells) {
  long sum_x = 0, sum_y = 0;
  const auto n = static_cast<long>(cells.size());
  for (int c : cells) {
    sum_x += c % kGrid;
    sum_y += c / kGrid;
  }
  const auto away = [&](int c) {
    const long dx = (c % kGrid) * n - sum_x, dy = (c / kGrid) * n - sum_y;
    return dx * dx + dy * dy;
  };
  return *std::min_element(cells.begin(), cells.end(),
                           [&](int a, int b) { return away(a) != away(b) ? away(a) < away(b) : a < b; });
}

// Breadth first from the first fountain over the standing map, then from all of that outwards over everything.
void find_main_part(const MapData& map, Routes& r) {
  r.nearest_main.assign(kCells, -1);
  int start = -1;
  for (const MapBuilding& b : map.buildings) {
    if (b.kind != UnitKind::Fountain) continue;
    const Cell c = cell_of(b.pos);
    for (int ring = 0; ring < 8 && start < 0; ++ring)
      for (int y = -ring; y <= ring && start < 0; ++y)
        for (int x = -ring; x <= ring && start < 0; ++x)
          if (open_at_start(map, c.x + x, c.y + y)) start = (c.y + y) * kGrid + c.x + x;
    if (start >= 0) break;
  }
  if (start < 0) throw std::runtime_error("key 'buildings': no fountain stands near open ground");
  std::vector<int> queue{start};
  r.nearest_main[start] = start;
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (int s = 0; s < 8; ++s) {
      const int x = queue[i] % kGrid, y = queue[i] / kGrid;
      const int q = queue[i] + kStepY[s] * kGrid + kStepX[s];
      if (!step_allowed(map, x, y, s) || r.nearest_main[q] >= 0) continue;
      r.nearest_main[q] = q;
      queue.push_back(q);
    }
  for (std::size_t i = 0; i < queue.size(); ++i)
    for (int s = 0; s < 8; ++s) {
      const Cell c{queue[i] % kGrid + kStepX[s], queue[i] / kGrid + kStepY[s]};
      if (!c.inside() || r.nearest_main[c.index()] >= 0) continue;
      r.nearest_main[c.index()] = r.nearest_main[queue[i]];
      queue.push_back(c.index());
    }
}

struct Ways {
  WayCosts cost;
  std::vector<std::uint8_t> step;
};

// Dijkstra with buckets: steps cost 10 or 14, so that at most 15 distances are open at once.
Ways find_ways(const MapData& map, int goal) {
  constexpr int kFar = std::numeric_limits<int>::max();
  constexpr int kBuckets = kDiagonal + 1;
  Ways ways{WayCosts(kCells, kFar), std::vector<std::uint8_t>(kCells, kNoWay)};
  std::array<std::vector<int>, kBuckets> open;
  ways.cost[goal] = 0;
  ways.step[goal] = kAtGoal;
  open[0].push_back(goal);
  std::size_t waiting = 1;
  for (int now = 0; waiting > 0; ++now) {
    std::vector<int>& bucket = open[now % kBuckets];
    for (std::size_t i = 0; i < bucket.size(); ++i) {
      const int c = bucket[i];
      if (ways.cost[c] != now) continue;
      for (int s = 0; s < 8; ++s) {
        if (!step_allowed(map, c % kGrid, c / kGrid, s)) continue;
        const std::size_t q = c + kStepY[s] * kGrid + kStepX[s];
        const int through = now + (s % 2 ? kDiagonal : kStraight);
        if (through >= ways.cost[q]) continue;
        ways.cost[q] = through;
        ways.step[q] = static_cast<std::uint8_t>((s + 4) % 8);  // back the way it was reached
        open[through % kBuckets].push_back(static_cast<int>(q));
        ++waiting;
      }
    }
    waiting -= bucket.size();
    bucket.clear();
  }
  std::replace(ways.cost.begin(), ways.cost.end(), kFar, -1);
  return ways;
}

FlowField field_of(const Ways& ways) {
  FlowField f{};
  for (int y = 0; y < kGrid; ++y)
    for (int x = 0; x < kGrid; x += 2) {
      auto& steps = f.tiles[y / FlowField::kTileY * FlowField::kTilesX + x / FlowField::kTileX].steps;
      const std::size_t cell = y * kGrid + x;
      steps[(y % FlowField::kTileY * FlowField::kTileX + x % FlowField::kTileX) / 2] =
          static_cast<std::uint8_t>(ways.step[cell] | (ways.step[cell + 1] << 4));
    }
  return f;
}

}  // namespace

const FlowField& Routes::field(const MapData& map, int region_id) const {
  return fields->get(region_id,
                     [&] { return std::make_unique<FlowField>(field_of(find_ways(map, centre[region_id]))); });
}

const WayCosts& Routes::costs_to(const MapData& map, int region_id) const {
  return costs->get(region_id, [&] { return std::make_unique<WayCosts>(find_ways(map, centre[region_id]).cost); });
}

std::unique_ptr<Routes> make_routes(const MapData& map) {
  auto r = std::make_unique<Routes>();
  r->region.assign(kCells, -1);
  for (int c = 0; c < kCells; ++c)
    if (r->region[c] < 0 && open_at_start(map, c % kGrid, c / kGrid))
      r->centre.push_back(middle_cell(flood_region(map, *r, c, static_cast<int>(r->centre.size()))));
  find_main_part(map, *r);
  for (const int main : r->nearest_main)
    r->goal_region.push_back(main < 0 ? std::int16_t{-1} : r->region[main]);
  r->open.assign((kCells + 63) / 64, 0);
  for (int c = 0; c < kCells; ++c)
    if (open_at_start(map, c % kGrid, c / kGrid)) r->open[c >> 6] |= 1ull << (c & 63);
  r->fields = std::make_unique<LazyTables<FlowField>>(r->centre.size());
  r->costs = std::make_unique<LazyTables<WayCosts>>(r->centre.size());
  return r;
}

}  // namespace dota
