#include "map/sight.hpp"

#include <algorithm>
#include <cmath>

namespace dota {

namespace {

constexpr int kCells = kGrid * kGrid;
constexpr int kLitSide = 2 * kSightRows;  // navigation cells across the mask's window
constexpr std::int8_t kAllLevels = 127;

// Octants of the plane: how a step along and across the octant moves in x and y.
constexpr int kOctants[8][4] = {{1, 0, 0, 1},   {0, 1, 1, 0},   {0, -1, 1, 0}, {-1, 0, 0, 1},
                                {-1, 0, 0, -1}, {0, -1, -1, 0}, {0, 1, -1, 0}, {1, 0, 0, -1}};

// Bits 0, 2, 4 ... of v, put together.
std::uint32_t even_bits(std::uint64_t v) {
  v &= 0x5555555555555555ull;
  v = (v | v >> 1) & 0x3333333333333333ull;
  v = (v | v >> 2) & 0x0f0f0f0f0f0f0f0full;
  v = (v | v >> 4) & 0x00ff00ff00ff00ffull;
  v = (v | v >> 8) & 0x0000ffff0000ffffull;
  return static_cast<std::uint32_t>(v | v >> 16);
}

// Slopes of a cell's left and right border as seen from the viewer, by steps along and across its octant.
struct Slopes {
  double left, right;
};
constexpr int kFar = 2 * kSightReach + 1;
constexpr auto kSlopes = [] {
  std::array<std::array<Slopes, kFar>, kFar> s{};
  for (int along = 1; along < kFar; ++along)
    for (int across = 0; across <= along; ++across)
      s[static_cast<std::size_t>(along)][static_cast<std::size_t>(across)] = {(across + 0.5) / (along - 0.5),
                                                                              (across - 0.5) / (along + 0.5)};
  return s;
}();

struct Cast {
  const MapData& map;
  const std::vector<std::int8_t>& block;
  Cell viewer, corner;  // corner: navigation cell of the window's first bit
  int level, reach;
  std::array<std::uint64_t, kLitSide> lit{};  // one bit a navigation cell

  // Lights the cell, unless it lies higher than the viewer, and says whether it stops sight.
  bool light(Cell c) {
    if (!c.inside()) return true;
    const auto i = static_cast<std::size_t>(c.index());
    const int x = c.x - corner.x, y = c.y - corner.y;
    if (map.elevation[i] <= level && x >= 0 && y >= 0 && x < kLitSide && y < kLitSide)
      lit[static_cast<std::size_t>(y)] |= 1ull << x;
    return block[i] >= level;
  }

