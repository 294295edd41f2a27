// Primitives of the group "status": bits a unit is under for a time.
#include "effects/modifiers.hpp"

namespace dota {

namespace {

void status(Context& c, Invocation& inv, const EffectNode& n, int node) { add_to_targets(c, inv, n, node); }

void spell_immune(Context& c, Invocation& inv, const EffectNode& n, int node) {
  UnitList list;
  select_targets(c, inv, n, list);
  for (int i = 0; i < list.n; ++i) {
    Unit& u = c.world.units[static_cast<std::size_t>(list.ids[static_cast<std::size_t>(i)])];
    if (n.dispels) dispel(c, u, true, n.strong);
    add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
  }
}

void invis(Context& c, Invocation& inv, const EffectNode& n, int node) {
  UnitList list;
  select_targets(c, inv, n, list);
  for (int i = 0; i < list.n; ++i) {
    Unit& u = c.world.units[static_cast<std::size_t>(list.ids[static_cast<std::size_t>(i)])];
    Modifier* m = add_modifier(c, u, inv, n, node, n.until_action ? kForever : duration_on(c, inv, n, u));
    if (m) m->ready = c.world.time + number(c, inv, n, Role::Fade);
  }
}

void taunt(Context& c, Invocation& inv, const EffectNode& n, int node) {
  UnitList list;
  select_targets(c, inv, n, list);
  Unit* caster = c.world.get(inv.caster);
  for (int i = 0; i < list.n; ++i) {
    Unit& u = c.world.units[static_cast<std::size_t>(list.ids[static_cast<std::size_t>(i)])];
    if (!add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u)) || !caster) continue;
    if (u.act == Act::Channel) break_channel(c, u);
    u.order = Order{};
    u.order.type = OrderType::AttackUnit;
    u.order.target = inv.caster;
    u.queued = Order{};
    u.act = Act::Idle;
  }
}

void cyclone(Context& c, Invocation& inv, const EffectNode& n, int node) {
  UnitList list;
  select_targets(c, inv, n, list);
  for (int i = 0; i < list.n; ++i) {
    Unit& u = c.world.units[static_cast<std::size_t>(list.ids[static_cast<std::size_t>(i)])];
    if (n.dispels) dispel(c, u, u.team == inv.team, n.strong);
    add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
    disjoint(c, u);
  }
}

void banish(Context& c, Invocation& inv, const EffectNode& n, int node) {
  UnitList list;
  select_targets(c, inv, n, list);
  for (int i = 0; i < list.n; ++i) {
    Unit& u = c.world.units[static_cast<std::size_t>(list.ids[static_cast<std::size_t>(i)])];
    add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
    disjoint(c, u);
  }
}

}  // namespace

Execute execute_status(Prim p) {
  switch (p) {
    case Prim::Stun:
    case Prim::Silence:
    case Prim::Root:
    case Prim::Disarm:
    case Prim::Hex:
    case Prim::Mute:
    case Prim::Break:
    case Prim::Ethereal:
    case Prim::Phase:
      return status;
    case Prim::Taunt:
      return taunt;
    case Prim::Invis:
      return invis;
    case Prim::SpellImmune:
      return spell_immune;
    case Prim::Cyclone:
      return cyclone;
    case Prim::Banish:
      return banish;
    default:
      return nullptr;
  }
}

}  // namespace dota
