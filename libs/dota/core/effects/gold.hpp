// Gold, and what a hero's possessions are worth.
#pragma once

#include "world/world.hpp"

namespace dota {

void give_gold(Context& c, HeroState& h, float gold, bool reliable);
void team_gold(Context& c, int team, float gold);   // reliable, to each hero of the team
void split_gold(Context& c, int team, float gold);  // likewise, a share to each
float item_value(const Context& c, const ItemState& s);
float net_worth(const Context& c, const HeroState& h);

}  // namespace dota
