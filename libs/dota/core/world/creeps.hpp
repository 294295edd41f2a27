// Lane creeps (creeps.cpp), camps (neutrals.cpp) and Roshan (roshan.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

void creeps_frame(Context& c);                                 // waves, lane walking, aggro
void neutrals_frame(Context& c);                               // camps
void neutral_hurt(Context& c, Unit& neutral, Unit& attacker);  // its whole camp turns on him
void camp_member_died(Context& c, const Unit& neutral);
void roshan_frame(Context& c);
void roshan_died(Context& c, Unit& roshan, Unit* killer);

}  // namespace dota
