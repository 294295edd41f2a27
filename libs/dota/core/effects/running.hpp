// Effects that last: modifiers, projectiles, areas, passives.
#pragma once

#include "world/world.hpp"

namespace dota {

void modifiers_frame(Context& c);  // expiry, ticks, auras, status bits
void watch_modifiers(Context& c);  // finds World::modifiers_watched again
void projectiles_frame(Context& c);
void areas_frame(Context& c);
void apply_learned(Context& c,
                   Unit& u);  // passives of abilities, items and talents -> modifiers; on level or item change
// Over its modifiers, talents included, the stats of ItemDef::stats not. Percentages that stack multiplicatively
// (MrPct, EvasionPct, MissPct, StatusResPct) come back combined, 100 * (1 - prod(1 - p/100)); MsSet and BootsMsPct
// as the greatest; the rest as the sum.
float stat_sum(const World& w, const Unit& u, Stat s);
void clear_modifiers(Context& c, Unit& u);
// Its incoming projectiles lose it; not all of them when it only became invisible.
void disjoint(Context& c, Unit& u, bool by_vanishing = false);
void reveal_effects(Context& c);  // after update_vision(): what areas and bolts let their team see

}  // namespace dota
