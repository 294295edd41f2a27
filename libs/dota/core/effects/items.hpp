// Items in the slots of units: put in, stacked, taken out, dropped.
#pragma once

#include "world/world.hpp"

namespace dota {

// Charges of one stack; the game's data state no limit, and ItemState holds them in eight bits.
constexpr int kStackCharges = 100;

// Puts an item into a slot: stacks, then inventory, backpack, stash (only the stash when `to_stash`). Returns
// false when there is no free slot. `at` receives the slot, when the item took one of its own.
bool place_item(Context& c, HeroState& h, int item, int charges, bool to_stash, int* at = nullptr);
int held_charges(const HeroState& h, int item);  // over all slots; items without charges count 1
void items_changed(Context& c, HeroState& h);    // after any change of the hero's slots
bool stack_item(Context& c, HeroState& h, int item, int charges, bool in_stash);
void take_item(Context& c, HeroState& h, int slot);    // out of the slot, gone
void take_item(Context& c, Unit& u, int slot);         // the same of any unit, by the slot of an order (16 + i)
void expire_item(Context& c, HeroState& h, int slot);  // out of the slot, with the item's effects "on": "expired"
void drop_items(Context& c, Unit& hero);               // what falls to the ground when he dies
// Whether the hero's hands, inventory and backpack, have room for it: the stash is elsewhere.
bool hands_take(const Context& c, const HeroState& h, int item, int charges);
bool take_up(Context& c, HeroState& h, int item, int charges);  // false: they have none
bool lay_down(Context& c, int item, int charges,
              Vec2 at);  // false, and counted, if the pool of ground items is full

}  // namespace dota
