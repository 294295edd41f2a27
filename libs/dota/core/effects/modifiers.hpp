// The pool of modifiers: what sits on a unit for a time or as long as something is learned, held or near.
#pragma once

#include "effects/interpreter.hpp"

namespace dota {

enum ModifierFlag : std::uint8_t {
  kModDispellable = 1,   // a basic dispel takes it
  kModStrong = 2,        // only a strong dispel takes it
  kModDebuff = 4,        // put on by an enemy
  kModPassive = 8,       // there while the ability is learned or the item is held
  kModAura = 16,         // put on by an aura
  kModPierces = 32,      // stays when its bearer becomes spell immune
  kModBreakable = 64,    // a passive of an ability: does nothing while its bearer is broken
  kModKept = 128         // survives death
};

// Puts the node's modifier on the target for `duration` seconds (kForever: no end), or refreshes it when the same
// source already has it there. nullptr: the pool is full.
// `aura`: what an aura puts on the units near its carrier.
Modifier* add_modifier(Context& c, Unit& target, const Invocation& inv, const EffectNode& n, int node, float duration,
                       bool aura = false);
// The same on every unit the node acts on, for the node's own duration.
void add_to_targets(Context& c, const Invocation& inv, const EffectNode& n, int node);
// How long the node's modifier lasts on that unit: creep and ranged variants, status resistance of enemies.
float duration_on(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target);
// Recomputes the stats a modifier gives from its node. Returns whether anything changed.
bool fill_stats(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target, Modifier& m);
void remove_modifier(Context& c, int index);
Modifier* find_modifier(World& w, const Unit& u, int name);
const Modifier* find_modifier(const World& w, const Unit& u, int name);
// Removes what a dispel may remove: debuffs when `of_debuffs`, else buffs.
void dispel(Context& c, Unit& u, bool of_debuffs, bool strong);
void refresh_status(const Context& c, Unit& u);
void mark_dirty(const Context& c, Unit& u);  // stats and status follow its modifiers anew
// The run a modifier's own effects belong to.
Invocation invocation_of(const Context& c, const Modifier& m);
bool active(const Unit& u, const Modifier& m);  // false: a passive that Break has switched off
// Adds to the named stack of a stack_gain node that the unit bears, up to its maximum.
void gain_stack(Context& c, Unit& bearer, const Invocation& inv, const EffectNode& n, int node, int amount);
// Seconds that something renewed once a timestep lasts, so that it does not lapse between two renewals.
constexpr float kRenewed = (kFramesPerStep + 1) * kDt;
void aura_frame(Context& c, Modifier& carrier, const EffectNode& n);  // auras.cpp, once a timestep
void finish_teleport(Context& c, Unit& u, Vec2 goal);  // motion.cpp
void break_channel(Context& c, Unit& caster);                         // casting.cpp: the channel ends unfinished

}  // namespace dota
