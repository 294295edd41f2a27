// What the team is at: farming, pushing a lane, defending, Roshan; and what that means for each hero.
#include <cmath>

#include "bots/scene.hpp"

namespace dota {
namespace {

constexpr float kGathered = 1800;             // heroes this near to a place are there
constexpr float kPush = 75, kLatePush = 120;  // seconds that a push lasts, before and from kLate on
constexpr float kLate = 1500;                 // game time, seconds

int heroes_near(const Scene& s, Vec2 p, float radius, bool enemies) {
  int n = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* u = enemies ? s.enemy(i) : s.ally(i);
    n += u && distance(u->pos, p) < radius;
  }
  return n;
}

float mean_health(const Scene& s) {
  float sum = 0;
  int n = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i)
    if (const SeenUnit* u = s.ally(i); u && u->max_hp > 0) {
      sum += u->hp / u->max_hp;
      ++n;
    }
  return n > 0 ? sum / static_cast<float>(n) : 0;
}

// The own building under attack that matters most; nullptr: none.
const SeenUnit* attacked_building(const Scene& s) {
  const SeenUnit* worst = nullptr;
  float most = 0;
  for (const int i : s.own_buildings) {
    const SeenUnit& u = s.unit(i);
    if (u.invulnerable || u.max_hp <= 0) continue;
    if (u.kind != UnitKind::Tower && u.kind != UnitKind::Barracks && u.kind != UnitKind::Fort) continue;
    const int enemies = heroes_near(s, u.pos, 1500.0f, true);
    if (enemies == 0 && s.view.hp_history(u)[8] <= u.hp) continue;
    const float value = u.kind == UnitKind::Fort ? 10.0f : u.kind == UnitKind::Barracks ? 5.0f : 1.0f + u.tier;
    const float urgency = value * (enemies > 0 ? 1.0f + 0.5f * static_cast<float>(enemies) : 0.4f);
    if (urgency <= most) continue;
    most = urgency;
    worst = &u;
  }
  return most >= 2.0f ? worst : nullptr;
}

// The lane whose next building is the weakest and whose own creeps are the farthest.
int lane_to_push(const Scene& s) {
  int best = s.memory.plan_lane;
  float most = -1e9f;
  for (int lane = 0; lane < 3; ++lane) {
    if (!s.view.constants.settings->lane_enabled[lane]) continue;
    int standing = 0;
    for (const int i : s.enemy_buildings) {
      const SeenUnit& u = s.unit(i);
      standing += (u.kind == UnitKind::Tower || u.kind == UnitKind::Barracks) && u.lane == lane;
    }
    const float length = static_cast<float>(s.lane(lane).waypoints.size());
    const float worth = -1.0f * static_cast<float>(standing) +
                        2.0f * std::max(s.memory.own_front[lane], 0.0f) / length +
                        (lane == s.memory.plan_lane ? 0.6f : 0.0f) + 0.3f * s.rng.uniform();
    if (worth <= most) continue;
    most = worth;
    best = lane;
  }
  return best;
}

void look_at_lanes(const Scene& s) {
  BotMemory& m = s.memory;
  m.own_front.fill(-1.0f);
  m.enemy_front.fill(1e9f);
  m.own_tower.fill(0.0f);
  for (const int i : s.own_creeps) {
    const SeenUnit& u = s.unit(i);
    if (u.kind != UnitKind::LaneCreep || u.lane < 0) continue;
    const std::size_t lane = u.lane;
    m.own_front[lane] = std::max(m.own_front[lane], lane_progress(s.lane(u.lane), u.pos));
  }
  for (const int i : s.enemy_creeps) {
    const SeenUnit& u = s.unit(i);
    if (u.kind != UnitKind::LaneCreep || u.lane < 0) continue;
    const std::size_t lane = u.lane;
    m.enemy_front[lane] = std::min(m.enemy_front[lane], lane_progress(s.lane(u.lane), u.pos));
  }
  for (const int i : s.own_buildings) {
    const SeenUnit& u = s.unit(i);
    if (u.kind != UnitKind::Tower || u.lane < 0) continue;
    const std::size_t lane = u.lane;
    m.own_tower[lane] = std::max(m.own_tower[lane], lane_progress(s.lane(u.lane), u.pos));
  }
}

void set_plan(const Scene& s, Plan plan, Vec2 place, float seconds) {
  s.memory.plan = plan;
  s.memory.plan_place = place;
  s.memory.plan_until = s.view.time + seconds;
}

