// Heroes: experience, gold, buyback, talents (heroes.cpp, economy.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

void give_xp(Context& c, HeroState& h, float xp);
void give_gold(Context& c, HeroState& h, float gold, bool reliable);
float net_worth(const Context& c, const HeroState& h);
void heroes_frame(Context& c);  // respawn, passive gold, skill build, purchases, item swap, charges
bool buyback(Context& c, HeroState& h);
bool can_buyback(const Context& c, const HeroState& h);
float buyback_cost(const Context& c, const HeroState& h);
bool has_talent(const HeroState& h, int talent);  // index into HeroDef::talents

}  // namespace dota
