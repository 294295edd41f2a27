// Players that are not learned: random, and a rule-based laner in three strengths. They see what a policy sees
// (the team's view, its unit slots and its choices) and answer with the same commands.
#pragma once

#include <array>
#include <cstdint>

#include "view/actions.hpp"
#include "view/team_view.hpp"
#include "world/world.hpp"

namespace dota {

// Who plays a team. The numbers are those of dota.vec_game.Controller.
enum class BotKind : std::uint8_t { Policy, Random, Easy, Scripted, Hard, Count };

// What a scripted team remembers from one timestep to the next. Plain data: part of a game's snapshot.
struct BotMemory {
  struct Hero {
    std::int8_t lane = -1;
    bool retreating = false;
    float next_decision = 0;  // game time; weaker bots decide less often
    float next_harass = 0;
    Command last;
  };
  std::array<Hero, 5> heroes{};
  bool assigned = false;
};

// Commands of every hero of the view's team for this timestep, in the world's orientation.
void bot_command(BotKind kind, const TeamView& view, const SlotTable& slots, const Choices& choices,
                 BotMemory& memory, Rng& rng, std::array<Command, 5>& out);

// bots/random.cpp: uniform over the offered actions, their valid units and offsets.
Command random_command(const TeamView& view, const SlotTable& slots, const Choices& choices, int hero, Rng& rng);
// bots/laner.cpp: walks its lane, last-hits, denies, harasses, casts, hits towers, retreats.
Command laner_command(BotKind kind, const TeamView& view, const Choices& choices, BotMemory::Hero& memory,
                      int hero, Rng& rng);
// Lanes by role: mid for the middle player, the others two by two. One hero, or a map with one lane: mid.
void assign_lanes(const TeamView& view, BotMemory& memory);

}  // namespace dota
