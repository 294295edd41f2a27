#include <algorithm>

#include "effects/attack.hpp"
#include "effects/neutrals.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "rules/casting.hpp"
#include "rules/creature_ai.hpp"
#include "rules/creeps.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

bool in_pit(const MapData& map, Vec2 p) {
  return p.x >= map.roshan_min.x && p.x <= map.roshan_max.x && p.y >= map.roshan_min.y && p.y <= map.roshan_max.y;
}

// Strength by the minute of the game (rules.json roshan.*_per_min).
void grow(Context& c, Unit& u) {
  const GameRules& g = *c.tables.game;
  const float minutes = std::floor(std::max(0.0f, c.world.time) / 60);
  const float hp = g.roshan_hp_min * minutes;
  if (u.extra_hp == hp && u.extra_as == g.roshan_as) return;
  u.extra_hp = hp;
  u.extra_armor = g.roshan_armor_min * minutes;
  u.extra_dmg = g.roshan_dmg_min * minutes;
  u.extra_as = g.roshan_as;
  u.stats_dirty = true;
}

Unit* find_roshan(World& w) {
  Unit* first = nullptr;
  each_unit<UnitKind::Roshan>(w, [&](Unit& u) {
    if (!first) first = &u;
  });
  return first;
}

}  // namespace

void roshan_frame(Context& c) {
  World& w = c.world;
  if (!c.settings.roshan) return;
  const MapData& map = *c.tables.map;
  Unit* u = find_roshan(w);
  if (!u) {
    if (!w.due(w.roshan_respawn)) return;
    u = spawn_unit(c, c.tables.game->roshan_unit, kNeutralTeam, map.roshan, 0);
    if (!u) return;
    w.roshan_respawn = 1e9f;  // set again when he dies
    grow(c, *u);
    refresh_stats(c, *u);
    u->hp = u->max_hp * (w.roshan_kills == 0 ? w.roshan_health_scale : 1.0f);
    return;
  }
  grow(c, *u);
  if ((u->status & (kStunned | kForcedMotion | kTaunted)) || busy_casting(*u)) return;
  Unit* target = w.get(u->aggro_target);
  if (target && (!in_pit(map, target->pos) || !can_attack(c, *u, *target) || w.due(u->aggro_until)))
    target = nullptr;
  if (!target && w.frame % 5 == 0) {
    for (Unit& other : units_near(c, u->pos, c.tables.units[u->type].acquisition_range + u->radius))
      if (other.alive && other.team < kTeams && in_pit(map, other.pos) && can_attack(c, *u, other)) {
        target = &other;
        break;
      }
    if (target) neutral_hurt(c, *u, *target);
  }
  if (target) {
    if (w.frame % 5 == 0 && creature_casts(c, *u, *target)) return;
    return keep_attacking(c, *u, *target);
  }
  u->aggro_target = u->attack_target = Handle{};
  if (distance(u->pos, u->spawn) > kArrive)
    keep_moving(c, *u, u->spawn);
  else
    rest(c, *u);
}

}  // namespace dota
