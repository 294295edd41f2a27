// The scripted buyer's parts (Berner et al. 2019, appendix on scripted logic): purchases, carrying, courier.
#pragma once

#include <vector>

#include "world/world.hpp"

namespace dota {

constexpr int kPurchaseFrames = 10;  // a hero's buyer acts on every tenth frame, heroes on frames of their own

void purchase(Context& c, HeroState& h);  // one purchase at most: consumables, wards, the next part of the build
void arrange_items(Context& c, HeroState& h);  // the most valuable six in the inventory, the rest in the backpack
void pick_up(Context& c);                      // the nearest hero with a free slot takes each item on the ground
void restock(Context& c);                      // shop stocks
bool at_home(const Context& c, const HeroState& h);  // within the reach of the own fountain
// shops.cpp: where the scripted buyer gets an item now. Hand: where the hero stands, or, without a scripted
// courier, anywhere; Stash: at home, for the courier to bring; Nowhere: only in a secret shop.
enum class Counter : std::uint8_t { Hand, Stash, Nowhere };
Counter counter_of(const Context& c, const HeroState& h, int item);
bool within_shop(const Context& c, Vec2 p, int item);  // near a side or secret shop that sells it
Vec2 nearest_secret_shop(const Context& c, Vec2 p);
bool buy_at(Context& c, HeroState& h, int item, bool to_stash, bool by_courier, int* at = nullptr);  // buyer.cpp
bool can_afford(const HeroState& h, float cost);
// Where a recipe goes: into the stash only when it must be flown from there.
bool goes_to_stash(const Context& c, const HeroState& h);
int free_slots(const HeroState& h, bool stash);  // of the stash alone, or of all but the scroll's
// The recipe of an item of which the hero holds the most components; the first when none stands out.
const std::vector<int>& choose_recipe(const HeroState& h, const ItemDef& def);
void sell_item(Context& c, HeroState& h, int slot);
// Buys the item, or what of its parts can be bought now, and joins them; how many purchases that were.
int buy_what_can_be(Context& c, HeroState& h, int item);
int next_item(const Context& c, const HeroState& h);  // that the build comes to; -1: it is complete
void skip_owned(const Context& c, HeroState& h);      // the build's next entry is one that the hero does not hold
// Exchanges two slots; what comes into the inventory from the backpack works only after a while.
void move_item(Context& c, HeroState& h, int from, int to);
// The recipe that has come to the item's parts; they become the item, or its gold comes back when one is gone.
void finish_recipe(Context& c, HeroState& h);

}  // namespace dota
