// Reward signals of a hero since its team was last observed, as quantities without weight or sign.
// Every hero of the affected team gets team events: buildings, Ancient and Megas
// to the team that attacks (a building destroyed sums to 1: two thirds with the health it loses, one third when it
// falls; the Ancient to 1 with its health; healing takes back), CourierDeath to the courier's own team, Win to the
// winners.
#include <algorithm>

#include "map/map_data.hpp"
#include "rules/signals.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// Berner et al. 2019, table 6: the worth of a health fraction x, steeper where little is left.
float health_worth(float x) {
  const float gone = 1 - x;
  return (x + 1 - gone * gone * gone * gone) / 2;
}

float distance_to(const std::vector<Vec2>& line, Vec2 p) {
  float best = 1e9f;
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    const Vec2 d = line[i + 1] - line[i];
    const float t = std::clamp((p - line[i]).dot(d) / std::max(1e-3f, d.dot(d)), 0.0f, 1.0f);
    best = std::min(best, distance(p, line[i] + d * t));
  }
  return best;
}

// The lane a hero stands nearest to; -1 in his own base, which belongs to every lane.
int nearest_lane(const Context& c, const Unit& u) {
  const World& w = c.world;
  const Unit* fort = w.get(w.teams[u.team].fort);
  if (fort && distance(u.pos, fort->pos) <= c.tables.game->base_radius[u.team]) return -1;
  if (distance(u.pos, u.spawn) <= c.tables.game->fountain_radius) return -1;
  int best = 0;
  float best_distance = 1e9f;
  for (int lane = 0; lane < 3; ++lane) {
    const float d = distance_to(c.tables.game->lane[u.team][lane].points, u.pos);
    if (d < best_distance) {
      best = lane;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace

void step_signals(Context& c) {
  World& w = c.world;
  for (HeroState& h : w.heroes) {
    Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u) continue;
    // A death is the loss of the health that was left; the mana of the dead is not measured, and respawn() starts
    // both again, so that coming back is worth nothing.
    const float hp = u->alive ? std::clamp(u->hp / std::max(1.0f, u->max_hp), 0.0f, 1.0f) : 0.0f;
    signal(h, Signal::Health, health_worth(hp) - health_worth(h.prev_hp_frac));
    h.prev_hp_frac = hp;
    if (!u->alive) continue;
    const float mana = std::clamp(u->mana / std::max(1.0f, u->max_mana), 0.0f, 1.0f);
    signal(h, Signal::Mana, mana - h.prev_mana_frac);
    h.prev_mana_frac = mana;
    if (h.lanes_allowed != 7 && w.time >= 0 && !w.due(h.lanes_until)) {
      const int lane = nearest_lane(c, *u);
      if (lane >= 0 && !(h.lanes_allowed >> lane & 1)) signal(h, Signal::LaneAssign, kDt * kFramesPerStep);
    }
  }
  each_building(w, [&](Unit& b) {
    if (b.building && b.alive)
      signal_building_health(c, b, std::clamp(b.hp / std::max(1.0f, b.max_hp), 0.0f, 1.0f));
  });
}

}  // namespace dota
