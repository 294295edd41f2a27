// Towers and other buildings (towers.cpp, buildings.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

void buildings_frame(Context& c);  // buildings.cpp: backdoor protection, fountain and shrine healing
// A hero near the tower was ordered to attack one of its side's heroes, or one of his own side.
void tower_notices(Context& c, Unit& tower, Unit& attacker, bool on_allied_hero, bool on_own_side);
void towers_frame(Context& c);  // targets and auras, then buildings_frame()
bool use_glyph(Context& c, int team);
bool use_shrine(Context& c, Unit& hero);

}  // namespace dota
