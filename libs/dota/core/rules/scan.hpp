// Scan: a team asks whether an enemy hero is within a circle of the map, for a while (rules.json scan).
#pragma once

#include "world/world.hpp"

namespace dota {

// False while it is not ready. The other team is told nothing of it.
bool start_scan(Context& c, int team, Vec2 at);
void scans_frame(Context& c);

}  // namespace dota
