// Auras: a carrier modifier sits on the source, and renews what its bearers have once a timestep.
#include <algorithm>

#include "effects/damage.hpp"
#include "effects/modifiers.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

constexpr float kLinger = 0.5f;  // seconds for which an aura's effect outlasts it (Liquipedia, Auras)

// Applies the effect of having stood in the aura for a given time, once for each unit.
void after_a_while(Context& c, const Invocation& inv, const EffectNode& n, int node, const UnitList& near) {
  for (Unit& u : near) {
    Modifier* m = u.alive ? add_modifier(c, u, inv, n, node, kRenewed, true) : nullptr;
    if (!m || m->phase > 0) continue;
    m->gathered += kFramesPerStep * kDt;
    if (m->gathered + kTimeSlack < number(c, inv, n, Role::After)) continue;
    m->phase = 1;
    run_on(c, inv, n.then_first, n.then_count, u);
  }
}

}  // namespace

void aura_frame(Context& c, Modifier& carrier, const EffectNode& n) {
  World& w = c.world;
  Unit& u = w.units[carrier.owner];
  if (!u.alive || !active(u, carrier)) return;
  Invocation inv = invocation_of(c, carrier);
  inv.centre = u.pos;
  const int node = carrier.node;
  if (n.given(Role::ManaPerSec)) {
    const float cost = number(c, inv, n, Role::ManaPerSec) * kFramesPerStep * kDt;
    if (u.mana < cost) return switch_off(c, u, inv.ability);
    give_mana(c, u, -cost);
  }
  Who whom = n.to == Who::Default ? Who::Enemies : n.to;
  if (n.on == Trigger::ToggleIncludeCreeps)  // switched, it leaves out all but heroes
    if (const ItemState* item = item_state(w, u, slot_of(c, u, carrier.ability)); item && item->toggle > 0)
      whom = Who::AlliedHeroes;
  const UnitList near =
      select_around(c, inv, n, whom, u.pos, n.global_radius ? kGlobal : number(c, inv, n, Role::R));
  if (!n.stats.empty() || n.status != 0) {
    const float linger = number(c, inv, n, Role::Linger, nullptr, kLinger);
    for (Unit& target : near) {
      if (n.stats.empty() && &target == &u) continue;  // the carrier sets the status of its bearer
      add_modifier(c, target, inv, n, node, std::max(linger, kRenewed), true);
    }
  }
  if (n.then_count == 0) return;
  if (n.given(Role::After)) return after_a_while(c, inv, n, node, near);
  const EffectNode& first = node_of(c, inv.ability, n.then_first);
  const float every =
      number(c, inv, n, Role::Interval, nullptr, number(c, inv, first, Role::Interval, nullptr, 1));
  // A carrier that was dead or disabled does not make up for missed ticks.
  if (carrier.next_tick < w.time - 2 * std::max(every, kRenewed)) carrier.next_tick = w.time;
  const float cost = number(c, inv, n, Role::ManaPerPulse);
  for (; w.due(carrier.next_tick); carrier.next_tick += every) {
    if (u.mana < cost) return switch_off(c, u, inv.ability);
    give_mana(c, u, -cost);
    for (Unit& target : near)
      if (target.alive) run_on(c, inv, n.then_first, n.then_count, target);
    if (!u.alive) return;  // by what its own blows returned
  }
}

}  // namespace dota
