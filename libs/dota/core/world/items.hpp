// Items: given, taken, dropped, picked up, brought (items.cpp, courier.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

// Charges of one stack; the game's data state no limit, and ItemState holds them in eight bits.
constexpr int kStackCharges = 100;

bool stack_item(Context& c, HeroState& h, int item, int charges, bool in_stash);
void take_item(Context& c, HeroState& h, int slot);  // out of the slot, gone
void take_item(Context& c, Unit& u, int slot);       // the same of any unit, by the slot of an order (16 + i)
void drop_items(Context& c, Unit& hero);             // what falls to the ground when he dies
void pick_up(Context& c);                            // who stands near what lies there, and has room, has it
bool give_item(Context& c, HeroState& h, int item, int charges);  // combines recipes; false when no room
void courier_frame(Context& c);

}  // namespace dota
