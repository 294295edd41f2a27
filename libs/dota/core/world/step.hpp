// A game's start, its timesteps and the checksum of its state.
#pragma once

#include <array>

#include "world/world.hpp"

namespace dota {

void start_game(Context& c, std::uint64_t seed, const std::array<int, kMaxHeroes>& lineup);  // -1: no hero
void step_game(Context& c,
               const std::array<Command, kMaxHeroes>& commands);  // one timestep: 4 frames, one step late
std::uint64_t hash_world(const World& w);
int mid_lane_assigned(const Context& c, const HeroState& h);

}  // namespace dota
