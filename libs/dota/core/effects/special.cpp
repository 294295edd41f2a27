// Primitives of the group "special".
#include <algorithm>

#include "effects/modifiers.hpp"
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
  if (h && n.item >= 0) give_item(c, *h, n.item, 1);
}

// Read where they matter: by the triggers, by casting, or by the systems that know aegis and couriers.
void carried(Context&, Invocation&, const EffectNode&, int) {}

}  // namespace

Execute execute_special(Prim p) {
  switch (p) {
    case Prim::PlaceWard:
      return place_ward;
    case Prim::Transmute:
      return transmute;
    case Prim::ItemTransferCharge:
      return transfer;
    case Prim::ChargeOnNearbyCast:
    case Prim::ChargeOnNearbyDeath:
    case Prim::ToggleStat:
    case Prim::SpellBlock:
    case Prim::Reincarnate:
    case Prim::RuneStore:
      return carried;
    default:
      return nullptr;
  }
}

}  // namespace dota
