// The ground around each own hero and the share of each minimap cell that the team sees.
#include <algorithm>
#include <cstring>

#include "base/memory.hpp"
#include "map/map_data.hpp"
#include "view/fill.hpp"

namespace dota {

namespace {

// `n` bits of a row of words from `from` on, at most 63; `last` is the last word there is.
inline std::uint64_t bits_from(const std::uint64_t* words, int last, int from, int n) {
  const int word = from >> 6, shift = from & 63;
  const std::uint64_t low = words[word] >> shift, high = words[std::min(word + 1, last)] << 1 << (63 - shift);
  return (low | high) & ((1ull << n) - 1);
}

// Seen fog cells of each minimap cell. The rows of fog cells of one minimap row are added up first, bit by bit:
// bit i of planes[p] is digit p of how many of them have cell i. Then each column's bits are counted, a plane at a
// time.
template <std::size_t kPlanes>
inline __attribute__((always_inline)) void count_columns(const std::uint64_t* words, int n, int* seen) {
  constexpr int kLastWord = static_cast<int>(std::tuple_size_v<decltype(Fog::visible)>) - 1;
  constexpr std::size_t kRowWords = 3;
  static_assert(kFogCells <= static_cast<int>(kRowWords) * 64);
  std::array<std::array<std::uint64_t, kMaxMinimapSide>, kRowWords> mask{};
  std::array<int, kRowWords> first, end{};  // columns that have cells in the word
  first.fill(n);
  for (int x = 0; x < n; ++x) {
    const int from = (x * kFogCells + n - 1) / n, to = ((x + 1) * kFogCells + n - 1) / n;
    for (std::size_t k = 0; k < kRowWords; ++k) {
      const int begin = static_cast<int>(64 * k), low = std::max(from - begin, 0), high = std::min(to - begin, 64);
      if (low >= high) continue;
      mask[k][x] = ~0ull >> (64 - (high - low)) << low;
      first[k] = std::min(first[k], x);
      end[k] = x + 1;
    }
  }
  for (int y = 0; y < n; ++y) {
    const int from = (y * kFogCells + n - 1) / n, to = ((y + 1) * kFogCells + n - 1) / n;
    int* const row = seen + y * n;
    for (std::size_t k = 0; k < kRowWords; ++k) {
      std::array<std::uint64_t, kPlanes> planes{};
      for (int r = from; r < to; ++r) {
        const int word = (r * kFogCells >> 6) + static_cast<int>(k), shift = r * kFogCells & 63;
        std::uint64_t carry = words[std::min(word, kLastWord)] >> shift | words[std::min(word + 1, kLastWord)]
                                                                              << 1 << (63 - shift);
        for (std::uint64_t& plane : planes) {
          const std::uint64_t both = plane & carry;
          plane ^= carry;
          carry = both;
        }
      }
      for (int x = first[k]; x < end[k]; ++x)
        for (std::size_t p = 0; p < kPlanes; ++p)
          row[x] += __builtin_popcountll(planes[p] & mask[k][x]) << p;
    }
  }
}

inline __attribute__((always_inline)) void count_any(const std::uint64_t* words, int n, int* seen) {
  static_assert(kFogCells < 1 << 8);
  if (kFogCells / n + 1 < 1 << 4)
    count_columns<4>(words, n, seen);
  else
    count_columns<8>(words, n, seen);
}

// The hot loop of the minimap, compiled for processors that count bits as well. Not by target_clones: what chooses
// among those runs before a core that records its own profile is ready for it.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("popcnt"))) void count_seen_popcnt(const std::uint64_t* words, int n, int* seen) {
  count_any(words, n, seen);
}
const bool kHasPopcnt = __builtin_cpu_supports("popcnt");
#endif

void count_seen(const std::uint64_t* words, int n, int* seen) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (kHasPopcnt) return count_seen_popcnt(words, n, seen);
#endif
  count_any(words, n, seen);
}

bool passable(const World& w, Cell cell) { return cell.inside() && !nav_blocked(w, cell.index()); }

// Cells x, x + 1, ... x + n - 1 of a row of the map, a bit each: those that can be entered.
unsigned open_cells(const World& w, int x, int y, int n) {
  const int from = std::max(x, 0), to = std::min(x + n, kGrid);
  if (y < 0 || y >= kGrid || from >= to) return 0;
  constexpr int kLastWord = static_cast<int>(std::tuple_size_v<decltype(Nav::blocked)>) - 1;
  const std::uint64_t solid = bits_from(w.nav.blocked.data(), kLastWord, y * kGrid + from, to - from);
  return static_cast<unsigned>((~solid & ((1ull << (to - from)) - 1)) << (from - x));
}

