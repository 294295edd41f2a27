// Why something that a player asks for cannot be done now.
#pragma once

#include <cstdint>

namespace dota {

// play/person_order.cpp has the words of these, in this order.
enum class Refusal : std::uint8_t {
  None,
  Dead,
  Alive,    // only the dead buy back
  Stunned,  // or hexed, or taunted
  Silenced,
  Muted,
  Rooted,  // the ability moves its caster
  Disarmed,
  Mana,
  Cooldown,  // of an ability, an item, the glyph, shrines or buyback; charges that are used up
  NotLearned,
  Unseen,  // no such unit, as far as the team sees
  Target,  // the order does not take that target, or lacks one
  Range,
  Gold,
  Shop,  // not sold, or not reached, where the hero stands
  Stock,
  Full,
  Slot,  // nothing in it, or nothing that this can be done with
  Item,  // no such item, or one that cannot be bought, sold or dropped
  Points,
  Level,
  Taken,    // the rank, or the talent of that level, is had already
  Courier,  // no courier is available, or it has nothing to do
  Busy,
  NotHeld,  // no person plays this hero
  GameOver,
  Unknown,
  Count
};

}  // namespace dota