  // Recursive shadow casting over one octant, between two slopes, from a row outwards.
  void octant(int row, double start, double end, const int (&o)[4]) {
    if (start < end) return;
    for (int along = row; along <= reach; ++along) {
      bool shadow = false;
      double next_start = start;
      for (int across = along; across >= 0; --across) {
        const auto [left, right] = kSlopes[static_cast<std::size_t>(along)][static_cast<std::size_t>(across)];
        if (right > start) continue;
        if (left < end) break;
        const Cell c{viewer.x + along * o[0] + across * o[1], viewer.y + along * o[2] + across * o[3]};
        const bool wall = light(c);
        if (shadow) {
          if (wall) {
            next_start = right;
          } else {
            shadow = false;
            start = next_start;
          }
        } else if (wall && along < reach) {
          shadow = true;
          octant(along + 1, start, left, o);
          next_start = right;
        }
      }
      if (shadow) return;
    }
  }
};

}  // namespace

std::int8_t block_level(const MapData& map, int cell, bool (*stands)(const void*, int tree), const void* context) {
  const auto i = static_cast<std::size_t>(cell);
  if (map.fow_blocker[i]) return kAllLevels;
  // Ground hides what is behind it from lower levels; a tree also from its own, and is seen over from the next.
  int level = map.elevation[i] - 1;
  for (int k = map.tree_first[i]; k < map.tree_first[i + 1]; ++k) {
    const int tree = map.tree_ids[static_cast<std::size_t>(k)];
    if (stands(context, tree))
      level = std::max(level, static_cast<int>(map.trees[static_cast<std::size_t>(tree)].level));
  }
  return static_cast<std::int8_t>(level);
}

void cast_sight(const MapData& map, const std::vector<std::int8_t>& block, Cell viewer, int reach, SightMask& seen,
                SightMask* touched) {
  const Cell corner{2 * (viewer.x / 2 - kSightReach), 2 * (viewer.y / 2 - kSightReach)};
  Cast cast{map,
            block,
            viewer,
            corner,
            map.elevation[static_cast<std::size_t>(viewer.index())],
            std::min(reach, 2 * kSightReach),
            {}};
  cast.light(viewer);
  for (const auto& o : kOctants)
    cast.octant(1, 1.0, 0.0, o);
  for (int y = 0; y < kSightRows; ++y) {
    const std::uint64_t low = cast.lit[static_cast<std::size_t>(2 * y)],
                        high = cast.lit[static_cast<std::size_t>(2 * y + 1)];
    const std::uint64_t both = (low & low >> 1) | (high & high >> 1), any = (low | low >> 1) & (high | high >> 1);
    seen.rows[static_cast<std::size_t>(y)] = even_bits(both | any);  // two of a fog cell's four
    if (touched) touched->rows[static_cast<std::size_t>(y)] = even_bits(low | low >> 1 | high | high >> 1);
  }
}

const StandingMask& Sight::standing(const MapData& map, Cell viewer, StandingMask& spare) const {
  const auto i = static_cast<std::size_t>(viewer.index());
  if (made[i].load(std::memory_order_acquire) == 2) return masks[i];
  std::uint8_t not_yet = 0;
  if (made[i].compare_exchange_strong(not_yet, 1, std::memory_order_acq_rel)) {
    cast_sight(map, block_level, viewer, 2 * kSightReach, masks[i].seen, &masks[i].touched);
    made[i].store(2, std::memory_order_release);
    return masks[i];
  }
  cast_sight(map, block_level, viewer, 2 * kSightReach, spare.seen, &spare.touched);
  return spare;
}

const SightMask& Sight::circle(Cell viewer, float radius) const {
  const int step = std::clamp(static_cast<int>(radius / kSightStep), 0, kSightRadii - 1);
  return circles[static_cast<std::size_t>(step)][static_cast<std::size_t>((viewer.y & 1) * 2 + (viewer.x & 1))];
}

std::unique_ptr<Sight> make_sight(const MapData& map) {
  static std::atomic<std::uint64_t> maps{0};
  auto s = std::make_unique<Sight>();
  s->id = ++maps;
  s->block_level.resize(kCells);
  for (int i = 0; i < kCells; ++i)
    s->block_level[static_cast<std::size_t>(i)] =
        block_level(map, i, [](const void*, int) { return true; }, nullptr);
  for (int step = 0; step < kSightRadii; ++step)
    for (int parity = 0; parity < 4; ++parity) {
      SightMask& m = s->circles[static_cast<std::size_t>(step)][static_cast<std::size_t>(parity)];
      m.rows.fill(0);
      if (step == 0) continue;
      // From the middle of the viewer's navigation cell, a quarter of a fog cell off the fog cell's middle.
      const float radius = static_cast<float>(step) * kSightStep;
      const float ox = ((parity & 1) - 0.5f) * kCell, oy = ((parity >> 1) - 0.5f) * kCell;
      for (int y = -kSightReach; y <= kSightReach; ++y)
        for (int x = -kSightReach; x <= kSightReach; ++x) {
          const float dx = static_cast<float>(x) * kFogCell - ox, dy = static_cast<float>(y) * kFogCell - oy;
          if (dx * dx + dy * dy <= radius * radius)
            m.rows[static_cast<std::size_t>(y + kSightReach)] |= 1u << (x + kSightReach);
        }
    }
  s->masks.reset(new StandingMask[kCells]);  // left untouched until a cell is asked for
  s->made = std::make_unique<std::atomic<std::uint8_t>[]>(kCells);
  return s;
}

}  // namespace dota
