// Heroes: experience, gold, buyback, talents (heroes.cpp, economy.cpp).
#pragma once

#include "world/refusal.hpp"
#include "world/world.hpp"

namespace dota {

void give_xp(Context& c, HeroState& h, float xp);
void give_gold(Context& c, HeroState& h, float gold, bool reliable);
float net_worth(const Context& c, const HeroState& h);
void heroes_frame(Context& c);  // respawn, passive gold, skill build, purchases, item swap, charges
bool buyback(Context& c, HeroState& h);
bool can_buyback(const Context& c, const HeroState& h);
float buyback_cost(const Context& c, const HeroState& h);
// One rank or talent, by its entry of a skill order (HeroDef::skill_build), if why_not_learn() says None.
Refusal why_not_learn(const Context& c, const HeroState& h, int entry);
void learn_one(Context& c, HeroState& h, int entry);
bool has_talent(const HeroState& h, int talent);  // index into HeroDef::talents

}  // namespace dota
