// Heroes each frame: respawn, passive gold, charges; and buyback.
#pragma once

#include "world/world.hpp"

namespace dota {

void heroes_frame(Context& c);  // respawn, gold, charges, purchases, items; shop stocks and items on the ground
bool buyback(Context& c, HeroState& h);
bool can_buyback(const Context& c, const HeroState& h);
float buyback_cost(const Context& c, const HeroState& h);

}  // namespace dota
