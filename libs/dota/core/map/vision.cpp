// Fog of war: what each team sees this timestep, and what of it is true sight.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "map/felled_sight.hpp"
#include "map/nav.hpp"
#include "map/vision.hpp"

namespace dota {

namespace {

using FogBits = std::array<std::uint64_t, (kFogCells * kFogCells + 63) / 64>;

// A row's bits are put in by one unaligned access: 31 of them, from any bit of a byte on, fit eight bytes.
static_assert(std::endian::native == std::endian::little && kSightRows <= 57);

void add_rows(FogBits& fog, Cell viewer, float radius, const SightMask& a, const SightMask& b) {
  const int col = viewer.x / 2 - kSightReach, row = viewer.y / 2 - kSightReach;
  std::uint32_t keep = ~0u;
  if (col < 0) keep <<= -col;
  if (col + 32 > kFogCells) keep &= ~0u >> (col + 32 - kFogCells);
  const int half = std::min(floor_to_int(radius / kFogCell) + 1, kSightReach);
  int from = std::max(kSightReach - half, -row);
  const int to = std::min(kSightReach + half + 1, kFogCells - row);
  const auto bits_of = [&](int y) -> std::uint64_t { return a.rows[y] & b.rows[y] & keep; };
  if (from < to && row + from == 0 && col < 0) fog[0] |= bits_of(from++) >> -col;  // cut off before the first bit
  auto* const bytes = reinterpret_cast<std::byte*>(fog.data());
  for (int y = from; y < to; ++y) {
    const int at = (row + y) * kFogCells + col;
    std::byte* const place = bytes + (at >> 3);
    std::uint64_t word;
    std::memcpy(&word, place, sizeof word);
    word |= bits_of(y) << (at & 7);
    std::memcpy(place, &word, sizeof word);
  }
}

bool bit_at(const FogBits& fog, Vec2 p) {
  const Cell c = cell_of(p);
  if (!c.inside()) return false;
  const int i = (c.y / 2) * kFogCells + c.x / 2;
  return (fog[i >> 6] >> (i & 63)) & 1u;
}

// A radius that masks cover, 0 for one that sees nothing: what a restored state holds may be any number.
float covered(float radius) {
  return radius >= kSightStep ? std::min(radius, kSightStep * static_cast<float>(kSightRadii - 1)) : 0.0f;
}

bool looks(Cell viewer, float radius) { return radius > 0 && viewer.inside(); }

// Flyers look over heights and trees.
void see_flying(FogBits& fog, const MapData& map, Vec2 p, float radius) {
  const Cell viewer = cell_of(p);
  radius = covered(radius);
  if (!looks(viewer, radius)) return;
  const SightMask& circle = map.sight->circle(viewer, radius);
  add_rows(fog, viewer, radius, circle, circle);
}

void see(FogBits& fog, const MapData& map, Lookout& lookout, Vec2 p, float radius, VisibilityCache& cached) {
  const Cell viewer = cell_of(p);
  radius = covered(radius);
  if (looks(viewer, radius))
    add_rows(fog, viewer, radius, lookout.from(viewer, radius, cached), map.sight->circle(viewer, radius));
}

// What `see` is to be told of felled trees.
void find_opened(Lookout& lookout, Vec2 p, float radius, VisibilityCache& cached) {
  const Cell viewer = cell_of(p);
  radius = covered(radius);
  if (looks(viewer, radius)) lookout.find_opened(viewer, radius, cached);
}
// True: that is still to be found.
bool fetch(Lookout& lookout, Vec2 p, float radius, VisibilityCache& cached) {
  const Cell viewer = cell_of(p);
  radius = covered(radius);
  return looks(viewer, radius) && lookout.fetch(viewer, radius, cached);
}

// What a unit lends to its team's fog.
struct Eyes {
  float radius, true_sight;
  bool flying;
};
Eyes eyes_of(const Context& c, const Unit& u) {
  // A ward sees what a unit standing there would.
  const bool flying = (u.status & kFlyingVision) || c.tables.units[u.type].move_cap == MoveCap::Fly;
  return {c.world.is_day ? u.vision_day : u.vision_night, u.true_sight, flying};
}
void find_opened(Lookout& lookout, const Unit& u, const Eyes& eyes, VisibilityCache& cached) {
  if (!eyes.flying) find_opened(lookout, u.pos, eyes.radius, cached);
}
void see_by(Fog& fog, const MapData& map, Lookout& lookout, const Unit& u, const Eyes& eyes,
            VisibilityCache& cached) {
  if (eyes.flying)
    see_flying(fog.visible, map, u.pos, eyes.radius);
  else
    see(fog.visible, map, lookout, u.pos, eyes.radius, cached);
  if (eyes.true_sight > 0) see_flying(fog.true_sight, map, u.pos, eyes.true_sight);
}

template <class F>
void each_still(const World& w, F&& f) {
  const auto sees = [&](const Unit& u) {
    if (u.alive && u.team < kTeams) f(u);
  };
  each_building(w, sees);
  each_unit<UnitKind::Ward>(w, sees);
}

// What buildings and wards see, which is the same from one timestep to the next but for day and night, trees, and
// those that come and go.
void look_from_still(const Context& c, Lookout& lookout, StillFog& still) {
  const World& w = c.world;
  std::uint64_t key = c.tables.map->sight->id ^ lookout.felled_key();
  const auto add = [&](std::uint64_t v) {
    key = (key ^ v) * 0xD6E8FEB86659FD93ull;
    key ^= key >> 32;
  };
  each_still(w, [&](const Unit& u) {
    const Eyes eyes = eyes_of(c, u);
    add(std::bit_cast<std::uint64_t>(u.pos));
    add(std::bit_cast<std::uint64_t>(Vec2{eyes.radius, eyes.true_sight}));
    add(u.team * 2u + eyes.flying);
  });
  if (still.made && still.key == key) return;
  still.made = true;
  still.key = key;
  for (Fog& fog : still.fog)
    fog = Fog{};
  each_still(w, [&](const Unit& u) {
    const Eyes eyes = eyes_of(c, u);
    VisibilityCache cached;
    find_opened(lookout, u, eyes, cached);
    see_by(still.fog[u.team], *c.tables.map, lookout, u, eyes, cached);
  });
}

}  // namespace

void update_vision(Context& c) {
  World& w = c.world;
  const MapData& map = *c.tables.map;
  const auto each_walker = [&w](auto&& f) {
    each_unit<UnitKind::Hero, UnitKind::LaneCreep, UnitKind::Neutral, UnitKind::Roshan, UnitKind::Courier,
              UnitKind::Summon>(w, [&](const Unit& u) {
      if (u.alive && u.team < kTeams) f(u);
    });
  };
  Lookout lookout(w, map);
  const auto cache_of = [&w](const Unit& u) -> VisibilityCache& { return w.visibility_caches[w.handle(u).index]; };
  std::array<const Unit*, kMaxUnits> unclear;
  std::size_t n = 0;
  each_walker([&](const Unit& u) {
    const Eyes eyes = eyes_of(c, u);
    if (!eyes.flying && fetch(lookout, u.pos, eyes.radius, cache_of(u))) unclear[n++] = &u;
  });
  look_from_still(c, lookout, w.still);
  w.fog = w.still.fog;
  for (std::size_t k = 0; k < n; ++k)
    find_opened(lookout, *unclear[k], eyes_of(c, *unclear[k]), cache_of(*unclear[k]));
  each_walker([&](const Unit& u) { see_by(w.fog[u.team], map, lookout, u, eyes_of(c, u), cache_of(u)); });
}

void reveal_area(World& w, const MapData& map, int team, Vec2 p, float radius, bool flying) {
  if (team < 0 || team >= kTeams) return;
  FogBits& fog = w.fog[team].visible;
  if (flying) return see_flying(fog, map, p, radius);
  Lookout lookout(w, map);
  VisibilityCache cached;
  find_opened(lookout, p, radius, cached);
  see(fog, map, lookout, p, radius, cached);
}

void reveal_invisible(World& w, const MapData& map, int team, Vec2 p, float radius) {
  if (team >= 0 && team < kTeams) see_flying(w.fog[team].true_sight, map, p, radius);
}

bool cell_visible(const World& w, int team, Vec2 p) {
  return team < 0 || team >= kTeams || bit_at(w.fog[team].visible, p);
}

bool unit_visible(const World& w, int team, const Unit& u) {
  if (u.team == team) return true;
  if (u.status & kUnseen) return false;
  if (u.status & kRevealed) return true;
  if (w.due(u.shown_until) && !cell_visible(w, team, u.pos)) return false;
  if (!(u.status & kInvisible) || (u.status & kTrueSighted)) return true;
  return team >= 0 && team < kTeams && bit_at(w.fog[team].true_sight, u.pos);
}

}  // namespace dota
