// What happened in a timestep, in order: the transcript of a game, its kill feed, and where the signals of single
// events come from.
#pragma once

#include <cstdint>

#include "world/values.hpp"

namespace dota {

// Each kind says who `unit` and `other` are, what `id` names and what `value` counts. dota.events.KINDS names them
// in this order.
enum class EventKind : std::uint8_t {
  Cast,           // unit used an ability or item; other: on whom; id: Tables::abilities; value: rank
  HeroDeath,      // unit died for good; other: whose blow it was
  HeroKill,       // unit (a hero) is credited with a hero's death; other: the dead; value: gold for the kill alone
  Assist,         // unit had a part in it; other: the dead
  Reincarnation,  // unit died and will rise on the spot; other: whose blow it was
  Respawn,        // unit is back
  Buyback,        // unit came back for gold; value: gold
  UnitDeath,      // a creep or summon died; other: whose blow it was
  LastHit,        // unit (a hero) is credited with a creep's death; other: the creep; value: gold
  Deny,           // unit (a hero) killed a creep of its own side; other: the creep
  BuildingDeath,  // unit fell; other: whose blow it was
  RoshanDeath,    // unit is Roshan; other: whose blow it was; value: how often he has died
  CourierDeath,   // unit was shot down; other: by whom
  WardDeath,      // unit was destroyed or denied; other: by whom
  LevelUp,        // unit; value: level
  Learned,        // unit; id: Tables::abilities, the talent's for talents; value: rank
  Bought,         // unit; id: Tables::items; value: gold
  Sold,           // unit; id: Tables::items; value: gold
  Rune,           // unit took one; id: PickupKind
  Aegis,          // unit took the Aegis
  Glyph,          // team
  Shrine,         // unit used one of its team's
  Megas,          // team's creeps are mega creeps from now on
  Won,            // team; kNeutralTeam: a draw
  Assembled,      // unit; id: Tables::items that its parts became
  Scan,           // team began one
  ScanFound,      // team's scan: an enemy hero is in it
  Count
};
constexpr int kEventKinds = static_cast<int>(EventKind::Count);

// Units are named by slot, generation and type, because the dead leave their slots.
struct Event {
  std::int32_t frame = 0;
  EventKind kind = EventKind::Count;
  std::uint8_t team = kNeutralTeam;        // whose doing or loss it is: that of `unit`
  std::int8_t hero = -1, other_hero = -1;  // team * 5 + place; a summon's or ward's: its owner's
  Handle unit, other;
  std::int16_t unit_type = -1, other_type = -1;  // Tables::units
  std::int16_t id = -1;
  float value = 0;
};

}  // namespace dota
