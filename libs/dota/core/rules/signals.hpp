// The signals that are measured once a timestep: health, mana, lanes and buildings (signals.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

void step_signals(Context& c);

}  // namespace dota
