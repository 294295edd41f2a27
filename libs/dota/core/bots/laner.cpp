// A rule-based player: what a patient beginner does in lane. Its three strengths differ in how exactly it times
// last hits, how often it decides, and how it fights.
#include <algorithm>
#include <cmath>

#include "bots/bots.hpp"
#include "effects/program_node.hpp"
#include "map/map_data.hpp"

namespace dota {
namespace {

// How a strength plays. None of it is from a source: the numbers make three opponents that a learner meets in
// turn.
struct Skill {
  float decide_every;                 // seconds between two decisions
  float last_hit_slack;               // attacks a creep when its hit points are below this times the damage
  float harass_every;                 // seconds between two attacks on a hero, apart from free ones
  float retreat_below, return_above;  // shares of health
  bool casts, denies, dives_tower_early;
};

constexpr Skill skill_of(BotKind kind) {
  switch (kind) {
    case BotKind::Easy:
      return {0.8f, 1.6f, 12.0f, 0.35f, 0.7f, false, false, false};
    case BotKind::Hard:
      return {0.1f, 1.0f, 2.0f, 0.25f, 0.6f, true, true, true};
    default:
      return {0.27f, 1.15f, 5.0f, 0.3f, 0.65f, true, true, false};
  }
}

// Everything the rules below look at, found once.
struct Situation {
  const TeamView& view;
  const Choices& choices;
  const SeenHero& hero;
  const SeenUnit& body;
  int index;
  const MapLane& lane;
  const Skill& skill;

