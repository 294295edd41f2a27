// An order's life from issue to completion, casting included (orders.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

void issue_order(Context& c, Unit& u, const Order& o);
void run_order(Context& c, Unit& u);  // once a frame a living unit

}  // namespace dota
