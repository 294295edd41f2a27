// Attacks: who may be attacked, the chase, the blow.
#pragma once

#include "effects/triggers.hpp"
#include "world/world.hpp"

namespace dota {

bool can_attack(const Context& c, const Unit& a,
                const Unit& b);  // allowed target (deny rules, immunity, visibility)
// Whether the attack misses: blindness, evasion, and higher ground for ranged attackers, each on its own.
bool attack_misses(Context& c, const Unit& a, const Unit& b, bool ranged);
bool in_attack_range(const Unit& a, const Unit& b);
void attack_frame(Context& c, Unit& u, Unit& target);  // chase, turn, windup, launch
void land_attack(Context& c, Unit* source, Unit& target, float damage,
                 bool crit);  // miss, modifiers, procs, damage
// An attack without a swing, which never misses, with the crits and procs of its attacker. `roll`: what it does.
void strike_at_once(Context& c, Unit& source, Unit& target, AttackRoll roll);

}  // namespace dota
