// Damage, healing (damage.cpp) and death (death.cpp).
#pragma once

#include "world/world.hpp"

namespace dota {

struct DamageInfo {
  Unit* source = nullptr;  // may be null (its owner is gone)
  Unit* target = nullptr;
  float amount = 0;
  DamageType type = DamageType::Physical;
  bool attack = false;  // an attack's own hit: class table and block apply
  std::int16_t ability = -1;
  bool no_reflect = false;
  bool nonlethal = false;   // leaves one point of health
  bool hp_removal = false;  // reduced as its type is, but ends nothing that damage ends
};
// Deals damage after armor, resistance and shields, with the death that follows. Returns that damage, which may
// exceed the health that was left: lifesteal heals by it (patch 7.20).
float deal_damage(Context& c, const DamageInfo& d);
void heal(Context& c, Unit& target, float amount);
// Takes mana away, less by the unit's reduction of mana costs and losses. Returns what it lost.
float take_mana(Unit& target, float amount);
// Heals as much more as the healer gives (Holy Locket).
void heal_by(Context& c, Handle healer, Unit& target, float amount);
void give_mana(Context& c, Unit& target, float amount);
void kill(Context& c, Unit& victim,
          Unit* killer);                   // bounties, XP, events, respawn timers, buildings' consequences
bool reincarnate(Context& c, Unit& hero);  // Aegis: true when the hero is to rise again and did not die for good

}  // namespace dota
