// Lane creeps (creeps.cpp), camps (neutrals.cpp) and Roshan (roshan.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

void creeps_frame(Context& c);    // waves, lane walking, aggro
void neutrals_frame(Context& c);  // camps
void roshan_frame(Context& c);
void follow_lane(Context& c, Unit& u);  // what a lane creep does in a frame
// Lane creeps and towers react to a hero's order to attack.
void notify_attack_order(Context& c, Unit& attacker, Unit& target);

}  // namespace dota
