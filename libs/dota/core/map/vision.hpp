// What each team sees.
#pragma once

#include "world/world.hpp"

namespace dota {

void update_vision(Context& c);  // once a timestep; reveal_effects() follows
// Adds to the team's fog of this timestep what is seen from p (areas that give vision); flying ignores heights,
// trees.
void reveal_area(World& w, const MapData& map, int team, Vec2 p, float radius, bool flying);
void reveal_invisible(World& w, const MapData& map, int team, Vec2 p, float radius);  // true sight over heights
bool cell_visible(const World& w, int team, Vec2 p);                                  // fog only
bool unit_visible(const World& w, int team, const Unit& u);  // fog, invisibility, true sight

}  // namespace dota
