#include "map/sight.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace dota {

namespace {

constexpr int kCells = kGrid * kGrid;
constexpr std::int8_t kAllLevels = 127;

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
      s[along][across] = {(across + 0.5) / (along - 0.5), (across - 0.5) / (along + 0.5)};
  return s;
}();

std::uint32_t reversed(std::uint32_t v) {
  v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
  v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
  v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(v);
}

// Rows of bits to columns of bits.
void transpose(std::array<std::uint64_t, 64>& m) {
  std::uint64_t mask = 0x00000000ffffffffull;
  for (std::size_t j = 32; j != 0; j >>= 1, mask ^= mask << j)
    for (std::size_t k = 0; k < 64; k = (k + j + 1) & ~j) {
      const std::uint64_t t = (m[k] >> j ^ m[k + j]) & mask;
      m[k] ^= t << j;
      m[k + j] ^= t;
    }
}

constexpr std::uint32_t up_to(int bit) { return 0xffffffffu >> (31 - bit); }  // bits 0..bit

struct Octant {
  bool column;        // its rows are columns of the map
  int along, across;  // 1 or -1
};
constexpr std::array<Octant, 8> kOctants = {{{false, 1, 1},
                                             {false, 1, -1},
                                             {false, -1, 1},
                                             {false, -1, -1},
                                             {true, 1, 1},
                                             {true, 1, -1},
                                             {true, -1, 1},
                                             {true, -1, -1}}};

std::uint32_t take(const CellBits& cells, const Octant& o, int line, int middle) {
  return o.across > 0 ? cells.take(o.column, line, middle) : reversed(cells.take(o.column, line, middle - 31));
}

// Recursive shadow casting in one octant, a row at a time: bit i of a row is the cell i steps across.
struct Cast {
  const CellBits &walls, &ground;
  const Octant& octant;
  int line, middle;  // of the viewer: along and across
  int reach;
  std::array<std::uint32_t, 2 * kSightReach + 1>& lit;

  // Between two slopes, from a row outwards.
  void run(int row, double start, double end) {
    if (start < end) return;
    for (int along = row; along <= reach; ++along) {
      const auto& slopes = kSlopes[along];
      // The first and last cell of which any part lies between the slopes: a guess, then to the point.
      int first = std::min(along, static_cast<int>(start * (along + 0.5) + 0.5) + 1);
      while (first >= 0 && slopes[first].right > start)
        --first;
      int last = std::max(0, static_cast<int>(end * (along - 0.5) - 0.5) - 1);
      while (last <= first && slopes[last].left < end)
        ++last;
      if (last > first) continue;
      const int at = line + along * octant.along;
      const std::uint32_t between = up_to(first) & ~(up_to(last) >> 1);
      lit[along] |= take(ground, octant, at, middle) & between;
      if (along == reach) return;
      std::uint32_t wall = take(walls, octant, at, middle) & between;
      while (wall != 0) {
        const int top = 31 - std::countl_zero(wall);
        run(along + 1, start, slopes[top].left);
        const std::uint32_t open = ~wall & between & up_to(top);
        if (open == 0) return;  // wall to the end of the row: nothing behind it
        const int next = 31 - std::countl_zero(open);
        start = slopes[next + 1].right;
        wall &= up_to(next);
      }
    }
  }
};

}  // namespace

std::int8_t block_level(const MapData& map, int cell, bool (*stands)(const void*, int tree), const void* context) {
  if (map.fow_blocker[cell]) return kAllLevels;
  // Ground hides what is behind it from lower levels; a tree also from its own, and is seen over from the next.
  int level = map.elevation[cell] - 1;
  for (int k = map.tree_first[cell]; k < map.tree_first[cell + 1]; ++k) {
    const int tree = map.tree_ids[k];
    if (stands(context, tree)) level = std::max(level, static_cast<int>(map.trees[tree].level));
  }
  return static_cast<std::int8_t>(level);
}

unsigned octants_with(Cell away) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < kOctants.size(); ++i) {
    const Octant& o = kOctants[i];
    const int along = (o.column ? away.x : away.y) * o.along, across = (o.column ? away.y : away.x) * o.across;
    if (across >= 0 && across <= along) bits |= 1u << i;
  }
  return bits;
}

void cast_sight(const MapData& map, const Walls& walls, Cell viewer, int reach, unsigned octants,
                OctantCells& lit) {
  const Sight& sight = *map.sight;
  const std::size_t level = sight.slot(map.elevation[viewer.index()]);
  for (std::size_t i = 0; i < kOctants.size(); ++i) {
    if (!((octants >> i) & 1u)) continue;
    const Octant& o = kOctants[i];
    lit.rows[i].fill(0);
    Cast{walls[level],
         sight.lit[level],
         o,
         o.column ? viewer.x : viewer.y,
         o.column ? viewer.y : viewer.x,
         std::min(reach, 2 * kSightReach),
         lit.rows[i]}
        .run(1, 1.0, 0.0);
  }
}

