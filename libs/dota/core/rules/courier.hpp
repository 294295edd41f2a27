// Couriers: what they do by themselves, and what a person has them do.
#pragma once

#include "world/refusal.hpp"
#include "world/world.hpp"

namespace dota {

void courier_frame(Context& c);

// Sends the courier with all items of the hero's stash. Only checks unless `apply`.
Refusal send_courier(Context& c, HeroState& h, bool apply);
// Calls it back from its way to this hero; what it carries is in the stash again when it is home.
Refusal recall_courier(Context& c, HeroState& h, bool apply);

}  // namespace dota
