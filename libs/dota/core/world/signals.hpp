// What is noted of a game as it goes on: signals of heroes (signals.cpp) and events (events.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

// Adds to a hero's (or every hero of a team's) signal since the last observation.
inline void signal(HeroState& h, Signal s, float v) { h.signals[static_cast<std::size_t>(s)] += v; }
void signal_team(World& w, int team, Signal s, float v);
// world/events.cpp: notes what happened, and gives the signals of it (world/event.hpp says who is who)
void happened(Context& c, EventKind kind, Unit& unit, const Unit* other = nullptr, int id = -1, float value = 0);
void hero_event(Context& c, EventKind kind, const HeroState& h, const Unit* other = nullptr, int id = -1,
                float value = 0);
void team_event(Context& c, EventKind kind, int team);
// world/signals.cpp, which says what each signal counts and whose it is
void building_destroyed_signal(Context& c, Unit& b);
void step_signals(Context& c);  // health, mana, lanes and buildings, once a timestep

}  // namespace dota
