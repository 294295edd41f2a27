// Giving a unit an order, without the checks that a command needs.
#pragma once

#include "world/world.hpp"

namespace dota {

constexpr bool is_cast(OrderType t) {
  return t == OrderType::CastNoTarget || t == OrderType::CastPoint || t == OrderType::CastUnit;
}

inline void stop_motion(Unit& u) {
  if (u.act == Act::Walk || u.act == Act::AttackWindup) u.act = Act::Idle;
  stand_still(u);
}

// What a unit does without an order: a lane creep walks its lane, everyone else nothing.
Order idle_order(const Unit& u);

// Replaces the unit's order: the decision of an AI, or what an effect forces.
void take_order(Context& c, Unit& u, const Order& o);

}  // namespace dota
