// What effects leave in the world: modifiers, projectiles, places that keep acting, effects that fire later.
#pragma once

#include <array>
#include <cstdint>

#include "data/tables.hpp"
#include "world/values.hpp"

namespace dota {

// One stat change of a modifier.
struct StatChange {
  Stat stat = Stat::Count;
  float value = 0;
};

// The first line of memory is what is looked at of all modifiers in every frame.
struct Modifier {
  std::int16_t next = -1;
  std::int16_t name = -1;        // Tables::modifiers
  std::int16_t ability = -1;     // Tables::abilities
  std::int16_t node = -1;        // effect node in that ability's program
  std::int16_t owner = -1;       // unit slot it sits on; -1: this slot of the pool is free
  std::uint16_t generation = 0;  // of its slot: another one whenever the slot is given out again
  Handle source;
  float until = 0, start = 0;  // game time; until = kForever (effects/interpreter.hpp) without an end
  double next_tick = 0;        // a float would lose or gain ticks: what it rounds off adds up over many of them
  float interval = 0;
  std::uint32_t status = 0;
  float ready = -999;  // game time a proc's own cooldown ends
  Vec2 motion;         // forced motion, units per second
  std::uint8_t damage_type = 0, level = 1, stacks = 0;
  std::uint8_t flags = 0;    // kModDispellable etc., effects/modifiers.hpp
  std::uint8_t counter = 0;  // tries in a row of a proc (pseudo_random)
  std::uint8_t attacks_left = 0, charges = 0;
  std::uint8_t phase = 0;  // which of its states it is in: Power Treads' attribute, Echo Sabre's second blow
  bool rests =
      false;  // has nothing to do before its end but to tick and to move its bearer; follows from its node
  float per_tick = 0;       // damage a tick; of what flows: health lost, or given (< 0), a second
  float mana_per_tick = 0;  // mana given a second
  float shield = 0;         // absorption left
  float share = 0;          // of the way from the near to the far value, for strengths that go by distance
  float gathered = 0;       // damage taken that something waits for (Aeon, Kraken Shell, Orchid)
  float drawn = 0;          // of a stat, from one to the other
  float hp_before = 0;      // health when it began (Death Pact's bursts)
  std::array<StatChange, 6> stats{};
  Vec2 anchor;  // what a leash is tied to
  Handle aim;   // the one target it is for (Hurricane Pike), or is there because of (Battle Hunger)
};

// Stacks of a modifier that end before its others.
struct StackEnd {
  float at = 0;  // game time
  std::int16_t modifier = -1;
  std::uint16_t generation = 0;
  std::uint8_t count = 0;
};

struct Projectile {
  enum class Kind : std::uint8_t { None, Attack, Homing, Point, Linear } kind = Kind::None;
  std::uint8_t team = kNeutralTeam, level = 1;
  bool crit = false, disjointed = false;
  bool returning = false;  // a ring on its way back
  std::uint8_t jumps_left = 0;
  std::uint16_t generation = 0;
  Handle source, target;
  Vec2 pos, origin, direction;
  Vec2 goal;
  float speed = 0, travelled = 0, length = 0, w0 = 0, w1 = 0;
  float waits = 0;   // seconds until it leaves
  float damage = 0;  // attacks: rolled before armor; < 0: decided at launch to miss
  std::int16_t ability = -1, node = -1;
  std::uint64_t hit[(kMaxUnits + 63) / 64] = {};  // linear: each unit once
};

// A place on the ground that keeps acting: shrapnel, nethertoxin, a delayed strike, a channelled field.
struct Area {
  bool active = false;
  std::uint16_t generation = 0;
  std::uint8_t team = kNeutralTeam, level = 1;
  std::uint8_t pulses = 0;                // that share a total
  std::uint8_t quadrant = 0;              // of the next explosion
  std::uint8_t at_home = 0, to_come = 0;  // spirits with their caster; spirits that are still to appear
  bool blocks = false;                    // nobody walks over its line
  bool extra = false;                     // a link beside the one that its channel hangs on
  Vec2 along;                             // its line, from pos
  float gathered = 0;                     // damage its spirits did; the way a missile flew
  Handle owner, follow;                   // follow: moves with this unit
  Vec2 pos;
  double next_tick = 0;
  float radius = 0, start = 0, until = 0, interval = 0;
  std::int16_t ability = -1, node = -1;
};

// An effect that fires later (Finger of Death's 0.25 s).
struct Delayed {
  bool active = false;
  std::uint8_t team = kNeutralTeam, level = 1, step = 0;  // step: number of the jump, pulse or burst
  Handle owner, target;
  Vec2 point;
  float at = 0;
  std::int16_t ability = -1, node = -1;
};

}  // namespace dota
