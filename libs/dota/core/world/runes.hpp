// Runes (world/runes.cpp, effects/runes.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

void runes_frame(Context& c);
// The modifier of a power rune (a PickupKind), with rules.json's runes.effects; GameRules::rune_effects holds
// them.
void apply_rune(Context& c, Unit& u, int kind);
bool store_rune(Context& c, Unit& hero, int kind);  // a bottle takes it: true

}  // namespace dota
