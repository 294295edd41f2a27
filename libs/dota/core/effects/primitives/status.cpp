// Primitives of the group "status": bits a unit is under for a time.
#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/modifiers.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

constexpr float kFlight = 1000;  // as far as a creature in fear runs from where it was

void status(Context& c, Invocation& inv, const EffectNode& n, int node) { add_to_targets(c, inv, n, node); }

// Roots and leashes end a teleport under way, but no other channel (patch 7.20).
void end_teleport(Context& c, Unit& u) {
  if (u.act != Act::Channel) return;
  int level = 0;
  const AbilityDef* a = slot_ability(c, u, u.order.slot, &level);
  if (a && a->root_disables) break_channel(c, u);
}

// Weakens its target to magic at once: damage of the same cast counts it.
void ethereal(Context& c, Invocation& inv, const EffectNode& n, int node) {
  add_to_targets(c, inv, n, node);
  for (Unit& u : select_targets(c, inv, n))
    if (u.stats_dirty) refresh_stats(c, u);
}

void root(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n))
    if (add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u))) end_teleport(c, u);
}

void spell_immune(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n)) {
    if (n.dispels) dispel(c, u, true, n.strong);
    add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
  }
}

void invis(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n)) {
    Modifier* m = add_modifier(c, u, inv, n, node, n.until_action ? kForever : duration_on(c, inv, n, u));
    if (m) m->ready = c.world.time + number(c, inv, n, Role::Fade);
    if (m && m->status) vanish(c, u);
  }
}

void taunt(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* caster = c.world.get(inv.caster);
  for (Unit& u : select_targets(c, inv, n)) {
    if (!add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u)) || !caster) continue;
    if (u.act == Act::Channel) break_channel(c, u);
    u.order = Order{};
    u.order.type = OrderType::AttackUnit;
    u.order.target = inv.caster;
    u.queued = Order{};
    u.act = Act::Idle;
  }
}

// Runs for its own fountain, a creature away from the caster, and does nothing else.
void fear(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  for (Unit& u : select_targets(c, inv, n)) {
    if (!add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u))) continue;
    if (u.act == Act::Channel) break_channel(c, u);
    const Vec2 away = u.pos - (caster ? caster->pos : inv.centre);
    u.order = Order{};
    u.order.type = OrderType::MoveTo;
    u.order.point = u.team < kTeams ? c.tables.map->hero_spawn[u.team]
                                    : u.pos + away * (kFlight / std::max(away.length(), 1.0f));
    u.queued = Order{};
    u.act = Act::Idle;
  }
}

void cyclone(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n)) {
    if (n.dispels) dispel(c, u, u.team == inv.team, n.strong);
    add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
    disjoint(c, u);
  }
}

void banish(Context& c, Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n)) {
    add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
    disjoint(c, u);
  }
}

// Tied to where the caster stands now.
void leash(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  for (Unit& u : select_targets(c, inv, n)) {
    if (Modifier* m = add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u))) {
      m->anchor = caster ? caster->pos : u.pos;
      end_teleport(c, u);
    }
  }
}

}  // namespace

void vanish(Context& c, Unit& u) {
  if (!(u.status & kTrueSighted)) disjoint(c, u, true);
}

std::span<const PrimitiveSpec> status_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Stun, status, kActs, kLasts, kStunned, "dur dur_creep pierces_immunity", ""},
      {Prim::Silence, status, kActs, kLasts, kSilenced,
       "dur end_damage_pct_of_taken attackers_crit_pct true_strike", ""},
      {Prim::Root, root, kActs, kLasts, kRooted, "dur dur_creep creep_level", ""},
      {Prim::Disarm, status, kActs, kLasts, kDisarmed, "dur dur_creep creep_level dur_vs_ranged", ""},
      {Prim::Hex, status, kActs, kLasts, kHexed | kSilenced | kDisarmed | kMuted, "dur ms_set",
       "kills_illusions: the game has no illusions"},
      {Prim::Mute, status, kActs, kLasts, kMuted, "dur", ""},
      {Prim::Break, status, kActs, kLasts, kBroken, "dur", ""},
      {Prim::Ethereal, ethereal, kActs, kLasts, kEthereal | kAttackImmune | kDisarmed, "dur mr_pct", ""},
      {Prim::PhysicalImmune, status, kActs, kLasts, kPhysicalImmune, "dur r", ""},
      {Prim::Phase, status, kActs, kLasts, kPhased, "dur", ""},
      {Prim::Taunt, taunt, kActs, kLasts, kTaunted, "dur pierces_immunity", ""},
      {Prim::Fear, fear, kActs, kLasts, kTaunted | kSilenced | kMuted | kDisarmed, "dur", ""},
      {Prim::Invis, invis, kActs | kHeld, kLasts, kInvisible,
       "dur fade stats unseen_stats break_bonus_damage reappears_on requires_standing_still",
       "phase: a unit that cannot be seen is walked through"},
      {Prim::SpellImmune, spell_immune, kActs, kLasts, kSpellImmune, "dur level_up_per_use", ""},
      {Prim::Cyclone, cyclone, kActs, kLasts, kStunned | kInvulnerable | kUntargetable, "dur land_damage", ""},
      {Prim::Banish, banish, kActs, kLasts, kBanished | kInvulnerable | kUntargetable, "dur can_move", ""},
      {Prim::Leash, leash, kActs, kLasts, kLeashed, "dur r", ""},
      {Prim::EvadeVision, status, kActs, kLasts, kInvisible | kUnseen, "dur reveal_r reveal_after",
       "attack_does_not_break: nothing does"},
  };
  return kSpecs;
}

}  // namespace dota
