// How well a scripted player plays. None of it is from a source: the numbers make three opponents that a learner
// meets in turn, each clearly better than the one before.
#pragma once

#include "bots/bots.hpp"

namespace dota {

struct Skill {
  float decide_every;                 // seconds between two decisions
  float last_hit_slack;               // attacks a creep when its hit points are below this times the damage
  float harass_every;                 // seconds between two attacks on a hero in lane, apart from free ones
  float retreat_below, return_above;  // shares of health
  float caution;                      // own strength, as a share of the enemy's, from which it takes a fight
  float group_from;                   // game time from which the team pushes together, seconds
  float farm_between;                 // seconds between two pushes
  bool casts_in_lane, casts, denies, dives_early;
  bool foresees;     // strikes a creep by the health that it will have when the blow lands
  bool disciplined;  // disables before damage, keeps ultimates for heroes, one target for all, items in fights
  bool wards, runes, roshan, teleports, jungles, defends;
};

constexpr Skill skill_of(BotKind kind) {
  switch (kind) {
    case BotKind::Easy:
      return {0.8f,  1.6f,  12.0f, 0.35f, 0.7f,  1.3f, 1200.0f, 180.0f, false, true,
              false, false, false, false, false, true, false,   true,   false, false};
    case BotKind::Hard:
      return {0.1f, 1.0f, 2.0f, 0.28f, 0.75f, 1.4f, 660.0f, 200.0f, true, true,
              true, true, true, true,  true,  true, true,   true,   true, true};
    default:
      return {0.27f, 1.15f, 5.0f,  0.3f,  0.65f, 1.05f, 900.0f, 200.0f, true, true,
              true,  false, false, false, true,  true,  true,   true,   true, true};
  }
}

}  // namespace dota
