// Experience, levels, skills and talents of heroes.
#pragma once

#include "world/refusal.hpp"
#include "world/world.hpp"

namespace dota {

void give_xp(Context& c, HeroState& h, float xp);
bool has_talent(const HeroState& h, int talent);  // index into HeroDef::talents
// Whether one rank or talent, named by its entry of a skill order (HeroDef::skill_build), can be learned now.
Refusal why_not_learn(const Context& c, const HeroState& h, int entry);
void learn_one(Context& c, HeroState& h, int entry);  // nothing unless why_not_learn() returns None
void learn_skills(Context& c, HeroState& h);          // spends ability points by the hero's skill order
void forget_skills(Context& c, HeroState& h);         // gives all points back

}  // namespace dota
