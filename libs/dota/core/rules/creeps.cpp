#include <algorithm>
#include <cmath>

#include "base/math.hpp"
#include "effects/attack.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "rules/buildings.hpp"
#include "rules/casting.hpp"
#include "rules/creeps.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr int kThinkFrames = 5;  // a creep looks around on every fifth frame, creeps on frames of their own
constexpr float kWaypointReached = 200;       // then it walks on to the next one
constexpr float kBeforeWall = 96;             // from a wall's middle, where it waits: a cell and a half
constexpr float kRowGap = 70, kFileGap = 50;  // distances in a wave's formation

Vec2 unit_vector(Vec2 v) {
  const float n = v.length();
  return n > 1e-3f ? v * (1 / n) : Vec2{1, 0};
}

// The waypoint a new creep walks to first. Some of the map's spawners stand past their lane's first corner,
// towards the enemy: that corner is passed already, else one side's wave would first walk back and lose seconds on
// the other.
std::int16_t first_waypoint(const MapLane& path) {
  const auto& points = path.waypoints;
  const bool past = points.size() > 1 && distance(path.spawn, points[1]) < distance(points[0], points[1]);
  return past ? 1 : 0;
}

void spawn_creep(Context& c, int team, int lane, CreepKind kind, int stage, Vec2 pos, float facing, bool first) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const std::size_t k = ordinal(kind);
  Unit* u = spawn_unit(c, g.creep_unit[team][k][stage], team, free_place(w, *c.tables.map, pos, 16), facing);
  if (!u) return;
  u->lane = static_cast<std::int8_t>(lane);
  u->order.type = OrderType::FollowLane;
  u->waypoint = first_waypoint(c.tables.map->lanes[team][lane]);
  u->first_wave = first && lane != static_cast<int>(Lane::Mid) && g.side_lanes_peaceful;
  if (const LanePace& pace = g.lane_pace[team][lane]; pace.seconds > 0 && !w.due(g.lane_pace_until)) {
    u->extra_ms = c.tables.units[u->type].move_speed * pace.speed_pct / 100;
    u->paced_until = w.time + pace.seconds;
    u->stats_dirty = true;
  }
  if (stage < 2) {  // mega creeps already hold every upgrade
    const CreepGrowth& grow = (stage == 0 ? g.growth : g.super_growth)[k];
    const float upgrades = static_cast<float>(
        std::clamp(static_cast<int>(std::max(0.0f, w.time) / g.upgrade_every), 0, g.max_upgrades));
    u->extra_hp = grow.hp * upgrades;
    u->extra_dmg = grow.dmg * upgrades;
    u->extra_gold = grow.gold * upgrades;
    refresh_stats(c, *u);
    u->hp = u->max_hp;
    u->hp_history.fill(u->hp);
  }
}

void spawn_wave(Context& c, int team, int lane) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const TeamState& t = w.teams[team];
  const MapLane& path = c.tables.map->lanes[team][lane];
  const Vec2 ahead = unit_vector(path.waypoints[first_waypoint(path)] - path.spawn), side{-ahead.y, ahead.x};
  const float facing = angle_of(ahead.y, ahead.x);
  const bool siege = w.time >= g.siege_first && w.waves % g.siege_nth == 0;
  const int counts[3] = {g.melee_count.value(w.time), g.ranged_count.value(w.time),
                         siege ? g.siege_count.value(w.time) : 0};
  const bool super[3] = {(t.super_melee >> lane & 1) != 0, (t.super_ranged >> lane & 1) != 0,
                         (t.super_ranged >> lane & 1) != 0};
  for (int kind = 0; kind < 3; ++kind)
    for (int i = 0; i < counts[kind]; ++i) {
      const float file = (static_cast<float>(i) - static_cast<float>(counts[kind] - 1) / 2) * kFileGap;
      const Vec2 pos = path.spawn + ahead * (kRowGap * static_cast<float>(1 - kind)) + side * file;
      spawn_creep(c, team, lane, static_cast<CreepKind>(kind), t.megas ? 2 : (super[kind] ? 1 : 0), pos, facing,
                  w.waves == 0);
    }
}

// A peaceful first wave passes heroes until enemy creeps are within its reach, wherever among them a hero stands.
Unit* look_around(Context& c, Unit& u, Handle avoid = {}) {
  const float range = c.tables.units[u.type].acquisition_range;
  if (u.first_wave) {
    if (!nearest_enemy(c, u, range, kind_bit(UnitKind::LaneCreep)))
      return most_urgent_enemy(c, u, range, ~kind_bit(UnitKind::Hero), avoid);
    u.first_wave = 0;
  }
  return most_urgent_enemy(c, u, range, ~0u, avoid);
}

