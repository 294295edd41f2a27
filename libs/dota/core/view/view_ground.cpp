// The ground around each own hero and the share of each minimap cell that the team sees.
#include <algorithm>

#include "map/map_data.hpp"
#include "view/fill.hpp"

namespace dota {

namespace {

bool passable(const World& w, Cell cell) { return cell.inside() && !nav_blocked(w, cell.index()); }

// Seen fog cells of each minimap cell: the hot loop of the minimap, compiled for processors that count bits as
// well.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("popcnt", "default")))
#endif
void count_seen(const std::uint64_t* words, int n, int* seen) {
  std::array<int, kMaxMinimapSide + 1> column;  // first fog cell of each of the minimap's columns
  for (int x = 0; x <= n; ++x)
    column[static_cast<std::size_t>(x)] = (x * kFogCells + n - 1) / n;
  for (int r = 0; r < kFogCells; ++r) {
    int* row = seen + r * n / kFogCells * n;
    for (int x = 0; x < n; ++x) {
      int from = r * kFogCells + column[static_cast<std::size_t>(x)];
      const int to = r * kFogCells + column[static_cast<std::size_t>(x) + 1];
      while (from < to) {
        const int shift = from & 63, take = std::min(64 - shift, to - from);
        std::uint64_t word = words[from >> 6] >> shift;
        if (take < 64) word &= (1ull << take) - 1;
        row[x] += __builtin_popcountll(word);
        from += take;
      }
    }
  }
}

void fill_terrain(const Context& c, const Layout& layout, TeamView& v) {
  const World& w = c.world;
  const MapData& map = *c.tables.map;
  const int near = layout.table.nearby_map, pass = layout.table.passability;
  // Around a body the passability grid has one cell more on one side; a turned reader sees that side turned too.
  const int first = v.mirrored ? -pass / 2 + 1 - pass % 2 : -pass / 2;
  for (int h = 0; h < v.heroes_per_team; ++h) {
    const SeenUnit* body = v.body(h);
    if (!body) continue;
    const auto at = static_cast<std::size_t>(h);
    const Cell center = cell_of(body->pos);
    for (int y = 0; y < pass; ++y)
      for (int x = 0; x < pass; ++x)
        v.passable[at][static_cast<std::size_t>(y * pass + x)] =
            passable(w, {center.x + first + x, center.y + first + y}) ? 1 : 0;
    std::array<Cell, kMaxGridSide> across;  // x of a column's cells, y of a row's
    for (int x = 0; x < near; ++x) {
      const float away = (static_cast<float>(x) + 0.5f - 0.5f * static_cast<float>(near)) * kNearbyCell;
      across[static_cast<std::size_t>(x)] = cell_of({body->pos.x + away, body->pos.y + away});
    }
    for (int y = 0; y < near; ++y)
      for (int x = 0; x < near; ++x) {
        const Cell cell{across[static_cast<std::size_t>(x)].x, across[static_cast<std::size_t>(y)].y};
        const auto i = static_cast<std::size_t>(y * near + x);
        v.nearby_passable[at][i] = passable(w, cell) ? 1 : 0;
        v.nearby_level[at][i] =
            cell.inside() ? map.elevation[static_cast<std::size_t>(cell.index())] : static_cast<std::int8_t>(-9);
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
      const auto i = static_cast<std::size_t>(y * n + x);
      v.minimap_visible[i] = static_cast<float>(seen[i]) / static_cast<float>(rows * columns);
    }
}

}  // namespace

void fill_ground(const Context& c, const Layout& layout, TeamView& v) {
  fill_terrain(c, layout, v);
  fill_minimap(c, layout, v);
}

}  // namespace dota
