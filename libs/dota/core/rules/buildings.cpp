#include <algorithm>

#include "effects/damage.hpp"
#include "map/map_data.hpp"
#include "map/protection.hpp"
#include "map/spatial.hpp"
#include "rules/buildings.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr int kBackdoorFrames = 15;

bool guarded(const GameRules& g, const Unit& b) {
  return (g.needs_all[b.building - 1u] | g.needs_any[b.building - 1u]) != 0;
}

// Lifts the backdoor protection of what enemy lane creeps have reached: a second tower by creeps near it,
// everything of the base (and the shrines, which have the base's protection) by creeps inside the base.
void backdoor_scan(Context& c) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  bool base_reached[kTeams] = {false, false};
  each_unit<UnitKind::LaneCreep>(w, [&](const Unit& creep) {
    if (!creep.alive) return;
    const int team = 1 - creep.team;
    const Unit* fort = w.get(w.teams[team].fort);
    if (fort && distance(creep.pos, fort->pos) <= g.base_radius[team]) base_reached[team] = true;
  });
  each_building(w, [&](Unit& b) {
    if (b.building == 0 || !b.alive || !guarded(g, b) || building_protected(c, b)) return;
    bool reached = base_reached[b.team];
    if (b.kind == UnitKind::Tower && b.tier == 2) {
      reached = false;
      for (const Unit& u : units_near(c, b.pos, g.backdoor_radius))
        reached = reached || (u.alive && u.kind == UnitKind::LaneCreep && u.team != b.team);
    }
    if (reached) b.backdoor_until = w.time + g.backdoor_reactivate;
  });
}

void heal_share(Context& c, Unit& u, float hp_pct, float hp, float mana_pct, float mana) {
  heal(c, u, (u.max_hp * hp_pct / 100 + hp) * kDt);
  give_mana(c, u, (u.max_mana * mana_pct / 100 + mana) * kDt);
}

void fountains_and_shrines(Context& c) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  std::array<const Unit*, kMaxUnits> fountains;
  std::size_t n = 0;
  each_unit<UnitKind::Fountain>(w, [&](const Unit& fountain) { fountains[n++] = &fountain; });
  for (HeroState& h : w.heroes) {
    Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u || !u->alive) continue;
    for (std::size_t k = 0; k < n; ++k)
      if (fountains[k]->team == u->team && distance(fountains[k]->pos, u->pos) <= g.fountain_radius)
        h.fountain_until = w.time + g.fountain_linger;
    if (!w.due(h.fountain_until)) heal_share(c, *u, g.fountain_hp_pct, 0, g.fountain_mana_pct, g.fountain_mana);
    if (!w.due(h.shrine_until)) heal_share(c, *u, g.shrine_hp_pct, g.shrine_hp, g.shrine_mana_pct, g.shrine_mana);
  }
}

}  // namespace

bool use_glyph(Context& c, int team) {
  TeamState& t = c.world.teams[team];
  if (!c.world.due(t.glyph_ready)) return false;
  t.glyph_until = c.world.time + c.tables.game->glyph_duration;
  t.glyph_ready = c.world.time + c.tables.game->glyph_cooldown;
  record_team_event(c, EventKind::Glyph, team);
  return true;
}

bool use_shrine(Context& c, Unit& hero) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  if (!hero.alive) return false;
  for (int i = 0; i < w.units_end; ++i) {
    Unit& b = w.units[i];
    if (b.kind != UnitKind::Shrine || !b.alive || b.team != hero.team || !w.due(b.shrine_ready)) continue;
    if (distance(b.pos, hero.pos) > g.shrine_radius) continue;
    b.shrine_ready = w.time + g.shrine_cooldown;
    b.shrine_until = w.time + g.shrine_duration;
    for (HeroState& h : w.heroes) {
      const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
      if (u && u->alive && u->team == b.team && distance(u->pos, b.pos) <= g.shrine_radius)
        h.shrine_until = b.shrine_until;
    }
    record_event(c, EventKind::Shrine, hero, &b);
    return true;
  }
  return false;
}

void buildings_frame(Context& c) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  if (w.frame % kBackdoorFrames == 0) backdoor_scan(c);
  each_building(w, [&](Unit& b) {
    if (b.hp == b.backdoor_hp || b.building == 0 || !b.alive || !guarded(g, b)) return;
    if (!w.due(b.backdoor_until)) {
      b.backdoor_hp = b.hp;
    } else {
      b.backdoor_hp = std::max(b.backdoor_hp, b.hp);
      if (b.hp < b.backdoor_hp) b.hp = std::min(b.backdoor_hp, b.hp + g.backdoor_regen * kDt);
    }
  });
  fountains_and_shrines(c);
}

}  // namespace dota
