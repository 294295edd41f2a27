// Primitives of the group "area", and what an area does at each tick.
#include <algorithm>

#include "base/math.hpp"
#include "effects/attack.hpp"
#include "effects/damage.hpp"
#include "effects/modifiers.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/protection.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"

namespace dota {

namespace {

constexpr float kWallGap = 96;  // between a caster and the wall he raises: a cell and a half

void ground_area(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const float wait = number(c, inv, n, Role::Delay);
  Area* a = new_area(c, inv, node, n.at == Where::Point ? inv.point : inv.centre, number(c, inv, n, Role::R),
                     wait + number(c, inv, n, Role::Dur));
  if (!a) return;
  a->start += wait;
  a->interval = number(c, inv, n, Role::Interval, nullptr, 1);
  a->next_tick = a->start + (n.given(Role::TicksAtStart) ? 0 : a->interval);
}

void vision(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* target = c.world.get(inv.target);
  const bool at_target = n.at == Where::Target && target;
  const float wait = number(c, inv, n, Role::Delay);
  Area* a = new_area(c, inv, node, at_target ? target->pos : inv.point, number(c, inv, n, Role::R),
                     wait + number(c, inv, n, Role::Dur));
  if (a) a->start += wait;
  if (a && at_target) a->follow = inv.target;
}

void true_sight(Context& c, Invocation& inv, const EffectNode& n, int node) { add_to_targets(c, inv, n, node); }

// A wall along a line from the caster, or what covers one place: nobody walks there while it stands.
void terrain_block(Context& c, Invocation& inv, const EffectNode& n, int node) {
  const Unit* caster = c.world.get(inv.caster);
  if (!caster) return;
  const Vec2 d = inv.point - caster->pos;
  const float far = d.length(), len = number(c, inv, n, Role::Len);
  const Vec2 ahead = far > 1 ? d * (1 / far) : heading(caster->facing);
  const bool place = n.prim == Prim::PlantTree;
  // The wall begins in front of its caster, who is not caught in it.
  const Vec2 from = place ? inv.point : caster->pos + ahead * (caster->radius + kWallGap);
  Area* a = new_area(c, inv, node, from, 0, number(c, inv, n, Role::Dur));
  if (!a) return;
  a->along = place ? Vec2{} : ahead * std::max(0.0f, len - caster->radius - kWallGap);
  block_line(c, *a);
}

// The tree aimed at, or all within a radius of the point.
void tree_cut(Context& c, Invocation& inv, const EffectNode& n, int) {
  if (n.given(Role::R)) return cut_trees(c.world, c.tables, inv.point, number(c, inv, n, Role::R));
  if (inv.tree >= 0) cut_tree(c.world, c.tables, inv.tree);
}

// Whether another area of the same cast's owner, ability and kind, an earlier one, covers the place too.
bool covered(const World& w, const Area& a, Vec2 p) {
  for (const Area& other : w.areas_in_use()) {
    if (&other == &a || !other.active || !(other.owner == a.owner) || other.ability != a.ability ||
        other.node != a.node || !w.due(other.start) || distance(other.pos, p) > other.radius)
      continue;
    if (other.start < a.start || (other.start == a.start && &other < &a)) return true;
  }
  return false;
}

void hit_around(Context& c, Invocation& inv, const EffectNode& n, Vec2 p, float r, float amount) {
  for (Unit& u : select_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to, p, r)) {
    if (u.alive) ability_damage(c, inv, u, amount, n.type);
  }
}

// Explosions go round the four quadrants, each at a random angle and distance within its own.
void explode(Context& c, Invocation& inv, const EffectNode& n, Area& a) {
  const float lo = number(c, inv, n, Role::MinDist), hi = number(c, inv, n, Role::MaxDist);
  const float angle = 1.5707963f * (static_cast<float>(a.quadrant % 4) + c.world.rng.uniform());
  const float dist = lo + (hi - lo) * c.world.rng.uniform();
  ++a.quadrant;
  const Vec2 at = a.pos + heading(angle) * dist;
  hit_around(c, inv, n, at, number(c, inv, n, Role::R), number(c, inv, n, Role::Amount));
}

}  // namespace

namespace {

// Whether the caster draws a stat from the unit along a link.
bool linked(const Context& c, Handle caster, Handle unit) {
  for (const Area& a : c.world.areas_in_use())
    if (a.active && a.owner == caster && a.follow == unit && node_of(c, a.ability, a.node).prim == Prim::StatDrain)
      return true;
  return false;
}

// The enemy with the least health, of the linked ones if there are any.
Unit* weakest(Context& c, const Invocation& inv, const EffectNode& n, const UnitList& near) {
  Unit* best = nullptr;
  bool best_linked = false;
  for (Unit& u : near) {
    const bool tied = n.given(Role::PrefersLinked) && linked(c, inv.caster, c.world.handle(u));
    if (best && (best_linked != tied ? best_linked : best->hp <= u.hp)) continue;
    best = &u;
    best_linked = tied;
  }
  return best;
}

Unit* closest(const UnitList& near, Vec2 p) {
  Unit* best = nullptr;
  for (Unit& u : near)
    if (!best || distance(u.pos, p) < distance(best->pos, p)) best = &u;
  return best;
}

}  // namespace

