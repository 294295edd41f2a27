// Queries of units near a position.
#pragma once

#include <array>

#include "world/world.hpp"

namespace dota {

// Units whose centres are within `radius` of p, hulls not counted, by index order. Rebuilt once a frame.
struct UnitList {
  std::array<std::int16_t, kMaxUnits> ids;
  int n = 0;
};
void build_spatial(Context& c);  // also brings Nav up to trees and buildings; start_game calls it first
void place_unit(World& w, Unit& u, Vec2 p);  // sets pos and lists the unit there: every jump that is not a walk
void unlist_unit(World& w, const Unit& u);   // takes a freed slot out of the hash
void renew_bodies(World& w);                 // finds Nav::bodies again
void touch_unit(World& w, int unit);         // it died, or has a velocity: the next build_spatial() looks at it
void units_near(const Context& c, Vec2 p, float radius, UnitList& out);
// False: units_near() finds none of the team's there. Much cheaper, for those who look around and see nobody.
bool team_near(const World& w, int team, Vec2 p, float radius);

}  // namespace dota
