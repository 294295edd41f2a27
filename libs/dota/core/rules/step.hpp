// A game's start and its timesteps.
#pragma once

#include <array>

#include "base/memory.hpp"
#include "world/world.hpp"

namespace dota {

void start_game(Context& c, std::uint64_t seed, const std::array<int, kMaxHeroes>& lineup);  // -1: no hero
// Returns whether policies choose commands in the next timestep; otherwise their heroes continue.
inline bool policies_choose(const World& w, const GameSettings& s) {
  return w.step_index % s.timesteps_per_action == 0;
}
void step_game(Context& c,
               const std::array<Command, kMaxHeroes>& commands);  // one timestep: 4 frames, one step late
// What step_game() is made of, for games that are played frame by frame; none of it once the game is over.
void begin_step(Context& c);
void step_frame(Context& c, int f);  // f: 0-3
void end_step(Context& c, const std::array<Command, kMaxHeroes>& commands);
// Queues the memory that the next timestep reads, for callers with other work to do before it.
void queue_step(const World& w, PrefetchQueue& ahead);

// Finds again, in a state that came from elsewhere and is sound, what the checksum leaves out because it follows
// from the rest.
void renew_derived(Context& c);

}  // namespace dota
