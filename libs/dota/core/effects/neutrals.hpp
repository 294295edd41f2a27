// What being hurt and dying does to neutral creeps, their camp and Roshan.
#pragma once

#include "world/world.hpp"

namespace dota {

constexpr float kCalmNear = 32;  // a neutral creep within this distance of its spawn point is back home

void neutral_hurt(Context& c, Unit& neutral, Unit& attacker);  // its whole camp attacks the attacker
void camp_member_died(Context& c, const Unit& neutral);
void roshan_died(Context& c, Unit& roshan, Unit* killer);  // roshan_death.cpp: drops, gold, his next respawn

}  // namespace dota