// A byte's bits as a byte each.
constexpr auto kBytesOf = [] {
  std::array<std::array<std::uint8_t, 8>, 256> table{};
  for (std::size_t bits = 0; bits < 256; ++bits)
    for (std::size_t k = 0; k < 8; ++k)
      table[bits][k] = bits >> k & 1u;
  return table;
}();

void fill_terrain(const Context& c, const Layout& layout, TeamView& v) {
  const World& w = c.world;
  const MapData& map = *c.tables.map;
  const int near = layout.table.nearby_map, pass = layout.table.passability;
  // Around a body the passability grid has one cell more on one side; a turned reader sees that side turned too.
  const int first = v.mirrored ? -pass / 2 + 1 - pass % 2 : -pass / 2;
  for (int h = 0; h < v.heroes_per_team; ++h) {
    const SeenUnit* body = v.body(h);
    if (!body) continue;
    const Cell center = cell_of(body->pos);
    for (int y = 0; y < pass; ++y) {
      const unsigned open = open_cells(w, center.x + first, center.y + first + y, pass);
      // Whole bytes of bits: what they write too much, the next row writes over, or nobody reads.
      std::uint8_t* const row = v.passable[h].data() + y * pass;
      std::memcpy(row, kBytesOf[open & 255u].data(), 8);
      if (pass > 8) std::memcpy(row + 8, kBytesOf[open >> 8].data(), 8);
    }
    if (!layout.nearby.exists) continue;
    std::array<Cell, kMaxGridSide> across;  // x of a column's cells, y of a row's
    for (int x = 0; x < near; ++x) {
      const float away = (static_cast<float>(x) + 0.5f - 0.5f * static_cast<float>(near)) * kNearbyCell;
      across[x] = cell_of({body->pos.x + away, body->pos.y + away});
    }
    for (int y = 0; y < near; ++y)
      for (int x = 0; x < near; ++x) {
        const Cell cell{across[x].x, across[y].y};
        const std::size_t i = y * near + x;
        v.nearby_passable[h][i] = passable(w, cell) ? 1 : 0;
        v.nearby_level[h][i] = cell.inside() ? map.elevation[cell.index()] : static_cast<std::int8_t>(-9);
      }
  }
}

void fill_minimap(const Context& c, const Layout& layout, TeamView& v) {
  const int n = layout.table.minimap;
  const auto& bits = c.world.fog[v.team].visible;
  std::array<int, kMaxMinimapSide * kMaxMinimapSide> seen{};
  count_seen(bits.data(), n, seen.data());
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      const int rows = ((y + 1) * kFogCells + n - 1) / n - (y * kFogCells + n - 1) / n;
      const int columns = ((x + 1) * kFogCells + n - 1) / n - (x * kFogCells + n - 1) / n;
      const std::size_t i = y * n + x;
      v.minimap_visible[i] = static_cast<float>(seen[i]) / static_cast<float>(rows * columns);
    }
}

}  // namespace

void fill_ground(const Context& c, const Layout& layout, TeamView& v) {
  // The ground around each hero lies far from that around the others: it comes while the minimap is counted.
  constexpr int kRowsAround = 13;
  const auto& blocked = c.world.nav.blocked;
  const auto& elevation = c.tables.map->elevation;
  const int near = layout.table.nearby_map;
  const float half = 0.5f * static_cast<float>(near) * kNearbyCell;
  for (int h = 0; h < v.heroes_per_team; ++h) {
    const SeenUnit* body = v.body(h);
    if (!body) continue;
    const int y = std::clamp(cell_of(body->pos).y, 0, kGrid - 1);
    const std::size_t from = std::max(y - kRowsAround, 0) * kGrid / 64;
    const std::size_t to = std::min(y + kRowsAround + 1, kGrid) * kGrid / 64;
    prefetch_lines(&blocked[from], (std::min(to, blocked.size()) - from) * sizeof blocked[0]);
    if (!layout.nearby.exists) continue;
    const int left = std::clamp(cell_of({body->pos.x - half, body->pos.y}).x, 0, kGrid - 1);
    const int right = std::clamp(cell_of({body->pos.x + half, body->pos.y}).x, 0, kGrid - 1);
    for (int row = 0; row < near; ++row) {
      const float away = (static_cast<float>(row) + 0.5f - 0.5f * static_cast<float>(near)) * kNearbyCell;
      const int at = std::clamp(cell_of({body->pos.x, body->pos.y + away}).y, 0, kGrid - 1) * kGrid;
      prefetch_lines(&elevation[at + left], right - left + 1);
    }
  }
  if (layout.minimap.exists) fill_minimap(c, layout, v);
  fill_terrain(c, layout, v);
}

}  // namespace dota
