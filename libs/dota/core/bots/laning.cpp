// The lane: last hits, denies, blows at the opponent, where to stand.
#include <cmath>

#include "base/math.hpp"
#include "bots/scene.hpp"

namespace dota {
namespace {

constexpr float kApproach = 3;      // seconds before a creep falls to a last hit in which the hero goes to it
constexpr float kTooHealthy = 300;  // health above the hero's damage that no creep loses before a blow lands
constexpr float kHalfTurn = 3.14159265f * 0.03f;  // seconds times the turn rate
constexpr float kTowerKill = 2.5f;                // seconds for which the shots of a tower are predicted
constexpr float kWeakRoll = 0.94f;                // share of the mean damage that a blow is sure to do, about

// Damage of a blow of `amount` to a unit: the attacker's class against the unit's, and the unit's armor.
float blow(const Situation& s, const SeenUnit& attacker, const SeenUnit& u, float amount) {
  const Tables& t = *s.view.constants.tables;
  const auto row = static_cast<std::size_t>(t.units[attacker.type].attack_class);
  const auto column = static_cast<std::size_t>(t.units[u.type].defend_class);
  return amount * t.rules.class_table[row][column] * (1.0f - u.physical_resistance);
}

// The hero's damage with what its items add against creeps.
float creep_damage(const Situation& s) {
  float sum = s.body.damage;
  for (const SeenItem& item : s.hero.items) {
    const int ability = item.id < 0 ? -1 : s.view.constants.tables->items[item.id].ability;
    if (ability >= 0) sum += s.scene.book.abilities[ability].creep_damage[s.body.melee ? 0 : 1];
  }
  return sum;
}

// Seconds until an attack begun now would land on a unit that far away.
float until_blow(const Situation& s, const SeenUnit& u) {
  const UnitDef& def = s.view.constants.tables->units[s.body.type];
  const float speed = std::max(s.body.attack_speed / 100.0f, 0.2f);
  const float gap = std::max(s.away(u.pos) - s.reach(u), 0.0f);
  constexpr float kLate = kFramesPerStep * kDt;  // an order is carried out a timestep later
  const Vec2 way = u.pos - s.body.pos;
  const float ahead = way.dot(heading(s.body.facing)) / std::max(way.length(), 1.0f);
  const float turn = 0.5f * (1.0f - ahead) * kHalfTurn / std::max(def.turn_rate, 0.1f);
  float t = kLate + turn + def.attack_point / speed + gap / std::max(s.body.move_speed, 100.0f);
  t = std::max(t, s.body.attack_interval - s.body.since_attack);
  if (def.projectile_speed > 0) t += std::min(s.away(u.pos), s.body.attack_range) / def.projectile_speed;
  return t;
}

// Damage that a unit takes within some seconds from one that can be seen attacking it, by blows not yet struck.
float damage_from(const Situation& s, const SeenUnit& attacker, const SeenUnit& u, float seconds) {
  if (!(attacker.attack_target == u.handle)) return 0;
  const UnitDef& def = s.view.constants.tables->units[attacker.type];
  float first = attacker.act == Act::AttackWindup
                    ? attacker.act_left
                    : std::max(attacker.attack_interval - attacker.since_attack, def.attack_point);
  if (def.projectile_speed > 0) first += distance(attacker.pos, u.pos) / def.projectile_speed;
  if (first > seconds) return 0;
  const float blows = 1.0f + std::floor((seconds - first) / std::max(attacker.attack_interval, 0.2f));
  return blows * blow(s, attacker, u, attacker.damage);
}

// Returns the predicted health: shots in flight and the blows of the creeps and towers that attack the unit.
float health_then(const Situation& s, const SeenUnit& u, float seconds) {
  float damage = 0;
  for (int i = 0; i < s.view.projectile_count; ++i) {
    const SeenProjectile& shot = s.view.projectiles[i];
    if (shot.kind != Projectile::Kind::Attack || !(shot.target == u.handle) || shot.eta > seconds) continue;
    if (const int source = s.view.find(shot.source); source >= 0)
      damage += blow(s, s.view.units[source], u, s.view.units[source].damage);
  }
  const bool own = u.side == Side::Own;
  for (const int i : own ? s.scene.enemy_creeps : s.scene.own_creeps)
    damage += damage_from(s, s.scene.unit(i), u, seconds);
  for (const int i : own ? s.scene.enemy_buildings : s.scene.own_buildings)
    damage += damage_from(s, s.scene.unit(i), u, seconds);
  return u.hp - damage;
}

// Whether a mate who comes before the hero in the order of farm can take the creep. A mate who is leaving the lane
// or whose blow at another unit is under way cannot.
bool left_to_mate(const Situation& s, const SeenUnit& creep) {
  if (!s.skill.disciplined) return false;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* mate = i == s.index ? nullptr : s.scene.ally(i);
    if (!mate || distance(mate->pos, creep.pos) > mate->attack_range + 200.0f) continue;
    const BotMemory::Hero& its = s.scene.memory.heroes[i];
    const bool busy = mate->act == Act::AttackWindup && !(its.last.target == creep.handle);
    if (its.retreating || its.fighting || busy || (mate->status & (kStunned | kHexed | kDisarmed))) continue;
    const int role = s.view.constants.tables->heroes[s.view.heroes[i].def].role_position;
    if (role < s.role() || (role == s.role() && i < s.index)) return true;
  }
  return false;
}

// The creep that the next attack would kill, preferring the weakest: an enemy's, or one's own to deny.
const SeenUnit* last_hit(const Situation& s, bool deny) {
  const SeenUnit* best = nullptr;
  const float amount = creep_damage(s);
  for (const int i : deny ? s.scene.own_creeps : s.scene.enemy_creeps) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind != UnitKind::LaneCreep || (u.status & (kAttackImmune | kUntargetable))) continue;
    if (s.away(u.pos) > s.reach(u) + (deny ? 60.0f : 220.0f)) continue;
    if (deny && u.hp >= 0.5f * u.max_hp) continue;
    const float damage = blow(s, s.body, u, amount);
    if (u.hp > damage + kTooHealthy || (best && u.hp >= best->hp)) continue;
    const float health = s.skill.foresees ? health_then(s, u, until_blow(s, u)) : u.hp;
    if (health > s.skill.last_hit_slack * damage * (s.skill.foresees ? kWeakRoll : 1.0f)) continue;
    if (!deny && left_to_mate(s, u)) continue;
    best = &u;
  }
  return best;
}

