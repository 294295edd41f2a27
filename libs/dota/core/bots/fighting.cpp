// Fights: whether to take one, whom to strike, when to leave.
#include <cmath>

#include "bots/scene.hpp"

namespace dota {
namespace {

constexpr float kNear = 1300;       // what takes part in a fight around a hero
constexpr float kTowerWorth = 260;  // strength of an enemy tower that would strike the hero
constexpr float kAbout = 2000;      // heroes this near to a place are there
constexpr float kLost = 0.9f;       // own strength, as a share of the enemies', below which a place is lost

// Own strength, as a share of the enemies', below which the hero does not even finish one of them.
constexpr float kKillAgainst = 0.6f;

// Whether all that the hero has ready, and a few blows, would kill it.
bool can_kill(const Situation& s, const SeenUnit& enemy) {
  const float blows = s.body.damage * (1.0f - enemy.physical_resistance) * 3.0f;
  return enemy.hp < blows + 0.75f * burst(s) && s.health() > 0.35f;
}

// Damage that the enemies near could do in a moment, as far as their abilities are ready.
float threat(const Situation& s) {
  float sum = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* e = s.scene.enemy(i);
    if (!e || s.away(e->pos) > 1000.0f || (e->status & (kStunned | kHexed))) continue;
    sum += 2.0f * e->damage * (1.0f - s.body.physical_resistance);
    const SeenHero& seen = s.view.heroes[s.view.heroes_per_team + i];
    for (const SeenAbility& a : seen.abilities) {
      if (a.id < 0 || a.level == 0 || !a.castable) continue;
      const Usefulness& use = s.scene.book.abilities[a.id];
      if (use.damage.given()) sum += 0.6f * use.damage.at(a.level) * (1.0f - s.hero.magic_resistance);
    }
  }
  return sum;
}

const SeenUnit* choose_target(const Situation& s, const Balance& b) {
  const BotMemory& m = s.scene.memory;
  const SeenUnit* best = nullptr;
  float most = -1e9f;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* e = s.scene.enemy(i);
    if (!e || s.away(e->pos) > kNear || e->invulnerable || (e->status & kUntargetable)) continue;
    const float health = e->hp / std::max(1.0f - e->physical_resistance, 0.2f);
    float worth = -health - 0.6f * std::max(s.away(e->pos) - s.reach(*e), 0.0f);
    if (s.skill.disciplined && e->handle == m.focus && s.view.time < m.focus_until) worth += 350.0f;
    if (e->status & (kStunned | kHexed | kRooted)) worth += 200.0f;
    if (e->status & kAttackImmune) worth -= 500.0f;
    if (under_enemy_tower(s.scene, e->pos, 0.0f) && b.allies < 3) worth -= 600.0f;
    if (worth <= most) continue;
    most = worth;
    best = e;
  }
  return best;
}

}  // namespace

Balance balance_near(const Situation& s) {
  Balance b;
  b.own = strength(s.view, s.body);
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    if (const SeenUnit* e = s.scene.recent_enemy(i); e && s.away(e->pos) < kNear) {
      ++b.recent;
      b.enemy += strength(s.view, *e);
      b.danger = std::min(b.danger, s.away(e->pos));
      if (s.scene.enemy(i)) {
        ++b.enemies;
        if (!b.nearest || s.away(e->pos) < s.away(b.nearest->pos)) b.nearest = e;
      }
    }
    const SeenUnit* mate = i == s.index ? nullptr : s.scene.ally(i);
    if (!mate || s.away(mate->pos) > kNear || s.scene.memory.heroes[i].retreating) continue;
    ++b.allies;
    b.own += strength(s.view, *mate);
  }
  if (b.recent == 0) return b;
  if (under_enemy_tower(s.scene, s.body.pos, 150.0f)) b.enemy += kTowerWorth;
  for (const int i : s.scene.own_buildings) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind == UnitKind::Tower && s.away(u.pos) < u.attack_range + 200.0f) b.own += 0.8f * kTowerWorth;
  }
  return b;
}

bool outnumbered(const Situation& s, const Balance& b) {
  // In lane a hero stays where it gains experience, out of their reach.
  const bool lane = s.view.time < s.skill.group_from && s.health() > 0.5f;
  const float near = lane ? 700.0f : s.skill.disciplined && b.own < 0.6f * b.enemy ? kNear : 1000.0f;
  if (b.danger > near) return false;
  // One against one nobody has to leave the lane before it is nearly lost.
  const bool team = s.skill.disciplined && b.allies >= 4;
  const float need = (b.recent == 1 ? 0.5f : team ? 0.65f : 0.8f) - (s.memory.fighting ? 0.15f : 0.0f);
  if (s.skill.disciplined && s.health() < 0.5f && s.body.hp < threat(s) / static_cast<float>(b.allies))
    return b.enemies == 0 || !can_kill(s, *b.nearest);
  return b.own < need * s.skill.caution * b.enemy && !(b.enemies == 1 && b.recent == 1 && can_kill(s, *b.nearest));
}

bool is_lost(const Situation& s, Vec2 place) {
  if (!s.skill.disciplined || s.view.heroes_per_team < 3) return false;
  float own = strength(s.view, s.body), enemy = 0;
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenUnit* e = s.scene.recent_enemy(i);
    if (e && distance(e->pos, place) < kAbout) enemy += strength(s.view, *e);
    const SeenUnit* mate = i == s.index ? nullptr : s.scene.ally(i);
    if (!mate || s.scene.memory.heroes[i].retreating) continue;
    const SeenHero& its = s.view.heroes[i];
    if (distance(mate->pos, place) < kAbout || (its.teleporting && distance(its.teleport_target, place) < kAbout))
      own += strength(s.view, *mate);
  }
  return own < kLost * enemy;
}

Command fight(const Situation& s, const Balance& b) {
  s.memory.fighting = false;
  if (b.enemies == 0 || !s.can_act()) return {};
  const SeenUnit* target = choose_target(s, b);
  if (!target) return {};
  const bool kills = s.skill.casts && can_kill(s, *target);
  const bool towered = under_enemy_tower(s.scene, target->pos, 50.0f);
  const float gap = s.away(target->pos) - s.reach(*target);
  if (towered && !(kills && gap < 100.0f) && b.allies < 3) return {};
  // In lane nobody fights to the death without an advantage: there are creeps to kill.
  const bool laning = s.view.time < s.skill.group_from && b.allies + b.enemies < 5;
  const float need = s.skill.caution * (laning ? 1.35f : s.skill.disciplined && b.allies >= 4 ? 0.8f : 1.0f);
  if (b.own < (kills ? kKillAgainst : need) * b.enemy) return {};
  if (laning && !kills && target->hp > 0.55f * target->max_hp) return {};
  if (gap > 700.0f && !kills && b.allies < 2) return {};
  s.memory.fighting = true;
  if (s.scene.memory.focus_until < s.view.time || s.scene.memory.focus == target->handle) {
    s.scene.memory.focus = target->handle;
    s.scene.memory.focus_until = s.view.time + 3.0f;
  }
  if (s.skill.casts && s.view.time >= s.memory.next_cast && !(s.body.status & kSilenced)) {
    if (const Command c = cast_at(s, *target, Intent::Fight); said(c)) {
      if (!s.skill.disciplined) s.memory.next_cast = s.view.time + (s.skill.casts_in_lane ? 0.5f : 4.0f);
      return c;
    }
  }
  if (target->status & kAttackImmune) return move_to(s, target->pos);
  return with(kAttack, target->handle);
}

}  // namespace dota
