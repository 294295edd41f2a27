// Spatial hash of the living units: lists per 256-unit cell, kept in the world so that a restored game is whole.
#include <algorithm>
#include <bit>
#include <utility>

#include "map/map_data.hpp"
#include "map/nav.hpp"
#include "map/spatial.hpp"
#include "world/world.hpp"

namespace dota {

namespace {

// How far a unit may have come from where it is listed: what it can be moved by in a frame without place_unit().
constexpr float kSlack = 64.0f;

int hash_cell(Vec2 p) { return hash_coordinate(p.y) * kHashCells + hash_coordinate(p.x); }

void link(Nav& nav, int unit, std::int16_t next) {
  nav.next[static_cast<std::size_t>(unit)] = nav.bodies[static_cast<std::size_t>(unit)].next = next;
}

void unlist(Nav& nav, int unit) {
  const auto u = static_cast<std::size_t>(unit);
  const int cell = nav.cell[u];
  if (cell < 0) return;
  const std::int16_t before = nav.prev[u], after = nav.next[u];
  if (before >= 0)
    link(nav, before, after);
  else
    nav.head[static_cast<std::size_t>(cell)] = after;
  if (after >= 0) nav.prev[static_cast<std::size_t>(after)] = before;
  nav.cell[u] = -1;
}

void hold(Nav& nav, int team, int cell) {
  const int x = cell % kHashCells;
  nav.held[static_cast<std::size_t>(team)][static_cast<std::size_t>(cell / kHashCells)]
          [static_cast<std::size_t>(x >> 6)] |= 1ull << (x & 63);
}

void list_at(Nav& nav, int unit, int cell) {
  const auto u = static_cast<std::size_t>(unit);
  const auto c = static_cast<std::size_t>(cell);
  link(nav, unit, nav.head[c]);
  nav.prev[u] = -1;
  if (nav.head[c] >= 0) nav.prev[static_cast<std::size_t>(nav.head[c])] = static_cast<std::int16_t>(unit);
  nav.head[c] = static_cast<std::int16_t>(unit);
  nav.cell[u] = static_cast<std::int16_t>(cell);
}

}  // namespace

void relist_unit(World& w, int unit) {
  const Unit& u = w.units[static_cast<std::size_t>(unit)];
  Body& body = w.nav.bodies[static_cast<std::size_t>(unit)];
  body.pos = u.pos;
  body.radius = u.radius;
  const int cell = u.kind != UnitKind::None && u.alive ? hash_cell(u.pos) : -1;
  if (cell == w.nav.cell[static_cast<std::size_t>(unit)]) return;
  unlist(w.nav, unit);
  if (cell < 0) return;
  list_at(w.nav, unit, cell);
  hold(w.nav, u.team, cell);
}

void build_spatial(Context& c) {
  refresh_nav(c);
  World& w = c.world;
  Nav& nav = w.nav;
  const auto bring_up = [&](int i) {
    Unit& u = w.units[static_cast<std::size_t>(i)];
    if (u.building == 0 || nav.cell[static_cast<std::size_t>(i)] < 0) relist_unit(w, i);  // those stay in place
    stand_still(u);
  };
  if (nav.listed && w.frame % kFramesPerStep != 0) {
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
    if (const int cell = nav.cell[static_cast<std::size_t>(i)]; cell >= 0)
      hold(nav, w.units[static_cast<std::size_t>(i)].team, cell);
  }
}

void renew_bodies(World& w) {
  for (std::size_t i = 0; i < w.nav.bodies.size(); ++i)
    w.nav.bodies[i] = {w.units[i].pos, w.units[i].radius, w.nav.next[i]};
}

void touch_unit(World& w, int unit) { w.nav.stale[static_cast<std::size_t>(unit) >> 6] |= 1ull << (unit & 63); }

void place_unit(World& w, Unit& u, Vec2 p) {
  u.pos = p;
  u.path_until = -1;
  if (w.nav.ready) relist_unit(w, w.handle(u).index);
}

void unlist_unit(World& w, const Unit& u) {
  if (w.nav.ready) unlist(w.nav, w.handle(u).index);
}

bool team_near(const World& w, int team, Vec2 p, float radius) {
  const float reach = radius + kSlack;
  const int x0 = hash_coordinate(p.x - reach), x1 = hash_coordinate(p.x + reach);
  const int y0 = hash_coordinate(p.y - reach), y1 = hash_coordinate(p.y + reach);
  const auto any = [&](std::size_t word, int from, int to) {
    std::uint64_t bits = 0;
    for (int y = y0; y <= y1; ++y)
      bits |= w.nav.held[static_cast<std::size_t>(team)][static_cast<std::size_t>(y)][word];
    return (bits & ~0ull << from & ~0ull >> (63 - to)) != 0;
  };
  if (x1 < 64) return any(0, x0, x1);
  if (x0 >= 64) return any(1, x0 - 64, x1 - 64);
  return any(0, x0, 63) || any(1, 0, x1 - 64);
}

void units_near(const Context& c, Vec2 p, float radius, UnitList& out) { bodies_near(c.world, p, radius, out); }

void bodies_near(const World& w, Vec2 p, float radius, UnitList& out) {
  out.n = 0;
  std::uint64_t found[kMaxUnits / 64] = {};
  static_assert(kMaxUnits % 64 == 0);
  const float reach = radius + kSlack;
  const int x0 = hash_coordinate(p.x - reach), x1 = hash_coordinate(p.x + reach);
  const int y0 = hash_coordinate(p.y - reach), y1 = hash_coordinate(p.y + reach);
  for (int y = y0; y <= y1; ++y)
    for (int x = x0; x <= x1; ++x)
      for (int i = w.nav.head[static_cast<std::size_t>(y * kHashCells + x)]; i >= 0;) {
        const Body& body = w.nav.bodies[static_cast<std::size_t>(i)];
        const Vec2 d = body.pos - p;
        if (d.dot(d) <= radius * radius && w.units[static_cast<std::size_t>(i)].alive)
          found[i >> 6] |= 1ull << (i & 63);
        i = body.next;
      }
  for (int word = 0; word < kMaxUnits / 64; ++word)
    for (std::uint64_t bits = found[word]; bits; bits &= bits - 1)
      out.ids[static_cast<std::size_t>(out.n++)] = static_cast<std::int16_t>(word * 64 + std::countr_zero(bits));
}

}  // namespace dota
