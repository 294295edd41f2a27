// Runes on the map: where and when they appear, and taking one.
#pragma once

#include "world/world.hpp"

namespace dota {

void runes_frame(Context& c);
void take_pickup(Context& c, Unit& hero, int pickup);

}  // namespace dota
