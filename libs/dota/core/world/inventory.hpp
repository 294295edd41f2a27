// The scripted buyer's parts (Berner et al. 2019, appendix on scripted logic): purchases, carrying, courier.
#pragma once

#include "world/systems.hpp"

namespace dota {

constexpr int kPurchaseFrames = 10;  // a hero's buyer acts on every tenth frame, heroes on frames of their own

void learn_skills(Context& c, HeroState& h);  // spends ability points by the hero's skill order
void purchase(Context& c, HeroState& h);  // one purchase at most: consumables, wards, the next part of the build
void arrange_items(Context& c, HeroState& h);  // the most valuable six in the inventory, the rest in the backpack
void restock(Context& c);                      // shop stocks
bool at_home(const Context& c, const HeroState& h);  // within the reach of the own fountain
// Puts an item into a slot: stacks, then inventory, backpack, stash (only the stash when `to_stash`); false: no
// room.
bool place_item(Context& c, HeroState& h, int item, int charges, bool to_stash);
int held_charges(const HeroState& h, int item);  // over all slots; items without charges count 1
float item_value(const Context& c, const ItemState& s);

}  // namespace dota