// Whether the shots of a tower, beside other blows, kill the creep before one blow of the hero can, but not before
// two: then a blow now leaves the last hit to the hero.
bool needs_two(const Situation& s, const SeenUnit& u, float damage) {
  const float first = until_blow(s, u);
  bool two = false;
  for (float t = first; t < first + kTowerKill; t += kFramesPerStep * kDt) {
    const float health = health_then(s, u, t);
    if (health <= 0) return two;
    if (health <= kWeakRoll * damage) return false;
    two = two || (t >= first + s.body.attack_interval && health <= (1.0f + kWeakRoll) * damage);
  }
  return false;
}

// A creep at an own tower that is struck early.
const SeenUnit* tower_creep(const Situation& s) {
  if (!s.skill.foresees) return nullptr;
  const float amount = creep_damage(s);
  for (const int i : s.scene.own_buildings) {
    const SeenUnit& tower = s.scene.unit(i);
    const int at = tower.kind == UnitKind::Tower ? s.view.find(tower.attack_target) : -1;
    if (at < 0) continue;
    const SeenUnit& u = s.view.units[at];
    if (u.kind != UnitKind::LaneCreep || u.side != Side::Enemy || s.away(u.pos) > s.reach(u) + 60.0f) continue;
    if (needs_two(s, u, blow(s, s.body, u, amount)) && !left_to_mate(s, u)) return &u;
  }
  return nullptr;
}

