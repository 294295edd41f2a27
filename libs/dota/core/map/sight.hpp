// Line of sight. What a viewer can see from a navigation cell, as a mask of fog cells around it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/memory.hpp"
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

// What sight comes to in each of the eight octants around a viewer, cells higher than he is left out: bit i of
// rows[octant][along] is the cell that many steps along the octant and i across.
struct OctantCells {
  std::array<std::array<std::uint32_t, 2 * kSightReach + 1>, 8> rows;
};

// `touched` marks fog cells any part of which sight comes to: what stands elsewhere does not matter to `seen`.
struct alignas(64) StandingMask {
  SightMask seen, touched;
};

// One bit a navigation cell, by rows and by columns, with a margin all round that is wider than sight reaches.
class CellBits {
 public:
  explicit CellBits(bool outside) : bits_(2 * kLines * kWords, outside ? ~0ull : 0) {}
  void set(Cell c, bool on) {
    put(0, c.y, c.x, on);
    put(1, c.x, c.y, on);
  }
  // Cells first, first + 1, ... of a line, bit by bit: of row `line` by x, or of column `line` by y.
  std::uint32_t take(bool column, int line, int first) const {
    const std::uint64_t* row = bits_.data() + row_of(column, line);
    const int at = first + kMargin, shift = at & 63;
    std::uint64_t v = row[at >> 6] >> shift;
    if (shift > 32) v |= row[(at >> 6) + 1] << (64 - shift);
    return static_cast<std::uint32_t>(v);
  }

 private:
  static constexpr int kMargin = 2 * kSightReach + 2;
  static constexpr int kLines = kGrid + 2 * kMargin, kWords = (kLines + 63) / 64;
  static std::size_t row_of(bool column, int line) { return ((column ? kLines : 0) + line + kMargin) * kWords; }
  void put(bool column, int line, int i, bool on) {
    std::uint64_t& word = bits_[row_of(column, line) + ((i + kMargin) >> 6)];
    const std::uint64_t bit = 1ull << ((i + kMargin) & 63);
    word = on ? word | bit : word & ~bit;
  }
  std::vector<std::uint64_t> bits_;
};
using Walls = std::vector<CellBits>;  // by Sight::slot of the viewer's level: the cells that stop his sight

// Masks of the standing map, made when first asked for. A mask depends on the map and the cell alone, so that it
// does not matter which world asked first.
struct Sight {
  std::uint64_t id = 0;  // no two maps of a process share one
  std::vector<std::int8_t>
      block_level;                  // per navigation cell: blocks the sight of viewers of this level and below
  std::vector<std::int8_t> levels;  // of the map's ground
  Walls walls;                      // the same as `block_level`, by levels
  std::vector<CellBits> lit;        // by Sight::slot: cells no higher than the viewer
  std::array<std::array<SightMask, 4>, kSightRadii> circles;  // [radius / kSightStep][odd row * 2 + odd column]
  std::unique_ptr<StandingMask[]> masks;                      // per navigation cell
  std::unique_ptr<OctantCells[]> octants;                     // the same; read only where a tree is down
  std::unique_ptr<std::atomic<std::uint8_t>[]> made;          // 0 not yet, 1 being made, 2 ready

  // Thread-safe. `spare` is written and returned while another thread makes the cell's mask.
  const StandingMask& standing(const MapData& map, Cell viewer, StandingMask& spare) const;
  // The octants that the cell's mask was made of.
  void standing_octants(const MapData& map, Cell viewer, OctantCells& out) const;
  // Prefetches a part of the cell's mask; the parts are stored far from each other.
  void fetch_seen(Cell viewer) const { fetch_part(viewer, &StandingMask::seen); }
  void fetch_touched(Cell viewer) const { fetch_part(viewer, &StandingMask::touched); }
  const SightMask& circle(Cell viewer, float radius) const;
  std::size_t slot(int level) const;
  // Brings the cell's walls to another block level.
  void set_walls(Walls& changed, Cell c, std::int8_t was, std::int8_t now) const;

 private:
  void fetch_part(Cell viewer, SightMask StandingMask::* part) const {
    const std::size_t i = viewer.index();
    prefetch_lines(&made[i], 1);
    prefetch_lines(&(masks[i].*part), sizeof(SightMask));
  }
};

std::unique_ptr<Sight> make_sight(const MapData& map);

// Highest level of viewer whose sight the cell blocks, with the standing trees given by the callback.
std::int8_t block_level(const MapData& map, int cell, bool (*stands)(const void*, int tree), const void* context);

// Returns the octants, one bit each, that contain a cell at this distance from the viewer.
constexpr unsigned kAllOctants = 255;
unsigned octants_with(Cell away);
// Casts sight from a cell over navigation cells up to `reach` away, in these octants; the others stay as they are.
void cast_sight(const MapData& map, const Walls& walls, Cell viewer, int reach, unsigned octants,
                OctantCells& lit);
// A fog cell is seen when at least half of its navigation cells are.
void find_fog_cells(Cell viewer, const OctantCells& lit, SightMask& seen, SightMask& touched);

}  // namespace dota
