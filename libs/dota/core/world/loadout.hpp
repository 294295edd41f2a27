// Abilities and items as a component of a unit: a hero's are in its HeroState, those of other units in a pool of
// the world. Casting, costs, cooldowns and inventory use this interface, so that all kinds of units share their
// code.
#pragma once

#include "world/world.hpp"

namespace dota {

// Gives the unit a loadout with the abilities of its type that do something when used; none when it has no such
// ability.
void give_loadout(World& w, const Tables& t, Unit& u);
void drop_loadout(World& w, Unit& u);

// The component's slots; nullptr when the unit has no loadout or there is no such slot. Slots are those of an
// order: 0-5 an ability, 16 + i an item.
AbilityState* ability_state(World& w, const Unit& u, int slot);
const AbilityState* ability_state(const World& w, const Unit& u, int slot);
ItemState* item_state(World& w, const Unit& u, int slot);
const ItemState* item_state(const World& w, const Unit& u, int slot);
int item_slots(const Unit& u);  // how many item slots its loadout has, usable or not

}  // namespace dota
