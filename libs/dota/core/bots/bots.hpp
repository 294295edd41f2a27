// Players that are not learned: random, and scripted ones of three strengths that play the whole game. They see
// what a policy sees (the team's view, its unit slots and its choices) and answer with the same commands.
#pragma once

#include <array>
#include <cstdint>

#include "view/actions.hpp"
#include "view/team_view.hpp"
#include "world/world.hpp"

namespace dota {

// Who plays a team. The numbers are those of dota.vec_game.Controller.
enum class BotKind : std::uint8_t { Policy, Random, Easy, Scripted, Hard, Count };

// What a scripted team is at together.
enum class Plan : std::uint8_t { Farm, Push, Defend, Roshan };

// What a scripted team remembers from one timestep to the next. Plain data: part of a game's snapshot.
struct BotMemory {
  static constexpr float kLongAgo = -1e4f;  // before any game begins
  struct Hero {
    std::int8_t lane = -1;
    bool retreating = false, fighting = false, quiet = true;
    float leave_until = kLongAgo;    // goes on to leave a lost fight until then
    float next_decision = kLongAgo;  // game time; weaker bots decide less often
    float next_harass = kLongAgo, next_cast = kLongAgo;
    std::int8_t camp = -1;       // the camp that it farms
    std::int8_t ward_spot = -1;  // where it is taking a ward
    float next_ward = kLongAgo;
    float shrine_until = kLongAgo;                      // a shrine heals it until then
    float next_pull = kLongAgo, lead_until = kLongAgo;  // camps that it leads to its lane's creeps
    float pull_ordered = kLongAgo;                      // when it began to strike one
    Command last;
  };
  std::array<Hero, 5> heroes{};
  bool assigned = false;
  Plan plan = Plan::Farm;
  std::int8_t plan_lane = 1;
  Vec2 plan_place;
  float plan_until = kLongAgo, next_plan = kLongAgo, next_push = kLongAgo, next_front = kLongAgo;
  float next_smoke = kLongAgo, next_roshan = kLongAgo;
  Handle focus;  // the enemy hero that the team is on
  float focus_until = 0;
  std::array<float, 3> own_front{}, enemy_front{};  // how far along the own lane the foremost creep is; < 0: none
  std::array<float, 3> own_tower{};                 // and the foremost standing tower
  std::array<float, kMaxCamps> camp_empty_until{};
  std::array<float, 10> warded_until{};  // by ward spot
};

// Commands of every hero of the view's team for this timestep, in the world's orientation.
void bot_command(BotKind kind, const TeamView& view, const SlotTable& slots, const Choices& choices,
                 BotMemory& memory, Rng& rng, std::array<Command, 5>& out);

// bots/random.cpp: uniform over the offered actions, their valid units and offsets.
Command random_command(const TeamView& view, const SlotTable& slots, const Choices& choices, int hero, Rng& rng);
// Lanes by role: mid for the middle player, the others two by two. One hero, or a map with one lane: mid.
void assign_lanes(const TeamView& view, BotMemory& memory);

}  // namespace dota
