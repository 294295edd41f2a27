// What happened since a team's previous world state: casts, damage, kills of couriers and Roshan, trees.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <vector>

#include "play/team_sight.hpp"
#include "world/damage_log.hpp"
#include "world/world.hpp"

namespace dota {

struct BotCast {
  Handle unit;
  bool placed = false;  // whether the team sees where it went
  Vec2 at;              // of the target, or of the unit
  std::int16_t ability = -1;
  std::int8_t hero = -1;
};
struct BotKill {
  EventKind kind = EventKind::CourierDeath;  // or RoshanDeath
  std::uint8_t team = kNeutralTeam;          // whose courier
  Handle unit, killer;                       // as far as the team saw them
  std::int8_t killer_hero = -1;
};
struct BotTree {
  std::int16_t tree = -1;
  bool felled = false, delayed = false;  // delayed: it happened out of sight, before
};

struct TeamEvents {
  std::vector<BotCast> casts;
  std::vector<DamageEvent> damage;
  std::vector<BotKill> kills;
  std::vector<BotTree> trees;
  std::array<float, kMaxPickups> rune_seen{};  // game time at which the rune's place was last seen
};

// Collects events of each frame for both teams, as far as they may know of them.
class WorldStateEvents {
 public:
  static constexpr std::size_t kMost = 4096;  // events of a kind; further ones are dropped until they are taken

  WorldStateEvents(const World& w, const TeamSight& sight);
  // After a frame; `from`: index of its first event in World::events.
  void after_frame(const Context& c, const TeamSight& sight, int from);
  // The team's events since the last call.
  TeamEvents take(int team);
  DamageLog& damage_of_frame() { return damage_; }

 private:
  void note_trees(const Context& c, const TeamSight& sight);

  std::array<TeamEvents, kTeams> events_;
  std::array<std::bitset<kMaxTrees>, kTeams> known_;  // felled, as the team knew it
  std::bitset<kMaxTrees> down_;                       // felled, in the previous frame
  DamageLog damage_;
};

}  // namespace dota
