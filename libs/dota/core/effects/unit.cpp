// Primitives of the group "unit".
#include "effects/modifiers.hpp"
#include "map/map_data.hpp"

namespace dota {

namespace {

// A summon that stands for as long as its caster channels: nothing touches it, and its area shoots for it.
void guard(Context& c, const Invocation& inv, const EffectNode& n, int node, Unit& u) {
  if (Modifier* m = add_modifier(c, u, inv, n, node, kForever)) {
    m->status = kInvulnerable | kUntargetable | kDisarmed;
    refresh_status(c, u);
  }
  Area* a = new_area(c, inv, node, u.pos, 0, number(c, inv, n, Role::Dur));
  if (!a) return;
  a->follow = c.world.handle(u);
  a->interval = u.attack_interval;
  a->next_tick = c.world.time + a->interval;
}

void summon(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (n.unit < 0) return;
  const int count = static_cast<int>(number(c, inv, n, Role::Count, nullptr, 1));
  const Vec2 at = n.at == Where::Point ? inv.point : caster ? caster->pos : inv.centre;
  const float facing = caster ? caster->facing : 0;
  for (int i = 0; i < count; ++i) {
    Unit* u = spawn_unit(c, n.unit, inv.team, free_place(c.world, *c.tables.map, at, 16), facing);
    if (!u) return;
    u->owner = inv.caster;
    if (n.on == Trigger::Channel) guard(c, inv, n, node, *u);
    const float life = number(c, inv, n, Role::Dur);
    if (life > 0) u->expires = c.world.time + life;
    if (n.given(Role::AttackDamage)) u->extra_dmg = number(c, inv, n, Role::AttackDamage) - u->dmg_min;
    u->stats_dirty = true;
  }
}

}  // namespace

Execute execute_unit(Prim p) { return p == Prim::Summon ? summon : nullptr; }

}  // namespace dota
