// What modifiers and items do when a hero casts an ability, or when it hits.
#include "effects/abilities.hpp"
#include "effects/modifiers.hpp"
#include "effects/triggers.hpp"
#include "map/vision.hpp"

namespace dota {

namespace {

// What the caster's passives do when he casts an ability: just before its effects, or just after them.
void run_cast_procs(Context& c, Unit& caster, Trigger when) {
  each_modifier(c, caster, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim != Prim::Proc || n.on != when) return;
    Invocation inv = invocation_of(c, caster, m.ability, m.level);
    run_range(c, inv, n.then_first, n.then_count);
  });
}

}  // namespace

void before_ability_cast(Context& c, Unit& caster, const AbilityDef& a) {
  if (a.is_item < 0) run_cast_procs(c, caster, Trigger::BeforeOwnAbilityCast);
}

void on_ability_hits(Context& c, const Invocation& inv, Unit& target) {
  Unit* caster = c.world.get(inv.caster);
  if (!caster || caster->hero < 0 || target.team == inv.team || inv.ability < 0) return;
  if (!c.tables.heroes[c.world.heroes[caster->hero].def].reacts_to_hits) return;
  const AbilityDef& a = c.tables.abilities[inv.ability];
  if (a.is_item >= 0 || a.passive || a.owner_unit < 0) return;
  each_modifier(c, *caster, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim != Prim::Proc || n.on != Trigger::OwnAbilityHits || !target.alive) return;
    run_on(c, invocation_of(c, *caster, m.ability, m.level), n.then_first, n.then_count, target);
  });
}

void on_ability_cast(Context& c, Unit& caster, const AbilityDef& a) {
  if (a.is_item >= 0 || !caster.alive) return;
  World& w = c.world;
  run_cast_procs(c, caster, Trigger::OwnAbilityCast);
  if (caster.team >= kTeams) return;
  for (HeroState& h : w.heroes) {
    Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive || u->team == caster.team) continue;
    for (int slot = 0; slot < kInventory; ++slot) {
      ItemState& item = h.items[slot];
      const int ability = item.id < 0 ? -1 : c.tables.items[item.id].ability;
      if (ability < 0) continue;
      const Program& p = program_of(c, ability);
      for (const std::uint16_t r : p.roots) {
        const EffectNode& n = p.nodes[r];
        if (n.prim != Prim::ChargeOnNearbyCast) continue;
        const Invocation inv = invocation_of(c, *u, ability, 1);
        if (item.charges < static_cast<int>(number(c, inv, n, Role::Max)) &&
            distance(u->pos, caster.pos) <= number(c, inv, n, Role::R) && unit_visible(w, u->team, caster))
          ++item.charges;
      }
    }
  }
}

}  // namespace dota
