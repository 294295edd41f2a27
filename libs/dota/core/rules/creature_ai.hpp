// Decisions of creatures become orders (creature_ai.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

bool creature_casts(Context& c, Unit& u, Unit& enemy);  // true: it was ordered to cast something
bool busy_casting(const Unit& u);
void keep_attacking(Context& c, Unit& u,
                    const Unit& target);  // these three change nothing when it does that already
void keep_moving(Context& c, Unit& u, Vec2 goal);
void rest(Context& c, Unit& u);

}  // namespace dota
