// Fog of war: what each team sees this timestep, and what of it is true sight.
#include <algorithm>

#include "map/nav.hpp"
#include "map/sight.hpp"

namespace dota {

namespace {

using FogBits = std::array<std::uint64_t, (kFogCells * kFogCells + 63) / 64>;

// A felled tree near a viewer, and the masks that were cast with such trees down. The cache holds pure functions
// of (map, viewer's cell, reach, felled trees within it), so what it holds never shows in a game.
struct Felled {
  std::array<std::int16_t, kMaxTrees> trees;
  int n = 0;
};
struct CachedMask {
  std::uint64_t felled = 0, map = 0;  // Sight::id
  std::int32_t viewer = -1, reach = 0;
  SightMask mask;
};
constexpr std::size_t kCached = 8192;  // 1.2 MB a thread

struct FelledSight {
  std::vector<CachedMask> cache = std::vector<CachedMask>(kCached);
  std::vector<std::int8_t> block;  // block levels with this world's trees
  std::uint64_t map = 0;           // Sight::id that `block` is of
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

void set_block_levels(FelledSight& s, const World& w, const MapData& map, const Felled& felled) {
  for (int k = 0; k < felled.n; ++k) {
    const Cell c = cell_of(map.trees[static_cast<std::size_t>(felled.trees[static_cast<std::size_t>(k)])].pos);
    for (const Cell q : {Cell{c.x - 1, c.y - 1}, Cell{c.x, c.y - 1}, Cell{c.x - 1, c.y}, c})
      if (q.inside())
        s.block[static_cast<std::size_t>(q.index())] = block_level(
            map, q.index(),
            [](const void* world, int t) {
              return static_cast<const World*>(world)->tree_regrow[static_cast<std::size_t>(t)] == 0;
            },
            &w);
  }
}

void restore_block_levels(FelledSight& s, const MapData& map, const Felled& felled) {
  for (int k = 0; k < felled.n; ++k) {
    const Cell c = cell_of(map.trees[static_cast<std::size_t>(felled.trees[static_cast<std::size_t>(k)])].pos);
    for (const Cell q : {Cell{c.x - 1, c.y - 1}, Cell{c.x, c.y - 1}, Cell{c.x - 1, c.y}, c})
      if (q.inside())
        s.block[static_cast<std::size_t>(q.index())] = map.sight->block_level[static_cast<std::size_t>(q.index())];
  }
}

bool comes_to(const SightMask& touched, Cell viewer, Cell c) {
  const int x = c.x / 2 - viewer.x / 2 + kSightReach, y = c.y / 2 - viewer.y / 2 + kSightReach;
  return x >= 0 && y >= 0 && x < kSightRows && y < kSightRows &&
         ((touched.rows[static_cast<std::size_t>(y)] >> x) & 1u);
}

// The mask from a cell: the standing map's, or, where sight comes to a tree that is down, one cast without those
// down.
const SightMask& sight_from(const MapData& map, Cell viewer, float radius, const Felled& felled,
                            StandingMask& spare) {
  const StandingMask& standing = map.sight->standing(map, viewer, spare);
  const int reach = std::min(static_cast<int>(std::ceil(radius / kCell)) + 1, 2 * kSightReach);
  const int level = map.elevation[static_cast<std::size_t>(viewer.index())];
  std::uint64_t key = 0;
  bool matters = false;
  for (int k = 0; k < felled.n; ++k) {
    const auto id = felled.trees[static_cast<std::size_t>(k)];
    const MapTree& t = map.trees[static_cast<std::size_t>(id)];
    const Cell c = cell_of(t.pos);
    if (t.level < level || std::abs(c.x - viewer.x) > reach + 1 || std::abs(c.y - viewer.y) > reach + 1) continue;
    key = mix(key, static_cast<std::uint64_t>(id) + 1);
    matters = matters || comes_to(standing.touched, viewer, c) ||
              comes_to(standing.touched, viewer, {c.x - 1, c.y}) ||
              comes_to(standing.touched, viewer, {c.x, c.y - 1}) ||
              comes_to(standing.touched, viewer, {c.x - 1, c.y - 1});
  }
  if (!matters) return standing.seen;
  FelledSight& s = felled_sight();
  CachedMask& slot = s.cache[mix(key, static_cast<std::uint64_t>(viewer.index() * 64 + reach)) % kCached];
  if (slot.map != map.sight->id || slot.viewer != viewer.index() || slot.reach != reach || slot.felled != key) {
    slot.map = map.sight->id;
    slot.viewer = viewer.index();
    slot.reach = reach;
    slot.felled = key;
    cast_sight(map, s.block, viewer, reach, slot.mask);
  }
  return slot.mask;
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
  if (w.nav.trees_down <= 0) return;
  for (std::size_t t = 0; t < map.trees.size(); ++t)
    if (w.tree_regrow[t] != 0) felled.trees[static_cast<std::size_t>(felled.n++)] = static_cast<std::int16_t>(t);
}

// Runs f with the thread's block levels set to this world's trees.
template <class F>
void with_felled(const World& w, const MapData& map, F&& f) {
  Felled felled;
  find_felled(w, map, felled);
  if (felled.n == 0) return f(felled);
  FelledSight& s = felled_sight();
  if (s.map != map.sight->id) {
    s.block = map.sight->block_level;
    s.map = map.sight->id;
  }
  set_block_levels(s, w, map, felled);
  f(felled);
  restore_block_levels(s, map, felled);
}

void see(FogBits& fog, const MapData& map, Vec2 p, float radius, bool flying, const Felled& felled) {
  const Cell viewer = cell_of(p);
  if (radius < kSightStep || !viewer.inside()) return;
  const SightMask& circle = map.sight->circle(viewer, radius);
  if (flying) return add_rows(fog, viewer, radius, circle, circle);
  StandingMask spare;
  add_rows(fog, viewer, radius, sight_from(map, viewer, radius, felled, spare), circle);
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
      see(fog.visible, map, u.pos, w.is_day ? u.vision_day : u.vision_night, flying, felled);
      if (u.true_sight > 0) see(fog.true_sight, map, u.pos, u.true_sight, true, felled);
    }
  });
  reveal_effects(c);
}

void reveal_area(World& w, const MapData& map, int team, Vec2 p, float radius, bool flying) {
  if (team < 0 || team >= kTeams) return;
  with_felled(w, map, [&](const Felled& felled) {
    see(w.fog[static_cast<std::size_t>(team)].visible, map, p, radius, flying, felled);
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
