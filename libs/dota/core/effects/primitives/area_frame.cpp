// Areas from frame to frame, and effects that come after a delay.
#include <algorithm>

#include "effects/damage.hpp"
#include "effects/interpreter.hpp"
#include "effects/modifiers.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"

namespace dota {

Invocation invocation_of(const Area& a) {
  Invocation inv;
  inv.caster = a.owner;
  inv.team = a.team;
  inv.ability = a.ability;
  inv.level = a.level;
  inv.target = a.follow;
  inv.point = inv.centre = a.pos;
  inv.until = a.until;
  return inv;
}

namespace {

// What standing in the area gives, renewed once a timestep.
void renew(Context& c, const Area& a, const EffectNode& n, int node) {
  if (n.prim != Prim::GroundArea || n.modifier < 0 || !c.world.due(a.start)) return;
  const Invocation inv = invocation_of(a);
  const float lasts = std::max(kRenewed, number(c, inv, n, Role::Linger));
  for (Unit& u : select_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to, a.pos, a.radius))
    add_modifier(c, u, inv, n, node, lasts);
}

}  // namespace

Area* area_of(World& w, Handle owner, int ability, int node) {
  for (Area& a : w.areas_in_use())
    if (a.active && a.owner == owner && a.ability == ability && a.node == node) return &a;
  return nullptr;
}

namespace {

// What the cast of a link put on its target lasts no longer than the link.
void untie(Context& c, const Area& a) {
  Unit* target = c.world.get(a.follow);
  if (!target) return;
  each_modifier(c, *target, [&](Modifier& m, const EffectNode&, int i) {
    if (m.ability == a.ability && m.source == a.owner) remove_modifier(c, i);
  });
}

}  // namespace

void end_area(Context& c, Area& a) {
  a.active = false;
  const EffectNode& n = node_of(c, a.ability, a.node);
  if (n.prim == Prim::Drain || n.prim == Prim::ManaDrain) untie(c, a);
  if (a.blocks) unblock_line(c.world, *c.tables.map, a);
  if (n.prim == Prim::Spirits)
    if (Unit* caster = c.world.get(a.owner))
      heal(c, *caster, a.gathered * number(c, invocation_of(a), n, Role::HealPctOfDamageOnEnd) / 100);
  if (n.prim != Prim::Summon && n.prim != Prim::MissileUnit) return;
  if (Unit* u = c.world.get(a.follow); u && u->kind == UnitKind::Summon) remove_unit(c, *u);
}

namespace {

void delayed_frame(Context& c) {
  World& w = c.world;
  for (int i = 0; i < w.delayed_end; ++i) {  // what runs may delay something else
    Delayed& d = w.delayed[i];
    if (!d.active || !c.world.due(d.at)) continue;
    const Delayed was = d;
    d.active = false;
    Invocation inv;
    inv.caster = was.owner;
    inv.team = was.team;
    inv.ability = was.ability;
    inv.level = was.level;
    inv.target = was.target;
    inv.point = inv.centre = was.point;
    inv.child = true;
    inv.late = true;
    inv.step = was.step;
    run_node(c, inv, was.node);
  }
  while (w.delayed_end > 0 && !w.delayed[w.delayed_end - 1].active)
    --w.delayed_end;
}

}  // namespace

bool run_ticks(Context& c, Area& a) {
  const EffectNode& n = node_of(c, a.ability, a.node);
  const std::uint16_t generation = a.generation;
  const auto same = [&] { return a.active && a.generation == generation; };
  while (same() && a.interval > 0 && c.world.due(a.next_tick) && a.next_tick <= a.until + kTimeSlack) {
    a.next_tick += a.interval;
    tick_area(c, a, n);
  }
  return same();
}

void areas_frame(Context& c) {
  World& w = c.world;
  const bool slow = w.frame % kFramesPerStep == 0;
  delayed_frame(c);
  for (int i = 0; i < w.areas_end; ++i) {
    Area& a = w.areas[i];
    if (!a.active) continue;
    const EffectNode& n = node_of(c, a.ability, a.node);
    if (a.follow.index >= 0) {
      const Unit* u = w.get(a.follow);
      if (u) a.pos = u->pos;
      if ((!u || !u->alive) && n.prim != Prim::Vision && n.prim != Prim::ManaDrain && n.prim != Prim::Drain &&
          n.prim != Prim::StatDrain && !n.given(Role::OutlivesCaster)) {
        a.active = false;
        continue;
      }
    }
    if (!run_ticks(c, a)) continue;
    if (w.due(a.until)) {
      end_area(c, a);
      continue;
    }
    if (slow) renew(c, a, n, a.node);
  }
  while (w.areas_end > 0 && !w.areas[w.areas_end - 1].active)
    --w.areas_end;
}

void reveal_effects(Context& c) {
  World& w = c.world;
  for (const Area& a : w.areas_in_use()) {
    if (!a.active) continue;
    const EffectNode& n = node_of(c, a.ability, a.node);
    if (n.prim != Prim::Vision || !w.due(a.start)) continue;
    reveal_area(w, *c.tables.map, a.team, a.pos, a.radius, true);
    if (n.given(Role::TrueSight))
      reveal_invisible(w, *c.tables.map, a.team, a.pos, number(c, invocation_of(a), n, Role::TrueSight));
  }
  for (int i = 0; i < w.projectiles_end; ++i) {
    const Projectile& p = w.projectiles[i];
    if (p.kind == Projectile::Kind::None || p.ability < 0) continue;
    const EffectNode& n = node_of(c, p.ability, p.node);
    if (!n.given(Role::VisionR)) continue;
    Invocation inv;
    inv.caster = p.source;
    inv.level = p.level;
    reveal_area(w, *c.tables.map, p.team, p.pos, number(c, inv, n, Role::VisionR), true);
  }
}

}  // namespace dota