namespace {

// The units within r of p that the node may strike: all of them, or those that its caster's team sees; and towers,
// barracks and the Ancient if it hits buildings.
UnitList in_reach(Context& c, const Invocation& inv, const EffectNode& n, Vec2 p, float r) {
  const bool all = !n.given(Role::VisibleOnly) || inv.team >= kTeams;
  UnitList open(c.world.units);
  for (const Unit& u : select_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to, p, r))
    if (!building_protected(c, u) && (all || unit_visible(c.world, inv.team, u)))
      open.add(c.world.handle(u).index);
  if (number(c, inv, n, Role::HitsBuildings) <= 0) return open;
  for (const Unit& u : select_around(c, inv, n, Who::EnemiesAndBuildings, p, r)) {
    const bool meant = u.kind == UnitKind::Tower || u.kind == UnitKind::Barracks || u.kind == UnitKind::Fort;
    if (meant && !building_protected(c, u)) open.add(c.world.handle(u).index);
  }
  return open;
}

}  // namespace

bool strike(Context& c, Invocation& inv, const EffectNode& n, Vec2 p, float r) {
  const UnitList near = in_reach(c, inv, n, p, r);
  if (near.empty()) return false;
  const auto hit = [&](Unit& u) {
    float amount = number(c, inv, n, Role::Amount);
    if (u.kind == UnitKind::Tower) amount *= 1 + number(c, inv, n, Role::TowerBonusPct) / 100;
    ability_damage(c, inv, u, amount, n.type);
    if (u.alive) run_on(c, inv, n.then_first, n.then_count, u);
  };
  if (n.hits_all) {
    for (Unit& u : near)
      if (u.alive) hit(u);
  } else if (n.closest) {
    hit(*closest(near, p));
  } else {
    hit(n.prim == Prim::PeriodicStrike ? *weakest(c, inv, n, near) : near[c.world.rng.below(near.size())]);
  }
  return true;
}

namespace {

void pulse(Context& c, Invocation& inv, const EffectNode& n, Area& a) {
  inv.step = a.pulses;  // a total is shared by this many pulses
  for (Unit& u : select_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to, a.pos, a.radius)) {
    if (u.alive) run_on(c, inv, n.then_first, n.then_count, u);
  }
}

// Mana or life drawn along a link. False: the link is broken.
bool draw(Context& c, Invocation& inv, const EffectNode& n, const Area& a) {
  Unit* target = c.world.get(a.follow);
  Unit* caster = c.world.get(a.owner);
  if (!target || !target->alive || !caster || !caster->alive || !affects(c, inv, n, *target)) return false;
  if (distance(target->pos, caster->pos) > number(c, inv, n, Role::BreakDist, nullptr, kGlobal)) return false;
  if (n.prim == Prim::ManaDrain) {
    give_mana(c, *caster, take_mana(*target, number(c, inv, n, Role::PerSec) * a.interval));
    return true;
  }
  const float per_second =
      number(c, inv, n, Role::Dps) + number(c, inv, n, Role::DpsPctMaxHp) / 100 * target->max_hp;
  const float dealt = ability_damage(c, inv, *target, per_second * a.interval, n.type);
  heal(c, *caster, dealt * number(c, inv, n, Role::HealPct) / 100);
  return true;
}

// A summon that attacks by itself: enemy heroes in its reach, the nearest first.
void shoot(Context& c, const Area& a) {
  Unit* u = c.world.get(a.follow);
  if (!u || !u->alive) return;
  const Unit* best = nullptr;
  for (const Unit& t : units_near(c, u->pos, u->attack_range)) {
    if (t.kind != UnitKind::Hero || !t.alive || t.team == u->team || !can_attack(c, *u, t)) continue;
    if (distance(t.pos, u->pos) > u->attack_range + t.radius) continue;
    if (!best || distance(t.pos, u->pos) < distance(best->pos, u->pos)) best = &t;
  }
  if (!best) return;
  Invocation inv = invocation_of(a);
  inv.caster = a.follow;
  inv.target = c.world.handle(*best);
  Projectile* p = new_projectile(c, inv, -1, Projectile::Kind::Attack, u->pos);
  if (!p) return;
  p->ability = -1;
  p->goal = best->pos;
  p->speed = c.tables.units[u->type].projectile_speed;
  const EffectNode& n = node_of(c, a.ability, a.node);
  const Unit* caster = c.world.get(a.owner);
  const bool scepter = caster && (caster->status & kScepter);
  const bool hits = (scepter && n.given(Role::TrueStrike)) || !attack_misses(c, *u, *best, true);
  p->damage = hits ? u->dmg_min + u->dmg_bonus : -1;
  if (!n.given(Role::Bounces) || !scepter) return;
  inv = invocation_of(a);
  p->jumps_left = static_cast<std::uint8_t>(number(c, inv, n, Role::Bounces));
  p->w0 = number(c, inv, n, Role::BounceR);
}

