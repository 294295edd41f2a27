// Spawning, removal and derived stats of units.
#pragma once

#include "world/world.hpp"

namespace dota {

Unit* spawn_unit(Context& c, int unit_type, int team, Vec2 pos, float facing);  // nullptr when full
void remove_unit(Context& c, Unit& u);
// refresh_stats() itself adds ItemDef::stats; talents come through stat_sum(). A dead hero keeps its slot with
// alive = false; every other unit's slot is freed at death.
void refresh_stats(Context& c,
                   Unit& u);  // when stats_dirty: base, level, items, talents, modifiers, auras -> derived
bool is_enemy(const Unit& a, const Unit& b);
// Status bits a unit has by its kind, to which its modifiers' bits are added (wards are invisible, and so on).
std::uint32_t inherent_status(const Context& c, const Unit& u);

}  // namespace dota
