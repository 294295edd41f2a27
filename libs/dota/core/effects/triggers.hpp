// Reports events of the game to the modifiers that react to them.
#pragma once

#include "world/world.hpp"

namespace dota {

struct DamageInfo;
struct Invocation;

struct AttackRoll {
  float damage = 0, base = 0;  // base: without what items and effects add
  float crit_pct = 100;        // the least that the attack does, in percent; the greatest crit counts
  float share = 1, plus = 0;   // what the attack does of its damage, and besides, before crits
  bool crit = false, true_strike = false;
  bool instant = false;        // it has no swing, and ends or uses up nothing of its attacker
  bool from_anywhere = false;  // it strikes the back from any side
  float sure = 0;              // of the damage: what an attack that misses does nevertheless
};
void on_attack_start(Context& c, Unit& source, Unit& target, AttackRoll& roll);  // crits, next-attack modifiers
bool takes_attack_effects(const Unit& source, const Unit& target);
// Corruption, bashes, stacks. Returns the damage that they add to the attack.
float before_attack_lands(Context& c, Unit& source, Unit& target);
// Procs, cleave, orbs. `rolled`: the attack's damage before armor and block (cleave reads it); < 0: not known.
void on_attack_landed(Context& c, Unit& source, Unit& target, float damage_dealt, float rolled = -1);
// damaged_by_enemy, ends_on; `blow`: as it was dealt, before reductions
void on_damaged(Context& c, Unit& target, Unit* source, float amount, const DamageInfo& blow);
void on_spell_damage(Context& c, Unit& source, const Unit& target, float amount);  // what spells give back
float blocked_damage(Context& c, Unit& target);  // what a block takes off an attack, before armor
float absorb_damage(Context& c, Unit& target, float amount, DamageType type, bool attack);  // shields
void on_ability_hits(Context& c, const Invocation& inv,
                     Unit& target);  // cast_triggers.cpp: just before its damage
void on_kill(Context& c, Unit& killer, Unit& victim);
void on_death(Context& c, Unit& victim, Unit* killer);

}  // namespace dota