// Whether an enemy creep in reach will be ready for the last hit before the hero can strike twice.
bool last_hit_due(const Situation& s) {
  if (!s.skill.foresees) return false;
  const float amount = creep_damage(s);
  for (const int i : s.scene.enemy_creeps) {
    const SeenUnit& u = s.scene.unit(i);
    const float damage = blow(s, s.body, u, amount);
    if (u.kind != UnitKind::LaneCreep || s.away(u.pos) > s.reach(u) + 220.0f || u.hp > damage + kTooHealthy)
      continue;
    if (health_then(s, u, until_blow(s, u) + s.body.attack_interval) <= damage && !left_to_mate(s, u)) return true;
  }
  return false;
}

}  // namespace

Command last_hits(const Situation& s) {
  if (const SeenUnit* creep = last_hit(s, false); creep && !under_enemy_tower(s.scene, creep->pos, -250.0f))
    return with(kAttack, creep->handle);
  if (const SeenUnit* creep = tower_creep(s); creep && !last_hit_due(s)) return with(kAttack, creep->handle);
  if (s.skill.denies)
    if (const SeenUnit* creep = last_hit(s, true); creep && !last_hit_due(s)) return with(kAttack, creep->handle);
  return {};
}

Vec2 last_hit_position(const Situation& s, Vec2 place) {
  if (!s.skill.foresees) return place;
  const SeenUnit* next = nullptr;
  const float amount = creep_damage(s);
  for (const int i : s.scene.enemy_creeps) {
    const SeenUnit& u = s.scene.unit(i);
    const float damage = blow(s, s.body, u, amount);
    if (u.kind != UnitKind::LaneCreep || s.away(u.pos) > 900.0f || u.hp > damage + kTooHealthy ||
        (next && u.hp >= next->hp))
      continue;
    if (health_then(s, u, kApproach) > damage || left_to_mate(s, u) || under_enemy_tower(s.scene, u.pos, -250.0f))
      continue;
    next = &u;
  }
  if (!next) return place;
  const Vec2 back = place - next->pos;
  const float reach = s.reach(*next) - 20.0f, length = back.length();
  return length <= reach ? place : next->pos + back * (reach / length);
}

Command harass(const Situation& s) {
  // Creeps turn on who strikes a hero beside them: that costs more than it brings.
  int guards = 0;
  if (s.skill.disciplined)
    for (const int i : s.scene.enemy_creeps)
      guards += s.away(s.scene.unit(i).pos) < 500.0f;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* enemy = s.scene.enemy(i);
    if (!enemy || s.away(enemy->pos) > s.reach(*enemy) + 50.0f || enemy->invulnerable ||
        (enemy->status & (kAttackImmune | kUntargetable)) || under_enemy_tower(s.scene, enemy->pos, 0.0f))
      continue;
    const float weakness = enemy->max_hp > 0 ? enemy->hp / enemy->max_hp : 1.0f;
    if (weakness + 0.15f >= s.health() && (s.view.time < s.memory.next_harass || guards > 1)) continue;
    if (last_hit_due(s)) continue;
    s.memory.next_harass = s.view.time + s.skill.harass_every * (0.5f + s.scene.rng.uniform());
    return with(kAttack, enemy->handle);
  }
  return {};
}

// Behind the foremost own creep of the lane, at the distance from which the next creep can be reached; without
// creeps, at the foremost standing tower.
Vec2 lane_position(const Situation& s, int lane) {
  const BotMemory& m = s.scene.memory;
  const float behind = s.body.melee ? 150.0f : std::max(150.0f, 0.6f * s.body.attack_range);
  const MapLane& way = s.scene.lane(lane);
  return m.own_front[lane] < 0 ? lane_point(way, m.own_tower[lane], 150.0f)
                               : lane_point(way, m.own_front[lane], behind);
}

}  // namespace dota
