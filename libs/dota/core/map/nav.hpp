// What the parts of map/ share about a world's ground: its blocked cells and lines across them.
#pragma once

#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "world/world.hpp"

namespace dota {

// Brings Nav up to date: fills it in a new world, opens the cells of fallen buildings, lets trees regrow.
void refresh_nav(Context& c);
void relist_unit(World& w, int unit);                          // updates the unit's cell of the spatial hash
void flip_tree_cells(World& w, const MapData& map, int tree);  // updates the tree's cells after it fell or regrew

// Bodies that others walk around: everything that walks, unless it is phased or out of the world.
constexpr float kWidestBody = 40.0f;  // none of them is wider
inline bool solid_body(const Unit& u) {
  const bool walks = u.kind == UnitKind::Hero || u.kind == UnitKind::LaneCreep || u.kind == UnitKind::Neutral ||
                     u.kind == UnitKind::Roshan || u.kind == UnitKind::Summon;
  return walks && !(u.status & (kPhased | kBanished));
}
constexpr float kHashCell = 256.0f;  // side of a spatial hash cell
inline int hash_coordinate(float v) {
  return static_cast<int>(std::min(std::max(0.0f, (v - kMapMin) / kHashCell), kHashCells - 1.0f));
}
inline bool cell_open(const World& w, Cell c) { return c.inside() && !nav_blocked(w, c.index()); }
// Whether a body's centre can go straight from a to b; cells that the line only touches at a corner count too.
bool line_open(const World& w, Vec2 a, Vec2 b);
// Nearest open cell to p (by distance from p to its centre), p's own first; none within the reach: outside.
Cell nearest_open(const World& w, Vec2 p, int reach);

}  // namespace dota
