// What the fall of a building gives and changes.
#pragma once

#include "world/world.hpp"

namespace dota {

// `taker` is the enemy hero who gets what the last hit pays, if there is one.
void building_death(Context& c, Unit& building, Unit* killer, HeroState* taker);

}  // namespace dota
