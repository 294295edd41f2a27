// Which buildings cannot be damaged until others have fallen, and other rules that follow from the map.
#pragma once

#include "world/game_rules.hpp"

namespace dota {

// Fills in the rules that follow from the map: GameRules::needs_all, needs_any, base_radius and lane.
void derive_map_rules(GameRules& g, const MapData& map);
// True before the horn, and while buildings that guard this one stand.
bool building_protected(const Context& c, const Unit& b);

}  // namespace dota
