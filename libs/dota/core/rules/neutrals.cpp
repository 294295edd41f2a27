#include <algorithm>

#include "base/math.hpp"
#include "effects/attack.hpp"
#include "effects/neutrals.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "rules/creature_ai.hpp"
#include "rules/creeps.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr int kThinkFrames = 6;
constexpr float kCampRing = 90;  // members stand around the camp's spot

bool box_is_clear(const World& w, const MapCamp& camp) {
  for (int i = 0; i < w.units_end; ++i) {
    const Unit& u = w.units[i];
    if (!u.alive || u.building) continue;
    if (u.pos.x >= camp.box_min.x && u.pos.x <= camp.box_max.x && u.pos.y >= camp.box_min.y &&
        u.pos.y <= camp.box_max.y)
      return false;
  }
  return true;
}

// The camp's creeps that a hero has drawn away in time for the next ones, wherever they are now: they are his
// stack.
void mark_stack(World& w, int index) {
  each_unit<UnitKind::Neutral>(w, [&](Unit& u) {
    if (u.camp == index && u.alive && u.stacker < 0) u.stacker = u.drawn_by;
  });
}

void spawn_camp(Context& c, int index) {
  World& w = c.world;
  const MapCamp& camp = c.tables.map->camps[index];
  Camp& state = w.camps[index];
  const auto& sets = c.tables.camp_sets[camp.tier];
  if (sets.empty()) return;
  if (state.living > 0) mark_stack(w, index);
  int choice = w.rng.below(static_cast<int>(sets.size()));
  if (c.tables.game->neutral_not_twice && choice == state.last_set && sets.size() > 1)
    choice = (choice + 1 + w.rng.below(static_cast<int>(sets.size()) - 1)) % static_cast<int>(sets.size());
  state.last_set = static_cast<std::int8_t>(choice);
  const auto& units = sets[choice];
  for (std::size_t k = 0; k < units.size(); ++k) {
    const float angle = 6.2831853f * static_cast<float>(k) / static_cast<float>(units.size());
    const Vec2 pos = camp.pos + heading(angle) * kCampRing;
    Unit* u = spawn_unit(c, units[k], kNeutralTeam, free_place(w, *c.tables.map, pos, 16), angle);
    if (!u) return;
    u->camp = static_cast<std::int8_t>(index);
    u->tier = static_cast<std::uint8_t>(camp.tier);
    ++state.living;
  }
}

// By day it notices who comes near; by night it sleeps until it is hurt.
Unit* intruder(Context& c, Unit& u) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  if (g.neutral_sleep && !w.is_day) return nullptr;
  if (!others_near(w, kNeutralTeam, u.pos, g.neutral_acquire)) return nullptr;
  Unit* best = nullptr;
  float best_distance = 1e9f;
  for (Unit& other : units_near(c, u.pos, g.neutral_acquire)) {
    if (!other.alive || other.team == kNeutralTeam ||
        (other.kind != UnitKind::Hero && other.kind != UnitKind::LaneCreep && other.kind != UnitKind::Summon))
      continue;
    const float d = distance(u.pos, other.pos);
    if (d < best_distance && can_attack(c, u, other)) {
      best = &other;
      best_distance = d;
    }
  }
  return best;
}

// A creep at home that wants nothing: until it looks around, there is nothing to do.
bool calm(const Unit& u) {
  constexpr float kSurely = kCalmNear * 0.99f;  // the exact limit takes a square root
  const Vec2 away = u.pos - u.spawn;
  return u.order.type == OrderType::None && u.aggro_target == Handle{} && u.attack_target == Handle{} &&
         away.dot(away) < kSurely * kSurely;
}

void think(Context& c, Unit& u) {
  World& w = c.world;
  const bool looks = (w.frame + w.handle(u).index) % kThinkFrames == 0;
  if (!looks && calm(u)) return;
  if ((u.status & (kStunned | kForcedMotion | kTaunted)) || busy_casting(u)) return;
  Unit* target = w.get(u.aggro_target);
  if (target && (w.due(u.aggro_until) || !can_attack(c, u, *target))) target = nullptr;
  if (!target) {
    if (!(u.aggro_target == Handle{} && u.attack_target == Handle{})) u.aggro_target = u.attack_target = Handle{};
    if (distance(u.pos, u.spawn) > kCalmNear)
      return keep_moving(c, u, u.spawn);  // on its way home it notices nobody
    rest(c, u);
    target = looks ? intruder(c, u) : nullptr;
    if (!target) return;
    neutral_hurt(c, u, *target);
  }
  if (looks && creature_casts(c, u, *target)) return;
  keep_attacking(c, u, *target);
}

}  // namespace

void neutrals_frame(Context& c) {
  World& w = c.world;
  if (!c.settings.neutrals) return;
  const GameRules& g = *c.tables.game;
  const int camps = static_cast<int>(std::min<std::size_t>(c.tables.map->camps.size(), kMaxCamps));
  for (int k = 0; k < camps; ++k) {
    Camp& camp = w.camps[k];
    if (!w.due(camp.next_spawn)) continue;
    camp.next_spawn += g.neutral_every;
    if (box_is_clear(w, c.tables.map->camps[k])) spawn_camp(c, k);
  }
  each_unit<UnitKind::Neutral>(w, [&](Unit& u) {
    if (u.alive) think(c, u);
  });
}

}  // namespace dota
