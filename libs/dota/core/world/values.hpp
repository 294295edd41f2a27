// Capacities of a world, and the small values that everything in it is made of.
#pragma once

#include <cstdint>

#include "base/vec2.hpp"

namespace dota {

constexpr int kTeams = 2, kRadiant = 0, kDire = 1, kNeutralTeam = 2;
constexpr int kMaxHeroes = 10;  // team t's hero i is t * 5 + i
constexpr int kMaxUnits = 384, kMaxModifiers = 1536, kMaxProjectiles = 384, kMaxAreas = 128, kMaxDelayed = 256,
              kMaxStackEnds = 512;
constexpr int kMaxLoadouts = 96, kMaxGroundItems = 16, kMaxEvents = 192;
constexpr int kAbilitySlots = 6, kItemSlots = 16;  // items: 6 inventory, 3 backpack, 6 stash, 1 town portal
constexpr int kInventory = 6, kBackpackFirst = 6, kStashFirst = 9, kTpSlot = 15;
constexpr int kKept = 4;  // consumables that the scripted buyer keeps: tango, salve, clarity, town portal scroll
constexpr int kMaxTrees = 2560, kMaxCamps = 24, kMaxPickups = 6, kHistory = 16;
constexpr int kBountySpots = 4, kPowerSpots = 2;  // places where runes appear
static_assert(kBountySpots + kPowerSpots == kMaxPickups);
constexpr int kNavCells = 260;  // navigation cells of 64 world units a side
constexpr int kPathPoints = 6;  // corners of a planned path that a unit keeps
constexpr int kHashCells = 66;  // spatial hash cells of 256 world units a side, with a margin
constexpr int kFramesPerStep = 4;
constexpr float kDt = 1.0f / 30.0f;

// A unit's slot and the generation it was given out in; a dead unit's handle resolves to nothing.
struct Handle {
  std::int16_t index = -1;
  std::uint16_t generation = 0;
  friend bool operator==(Handle a, Handle b) { return a.index == b.index && a.generation == b.generation; }
};

// Random numbers (PCG32) from 8 bytes of state. All of a game come from World::rng.
struct Rng {
  std::uint64_t state = 0x9E3779B97F4A7C15ull;
  std::uint32_t next() {  // PCG-XSH-RR 64/32
    const std::uint64_t old = state;
    state = old * 6364136223846793005ull + 1442695040888963407ull;
    const auto x = static_cast<std::uint32_t>(((old >> 18u) ^ old) >> 27u);
    const auto r = static_cast<std::uint32_t>(old >> 59u);
    return (x >> r) | (x << ((32u - r) & 31u));
  }
  float uniform() { return static_cast<float>(next() >> 8) * (1.0f / 16777216.0f); }  // [0, 1)
  int below(int n) {
    return static_cast<int>((static_cast<std::uint64_t>(next()) * static_cast<std::uint32_t>(n)) >> 32);
  }
  int between(int lo, int hi) { return lo + below(hi - lo + 1); }
};

}  // namespace dota
