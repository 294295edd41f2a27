#include <algorithm>

#include "effects/attack.hpp"
#include "effects/units.hpp"
#include "map/spatial.hpp"
#include "rules/buildings.hpp"
#include "rules/creature_ai.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr int kAcquireFrames = 3;  // an idle tower looks for a target on every third frame
constexpr int kAuraFrames = 15;

bool valid_target(const Context& c, const Unit& tower, const Unit* u) {
  return u && u->alive && in_attack_range(tower, *u) && can_attack(c, tower, *u);
}

// Returns whether u attacks an allied hero of the tower within its range: the tower's first two priorities.
bool attacks_allied_hero(const Context& c, const Unit& tower, const Unit& u) {
  if (u.act != Act::AttackWindup && u.act != Act::AttackBackswing) return false;
  const Unit* victim = c.world.get(u.attack_target);
  return victim && victim->kind == UnitKind::Hero && victim->team == tower.team && victim->alive;
}

// rules.json tower_ai.priority; `avoid` is taken only when there is nothing else.
Unit* choose(Context& c, Unit& tower, Handle avoid) {
  World& w = c.world;
  const float reach = tower.attack_range + tower.radius;
  if (!team_near(w, 1 - tower.team, tower.pos, reach)) return nullptr;
  Unit* best = nullptr;
  int best_class = 9;
  float best_distance = 1e9f;
  for (Unit& u : units_near(c, tower.pos, reach)) {
    if (!is_enemy(tower, u) || u.team == kNeutralTeam || u.kind == UnitKind::Ward || !valid_target(c, tower, &u))
      continue;
    int rank = 4;
    if (attacks_allied_hero(c, tower, u))
      rank = u.kind == UnitKind::Hero ? 1 : 2;
    else if (u.kind == UnitKind::LaneCreep || u.kind == UnitKind::Summon)
      rank = 3;
    if (w.handle(u) == avoid) rank = 8;
    const float d = distance(tower.pos, u.pos) - u.radius;
    if (rank < best_class || (rank == best_class && d < best_distance)) {
      best = &u;
      best_class = rank;
      best_distance = d;
    }
  }
  return best;
}

void think(Context& c, Unit& tower) {
  World& w = c.world;
  const bool looks = (w.frame + w.handle(tower).index) % kAcquireFrames == 0;
  if (!looks && tower.attack_target == Handle{} && tower.order.type == OrderType::None) return;
  Unit* target = w.get(tower.attack_target);
  if (!valid_target(c, tower, target)) {
    target = nullptr;
    tower.attack_target = Handle{};
    if (looks) target = choose(c, tower, Handle{});
  }
  if (target)
    keep_attacking(c, tower, *target);
  else
    rest(c, tower);
}

// Armor that towers lend to allied heroes near them, and take from enemy heroes near (7.19).
void tower_auras(Context& c) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  std::array<float, kMaxHeroes> aura{};
  each_unit<UnitKind::Tower>(w, [&](Unit& tower) {
    if (!tower.alive) return;
    int enemies = 0;
    for (int k = 0; k < kMaxHeroes; ++k) {
      const HeroState& h = w.heroes[k];
      const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
      if (!u || !u->alive || distance(u->pos, tower.pos) > g.aura_radius) continue;
      if (u->team == tower.team)
        aura[k] = std::max(aura[k], tower.tier == 1 ? g.aura_tier1 : g.aura_tier2);
      else
        ++enemies;
    }
    const float extra = g.armor_per_enemy_hero * static_cast<float>(enemies);
    if (extra != tower.extra_armor) {
      tower.extra_armor = extra;
      tower.stats_dirty = true;
    }
  });
  for (int k = 0; k < kMaxHeroes; ++k) {
    Unit* u = w.heroes[k].in_game ? w.get(w.heroes[k].unit) : nullptr;
    if (!u || u->aura_armor == aura[k]) continue;
    u->aura_armor = aura[k];
    u->stats_dirty = true;
  }
}

}  // namespace

void tower_notices(Context& c, Unit& tower, Unit& attacker, bool on_allied_hero, bool on_own_side) {
  World& w = c.world;
  if (on_allied_hero) {
    Unit* current = w.get(tower.attack_target);
    const bool busy = valid_target(c, tower, current) && current->kind == UnitKind::Hero &&
                      attacks_allied_hero(c, tower, *current);
    if (!busy && valid_target(c, tower, &attacker) && !(tower.attack_target == w.handle(attacker))) {
      tower.attack_target = w.handle(attacker);
      if (tower.act == Act::AttackWindup) tower.act = Act::Idle;
    }
    return;
  }
  if (on_own_side && tower.attack_target == w.handle(attacker) && w.due(tower.aggro_ready)) {
    Unit* other = choose(c, tower, w.handle(attacker));
    if (!other || other == &attacker) return;
    tower.attack_target = w.handle(*other);
    tower.aggro_ready = w.time + c.tables.game->deaggro_cooldown;
    if (tower.act == Act::AttackWindup) tower.act = Act::Idle;
  }
}

void towers_frame(Context& c) {
  World& w = c.world;
  each_unit<UnitKind::Tower, UnitKind::Fountain>(w, [&](Unit& u) {
    if (u.alive) think(c, u);
  });
  if (w.frame % kAuraFrames == 0) tower_auras(c);
  buildings_frame(c);
}

}  // namespace dota
