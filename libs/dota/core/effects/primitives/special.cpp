// Primitives of the group "special".
#include <algorithm>

#include "effects/experience.hpp"
#include "effects/gold.hpp"
#include "effects/items.hpp"
#include "effects/modifiers.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"

namespace dota {

namespace {

void place_ward(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* caster = c.world.get(inv.caster);
  HeroState* h = caster ? hero_of(c.world, *caster) : nullptr;
  if (!h || n.unit < 0) return;
  Unit* u = spawn_unit(c, n.unit, inv.team, inv.point, 0);
  if (!u) return;
  u->owner = inv.caster;
  u->expires = c.world.time + number(c, inv, n, Role::Life);
  ++h->wards_placed;
}

void transmute(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* caster = c.world.get(inv.caster);
  Unit* target = c.world.get(inv.target);
  HeroState* h = caster ? hero_of(c.world, *caster) : nullptr;
  if (!h || !target || !is_basic(*target) || target->kind == UnitKind::Roshan) return;
  const UnitDef& def = c.tables.units[target->type];
  if (def.ancient) return;
  // The creep's own bounty is replaced, its experience multiplied for the user alone.
  give_gold(c, *h, number(c, inv, n, Role::Gold), true);
  give_xp(c, *h, def.xp * number(c, inv, n, Role::XpMult));
  remove_unit(c, *target);
}

void transfer(Context& c, Invocation& inv, const EffectNode& n, int) {
  Unit* ally = c.world.get(inv.target);
  HeroState* h = ally ? hero_of(c.world, *ally) : nullptr;
  if (h && n.item >= 0) place_item(c, *h, n.item, 1, false);
}

void on_targets(Context& c, Invocation& inv, const EffectNode& n, int node) { add_to_targets(c, inv, n, node); }

// The item is used up, and what it gives is its eater's for good.
void consume(Context& c, Invocation& inv, const EffectNode& n, int node) {
  Unit* caster = c.world.get(inv.caster);
  Unit* target = c.world.get(inv.target);
  if (!target) target = caster;
  if (!caster || !target) return;
  if (Modifier* m = add_modifier(c, *target, inv, n, node, kForever))
    m->flags = static_cast<std::uint8_t>((m->flags & ~(kModDispellable | kModStrong)) | kModKept);
  take_item(c, *caster, inv.slot);
}

// A courier for a team that has none.
void deliver(Context& c, Invocation& inv, const EffectNode&, int) {
  TeamState& t = c.world.teams[inv.team];
  if (!c.world.get(t.courier)) t.courier_respawn = c.world.time;
}

// Another ability of the caster, at the rank he has it, on the same target or on each of several.
void cast_ability(Context& c, Invocation& inv, const EffectNode& n, int) {
  const Unit* caster = c.world.get(inv.caster);
  const AbilityState* s = caster ? ability_state(c.world, *caster, slot_of(c, *caster, n.ability)) : nullptr;
  if (!s || s->level <= 0) return;
  for (const Unit& u : select_targets(c, inv, n)) {
    Invocation other = invocation_of(c, *caster, n.ability, s->level);
    other.target = c.world.handle(u);
    other.point = u.pos;
    run_trigger(c, other, Trigger::Cast);
  }
}

// Read where they matter: by the triggers, by casting, or by the systems that know aegis and couriers.
void carried(Context&, Invocation&, const EffectNode&, int) {}

}  // namespace

std::span<const PrimitiveSpec> special_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::PlaceWard, place_ward, kActs, kOnce, 0, "unit life",
       "vision: the ward's row of units.json; true_sight: the ward's row of units.json"},
      {Prim::Transmute, transmute, kActs, kOnce, 0, "gold xp_mult", ""},
      {Prim::ItemTransferCharge, transfer, kActs, kOnce, 0, "gives", ""},
      {Prim::ChargeOnNearbyCast, carried, kHeld, kLasts, 0, "r max", ""},
      {Prim::ChargeOnNearbyDeath, carried, kHeld, kLasts, 0,
       "r first then lose_on_death lose_on_death_frac_kept closest_only", ""},
      {Prim::ToggleStat, carried, kHeld, kLasts, 0, "stats amount", ""},
      {Prim::SpellBlock, carried, kHeld, kLasts, 0, "icd transferable", ""},
      {Prim::Reincarnate, carried, kHeld, kLasts, 0, "",
       "delay: rules.json's aegis_delay_s; expires: rules.json's aegis_expires_s"},
      {Prim::RuneStore, carried, kActs, kOnce, 0, "", ""},
      {Prim::SpellReflect, on_targets, kActs, kLasts, 0, "dur", ""},
      {Prim::LowHpGuard, carried, kHeld, kLasts, 0, "threshold_pct dur icd stats damage_dealt_and_taken", ""},
      {Prim::Smoke, on_targets, kActs, kLasts, kInvisible | kUnseen, "dur reveal_r stats", ""},
      {Prim::ConsumePermanent, consume, kActs, kLasts, 0, "stats", ""},
      {Prim::Deliver, deliver, kActs, kOnce, 0, "", ""},
      {Prim::AncientScepter, carried, kHeld, kLasts, kScepter, "", ""},
      {Prim::CastAbility, cast_ability, kActs, kOnce, 0, "ability", ""},
      {Prim::CastWhileDisabled, carried, kActs, kOnce, 0, "", ""},
      {Prim::DropOnDeath, carried, kHeld, kLasts, 0, "", ""},
  };
  return kSpecs;
}

}  // namespace dota
