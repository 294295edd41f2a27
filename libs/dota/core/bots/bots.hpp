// Scripted players. They see what a policy sees and answer with the same commands.
#pragma once

#include <array>
#include <cstdint>

#include "view/actions.hpp"
#include "view/team_view.hpp"

namespace dota {

// Who plays a team; the numbers are those of dota.vec_game.Controller.
enum class BotKind : std::uint8_t { Policy, Random, Easy, Medium, Hard, Count };

// What a bot remembers from timestep to timestep. Plain data: it is part of a game's snapshot.
struct BotHero {
  std::uint8_t mode = 0;
  float until = 0, since = 0;
  Handle target;
  Vec2 goal;
  std::array<float, 4> value{};
};
struct BotMemory {
  std::array<BotHero, 5> heroes{};
  std::array<float, 8> team{};
};

// Whether that bot can play; the game refuses the others by name.
bool bot_built(BotKind kind);

// Commands of all heroes of the team for this timestep; heroes that are not in the game get none. `slots` and
// `choices` are those of the team's last observation; `rng` is the bot's own, apart from the game's.
void bot_command(BotKind kind, const TeamView& view, const SlotTable& slots, const Choices& choices, BotMemory& memory,
                 Rng& rng, std::array<Command, 5>& out);

// Uniform over the available actions, and over the valid targets, delays and offsets of each.
void random_command(const TeamView& view, const SlotTable& slots, const Choices& choices, Rng& rng,
                    std::array<Command, 5>& out);

}  // namespace dota
