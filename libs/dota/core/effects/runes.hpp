// What a rune does to the hero that takes it, and bottles that keep one.
#pragma once

#include "world/world.hpp"

namespace dota {

// The modifier of a power rune (a PickupKind), with rules.json's runes.effects; GameRules::rune_effects holds
// them.
void apply_rune(Context& c, Unit& u, int kind);
bool store_rune(Context& c, Unit& hero, int kind);  // a bottle takes it: true
void refill_bottle(Context& c, Unit& hero);         // as a bounty rune does

}  // namespace dota