// The attacker's order on one of his own side sheds the creep's anger: it turns to somebody else, if there is
// anybody.
void shed_aggro(Context& c, Unit& u, const Unit& attacker) {
  const Handle shed = c.world.handle(attacker);
  if (!(u.aggro_target == shed) && !(u.attack_target == shed)) return;
  u.aggro_target = Handle{};
  const Unit* other = look_around(c, u, shed);
  if (!other || other == &attacker) return;
  u.attack_target = c.world.handle(*other);
  if (u.act == Act::AttackWindup) u.act = Act::Idle;
}

// Where a wall crosses the straight way: the place in front of it. Creeps wait for Fissure's end (its tooltip).
Vec2 before_walls(const World& w, const Unit& u, Vec2 goal) {
  if (w.nav.blocks == 0) return goal;
  for (const Area& a : w.areas_in_use()) {
    const Vec2 way = goal - u.pos, from = a.pos - u.pos;
    const float cross = way.x * a.along.y - way.y * a.along.x;
    if (!a.active || !a.blocks || std::abs(cross) < 1e-3f) continue;
    const float on_way = (from.x * a.along.y - from.y * a.along.x) / cross;
    const float on_wall = (from.x * way.y - from.y * way.x) / cross;
    if (std::min(on_way, on_wall) < 0 || std::max(on_way, on_wall) > 1) continue;
    goal = u.pos + way * std::max(0.0f, on_way - kBeforeWall / way.length());
  }
  return goal;
}

void walk_lane(Context& c, Unit& u) {
  const auto& points = c.tables.map->lanes[u.team][u.lane].waypoints;
  const int last = static_cast<int>(points.size()) - 1;
  while (u.waypoint < last && distance(u.pos, points[u.waypoint]) < kWaypointReached)
    ++u.waypoint;
  if (u.status & kRooted) {
    u.act = Act::Idle;
    u.velocity = Vec2{};
    return;
  }
  u.act = Act::Walk;
  move_towards(c, u, before_walls(c.world, u, points[u.waypoint]), kArrive);
}

}  // namespace

void follow_lane(Context& c, Unit& u) {
  World& w = c.world;
  if (u.extra_ms != 0 && w.due(u.paced_until)) {
    u.extra_ms = 0;
    u.stats_dirty = true;
  }
  Unit* target = w.get(u.attack_target);
  if (target && !target->alive) target = nullptr;
  if (u.aggro_target.index >= 0) {
    Unit* hero = w.get(u.aggro_target);
    if (!w.due(u.aggro_until) && hero && can_attack(c, u, *hero)) {
      target = hero;
    } else {
      u.aggro_target = Handle{};
      target = nullptr;
    }
  }
  if ((w.frame + w.handle(u).index) % kThinkFrames == 0) {
    const float acquisition = c.tables.units[u.type].acquisition_range;
    if (target && u.aggro_target.index < 0 &&
        (distance(u.pos, target->pos) - target->radius > acquisition + u.radius || !can_attack(c, u, *target)))
      target = nullptr;
    if (!target) target = look_around(c, u);
  }
  if (target) {
    attack_frame(c, u, *target);
    return;
  }
  if (u.act == Act::AttackWindup) u.act = Act::Idle;
  u.attack_target = Handle{};
  walk_lane(c, u);
}

void creeps_frame(Context& c) {
  World& w = c.world;
  if (!w.due(w.next_wave)) return;
  for (int lane = 0; lane < 3; ++lane)
    if (c.settings.lane_enabled[lane])
      for (int team = 0; team < kTeams; ++team)
        spawn_wave(c, team, lane);
  ++w.waves;
  w.next_wave += c.tables.game->wave_every;
}

void notify_attack_order(Context& c, Unit& attacker, Unit& target) {
  if (attacker.kind != UnitKind::Hero) return;
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const bool on_hero = target.kind == UnitKind::Hero && is_enemy(attacker, target);
  for (Unit& u : units_near(c, attacker.pos, std::max(g.aggro_radius, g.tower_range + 300))) {
    if (!u.alive || !is_enemy(u, attacker)) continue;
    if (u.kind == UnitKind::LaneCreep) {
      if (distance(u.pos, attacker.pos) > g.aggro_radius + u.radius) continue;
      if (on_hero && u.team == target.team) {
        if (!w.due(u.aggro_ready) || !can_attack(c, u, attacker)) continue;
        u.aggro_target = w.handle(attacker);
        u.aggro_until = w.time + g.aggro_duration;
        u.aggro_ready = w.time + g.aggro_cooldown;
      } else if (target.team == attacker.team) {
        shed_aggro(c, u, attacker);
      }
    } else if (u.kind == UnitKind::Tower) {
      tower_notices(c, u, attacker, on_hero && u.team == target.team, target.team == attacker.team);
    }
  }
}

}  // namespace dota
