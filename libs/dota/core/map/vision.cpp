// Fog of war: what each team sees this timestep, and what of it is true sight.
#include <algorithm>

#include "map/nav.hpp"
#include "map/sight.hpp"

namespace dota {

namespace {

using FogBits = std::array<std::uint64_t, (kFogCells * kFogCells + 63) / 64>;

// The trees that are down, by id, each at the cell above and to the right of its foot: it stood on that cell and
// the three to its left and below. Columns, so that the few within a viewer's reach are found fast.
struct Felled {
  std::array<std::int16_t, kMaxTrees> id, x, y, level;
  int n = 0;
};
struct FelledNear {
  std::array<std::int16_t, kMaxTrees> at;  // index into Felled
  int n = 0;
};
// A mask that was cast with trees down. Two games may share it when the same trees are down where its sight comes
// to; the cache holds pure functions of that, so that what it holds never shows in a game.
struct CachedMask {
  std::uint64_t near = 0, felled = 0, map = 0;  // trees that the standing map's sight and this sight come to
  std::int32_t viewer = -1, reach = 0;
  StandingMask mask;
};
constexpr std::size_t kCached = 8192;  // 2.4 MB a thread

struct FelledSight {
  std::vector<CachedMask> cache = std::vector<CachedMask>(kCached);
  Walls walls;            // of the standing map
  std::uint64_t map = 0;  // Sight::id that `walls` is of
  bool lowered = false;   // `walls` lacks the felled trees of the world that is looked at
};
FelledSight& felled_sight() {
  static thread_local FelledSight s;
  return s;
}

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {  // a round of SplitMix64
  h += v + 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  return h ^ (h >> 31);
}

std::int8_t level_without_felled(const World& w, const MapData& map, Cell c) {
  return block_level(
      map, c.index(),
      [](const void* world, int t) {
        return static_cast<const World*>(world)->tree_regrow[static_cast<std::size_t>(t)] == 0;
      },
      &w);
}

// Opens the walls of the trees that are down, or closes them.
void turn_walls(FelledSight& s, const World& w, const MapData& map, const Felled& felled, bool open) {
  for (int k = 0; k < felled.n; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const Cell c{felled.x[i], felled.y[i]};
    for (const Cell q : {Cell{c.x - 1, c.y - 1}, Cell{c.x, c.y - 1}, Cell{c.x - 1, c.y}, c}) {
      if (!q.inside()) continue;
      const std::int8_t standing = map.sight->block_level[static_cast<std::size_t>(q.index())];
      const std::int8_t lower = level_without_felled(w, map, q);
      map.sight->set_walls(s.walls, q, open ? standing : lower, open ? lower : standing);
    }
  }
  s.lowered = open;
}

// Walls without the felled trees, made when the first mask of a timestep has to be cast.
const Walls& lowered_walls(FelledSight& s, const World& w, const MapData& map, const Felled& felled) {
  if (s.lowered) return s.walls;
  if (s.map != map.sight->id) {
    s.walls = map.sight->walls;
    s.map = map.sight->id;
  }
  turn_walls(s, w, map, felled, true);
  return s.walls;
}

// Felled trees that a viewer of that level could see past, were nothing else in the way.
void find_near(const Felled& felled, Cell viewer, int reach, int level, FelledNear& near) {
  near.n = 0;
  for (int k = 0; k < felled.n; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const bool in = std::abs(felled.x[i] - viewer.x) <= reach + 1 &&
                    std::abs(felled.y[i] - viewer.y) <= reach + 1 && felled.level[i] >= level;
    near.at[static_cast<std::size_t>(near.n)] = static_cast<std::int16_t>(k);
    near.n += in;
  }
}

// Those of them that sight comes to, as one number; 0: none.
std::uint64_t key_of(const Felled& felled, const FelledNear& near, const SightMask& touched, Cell viewer) {
  const int left = viewer.x / 2 - kSightReach, low = viewer.y / 2 - kSightReach;
  const auto bit = [&](int x, int y) {
    return x >= 0 && y >= 0 && x < kSightRows && y < kSightRows &&
           ((touched.rows[static_cast<std::size_t>(y)] >> x) & 1u);
  };
  std::uint64_t key = 0;
  for (int k = 0; k < near.n; ++k) {
    const auto i = static_cast<std::size_t>(near.at[static_cast<std::size_t>(k)]);
    const int x0 = std::max(felled.x[i] - 1, 0) / 2 - left, x1 = felled.x[i] / 2 - left;
    const int y0 = std::max(felled.y[i] - 1, 0) / 2 - low, y1 = felled.y[i] / 2 - low;
    if (bit(x0, y0) || bit(x1, y0) || bit(x0, y1) || bit(x1, y1))
      key = mix(key, static_cast<std::uint64_t>(felled.id[i]) + 1);
  }
  return key;
}

// The mask from a cell: the standing map's, or, where sight comes to a tree that is down, one cast without those
// down.
const SightMask& sight_from(const World& w, const MapData& map, Cell viewer, float radius, const Felled& felled,
                            StandingMask& spare) {
  const StandingMask& standing = map.sight->standing(map, viewer, spare);
  if (felled.n == 0) return standing.seen;
  const int reach = std::min(static_cast<int>(std::ceil(radius / kCell)) + 1, 2 * kSightReach);
  const int level = map.elevation[static_cast<std::size_t>(viewer.index())];
  FelledNear around;
  find_near(felled, viewer, reach, level, around);
  const std::uint64_t near = key_of(felled, around, standing.touched, viewer);
  if (near == 0) return standing.seen;
  FelledSight& s = felled_sight();
  CachedMask& slot = s.cache[mix(near, static_cast<std::uint64_t>(viewer.index() * 64 + reach)) % kCached];
  const bool same = slot.map == map.sight->id && slot.viewer == viewer.index() && slot.reach == reach &&
                    slot.near == near && slot.felled == key_of(felled, around, slot.mask.touched, viewer);
  if (!same) {
    slot.map = map.sight->id;
    slot.viewer = viewer.index();
    slot.reach = reach;
    slot.near = near;
    cast_sight(map, lowered_walls(s, w, map, felled), viewer, reach, slot.mask.seen, slot.mask.touched);
    slot.felled = key_of(felled, around, slot.mask.touched, viewer);
  }
  return slot.mask.seen;
}

void add_rows(FogBits& fog, Cell viewer, float radius, const SightMask& a, const SightMask& b) {
  const int col = viewer.x / 2 - kSightReach, row = viewer.y / 2 - kSightReach;
  std::uint32_t keep = ~0u;
  if (col < 0) keep <<= -col;
  if (col + 32 > kFogCells) keep &= ~0u >> (col + 32 - kFogCells);
  const int half = std::min(static_cast<int>(radius / kFogCell) + 1, kSightReach);
  const int from = std::max(kSightReach - half, -row), to = std::min(kSightReach + half + 1, kFogCells - row);
  for (int y = from; y < to; ++y) {
    const std::uint64_t bits = a.rows[static_cast<std::size_t>(y)] & b.rows[static_cast<std::size_t>(y)] & keep;
    if (!bits) continue;
    const int at = (row + y) * kFogCells + col;  // may be below 0 by the columns that `keep` cut off
    if (at < 0) {
      fog[0] |= bits >> -at;
      continue;
    }
    const auto word = static_cast<std::size_t>(at >> 6);
    const int shift = at & 63;
    fog[word] |= bits << shift;
    if (shift > 32 && word + 1 < fog.size()) fog[word + 1] |= bits >> (64 - shift);
  }
}

bool bit_at(const FogBits& fog, Vec2 p) {
  const Cell c = cell_of(p);
  if (!c.inside()) return false;
  const int i = (c.y / 2) * kFogCells + c.x / 2;
  return (fog[static_cast<std::size_t>(i) >> 6] >> (i & 63)) & 1u;
}

void find_felled(const World& w, const MapData& map, Felled& felled) {
  felled.n = 0;
  for (std::size_t t = 0; felled.n < w.nav.trees_down && t < map.trees.size(); ++t) {
    if (w.tree_regrow[t] == 0) continue;
    const Cell c = cell_of(map.trees[t].pos);
    const auto i = static_cast<std::size_t>(felled.n++);
    felled.id[i] = static_cast<std::int16_t>(t);
    felled.x[i] = static_cast<std::int16_t>(c.x);
    felled.y[i] = static_cast<std::int16_t>(c.y);
    felled.level[i] = map.trees[t].level;
  }
}

// Runs f with the trees that are down in this world.
template <class F>
void with_felled(const World& w, const MapData& map, F&& f) {
  Felled felled;
  find_felled(w, map, felled);
  f(felled);
  FelledSight& s = felled_sight();
  if (s.lowered) turn_walls(s, w, map, felled, false);
}

void see(const World& w, FogBits& fog, const MapData& map, Vec2 p, float radius, bool flying,
         const Felled& felled) {
  const Cell viewer = cell_of(p);
  if (radius < kSightStep || !viewer.inside()) return;
  const SightMask& circle = map.sight->circle(viewer, radius);
  if (flying) return add_rows(fog, viewer, radius, circle, circle);
  StandingMask spare;
  add_rows(fog, viewer, radius, sight_from(w, map, viewer, radius, felled, spare), circle);
}

}  // namespace

void update_vision(Context& c) {
  World& w = c.world;
  const MapData& map = *c.tables.map;
  for (Fog& f : w.fog) {
    f.visible.fill(0);
    f.true_sight.fill(0);
  }
  with_felled(w, map, [&](const Felled& felled) {
    for (int i = 0; i < w.units_end; ++i) {
      const Unit& u = w.units[static_cast<std::size_t>(i)];
      if (u.kind == UnitKind::None || !u.alive || u.team >= kTeams) continue;
      Fog& fog = w.fog[u.team];
      // Flyers look over heights and trees; a ward sees what a unit standing there would.
      const bool flying = (u.status & kFlyingVision) || c.tables.units[u.type].move_cap == MoveCap::Fly;
      see(w, fog.visible, map, u.pos, w.is_day ? u.vision_day : u.vision_night, flying, felled);
      if (u.true_sight > 0) see(w, fog.true_sight, map, u.pos, u.true_sight, true, felled);
    }
  });
  reveal_effects(c);
}

void reveal_area(World& w, const MapData& map, int team, Vec2 p, float radius, bool flying) {
  if (team < 0 || team >= kTeams) return;
  with_felled(w, map, [&](const Felled& felled) {
    see(w, w.fog[static_cast<std::size_t>(team)].visible, map, p, radius, flying, felled);
  });
}

bool cell_visible(const World& w, int team, Vec2 p) {
  return team < 0 || team >= kTeams || bit_at(w.fog[static_cast<std::size_t>(team)].visible, p);
}

bool unit_visible(const World& w, int team, const Unit& u) {
  if (u.team == team || (u.status & kRevealed)) return true;
  if ((u.status & kUnseen) || !cell_visible(w, team, u.pos)) return false;
  if (!(u.status & kInvisible) || (u.status & kTrueSighted)) return true;
  return team >= 0 && team < kTeams && bit_at(w.fog[static_cast<std::size_t>(team)].true_sight, u.pos);
}

}  // namespace dota
