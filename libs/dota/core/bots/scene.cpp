#include "bots/scene.hpp"

#include <cmath>

namespace dota {

Scene::Scene(const TeamView& v, const Choices& offered, const Skill& how, BotMemory& remembered, Rng& random)
    : view(v),
      choices(offered),
      book(*v.constants.book),
      skill(how),
      memory(remembered),
      rng(random),
      map(*v.constants.tables->map),
      home(map.hero_spawn[v.team]),
      enemy_home(map.hero_spawn[1 - v.team]) {
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& u = v.units[i];
    if (u.hp <= 0 || !u.visible) continue;
    switch (u.kind) {
      case UnitKind::LaneCreep:
      case UnitKind::Summon:
        (u.side == Side::Own ? own_creeps : enemy_creeps).add(i);
        break;
      case UnitKind::Neutral:
      case UnitKind::Roshan:
        (u.side == Side::Neutral ? neutrals : u.side == Side::Own ? own_creeps : enemy_creeps).add(i);
        break;
      case UnitKind::Ward:
        wards.add(i);
        break;
      case UnitKind::Hero:
      case UnitKind::Courier:
      case UnitKind::None:
        break;
      default:
        (u.side == Side::Own ? own_buildings : enemy_buildings).add(i);
    }
  }
  for (int h = 0; h < 2 * v.heroes_per_team; ++h)
    if (v.heroes[h].present && v.heroes[h].alive) ++(h < v.heroes_per_team ? own_alive : enemy_alive);
}

const SeenUnit* Scene::enemy(int which) const {
  const int h = view.heroes_per_team + which;
  const SeenHero& seen = view.heroes[h];
  return seen.present && seen.alive && seen.in_sight ? view.body(h) : nullptr;
}

const SeenUnit* Scene::recent_enemy(int which) const {
  constexpr float kRemembered = 5;  // seconds
  const int h = view.heroes_per_team + which;
  const SeenHero& seen = view.heroes[h];
  if (!seen.present || !seen.alive) return nullptr;
  return seen.in_sight || (skill.disciplined && seen.since_seen < kRemembered) ? view.body(h) : nullptr;
}

const SeenUnit* Scene::ally(int which) const {
  const SeenHero& seen = view.heroes[which];
  return seen.present && seen.alive ? view.body(which) : nullptr;
}

float lane_progress(const MapLane& lane, Vec2 p) {
  constexpr int kPieces = LanePieces::kPieces;
  float best = 1e30f, at = 0;
  for (std::size_t block = 0; block < lane.pieces.size(); ++block) {
    const LanePieces& l = lane.pieces[block];
    std::array<float, kPieces> t, away2;
    for (std::size_t k = 0; k < kPieces; ++k) {
      const float along = ((p.x - l.x[k]) * l.dx[k] + (p.y - l.y[k]) * l.dy[k]) / l.length2[k];
      const float share = along < 0.0f ? 0.0f : 1.0f < along ? 1.0f : along;
      t[k] = l.length2[k] > 0 ? share : 0.0f;
      const float x = p.x - (l.x[k] + l.dx[k] * t[k]), y = p.y - (l.y[k] + l.dy[k] * t[k]);
      away2[k] = x * x + y * y;
    }
    for (std::size_t k = 0; k < kPieces; ++k)
      if (away2[k] < best) {
        best = away2[k];
        at = static_cast<float>(block * kPieces + k) + t[k];
      }
  }
  return at;
}

Vec2 lane_point(const MapLane& lane, float at, float back) {
  at = std::clamp(at, 0.0f, static_cast<float>(lane.waypoints.size() - 1));
  auto segment = std::min(static_cast<std::size_t>(at), lane.waypoints.size() - 2);
  Vec2 p = lane.waypoints[segment] +
           (lane.waypoints[segment + 1] - lane.waypoints[segment]) * (at - static_cast<float>(segment));
  while (back > 0) {
    const Vec2 to = lane.waypoints[segment] - p;
    const float length = to.length();
    if (length > back) return p + to * (back / length);
    p = lane.waypoints[segment];
    back -= length;
    if (segment == 0) return p;
    --segment;
  }
  return p;
}

float strength(const TeamView& view, const SeenUnit& u) {
  const float blows = u.damage / std::max(u.attack_interval, 0.3f);
  const float spells = u.hero >= 0 ? 10.0f + 8.0f * static_cast<float>(view.heroes[u.hero].level) : 0.0f;
  const float health = u.hp / std::max(1.0f - u.physical_resistance, 0.2f);
  const float held = u.status & (kStunned | kHexed | kDisarmed) ? 0.6f : 1.0f;
  return held * std::sqrt(std::max(health, 1.0f) * (blows + spells));
}

bool under_enemy_tower(const Scene& s, Vec2 p, float margin) {
  for (const int i : s.enemy_buildings) {
    const SeenUnit& u = s.unit(i);
    if (u.kind != UnitKind::Tower && u.kind != UnitKind::Fountain) continue;
    const float range = u.attack_range + u.radius + margin;
    const Vec2 d = p - u.pos;
    if (d.dot(d) < range * range) return true;
  }
  return false;
}

bool hit_by_tower(const Situation& s) {
  for (const int i : s.scene.enemy_buildings) {
    const SeenUnit& u = s.scene.unit(i);
    if ((u.kind == UnitKind::Tower || u.kind == UnitKind::Fountain) && u.attack_target == s.body.handle)
      return true;
  }
  return false;
}

}  // namespace dota
