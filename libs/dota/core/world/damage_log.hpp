// Log of damage to heroes, for world states. It is outside World, and is written only while something reads it.
#pragma once

#include <cstdint>
#include <vector>

#include "world/values.hpp"

namespace dota {

struct DamageEvent {
  std::int8_t victim = -1;            // index into World::heroes
  std::int8_t attacker = -1;          // likewise; a summon's or ward's: its owner's
  std::int16_t ability = -1;          // Tables::abilities
  float amount = 0;                   // health that it took
  Handle victim_unit, attacker_unit;  // index -1: nobody
};
using DamageLog = std::vector<DamageEvent>;

}  // namespace dota
