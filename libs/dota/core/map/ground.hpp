// Where units can stand, and how they walk there: terrain, trees, walls that effects put up.
#pragma once

#include "world/world.hpp"

namespace dota {

// Cell of the 64-unit grid walkable for ground units now (terrain, standing trees, standing buildings).
bool walkable(const World& w, const MapData& map, Vec2 p);
int elevation(const MapData& map, Vec2 p);
// Moves the unit by at most `step` units towards `goal` around terrain, trees, buildings and other units; turns it
// first. Sets velocity and facing. Returns true when it stands within `arrive` of the goal.
bool move_towards(Context& c, Unit& u, Vec2 goal, float arrive);
// Turns towards p at the unit's turn rate for one frame; true when within the action angle.
bool turn_towards(Context& c, Unit& u, Vec2 p);
// Nearest walkable place to p for a body of that radius (blink, spawn, teleport).
Vec2 free_place(const World& w, const MapData& map, Vec2 p, float radius);
int tree_at(const World& w, const MapData& map, Vec2 p, float radius);     // nearest standing tree, or -1
bool tree_near(const World& w, const MapData& map, Vec2 p, float radius);  // whether tree_at() finds one
void cut_tree(World& w, const Tables& t, int tree);
void cut_trees(World& w, const Tables& t, Vec2 p, float radius);  // all that stand around p
void block_line(Context& c, Area& a);  // grid.cpp: blocks the area's line and moves units on it aside
void unblock_line(World& w, const MapData& map, Area& a);

}  // namespace dota
