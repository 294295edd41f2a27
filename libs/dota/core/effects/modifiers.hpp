// The pool of modifiers: effects on a unit that last for a time, or while an ability is learned, an item held or
// an aura near.
#pragma once

#include "effects/interpreter.hpp"

namespace dota {

enum ModifierFlag : std::uint8_t {
  kModDispellable = 1,  // a basic dispel takes it
  kModStrong = 2,       // only a strong dispel takes it
  kModDebuff = 4,       // put on by an enemy
  kModPassive = 8,      // there while the ability is learned or the item is held
  kModAura = 16,        // put on by an aura
  kModBreakable = 64,   // a passive of an ability: does nothing while its bearer is broken
  kModKept = 128        // survives death
};

bool active(const Unit& u, const Modifier& m);  // false: a passive that Break has switched off
// Puts the node's modifier on the target for `duration` seconds (kForever: no end), or refreshes it when the same
// source already has it there. nullptr: the pool is full.
// `aura`: it comes from a carrier that may have the same name, as what an aura puts on the units near.
Modifier* add_modifier(Context& c, Unit& target, const Invocation& inv, const EffectNode& n, int node,
                       float duration, bool aura = false);
// The same on every unit the node acts on, for the node's own duration.
void add_to_targets(Context& c, const Invocation& inv, const EffectNode& n, int node);
// How long the node's modifier lasts on that unit: creep and ranged variants, status resistance of enemies.
float duration_on(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target);
// Whether a node's numbers for creeps hold for this unit: no hero, and no creep above its `creep_level`.
bool creep_numbers(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target);
// Runs f(modifier, node, index) for the unit's modifiers that work now, first come first. f may remove modifiers,
// and the unit may die of it: what is freed on the way is not gone into.
template <class F>
void each_modifier(Context& c, Unit& u, F&& f) {
  const std::int16_t owner = c.world.handle(u).index;
  for (int i = u.modifiers; i >= 0;) {
    Modifier& m = c.world.modifiers[i];
    if (m.owner != owner) return;
    const int next = m.next;
    const std::uint16_t after = next < 0 ? 0 : c.world.modifiers[next].generation;
    if (m.node >= 0 && active(u, m)) f(m, node_of(c, m.ability, m.node), i);
    if (next >= 0 && c.world.modifiers[next].generation != after) return;  // given out again
    i = next;
  }
}
// Whether a modifier gated by chance, cooldown or a number of tries fires now; starts its cooldown when it does.
bool fires(Context& c, Modifier& m, const EffectNode& n, const Invocation& inv, const Unit& bearer);
// Recomputes the stats a modifier gives from its node. Returns whether anything changed.
bool fill_stats(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target, Modifier& m);
// What follows from its node and flags: Modifier::rests.
bool rests(const Modifier& m, const EffectNode& n);
void remove_modifier(Context& c, int index);
// Puts a per_target node's modifier on the caster, in place of the one that the target gave it before.
Modifier* add_per_target(Context& c, Unit& caster, const Invocation& inv, const EffectNode& n, int node,
                         float duration);
// Takes so many stacks off the modifier again after that time.
void end_stacks_later(Context& c, const Modifier& m, int count, float seconds);
void stack_ends_frame(Context& c);  // once a timestep
Modifier* find_modifier(World& w, const Unit& u, int name);
const Modifier* find_modifier(const World& w, const Unit& u, int name);
// Removes what a dispel may remove: debuffs when `of_debuffs`, else buffs.
void dispel(Context& c, Unit& u, bool of_debuffs, bool strong);
void refresh_status(const Context& c, Unit& u);
void mark_dirty(const Context& c, Unit& u);  // stats and status are computed from its modifiers again
// The run a modifier's own effects belong to.
Invocation invocation_of(const Context& c, const Modifier& m);
// Adds to the named stack of a stack_gain node that the unit bears, up to its maximum.
void gain_stack(Context& c, Unit& bearer, const Invocation& inv, const EffectNode& n, int node, int amount);
// Seconds that something renewed once a timestep lasts, so that it does not lapse between two renewals.
constexpr float kRenewed = (kFramesPerStep + 1) * kDt;
void aura_frame(Context& c, Modifier& carrier, const EffectNode& n);  // auras.cpp, once a timestep
bool use_stored_rune(Context& c, Unit& hero, int slot);  // runes.cpp: true when the slot's bottle held one
void bottles_frame(Context& c, Unit& hero);              // runes.cpp: refilling, runes that are kept no longer
// motion.cpp: whether a leap met an enemy hero, which ends it.
bool leap_meets(Context& c, Modifier& m, const EffectNode& n, int index, Unit& u);
// motion.cpp: the end of a leap.
void leap_lands(Context& c, const Invocation& inv, const EffectNode& n, Unit& u);
void vanish(Context& c, Unit& u);  // status.cpp: what flies at a unit that becomes invisible loses it
void settle(Context& c, Unit& u);  // onto the nearest place it can stand, after a forced motion
void finish_teleport(Context& c, Unit& u, Vec2 goal);  // motion.cpp
Area* area_of(World& w, Handle owner, int ability,
              int node);  // area_frame.cpp: the owner's that is active, or nullptr
void launch_spirit(Context& c, Area& a, const EffectNode& n, const Unit& target);  // projectile_flight.cpp
void fly_missile(Context& c, Area& a, const EffectNode& n);                        // unit.cpp
float backstab(Context& c, Unit& source, const Unit& target,
               bool from_anywhere);  // attack_triggers.cpp: what it adds
void reappear(Context& c, Unit& u, Modifier& m,
              const EffectNode& n);  // casting.cpp: seen until it has faded again
void strike_at_random(Context& c, Invocation& inv, const EffectNode& n, Vec2 p, float r);  // attack.cpp
void break_channel(Context& c, Unit& caster);       // casting.cpp: the channel ends unfinished
void switch_off(Context& c, Unit& u, int ability);  // casting.cpp: a toggled ability or item

}  // namespace dota
