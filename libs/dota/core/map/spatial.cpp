// Spatial hash of the living units: lists per 256-unit cell, kept in the world so that a restored game is whole.
#include <algorithm>
#include <bit>
#include <utility>

#include "map/map_data.hpp"
#include "map/nav.hpp"
#include "map/path.hpp"
#include "map/spatial.hpp"
#include "world/world.hpp"

namespace dota {

namespace {

// How far a unit may have come from where it is listed: what it can be moved by in a frame without place_unit().
constexpr float kSlack = 64.0f;

int hash_cell(Vec2 p) { return hash_coordinate(p.y) * kHashCells + hash_coordinate(p.x); }

void link(Nav& nav, int unit, std::int16_t next) { nav.next[unit] = nav.bodies[unit].next = next; }

void unlist(Nav& nav, int unit) {
  const int cell = nav.cell[unit];
  if (cell < 0) return;
  const std::int16_t before = nav.prev[unit], after = nav.next[unit];
  if (before >= 0)
    link(nav, before, after);
  else
    nav.head[cell] = after;
  if (after >= 0) nav.prev[after] = before;
  nav.cell[unit] = -1;
}

void hold(Nav& nav, int team, int cell) {
  const int x = cell % kHashCells;
  nav.held[team][cell / kHashCells][x >> 6] |= 1ull << (x & 63);
}

void list_at(Nav& nav, int unit, int cell) {
  link(nav, unit, nav.head[cell]);
  nav.prev[unit] = -1;
  if (nav.head[cell] >= 0) nav.prev[nav.head[cell]] = static_cast<std::int16_t>(unit);
  nav.head[cell] = static_cast<std::int16_t>(unit);
  nav.cell[unit] = static_cast<std::int16_t>(cell);
}

}  // namespace

void relist_unit(World& w, int unit) {
  const Unit& u = w.units[unit];
  Body& body = w.nav.bodies[unit];
  body.pos = u.pos;
  body.radius = u.radius;
  const int cell = u.kind != UnitKind::None && u.alive ? hash_cell(u.pos) : -1;
  if (cell == w.nav.cell[unit]) return;
  unlist(w.nav, unit);
  if (cell < 0) return;
  list_at(w.nav, unit, cell);
  hold(w.nav, u.team, cell);
}

void build_spatial(Context& c) {
  refresh_nav(c);
  World& w = c.world;
  Nav& nav = w.nav;
  const bool listed = nav.listed;
  const auto bring_up = [&](int i) {
    Unit& u = w.units[i];
    Body& body = nav.bodies[i];
    if (listed && nav.cell[i] >= 0 && u.alive && body.pos.x == u.pos.x && body.pos.y == u.pos.y)
      body.radius = u.radius;                     // it stands where it is listed
    else if (u.building == 0 || nav.cell[i] < 0)  // buildings stay in place
      relist_unit(w, i);
    stand_still(u);
  };
  if (listed && w.frame % kFramesPerStep != 0) {
    // Walking and jumping units update their own cells at once; only other moved or dead units are checked here.
    for (std::size_t word = 0; word < nav.stale.size(); ++word)
      for (std::uint64_t bits = std::exchange(nav.stale[word], 0); bits; bits &= bits - 1)
        if (const int i = static_cast<int>(word * 64) + std::countr_zero(bits); i < w.units_end) bring_up(i);
    return;
  }
  nav.listed = true;
  nav.stale = {};
  nav.held = {};
  for (int i = 0; i < w.units_end; ++i) {
    bring_up(i);
    if (const int cell = nav.cell[i]; cell >= 0) hold(nav, w.units[i].team, cell);
  }
}

void renew_bodies(World& w) {
  for (std::size_t i = 0; i < w.nav.bodies.size(); ++i)
    w.nav.bodies[i] = {w.units[i].pos, w.units[i].radius, w.nav.next[i]};
}

void touch_unit(World& w, int unit) { w.nav.stale[unit >> 6] |= 1ull << (unit & 63); }

void place_unit(World& w, Unit& u, Vec2 p) {
  u.pos = p;
  // A time that has passed, so that the unit plans its path again. Times are negative before the horn, where
  // next_point takes a time far ahead as passed for a unit without a path.
  u.path_until = u.path == kNoPath ? -1 : std::min(-1.0f, w.time);
  if (w.nav.ready) relist_unit(w, w.handle(u).index);
}

void unlist_unit(World& w, const Unit& u) {
  if (w.nav.ready) unlist(w.nav, w.handle(u).index);
}

namespace {

// Calls visit(word, columns, y0, y1) for each word of Nav::held that has cells in which a unit within the radius
// of p may be listed: bits of the columns in rows y0 to y1. Returns true as soon as a call does.
template <class Visit>
bool any_word(Vec2 p, float radius, Visit&& visit) {
  const float reach = radius + kSlack;
  const int x0 = hash_coordinate(p.x - reach), x1 = hash_coordinate(p.x + reach);
  const int y0 = hash_coordinate(p.y - reach), y1 = hash_coordinate(p.y + reach);
  for (int word = x0 >> 6; word <= x1 >> 6; ++word) {
    const int from = std::max(x0 - word * 64, 0), to = std::min(x1 - word * 64, 63);
    if (visit(word, ~0ull << from & ~0ull >> (63 - to), y0, y1)) return true;
  }
  return false;
}

}  // namespace

bool team_near(const World& w, int team, Vec2 p, float radius) {
  return any_word(p, radius, [&](std::size_t word, std::uint64_t columns, int y0, int y1) {
    std::uint64_t bits = 0;
    for (int y = y0; y <= y1; ++y)
      bits |= w.nav.held[team][y][word];
    return (bits & columns) != 0;
  });
}

bool others_near(const World& w, int team, Vec2 p, float radius) {
  const auto& one = w.nav.held[(team + 1) % (kTeams + 1)];
  const auto& other = w.nav.held[(team + 2) % (kTeams + 1)];
  return any_word(p, radius, [&](std::size_t word, std::uint64_t columns, int y0, int y1) {
    std::uint64_t bits = 0;
    for (int y = y0; y <= y1; ++y)
      bits |= one[y][word] | other[y][word];
    return (bits & columns) != 0;
  });
}

namespace {

template <class AnyUnit>
BasicUnitList<AnyUnit> find_near(const World& w, std::span<AnyUnit, kMaxUnits> units, Vec2 p, float radius) {
  BasicUnitList<AnyUnit> out(units);
  std::uint64_t found[kMaxUnits / 64] = {};
  static_assert(kMaxUnits % 64 == 0);
  const auto& held = w.nav.held;
  any_word(p, radius, [&](std::size_t word, std::uint64_t columns, int y0, int y1) {
    for (int y = y0; y <= y1; ++y) {
      std::uint64_t cells = (held[0][y][word] | held[1][y][word] | held[2][y][word]) & columns;
      for (; cells; cells &= cells - 1)
        for (int i = w.nav.head[y * kHashCells + word * 64 + std::countr_zero(cells)]; i >= 0;) {
          const Body& body = w.nav.bodies[i];
          const Vec2 d = body.pos - p;
          if (d.dot(d) <= radius * radius && w.units[i].alive) found[i >> 6] |= 1ull << (i & 63);
          i = body.next;
        }
    }
    return false;
  });
  for (int word = 0; word < kMaxUnits / 64; ++word)
    for (std::uint64_t bits = found[word]; bits; bits &= bits - 1)
      out.add(word * 64 + std::countr_zero(bits));
  return out;
}

}  // namespace

UnitList units_near(const Context& c, Vec2 p, float radius) {
  return find_near(c.world, std::span(c.world.units), p, radius);
}
BasicUnitList<const Unit> units_near(const World& w, Vec2 p, float radius) {
  return find_near(w, std::span(w.units), p, radius);
}

}  // namespace dota
