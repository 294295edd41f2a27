#include <algorithm>

#include "effects/gold.hpp"
#include "effects/items.hpp"
#include "effects/neutrals.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// Gives Roshan's item to the hero who killed him, else to the nearest living ally with a free slot; without one
// the item stays on the ground.
void drop(Context& c, int item, int team, Vec2 at, HeroState* killer) {
  World& w = c.world;
  const int charges = c.tables.items[item].initial_charges;
  if (killer && take_up(c, *killer, item, charges)) return;
  HeroState* nearest = nullptr;
  float best = 1e9f;
  for (int i = team * 5; i < team * 5 + 5; ++i) {
    HeroState& h = w.heroes[i];
    const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive || distance(u->pos, at) >= best || !hands_take(c, h, item, charges)) continue;
    best = distance(u->pos, at);
    nearest = &h;
  }
  if (!nearest || !take_up(c, *nearest, item, charges)) lay_down(c, item, charges, at);
}

}  // namespace

void roshan_died(Context& c, Unit& roshan, Unit* killer) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  w.roshan_died = w.time;
  w.roshan_respawn = w.time + g.roshan_min + (g.roshan_max - g.roshan_min) * w.rng.uniform();
  const auto kind = std::min<std::size_t>(w.roshan_kills, 2);
  ++w.roshan_kills;
  if (!killer || killer->team >= kTeams) return;
  const Unit* owner = killer->hero >= 0 ? killer : w.get(killer->owner);
  HeroState* hero = owner && owner->hero >= 0 ? &w.heroes[owner->hero] : nullptr;
  for (int i = killer->team * 5; i < killer->team * 5 + 5; ++i)
    give_gold(c, w.heroes[i], g.roshan_team_gold, true);
  for (const int item : g.roshan_drops[kind])
    drop(c, item, killer->team, roshan.pos, hero);
}

}  // namespace dota
