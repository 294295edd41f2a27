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
// Whether the hero's hands, inventory and backpack, have room for it: the stash is elsewhere.
bool hands_take(const Context& c, const HeroState& h, int item, int charges);
bool take_up(Context& c, HeroState& h, int item, int charges);  // false: they have none
bool lay_down(Context& c, int item, int charges, Vec2 at);      // false, and counted, when no more can lie there
void courier_frame(Context& c);

}  // namespace dota
