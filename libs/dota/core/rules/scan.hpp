// Scan: a team asks whether an enemy hero is within a circle of the map, for a while (rules.json scan).
#pragma once

#include "world/world.hpp"

namespace dota {

// Starts a scan; returns false while it is on cooldown. The other team gets no event.
bool start_scan(Context& c, int team, Vec2 at);
void scans_frame(Context& c);

}  // namespace dota
