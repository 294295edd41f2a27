// The units that a node of an effect program acts on.
#include "base/math.hpp"
#include "effects/interpreter.hpp"
#include "map/spatial.hpp"

namespace dota {

bool affects(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target) {
  if (!target.alive || target.kind == UnitKind::None || target.kind == UnitKind::Ward) return false;
  if (target.team == inv.team) return true;
  if (target.kind == UnitKind::Roshan && n.given(Role::SparesRoshan)) return false;
  if (target.status & (kInvulnerable | kBanished | kUntargetable)) return false;
  if (!(target.status & kSpellImmune)) return true;
  if (n.given(Role::PiercesImmunity)) return number(c, inv, n, Role::PiercesImmunity) > 0;
  if (inv.ability < 0) return false;
  const AbilityDef& a = c.tables.abilities[inv.ability];
  if (a.pierces_immunity || a.program.pierces_immunity) return true;
  const Unit* caster = a.pierces_immunity_scepter ? c.world.get(inv.caster) : nullptr;
  return caster && (caster->status & kScepter);
}

namespace {

void add_around(Context& c, const Invocation& inv, const EffectNode& n, Who who, Vec2 p, float r, UnitList& out) {
  const bool everywhere = r >= kGlobal;
  const auto consider = [&](int slot) {
    const Unit& u = c.world.units[slot];
    if (!u.alive || (!everywhere && distance(u.pos, p) > r)) return;
    const bool ally = u.team == inv.team;
    const bool hero = u.kind == UnitKind::Hero;
    bool meant = false;
    switch (who) {
      case Who::Enemies:
      case Who::HitEnemies:
        meant = !ally && !is_building(u.kind);
        break;
      case Who::EnemyHeroes:
        meant = !ally && hero;
        break;
      case Who::EnemiesInvisible:
        meant = !ally && (u.status & kInvisible);
        break;
      case Who::EnemiesAndBuildings:
        meant = !ally;
        break;
      case Who::AlliedHeroes:
        meant = ally && hero;
        break;
      case Who::AlliedHeroesAndBuildings:
        meant = ally && (hero || is_building(u.kind));
        break;
      case Who::AlliesAndBuildings:
        meant = ally;
        break;
      case Who::Allies:
      case Who::AlliesAndSelf:
        meant = ally && !is_building(u.kind);
        break;
      case Who::Creep:
        meant = !ally && is_basic(u);
        break;
      default:
        meant = !is_building(u.kind);
        break;
    }
    if (meant && affects(c, inv, n, u)) out.add(slot);
  };
  if (everywhere) {
    for (int slot = 0; slot < c.world.units_end; ++slot)
      consider(slot);
  } else {
    const UnitList near = units_near(c, p, r);
    for (const int slot : near.slots())
      consider(slot);
  }
}

// The enemy hero closest to a place, within reach of it; nullptr if no hero is.
const Unit* closest_hero(Context& c, const Invocation& inv, const EffectNode& n, Vec2 p, float r) {
  UnitList near(c.world.units);
  add_around(c, inv, n, Who::EnemyHeroes, p, r, near);
  const Unit* best = nullptr;
  for (const Unit& u : near)
    if (!best || distance(u.pos, p) < distance(best->pos, p)) best = &u;
  return best;
}

void add_targets(Context& c, const Invocation& inv, const EffectNode& n, UnitList& out) {
  Unit* caster = c.world.get(inv.caster);
  Unit* target = c.world.get(inv.target);
  const auto add = [&](const Unit* u) {
    if (u && affects(c, inv, n, *u)) out.add(c.world.handle(*u).index);
  };
  switch (n.to) {
    case Who::Self:
      return add(caster);
    case Who::Target:
    case Who::Source:
    case Who::SelfOrEnemy:
      return add(target ? target : caster);
    case Who::TargetAndSelf:
      add(target);
      return add(caster);
    case Who::TargetOrClosestHero:
      return add(target ? target : closest_hero(c, inv, n, inv.point, number(c, inv, n, Role::R)));
    case Who::CreepTarget:
      return add(target && is_basic(*target) ? target : nullptr);
    case Who::Creep:
      if (n.shape == Shape::None) return add(target && is_basic(*target) ? target : nullptr);
      break;
    case Who::Default:
      if (n.shape == Shape::None) return add(inv.child || target ? target : caster);
      break;
    case Who::HitEnemies:
      for (int i = 0; i < kMaxUnits; ++i)
        if ((inv.hit[i / 64] >> (i % 64)) & 1u) add(&c.world.units[i]);
      return;
    default:
      break;
  }
  if (n.shape == Shape::None && !n.given(Role::R) && inv.child) return add(target);
  Vec2 at = inv.centre;
  switch (n.at) {
    case Where::Point:
      at = inv.point;
      break;
    case Where::Self:
      at = caster ? caster->pos : inv.centre;
      break;
    case Where::Target:
      at = target ? target->pos : inv.point;
      break;
    case Where::Front:
      if (caster) {
        const float d = number(c, inv, n, Role::Dist);
        at = caster->pos + heading(caster->facing) * d;
      }
      break;
    case Where::Default:
      break;
  }
  const float r = n.global_radius ? kGlobal : number(c, inv, n, Role::R);
  add_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to, at, r, out);
}

}  // namespace

UnitList select_around(Context& c, const Invocation& inv, const EffectNode& n, Who who, Vec2 p, float r) {
  UnitList out(c.world.units);
  add_around(c, inv, n, who, p, r, out);
  return out;
}

UnitList select_targets(Context& c, const Invocation& inv, const EffectNode& n) {
  UnitList out(c.world.units);
  add_targets(c, inv, n, out);
  return out;
}

}  // namespace dota
