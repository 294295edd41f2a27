// What abilities and items are good for, read off their effects once: bots choose casts by it, not by name.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/tables.hpp"

namespace dota {

struct ActionVocabulary;

// What using it does.
enum Use : std::uint32_t {
  kDisables = 1u << 0,  // keeps an enemy from acting
  kHarms = 1u << 1,     // damages or drains enemies
  kWeakens = 1u << 2,   // slows them, lowers their armor, ...
  kHeals = 1u << 3,     // an ally or oneself
  kBuffsSelf = 1u << 4,
  kBuffsAllies = 1u << 5,
  kMoves = 1u << 6,   // oneself, at once
  kPushes = 1u << 7,  // the unit aimed at, where it looks
  kHides = 1u << 8,
  kProtects = 1u << 9,  // from spells, or from everything
  kRemoves = 1u << 10,  // takes a unit out of the fight for a while, unhurt
  kRestoresMana = 1u << 11,
  kReveals = 1u << 12,  // shows who is invisible
  kPlacesWard = 1u << 13,
  kSmokes = 1u << 14,
  kTeleports = 1u << 15,
  kRefreshes = 1u << 16
};

struct Usefulness {
  std::uint32_t uses = 0;
  bool strikes_front = false;           // where the caster looks
  float ahead = 0;                      // how far in front, at the first rank
  Num radius, damage;                   // widest area, greatest single damage, by rank
  std::array<float, 2> creep_damage{};  // that a carried item adds to blows at creeps: melee, ranged
};

// Indexed as the tables are. Actions and items are -1 where the patch has none.
struct BotBook {
  std::vector<Usefulness> abilities;  // per Tables::abilities
  int tango = -1, tango_single = -1, flask = -1, clarity = -1, faerie = -1, bottle = -1, wand = -1, stick = -1,
      teleport = -1, dust = -1, smoke = -1, treads = -1, observer = -1, sentry = -1, cheese = -1;  // actions
};
BotBook make_bot_book(const Tables& tables, const ActionVocabulary& actions);

}  // namespace dota
