// Events of a game (world/event.hpp) and the signals that heroes get from them, noted as they happen.
#pragma once

#include "world/world.hpp"

namespace dota {

// Adds to a hero's (or every hero of a team's) signal since the last observation.
inline void signal(HeroState& h, Signal s, float v) { h.signals[ordinal(s)] += v; }
void signal_team(World& w, int team, Signal s, float v);
// Adds an event to World::events and gives the heroes its signals. world/event.hpp documents the fields.
void record_event(Context& c, EventKind kind, Unit& unit, const Unit* other = nullptr, int id = -1,
                  float value = 0);
void record_hero_event(Context& c, EventKind kind, const HeroState& h, const Unit* other = nullptr, int id = -1,
                       float value = 0);
void record_team_event(Context& c, EventKind kind, int team);
// Signals the enemies of a building the share of its health that it has lost since the last call.
void signal_building_health(Context& c, Unit& b, float share);
void building_destroyed_signal(Context& c, Unit& b);

}  // namespace dota