void find_fog_cells(Cell viewer, const OctantCells& lit, SightMask& seen, SightMask& touched) {
  // Navigation cells of the window of fog cells, one bit each, by rows and by columns.
  std::array<std::uint64_t, 64> rows{}, columns{};
  const int x = viewer.x % 2 + 2 * kSightReach, y = viewer.y % 2 + 2 * kSightReach;
  rows[y] |= 1ull << x;
  for (std::size_t i = 0; i < kOctants.size(); ++i) {
    const Octant& o = kOctants[i];
    const int line = o.column ? x : y, middle = o.column ? y : x;
    std::uint64_t* const to = (o.column ? columns : rows).data();
    for (int along = 1; along <= 2 * kSightReach; ++along) {
      const std::uint32_t cells = lit.rows[i][along];
      to[line + along * o.along] |= o.across > 0 ? static_cast<std::uint64_t>(cells) << middle
                                                 : static_cast<std::uint64_t>(reversed(cells)) << middle >> 31;
    }
  }
  transpose(columns);
  for (std::size_t r = 0; r < kSightRows; ++r) {
    const std::uint64_t low = rows[2 * r] | columns[2 * r], high = rows[2 * r + 1] | columns[2 * r + 1];
    const std::uint64_t both = (low & low >> 1) | (high & high >> 1), any = (low | low >> 1) & (high | high >> 1);
    seen.rows[r] = even_bits(both | any);  // two of a fog cell's four
    touched.rows[r] = even_bits(low | low >> 1 | high | high >> 1);
  }
}

std::size_t Sight::slot(int level) const {
  return std::find(levels.begin(), levels.end(), level) - levels.begin();
}

void Sight::set_walls(Walls& changed, Cell c, std::int8_t was, std::int8_t now) const {
  for (std::size_t i = 0; i < levels.size(); ++i)
    if ((was >= levels[i]) != (now >= levels[i])) changed[i].set(c, now >= levels[i]);
}

const StandingMask& Sight::standing(const MapData& map, Cell viewer, StandingMask& spare) const {
  const std::size_t i = viewer.index();
  if (made[i].load(std::memory_order_acquire) == 2) return masks[i];
  const auto make = [&](StandingMask& mask, OctantCells& cells) {
    cast_sight(map, walls, viewer, 2 * kSightReach, kAllOctants, cells);
    find_fog_cells(viewer, cells, mask.seen, mask.touched);
  };
  std::uint8_t not_yet = 0;
  if (made[i].compare_exchange_strong(not_yet, 1, std::memory_order_acq_rel)) {
    make(masks[i], octants[i]);
    made[i].store(2, std::memory_order_release);
    return masks[i];
  }
  OctantCells cells;
  make(spare, cells);
  return spare;
}

void Sight::standing_octants(const MapData& map, Cell viewer, OctantCells& out) const {
  const std::size_t i = viewer.index();
  if (made[i].load(std::memory_order_acquire) == 2)
    out = octants[i];
  else
    cast_sight(map, walls, viewer, 2 * kSightReach, kAllOctants, out);
}

const SightMask& Sight::circle(Cell viewer, float radius) const {
  const int step = std::clamp(floor_to_int(radius / kSightStep), 0, kSightRadii - 1);
  return circles[step][(viewer.y & 1) * 2 + (viewer.x & 1)];
}

std::unique_ptr<Sight> make_sight(const MapData& map) {
  static std::atomic<std::uint64_t> maps{0};
  auto s = std::make_unique<Sight>();
  s->id = ++maps;
  s->block_level.resize(kCells);
  for (int i = 0; i < kCells; ++i)
    s->block_level[i] = block_level(map, i, [](const void*, int) { return true; }, nullptr);
  for (const std::int8_t level : map.elevation)
    if (std::find(s->levels.begin(), s->levels.end(), level) == s->levels.end()) s->levels.push_back(level);
  for (const std::int8_t level : s->levels) {
    s->walls.emplace_back(true);
    s->lit.emplace_back(false);
    for (int i = 0; i < kCells; ++i) {
      s->walls.back().set(cell_at(i), s->block_level[i] >= level);
      s->lit.back().set(cell_at(i), map.elevation[i] <= level);
    }
  }
  for (int step = 0; step < kSightRadii; ++step)
    for (int parity = 0; parity < 4; ++parity) {
      SightMask& m = s->circles[step][parity];
      m.rows.fill(0);
      if (step == 0) continue;
      // From the middle of the viewer's navigation cell, a quarter of a fog cell off the fog cell's middle.
      const float radius = static_cast<float>(step) * kSightStep;
      const float ox = ((parity & 1) - 0.5f) * kCell, oy = ((parity >> 1) - 0.5f) * kCell;
      for (int y = -kSightReach; y <= kSightReach; ++y)
        for (int x = -kSightReach; x <= kSightReach; ++x) {
          const float dx = static_cast<float>(x) * kFogCell - ox, dy = static_cast<float>(y) * kFogCell - oy;
          if (dx * dx + dy * dy <= radius * radius) m.rows[y + kSightReach] |= 1u << (x + kSightReach);
        }
    }
  s->masks.reset(new StandingMask[kCells]);  // both left untouched until a cell is asked for
  s->octants.reset(new OctantCells[kCells]);
  want_huge_pages(s->masks.get(), kCells * sizeof(StandingMask));
  s->made = std::make_unique<std::atomic<std::uint8_t>[]>(kCells);
  return s;
}

}  // namespace dota