  bool offered(std::int16_t action) const {
    const auto& row = choices.available[static_cast<std::size_t>(index)];
    return std::find(row.begin(), row.end(), static_cast<std::uint16_t>(action)) != row.end();
  }
  float health() const { return body.max_hp > 0 ? body.hp / body.max_hp : 0; }
  std::int16_t action(const char* name) const {
    return static_cast<std::int16_t>(view.constants.actions->find(name));
  }
};

// Where along the lane a point is: the waypoint segment nearest to it, plus the share of it walked.
float progress(const MapLane& lane, Vec2 p) {
  float best = 1e30f, at = 0;
  for (std::size_t i = 0; i + 1 < lane.waypoints.size(); ++i) {
    const Vec2 a = lane.waypoints[i], d = lane.waypoints[i + 1] - a;
    const float length2 = d.dot(d);
    const float t = length2 > 0 ? std::clamp((p - a).dot(d) / length2, 0.0f, 1.0f) : 0.0f;
    const float away = distance(p, a + d * t);
    if (away < best) {
      best = away;
      at = static_cast<float>(i) + t;
    }
  }
  return at;
}

// The point `back` world units before the place `at` of the lane.
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

Command with(std::int16_t action, Handle target = {}) {
  Command c;
  c.action = action;
  c.target = target;
  return c;
}

// A move towards p: as far as an offset reaches, in whole cells.
Command move_to(const Situation& s, Vec2 p) {
  const float cell = s.view.constants.settings->offset_cell;
  Vec2 d = p - s.body.pos;
  const float reach = 4.0f * cell, length = d.length();
  if (length < 0.5f * cell) return with(kNoop);
  if (length > reach) d = d * (reach / length);
  Command c = with(kMove);
  c.dx = static_cast<std::int8_t>(std::clamp(std::lround(d.x / cell), -4l, 4l));
  c.dy = static_cast<std::int8_t>(std::clamp(std::lround(d.y / cell), -4l, 4l));
  return c.dx == 0 && c.dy == 0 ? with(kNoop) : c;
}

// Towards home: along the lane while on it, straight to the fountain near the base.
Command retreat(const Situation& s) {
  const float at = progress(s.lane, s.body.pos);
  if (at < 0.2f) {
    for (int i = 0; i < s.view.unit_count; ++i) {
      const SeenUnit& u = s.view.units[static_cast<std::size_t>(i)];
      if (u.kind == UnitKind::Fountain && u.side == Side::Own) return move_to(s, u.pos);
    }
  }
  return move_to(s, lane_point(s.lane, at, 500.0f));
}

bool under_enemy_tower(const Situation& s, Vec2 p, float margin) {
  for (int i = 0; i < s.view.unit_count; ++i) {
    const SeenUnit& u = s.view.units[static_cast<std::size_t>(i)];
    if (u.kind == UnitKind::Tower && u.side == Side::Enemy && u.hp > 0 &&
        distance(p, u.pos) < u.attack_range + u.radius + margin)
      return true;
  }
  return false;
}

bool hit_by_tower(const Situation& s) {
  for (int i = 0; i < s.view.unit_count; ++i) {
    const SeenUnit& u = s.view.units[static_cast<std::size_t>(i)];
    if ((u.kind == UnitKind::Tower || u.kind == UnitKind::Fountain) && u.side == Side::Enemy &&
        u.attack_target == s.body.handle)
      return true;
  }
  return false;
}

float reach_of(const Situation& s, const SeenUnit& u) { return s.body.attack_range + s.body.radius + u.radius; }

// The creep that the next attack would kill, preferring the weakest: an enemy's, or one's own to deny.
const SeenUnit* last_hit(const Situation& s, bool deny) {
  const SeenUnit* best = nullptr;
  for (int i = 0; i < s.view.unit_count; ++i) {
    const SeenUnit& u = s.view.units[static_cast<std::size_t>(i)];
    if (u.kind != UnitKind::LaneCreep || !u.visible || u.side != (deny ? Side::Own : Side::Enemy)) continue;
    if (distance(u.pos, s.body.pos) > reach_of(s, u) + (deny ? 60.0f : 200.0f)) continue;
    if (deny && u.hp >= 0.5f * u.max_hp) continue;
    const float damage = s.body.damage * (1.0f - u.physical_resistance);
    if (u.hp > s.skill.last_hit_slack * damage) continue;
    if (best == nullptr || u.hp < best->hp) best = &u;
  }
  return best;
}

const SeenUnit* enemy_hero(const Situation& s, float within) {
  const SeenUnit* best = nullptr;
  for (int h = s.view.heroes_per_team; h < 2 * s.view.heroes_per_team; ++h) {
    const SeenUnit* u = s.view.body(h);
    const SeenHero& seen = s.view.heroes[static_cast<std::size_t>(h)];
    if (u == nullptr || !seen.alive || !seen.in_sight || distance(u->pos, s.body.pos) > within) continue;
    if (best == nullptr || u->hp < best->hp) best = u;
  }
  return best;
}

// Whether an untargeted ability that strikes in front of its caster (Shadow Fiend's razes) would reach the unit.
bool front_strike_hits(const Situation& s, const AbilityDef& ability, int level, const SeenUnit& u) {
  for (const std::uint16_t root : ability.program.roots) {
    const EffectNode& node = ability.program.nodes[root];
    if (node.at != Where::Front || !node.given(Role::Dist) || !node.given(Role::R)) continue;
    const float ahead = node.value(Role::Dist)->base.at(level), radius = node.value(Role::R)->base.at(level);
    const Vec2 centre = s.body.pos + Vec2{std::cos(s.body.facing), std::sin(s.body.facing)} * ahead;
    return distance(centre, u.pos) < radius * 0.9f;
  }
  return false;
}

bool strikes_in_front(const AbilityDef& ability) {
  return std::any_of(ability.program.roots.begin(), ability.program.roots.end(),
                     [&](std::uint16_t root) { return ability.program.nodes[root].at == Where::Front; });
}

// A hostile spell at the hero, when one is ready and reaches.
Command cast_at(const Situation& s, const SeenUnit& enemy) {
  for (const SeenAbility& slot : s.hero.abilities) {
    if (slot.id < 0 || !slot.castable) continue;
    const std::int16_t action = s.view.constants.actions->of_ability[static_cast<std::size_t>(slot.id)];
    if (action == kNoAction || !s.offered(action)) continue;
    const AbilityDef& ability = s.view.constants.tables->abilities[static_cast<std::size_t>(slot.id)];
    const float away = distance(enemy.pos, s.body.pos);
    const float range = ability.at(ability.cast_range, slot.level);
    switch (ability.target) {
      case TargetType::Unit:
        if (ability.target_enemy && away < range + 50.0f) return with(action, enemy.handle);
        break;
      case TargetType::UnitOffset:
        if (away < range) return with(action, enemy.handle);
        break;
      case TargetType::None:
        if (strikes_in_front(ability)
                ? front_strike_hits(s, ability, slot.level, enemy)
                : s.view.constants.actions->defs[static_cast<std::size_t>(action)].hostile && away < 400.0f)
          return with(action);
        break;
      default:
        break;
    }
  }
  return {};
}

Command heal_up(const Situation& s) {
  if (s.health() < 0.75f)
    for (const char* name : {"item_flask", "item_tango", "item_tango_single", "item_faerie_fire"}) {
      const std::int16_t action = s.action(name);
      const bool urgent = s.health() < 0.35f;
      if (action <= 0 || !s.offered(action) || (std::string_view(name) == "item_faerie_fire" && !urgent)) continue;
      bool healing = false;  // one at a time
      for (int m = 0; m < s.hero.modifier_count; ++m) {
        const auto& modifier =
            s.view.constants.tables
                ->modifiers[static_cast<std::size_t>(s.hero.modifiers[static_cast<std::size_t>(m)].name)];
        healing |= modifier.rfind("item_tango", 0) == 0 || modifier.rfind("item_flask", 0) == 0;
      }
      if (!healing) return with(action, s.body.handle);
    }
  if (s.health() < 0.3f)
    if (const std::int16_t wand = s.action("item_magic_wand"); wand > 0 && s.offered(wand)) return with(wand);
  return {};
}

const SeenUnit* siege_target(const Situation& s) {
  for (int i = 0; i < s.view.unit_count; ++i) {
    const SeenUnit& b = s.view.units[static_cast<std::size_t>(i)];
    const bool building = b.kind == UnitKind::Tower || b.kind == UnitKind::Barracks || b.kind == UnitKind::Fort;
    if (!building || b.side != Side::Enemy || !b.visible || b.invulnerable || b.hp <= 0) continue;
    if (distance(b.pos, s.body.pos) > 1400.0f || b.attack_target == s.body.handle) continue;
    int escort = 0;
    for (int j = 0; j < s.view.unit_count; ++j) {
      const SeenUnit& u = s.view.units[static_cast<std::size_t>(j)];
      escort += u.kind == UnitKind::LaneCreep && u.side == Side::Own && distance(u.pos, b.pos) < 750.0f;
    }
    if (escort >= (s.skill.dives_tower_early ? 1 : 2)) return &b;
  }
  return nullptr;
}

// Behind the foremost own creep of the lane, at the distance from which the next creep can be reached; without
// creeps, at the foremost standing tower.
Vec2 lane_position(const Situation& s) {
  float front = -1, tower = 0;
  for (int i = 0; i < s.view.unit_count; ++i) {
    const SeenUnit& u = s.view.units[static_cast<std::size_t>(i)];
    const bool leads = u.kind == UnitKind::LaneCreep || u.kind == UnitKind::Tower;
    if (!leads || u.side != Side::Own || u.hp <= 0) continue;
    const float at = progress(s.lane, u.pos);
    const bool near_lane = distance(lane_point(s.lane, at, 0), u.pos) < 700.0f;
    if (u.kind == UnitKind::LaneCreep && near_lane) front = std::max(front, at);
    if (u.kind == UnitKind::Tower && near_lane) tower = std::max(tower, at);
  }
  const float behind = s.body.melee ? 150.0f : std::max(150.0f, 0.6f * s.body.attack_range);
  return front < 0 ? lane_point(s.lane, tower, 150.0f) : lane_point(s.lane, front, behind);
}

Command decide(const Situation& s, BotMemory::Hero& memory, Rng& rng) {
  if (s.offered(kBuyback) && s.hero.respawn_time > 30.0f && s.skill.dives_tower_early) return with(kBuyback);
  if (!s.hero.alive) return with(kNoop);
  if (s.hero.using_ability || s.body.act == Act::Channel) return with(kNoop);

  if (s.health() < s.skill.retreat_below) memory.retreating = true;
  if (s.health() > s.skill.return_above) memory.retreating = false;
  if (const Command heal = heal_up(s); heal.action != kNoAction) return heal;
  if (memory.retreating || hit_by_tower(s)) return retreat(s);

  const SeenUnit* enemy = enemy_hero(s, 1200.0f);
  if (enemy != nullptr && s.skill.casts && !under_enemy_tower(s, s.body.pos, 0.0f))
    if (const Command cast = cast_at(s, *enemy); cast.action != kNoAction) return cast;
  if (const SeenUnit* creep = last_hit(s, false); creep != nullptr && !under_enemy_tower(s, creep->pos, -250.0f))
    return with(kAttack, creep->handle);
  if (s.skill.denies)
    if (const SeenUnit* creep = last_hit(s, true)) return with(kAttack, creep->handle);
  if (enemy != nullptr && distance(enemy->pos, s.body.pos) < reach_of(s, *enemy) + 50.0f &&
      !under_enemy_tower(s, enemy->pos, 0.0f)) {
    const float weakness = enemy->max_hp > 0 ? enemy->hp / enemy->max_hp : 1.0f;
    if (weakness + 0.15f < s.health() || s.view.time >= memory.next_harass) {
      memory.next_harass = s.view.time + s.skill.harass_every * (0.5f + rng.uniform());
      return with(kAttack, enemy->handle);
    }
  }
  if (const SeenUnit* building = siege_target(s)) return with(kAttack, building->handle);
  if (s.offered(kGlyph) && s.view.glyph_cooldown[0] <= 0) {
    for (int i = 0; i < s.view.unit_count; ++i) {
      const SeenUnit& u = s.view.units[static_cast<std::size_t>(i)];
      if (u.kind == UnitKind::Tower && u.side == Side::Own && u.hp > 0 && u.hp < 0.3f * u.max_hp)
        return with(kGlyph);
    }
  }
  return move_to(s, lane_position(s));
}

}  // namespace

Command laner_command(BotKind kind, const TeamView& view, const Choices& choices, BotMemory::Hero& memory,
                      int hero, Rng& rng) {
  const SeenHero& seen = view.heroes[static_cast<std::size_t>(hero)];
  const SeenUnit* body = view.body(hero);
  if (!seen.present || body == nullptr) return with(kNoop);
  const Skill skill = skill_of(kind);
  if (view.time < memory.next_decision) return with(kNoop);
  memory.next_decision = view.time + skill.decide_every;
  const auto lane = static_cast<std::size_t>(memory.lane < 0 ? 1 : memory.lane);
  const Situation situation{view, choices, seen, *body, hero, view.constants.tables->map->lanes[view.team][lane],
                            skill};
  return memory.last = decide(situation, memory, rng);
}

}  // namespace dota
