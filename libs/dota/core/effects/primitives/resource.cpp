// Primitives of the group "resource".
#include <algorithm>

#include "effects/damage.hpp"
#include "effects/experience.hpp"
#include "effects/modifiers.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

// Charges of the item the program was used from, before the use.
float charges_used(const Context& c, const Invocation& inv) {
  const Unit* u = c.world.get(inv.caster);
  const ItemState* item = u ? item_state(c.world, *u, inv.slot) : nullptr;
  return item ? static_cast<float>(item->charges) : 0;
}

float gained(const Context& c, const Invocation& inv, const EffectNode& n) {
  return number(c, inv, n, Role::Amount) + number(c, inv, n, Role::PerCharge) * charges_used(c, inv);
}

void heal_now(Context& c, Invocation& inv, const EffectNode& n, int node) {
  if (n.given(Role::Over)) {  // heals the mana it cost, evenly
    Unit* u = c.world.get(inv.caster);
    if (!u) return;
    const float spent = std::min(u->mana, u->max_mana * number(c, inv, n, Role::CostManaPct) / 100);
    give_mana(c, *u, -spent);
    const float over = number(c, inv, n, Role::Over);
    if (Modifier* m = add_modifier(c, *u, inv, n, node, over)) {
      m->next_tick = c.world.time;
      m->per_tick = -spent / over;
    }
    return;
  }
  for (Unit& u : select_targets(c, inv, n))
    heal_by(c, inv.caster, u, gained(c, inv, n));
}

void mana_gain(Context& c, Invocation& inv, const EffectNode& n, int) {
  for (Unit& u : select_targets(c, inv, n))
    give_mana(c, u, gained(c, inv, n));
}

void over_time(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const bool hot = n.prim == Prim::Hot;
  for (Unit& u : select_targets(c, inv, n)) {
    float rate = number(c, inv, n, Role::PerSec, &u);
    if (!n.given(Role::Dur)) {  // carried by an aura: one interval's worth
      const float seconds = number(c, inv, n, Role::Interval, nullptr, 1);
      const float pct = number(c, inv, n, Role::PctMaxPerSec, &u) / 100;
      if (hot)
        heal_by(c, inv.caster, u, (rate + pct * u.max_hp) * seconds);
      else
        give_mana(c, u, (rate + pct * u.max_mana) * seconds);
      continue;
    }
    const float dur = duration_on(c, inv, n, u);
    if (n.given(Role::Total)) rate += number(c, inv, n, Role::Total, &u) / number(c, inv, n, Role::Dur, &u);
    Modifier* m = add_modifier(c, u, inv, n, node, dur);
    if (!m) continue;
    m->next_tick = c.world.time;
    (hot ? m->per_tick : m->mana_per_tick) = hot ? -rate : rate;
  }
}

void hp_cost(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* u = c.world.get(inv.caster);
  if (!u || !u->alive) return;
  if (n.given(Role::PerSec)) {  // for as long as it is switched on
    if (Modifier* m = add_modifier(c, *u, inv, n, node, kForever)) {
      m->per_tick = number(c, inv, n, Role::PerSec);
      m->next_tick = c.world.time;
    }
    return;
  }
  const float amount = number(c, inv, n, Role::Amount);
  u->hp =
      n.given(Role::Nonlethal) ? std::max(std::min(u->hp, 1.0f), u->hp - amount) : std::max(u->hp - amount, 1.0f);
}

// A link from the caster to its target that ticks until it breaks.
void link(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* target = c.world.get(inv.target);
  if (!target || !affects(c, inv, n, *target)) return;
  const auto tie = [&](Unit& to, bool extra) {
    Area* a = new_area(c, inv, node, to.pos, 0, number(c, inv, n, Role::Dur));
    if (!a) return;
    a->follow = c.world.handle(to);
    a->interval = number(c, inv, n, Role::Interval);
    a->next_tick = c.world.time + a->interval;
    a->extra = extra;
    if (!n.stats.empty()) add_modifier(c, to, inv, n, node, duration_on(c, inv, n, to));
  };
  tie(*target, false);
  int more = static_cast<int>(number(c, inv, n, Role::Count));
  if (more <= 0) return;
  for (Unit& u : select_around(c, inv, n, Who::Enemies, target->pos, number(c, inv, n, Role::R))) {
    if (more == 0) break;
    if (&u == target || u.max_mana <= 0) continue;
    tie(u, true);
    --more;
  }
}