bool roshan_time(const Scene& s) {
  if (!s.skill.roshan || s.view.heroes_per_team < 3 || !s.view.roshan_alive || s.view.time < 900.0f) return false;
  if (s.view.time < s.memory.next_roshan || s.own_alive < s.view.heroes_per_team - 1) return false;
  int levels = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i)
    levels += s.view.heroes[i].level;
  return levels >= 10 * s.view.heroes_per_team && mean_health(s) > 0.7f && s.own_alive >= s.enemy_alive;
}

}  // namespace

void make_plan(const Scene& s) {
  BotMemory& m = s.memory;
  if (s.view.time >= m.next_front) {
    m.next_front = s.view.time + 0.4f;
    look_at_lanes(s);
  }
  if (s.view.time < m.next_plan || s.view.heroes_per_team < 2) return;
  m.next_plan = s.view.time + 1.0f;
  const SeenUnit* attacked = s.skill.defends ? attacked_building(s) : nullptr;
  const bool ahead = s.own_alive > s.enemy_alive, group = s.view.time >= s.skill.group_from;
  const bool close = attacked && attacked->lane < 0;  // the Ancient and what stands before it
  if (attacked && (group || attacked->tier >= 2) && (m.plan != Plan::Push || close || !ahead)) {
    set_plan(s, Plan::Defend, attacked->pos, 8.0f);
    return;
  }
  if (m.plan == Plan::Roshan) {
    const bool lost = heroes_near(s, s.map.roshan, 1800.0f, true) >= 3 ||
                      s.own_alive < s.view.heroes_per_team - 2 || mean_health(s) < 0.4f;
    if (s.view.roshan_dead || lost || s.view.time > m.plan_until) {
      m.next_roshan = s.view.time + 90.0f;
      m.plan = Plan::Farm;
    } else {
      return;
    }
  }
  if (m.plan == Plan::Push) {
    const bool lost =
        s.own_alive * 2 < s.view.heroes_per_team || s.own_alive + 1 < s.enemy_alive || mean_health(s) < 0.35f;
    if (lost || (s.view.time > m.plan_until && !ahead)) {
      m.next_push = s.view.time + (lost ? 0.6f : 0.4f) * s.skill.farm_between;
      m.plan = Plan::Farm;
    } else {
      const int lane = lane_to_push(s);
      if (s.view.time > m.plan_until) m.plan_lane = static_cast<std::int8_t>(lane);
      return;
    }
  }
  if (m.plan == Plan::Defend && s.view.time < m.plan_until) return;
  m.plan = Plan::Farm;
  if (roshan_time(s)) return set_plan(s, Plan::Roshan, s.map.roshan, 150.0f);
  const bool able = s.own_alive >= s.view.heroes_per_team - 1 || (ahead && s.own_alive >= 3);
  if (group && able && s.view.time >= m.next_push && mean_health(s) > 0.6f) {
    m.plan_lane = static_cast<std::int8_t>(lane_to_push(s));
    set_plan(s, Plan::Push, s.enemy_home, s.view.time < kLate ? kPush : kLatePush);
  }
}

Command besiege(const Situation& s) {
  const SeenUnit* best = nullptr;
  float most = -1;
  const int near = heroes_near(s.scene, s.body.pos, 1200.0f, false);
  for (const int i : s.scene.enemy_buildings) {
    const SeenUnit& b = s.scene.unit(i);
    if (b.invulnerable || s.away(b.pos) > 1400.0f) continue;
    float worth = 0;
    if (b.kind == UnitKind::Fort) worth = 5;
    if (b.kind == UnitKind::Tower) worth = 4;
    if (b.kind == UnitKind::Barracks) worth = 3;
    if (b.kind == UnitKind::Shrine || b.kind == UnitKind::Filler) worth = s.view.time > 900.0f ? 0.5f : 0.0f;
    if (worth <= 0 || (b.glyph_left > 0 && b.kind != UnitKind::Fort)) continue;
    if (b.attack_target == s.body.handle && (s.health() < 0.6f || s.view.time < 600.0f)) continue;
    // While lanes are played a tower is left alone as long as an enemy defends it: there are creeps to kill.
    const bool laning = s.view.time < s.skill.group_from && s.view.heroes_per_team >= 3;
    if (laning && heroes_near(s.scene, b.pos, 1500.0f, true) > 0) continue;
    int escort = 0;
    for (const int j : s.scene.own_creeps)
      escort += distance(s.scene.unit(j).pos, b.pos) < 750.0f;
    const bool crowd = near >= 3 && s.view.time > 900.0f && s.health() > 0.5f;
    if (escort < (s.skill.dives_early || crowd ? 1 : 2) && !(crowd && b.kind != UnitKind::Tower)) continue;
    worth += 1.0f - 0.0005f * s.away(b.pos);
    if (worth <= most) continue;
    most = worth;
    best = &b;
  }
  return best ? with(kAttack, best->handle) : Command{};
}

