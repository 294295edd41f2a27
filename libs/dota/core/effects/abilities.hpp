// Abilities and items in a unit's slots: their numbers, whether and on whom they can be cast, the cast.
#pragma once

#include "world/world.hpp"

namespace dota {

// upgrades.cpp: a number of the ability's own fields for that unit, with its talents and scepter.
float cast_number(const Context& c, const Unit& u, const AbilityDef& a, CastNumber what, int level);
// How far it can be cast, hulls not counted: cast_number() and the range that items add; 0: it has no range.
float cast_reach(const Context& c, const Unit& u, const AbilityDef& a, int level);
// Charges an ability holds at most, 0 when it goes by its cooldown; seconds in which one comes back.
int charge_limit(const Context& c, const Unit& u, const AbilityDef& a, int level);
float charge_restore(const Context& c, const Unit& u, const AbilityDef& a, int level);
// Whether the slot (0-5 ability, 16+i item) can be cast now, apart from range and target.
bool castable(const Context& c, const Unit& u, int slot);
bool switched_on(const Context& c, const Unit& u, int slot);  // a toggled ability that is on
const AbilityDef* slot_ability(const Context& c, const Unit& u, int slot, int* level);  // nullptr: empty
bool valid_cast_target(const Context& c, const Unit& caster, const AbilityDef& a, const Unit& target);
void cast_effect(Context& c, Unit& caster, int slot, const Order& o);  // costs are paid by orders.cpp just before
void channel_end(Context& c, Unit& caster, bool finished);
void before_ability_cast(Context& c, Unit& caster, const AbilityDef& a);  // passives that act first
void on_ability_cast(Context& c, Unit& caster, const AbilityDef& a);      // magic wand charges of enemies near

}  // namespace dota