void xp_gain(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* u = c.world.get(inv.caster);
  HeroState* h = u ? hero_of(c.world, *u) : nullptr;
  if (!h) return;
  float amount = number(c, inv, n, Role::Amount);
  if (n.given(Role::PlusPerTeamUse)) {
    std::uint8_t& used = c.world.teams[inv.team].tomes;
    amount += number(c, inv, n, Role::PlusPerTeamUse) * static_cast<float>(used);
    if (used < 255) ++used;
  }
  give_xp(c, *h, amount);
}

void sacrifice(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* target = c.world.get(inv.target);
  Unit* caster = c.world.get(inv.caster);
  if (!target || !caster || !is_basic(*target) || target->team != inv.team) return;
  give_mana(c, *caster, target->hp * number(c, inv, n, Role::ManaPctOfHp) / 100);
  kill(c, *target, caster);
}

void refresh_cooldown(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* u = c.world.get(inv.caster);
  HeroState* h = u ? hero_of(c.world, *u) : nullptr;
  if (!h) return;
  const bool own = n.own_only;
  for (AbilityState& a : h->abilities)
    if (a.id >= 0 && (!own || a.id == inv.ability)) a.ready = c.world.time;
  if (own) return;
  for (ItemState& i : h->items) {
    if (i.id < 0) continue;
    const int ability = c.tables.items[i.id].ability;
    if (ability < 0) continue;
    const Program& p = program_of(c, ability);
    const bool refresher = std::any_of(p.roots.begin(), p.roots.end(),
                                       [&](std::uint16_t r) { return p.nodes[r].prim == Prim::RefreshCooldown; });
    if (!refresher) i.ready = c.world.time;
  }
}

void charges(Context&, Invocation&, const EffectNode&, int) {}  // kept by modifiers_frame() and castable()

}  // namespace

std::span<const PrimitiveSpec> resource_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::Heal, heal_now, kActs, kOnce, 0, "amount per_charge over cost_mana_pct", ""},
      {Prim::Hot, over_time, kActs, kLasts, 0,
       "per_sec pct_max_per_sec pct_current_hp_per_sec total interval dur ends_on", ""},
      {Prim::ManaOverTime, over_time, kActs, kLasts, 0, "per_sec pct_max_per_sec total interval dur ends_on", ""},
      {Prim::ManaGain, mana_gain, kActs, kOnce, 0, "amount per_charge",
       "temporary: mana given for a time only, as by Soul Ring, is spent at once"},
      {Prim::HpCost, hp_cost, kActs, kLasts, 0, "amount per_sec nonlethal delay", ""},
      {Prim::ManaDrain, link, kActs, kLasts, 0, "per_sec interval dur break_dist count r stats", ""},
      {Prim::Drain, link, kActs, kLasts, 0, "dps dps_pct_max_hp interval dur heal_pct break_dist one_per_target",
       ""},
      {Prim::XpGain, xp_gain, kActs, kOnce, 0, "amount plus_per_team_use", ""},
      {Prim::SacrificeAllyCreep, sacrifice, kActs, kOnce, 0, "mana_pct_of_hp", ""},
      {Prim::RefreshCooldown, refresh_cooldown, kActs, kOnce, 0, "what",
       "consumes: the item is consumable, and casting takes it"},
      {Prim::Charges, charges, kActs, kLasts, 0, "max restore", ""},
  };
  return kSpecs;
}

}  // namespace dota