Command take_roshan(const Situation& s) {
  const Vec2 pit = s.scene.map.roshan;
  const SeenUnit* roshan = nullptr;
  for (const int i : s.scene.neutrals)
    if (s.scene.unit(i).kind == UnitKind::Roshan) roshan = &s.scene.unit(i);
  if (s.away(pit) > 1100.0f) return travel(s, pit);
  const bool begun = roshan && roshan->hp < 0.97f * roshan->max_hp;
  if (!begun && heroes_near(s.scene, pit, 1400.0f, false) * 5 < s.scene.own_alive * 3) return with(kNoop);
  if (!roshan) return s.away(pit) > 200.0f ? travel(s, pit) : with(kNoop);
  return with(kAttack, roshan->handle);
}

// Whether enough mates are nearer to the attacked building: one more than the enemies there. All come to the base.
bool defended(const Situation& s) {
  const Vec2 place = s.scene.memory.plan_place;
  if (distance(place, s.scene.home) < 4500.0f) return false;
  int nearer = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i)
    if (const SeenUnit* mate = i == s.index ? nullptr : s.scene.ally(i);
        mate && !s.scene.memory.heroes[i].retreating)
      nearer += distance(mate->pos, place) < s.away(place);
  return nearer > heroes_near(s.scene, place, 1800.0f, true);
}

Command follow_plan(const Situation& s) {
  BotMemory& m = s.scene.memory;
  Vec2 place;
  switch (m.plan) {
    case Plan::Roshan:
      if (s.offered(s.scene.book.smoke) && s.view.time >= m.next_smoke) {
        m.next_smoke = s.view.time + 120.0f;
        return with(s.scene.book.smoke);
      }
      return take_roshan(s);
    case Plan::Defend:
      if (defended(s) || (distance(m.plan_place, s.scene.home) > 4500.0f && is_lost(s, m.plan_place))) return {};
      place = m.plan_place +
              (s.scene.home - m.plan_place) * (400.0f / std::max(distance(s.scene.home, m.plan_place), 400.0f));
      break;
    case Plan::Push: {
      place = lane_position(s, m.plan_lane);
      // The first to arrive waits for the others outside the towers' range.
      const bool dangerous = under_enemy_tower(s.scene, place, 500.0f);
      const bool few = heroes_near(s.scene, place, kGathered, false) * 5 < s.scene.own_alive * 3;
      if ((dangerous && few) || is_lost(s, place))
        place = lane_point(s.scene.lane(m.plan_lane), lane_progress(s.scene.lane(m.plan_lane), place), 1300.0f);
      if (s.offered(s.scene.book.smoke) && s.view.time >= m.next_smoke &&
          heroes_near(s.scene, s.body.pos, 1100.0f, false) >= 3 &&
          heroes_near(s.scene, s.body.pos, 1800.0f, true) == 0) {
        m.next_smoke = s.view.time + 120.0f;
        return with(s.scene.book.smoke);
      }
      break;
    }
    case Plan::Farm:
      return {};
  }
  if (const Command c = teleport_towards(s, place); said(c)) return c;
  return travel(s, place);
}

bool wants_buyback(const Situation& s) {
  if (!s.skill.defends || s.hero.respawn_time < 25.0f) return false;
  if (s.scene.memory.plan == Plan::Defend && s.view.time > 1200.0f) {
    for (const int i : s.scene.own_buildings) {
      const SeenUnit& u = s.scene.unit(i);
      const bool base =
          u.kind == UnitKind::Fort || u.kind == UnitKind::Barracks || (u.kind == UnitKind::Tower && u.tier >= 3);
      if (base && !u.invulnerable && distance(u.pos, s.scene.memory.plan_place) < 1200.0f) return true;
    }
  }
  return s.view.heroes_per_team == 1 && s.hero.respawn_time > 30.0f;
}

}  // namespace dota
