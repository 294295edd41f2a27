#include "map/felled_sight.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace dota {

namespace {

// A mask that was cast with trees down. Two games may share it when the same trees are down where its sight comes
// to; the cache holds pure functions of that, so that what it holds never shows in a game.
struct alignas(64) CachedMask {
  SightMask seen;
  std::int32_t viewer, reach;
  std::uint64_t near, felled;  // trees that the standing map's sight and this sight come to
  std::uint64_t map;           // 0: nothing is kept here
  SightMask touched;
};
constexpr std::size_t kCached = 32768;
constexpr std::size_t kCacheBytes =
    (kCached * sizeof(CachedMask) + kHugePage - 1) / kHugePage * kHugePage;  // 10.5 MB

// All zero.
CachedMask* new_masks() {
  void* const memory = std::aligned_alloc(kHugePage, kCacheBytes);
  if (!memory) throw std::bad_alloc();
  want_huge_pages(memory, kCacheBytes);
  return static_cast<CachedMask*>(std::memset(memory, 0, kCacheBytes));
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

struct OpenedWall {
  Cell cell;
  std::int8_t standing, lower;
};

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {  // a round of SplitMix64
  h += v + 0x9E3779B97F4A7C15ull;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBull;
  return h ^ (h >> 31);
}

std::int8_t level_without_felled(const World& w, const MapData& map, Cell c) {
  return block_level(
      map, c.index(),
      [](const void* world, int t) { return static_cast<const World*>(world)->tree_regrow[t] == 0; }, &w);
}

}  // namespace

struct FelledCache {
  std::unique_ptr<CachedMask[], Free> masks{new_masks()};
  Walls walls;            // of the standing map, but for those that a Lookout has opened
  std::uint64_t map = 0;  // Sight::id that `walls` is of
  std::vector<OpenedWall> opened;
};

Lookout::Lookout(const World& w, const MapData& map) : w_(w), map_(map) {
  if (w.nav.trees_down == 0) return;
  static thread_local FelledCache cache;
  cache_ = &cache;
  if (cache.map != map.sight->id) {
    cache.walls = map.sight->walls;
    cache.map = map.sight->id;
  }
  std::array<std::int16_t, kMaxTrees> ids, xs, ys;  // set up to Felled::n
  std::array<std::int16_t, kBands> next{};
  const auto band = [](int y) { return std::clamp(y, 0, kGrid - 1) / kBandRows; };
  for (std::size_t word = 0; word < w.nav.felled.size(); ++word) {
    key_ = mix(key_, w.nav.felled[word]);
    for (std::uint64_t bits = w.nav.felled[word]; bits; bits &= bits - 1) {
      const std::size_t tree = word * 64 + std::countr_zero(bits);
      const std::size_t i = felled_.n++;
      const Cell foot = cell_of(map.trees[tree].pos);
      ids[i] = static_cast<std::int16_t>(tree);
      xs[i] = static_cast<std::int16_t>(foot.x);
      ys[i] = static_cast<std::int16_t>(foot.y);
      ++felled_.first[band(foot.y) + 1];
    }
  }
  for (std::size_t k = 0; k < kBands; ++k) {
    felled_.first[k + 1] = static_cast<std::int16_t>(felled_.first[k + 1] + felled_.first[k]);
    next[k] = felled_.first[k];
  }
  for (int k = 0; k < felled_.n; ++k) {
    const std::size_t i = next[band(ys[k])]++;
    felled_.id[i] = ids[k];
    felled_.x[i] = xs[k];
    felled_.y[i] = ys[k];
    felled_.level[i] = map.trees[ids[k]].level;
    felled_.opened[i] = false;
  }
}

Lookout::~Lookout() {
  if (!cache_) return;
  for (const OpenedWall& wall : cache_->opened)
    map_.sight->set_walls(cache_->walls, wall.cell, wall.lower, wall.standing);
  cache_->opened.clear();
}

// Felled trees that a viewer of that level could see past, were nothing else in the way.
void Lookout::find_near(Cell viewer, int reach, int level, Near& near) const {
  const int from = felled_.first[std::max(viewer.y - reach - 1, 0) / kBandRows];
  const int to = felled_.first[std::min(viewer.y + reach + 1, kGrid - 1) / kBandRows + 1];
  for (int k = from; k < to; ++k) {
    const bool in = std::abs(felled_.x[k] - viewer.x) <= reach + 1 &&
                    std::abs(felled_.y[k] - viewer.y) <= reach + 1 && felled_.level[k] >= level;
    near.at[near.n] = static_cast<std::int16_t>(k);
    near.n += in;
  }
}

bool Lookout::comes_to(const SightMask& touched, Cell viewer, std::size_t i) const {
  const int left = viewer.x / 2 - kSightReach, low = viewer.y / 2 - kSightReach;
  const auto column = [&](int x) { return x >= 0 && x < kSightRows ? 1u << x : 0u; };
  const auto row = [&](int y) { return y >= 0 && y < kSightRows ? touched.rows[y] : 0u; };
  const std::uint32_t columns = column(std::max(felled_.x[i] - 1, 0) / 2 - left) | column(felled_.x[i] / 2 - left);
  return ((row(std::max(felled_.y[i] - 1, 0) / 2 - low) | row(felled_.y[i] / 2 - low)) & columns) != 0;
}

// Those of the trees that sight comes to, as one number; 0: none.
std::uint64_t Lookout::key_of(const Near& near, const SightMask& touched, Cell viewer) const {
  std::uint64_t key = 0;
  for (int k = 0; k < near.n; ++k) {
    const std::size_t i = near.at[k];
    if (comes_to(touched, viewer, i)) key = mix(key, static_cast<std::uint64_t>(felled_.id[i]) + 1);
  }
  return key;
}

// The octants that those trees stood in: what sight comes to in the others is what it is on the standing map.
unsigned Lookout::octants_of(const Near& near, const SightMask& touched, Cell viewer) const {
  unsigned octants = 0;
  for (int k = 0; k < near.n; ++k) {
    const std::size_t i = near.at[k];
    if (!comes_to(touched, viewer, i)) continue;
    for (const Cell q : {Cell{-1, -1}, Cell{0, -1}, Cell{-1, 0}, Cell{0, 0}})
      octants |= octants_with({felled_.x[i] + q.x - viewer.x, felled_.y[i] + q.y - viewer.y});
  }
  return octants;
}

void Lookout::open(std::size_t i) {
  if (felled_.opened[i]) return;
  felled_.opened[i] = true;
  const Cell c{felled_.x[i], felled_.y[i]};
  for (const Cell q : {Cell{c.x - 1, c.y - 1}, Cell{c.x, c.y - 1}, Cell{c.x - 1, c.y}, c}) {
    if (!q.inside()) continue;
    const std::int8_t standing = map_.sight->block_level[q.index()];
    const std::int8_t lower = level_without_felled(w_, map_, q);
    if (lower == standing) continue;
    map_.sight->set_walls(cache_->walls, q, standing, lower);
    cache_->opened.push_back({q, standing, lower});
  }
}

namespace {

int reach_of(float radius) { return std::min(1 - floor_to_int(-radius / kCell), 2 * kSightReach); }

CachedMask& place_of(FelledCache& cache, Cell viewer, int reach, std::uint64_t opened) {
  return cache.masks[mix(opened, static_cast<std::uint64_t>(viewer.index() * 64 + reach)) % kCached];
}

}  // namespace

bool Lookout::fetch(Cell viewer, float radius, VisibilityCache& cached) {
  if (!cache_) {
    cached.near = 0;
    map_.sight->fetch_seen(viewer);
    return false;
  }
  const int reach = reach_of(radius);
  if (!still_is(cached, viewer, reach)) {
    Near around;
    find_near(viewer, reach, map_.elevation[viewer.index()], around);
    if (around.n > 0) {
      map_.sight->fetch_touched(viewer);
      return true;
    }
    cached = {viewer.index(), reach, w_.nav.tree_changes, 0, 0};
  }
  fetch_for(viewer, cached);
  return false;
}

void Lookout::fetch_for(Cell viewer, const VisibilityCache& cached) const {
  if (cached.near != 0)
    prefetch_lines(&place_of(*cache_, viewer, cached.reach, cached.near), offsetof(CachedMask, touched));
  else
    map_.sight->fetch_seen(viewer);
}

bool Lookout::still_is(const VisibilityCache& cached, Cell viewer, int reach) const {
  return cached.viewer == viewer.index() && cached.reach == reach && cached.trees == w_.nav.tree_changes;
}

void Lookout::find_opened(Cell viewer, float radius, VisibilityCache& cached) {
  if (!cache_) {
    cached.near = 0;
    return;
  }
  const int reach = reach_of(radius);
  if (still_is(cached, viewer, reach)) return;
  cached = {viewer.index(), reach, w_.nav.tree_changes, 0, 0};
  Near around;
  find_near(viewer, reach, map_.elevation[viewer.index()], around);
  if (around.n > 0) cached.near = key_of(around, map_.sight->standing(map_, viewer, spare_).touched, viewer);
  fetch_for(viewer, cached);
}

const SightMask& Lookout::from(Cell viewer, float radius, VisibilityCache& cached) {
  if (cached.near == 0) return map_.sight->standing(map_, viewer, spare_).seen;
  const int reach = reach_of(radius);
  CachedMask& slot = place_of(*cache_, viewer, reach, cached.near);
  const bool of_this = slot.map == map_.sight->id && slot.viewer == viewer.index() && slot.reach == reach &&
                       slot.near == cached.near;
  if (of_this && cached.seen != 0 && slot.felled == cached.seen) return slot.seen;
  Near around;
  find_near(viewer, reach, map_.elevation[viewer.index()], around);
  if (!of_this || slot.felled != key_of(around, slot.touched, viewer)) {
    slot.map = map_.sight->id;
    slot.viewer = viewer.index();
    slot.reach = reach;
    slot.near = cached.near;
    for (int k = 0; k < around.n; ++k)
      open(around.at[k]);
    const StandingMask& standing = map_.sight->standing(map_, viewer, spare_);
    OctantCells lit;
    map_.sight->standing_octants(map_, viewer, lit);
    cast_sight(map_, cache_->walls, viewer, reach, octants_of(around, standing.touched, viewer), lit);
    find_fog_cells(viewer, lit, slot.seen, slot.touched);
    slot.felled = key_of(around, slot.touched, viewer);
  }
  cached.seen = slot.felled;
  return slot.seen;
}

}  // namespace dota
