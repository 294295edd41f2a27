// An order's life from issue to completion, casting included (orders.cpp).
#pragma once

#include "effects/orders.hpp"
#include "world/world.hpp"

namespace dota {

void issue_order(Context& c, Unit& u, const Order& o);
void carry_out_order(Context& c, Unit& u);  // orders.cpp

// Whether the unit waits for an order: buildings and camps' creeps at home, which most units are.
inline bool idle(const Unit& u) {
  return (u.order.type == OrderType::None || u.order.type == OrderType::Stop) && u.act != Act::Channel &&
         !(u.status & (kStunned | kForcedMotion)) && u.kind != UnitKind::Hero && u.kind != UnitKind::Summon;
}
// Once a frame a living unit.
inline void run_order(Context& c, Unit& u) {
  if (idle(u))
    stop_motion(u);
  else
    carry_out_order(c, u);
}

}  // namespace dota