// Stats drawn along a link: each tick adds to what both bear, and gives it new time to last.
bool draw_stat(Context& c, Invocation& inv, const EffectNode& n, const Area& a) {
  Unit* target = c.world.get(a.follow);
  Unit* caster = c.world.get(a.owner);
  if (!target || !target->alive || !caster || !caster->alive || !affects(c, inv, n, *target)) return false;
  if (distance(target->pos, caster->pos) > number(c, inv, n, Role::BreakDist, nullptr, kGlobal)) return false;
  for (Unit* u : {target, caster})
    if (Modifier* m = add_modifier(c, *u, inv, n, a.node, number(c, inv, n, Role::Hold))) {
      m->drawn += number(c, inv, n, Role::PerSec) * a.interval;
      if (fill_stats(c, inv, n, *u, *m)) u->stats_dirty = true;
    }
  return true;
}

// Sends each returned spirit to a random enemy in range.
void send_spirits(Context& c, Area& a, const EffectNode& n) {
  if (a.to_come > 0) {
    --a.to_come;
    ++a.at_home;
  }
  const Invocation inv = invocation_of(a);
  UnitList seen(c.world.units);
  for (const Unit& u : select_around(c, inv, n, Who::EnemiesAndBuildings, a.pos, a.radius))
    if (!building_protected(c, u) && unit_visible(c.world, a.team, u)) seen.add(c.world.handle(u).index);
  for (int left = a.at_home; left > 0 && !seen.empty(); --left)
    launch_spirit(c, a, n, seen[c.world.rng.below(seen.size())]);
}

bool bears(const World& w, const Unit& u, const EffectNode& n) {
  return find_modifier(w, u, n.modifier) != nullptr;
}

}  // namespace

void tick_area(Context& c, Area& a, const EffectNode& n) {
  const World& w = c.world;
  Invocation inv = invocation_of(a);
  switch (n.prim) {
    case Prim::GroundArea:
      if (!n.given(Role::Dps)) break;
      for (Unit& u : select_around(c, inv, n, n.to == Who::Default ? Who::Enemies : n.to, a.pos, a.radius))
        if (u.alive && !(n.given(Role::CountsOnce) && covered(c.world, a, u.pos)))
          ability_damage(c, inv, u, number(c, inv, n, Role::Dps) * a.interval, n.type);
      break;
    case Prim::RandomExplosions:
      explode(c, inv, n, a);
      break;
    case Prim::RandomTargetHits:
    case Prim::PeriodicStrike:
      if (const Unit* caster = w.get(a.owner); shown_by_buff(n) && caster && !bears(w, *caster, n))
        return end_area(c, a);  // dispelled
      // With a cooldown it strikes as soon as an enemy is near, and then waits.
      if (strike(c, inv, n, a.pos, a.radius) && n.given(Role::Icd))
        a.next_tick = c.world.time + number(c, inv, n, Role::Icd);
      break;
    case Prim::DelayedAoe:
      pulse(c, inv, n, a);
      break;
    case Prim::Summon:
      shoot(c, a);
      break;
    case Prim::Spirits:
      send_spirits(c, a, n);
      break;
    case Prim::AttackRandomInRadius:
      strike_at_random(c, inv, n, a.pos, a.radius);
      break;
    case Prim::MissileUnit:
      fly_missile(c, a, n);
      break;
    case Prim::StatDrain:
      if (!draw_stat(c, inv, n, a)) a.active = false;
      break;
    case Prim::ManaDrain:
    case Prim::Drain:
      if (!draw(c, inv, n, a)) {
        end_area(c, a);
        Unit* caster = c.world.get(a.owner);
        if (!a.extra && n.on == Trigger::Channel && caster && caster->act == Act::Channel)
          break_channel(c, *caster);
      }
      break;
    default:
      break;
  }
}

std::span<const PrimitiveSpec> area_primitives() {
  static constexpr PrimitiveSpec kSpecs[] = {
      {Prim::GroundArea, ground_area, kActs, kLasts, 0,
       "dur delay dps interval stats linger ticks_at_start counts_once",
       "hits_buildings: enemies are units, not buildings"},
      {Prim::Vision, vision, kActs, kOnce, 0, "r dur delay true_sight", ""},
      {Prim::TrueSight, true_sight, kActs | kHeld, kLasts, kTrueSighted, "dur r", ""},
      {Prim::TreeCut, tree_cut, kActs, kOnce, 0, "delay", ""},
      {Prim::TerrainBlock, terrain_block, kActs, kOnce, 0, "len dur", "push_units_aside: a wall does"},
      {Prim::PlantTree, terrain_block, kActs, kOnce, 0, "dur", "consumes: the item is used up by after_item_use"},
  };
  return kSpecs;
}

}  // namespace dota
