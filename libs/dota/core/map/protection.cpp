#include "map/protection.hpp"

#include <algorithm>
#include <stdexcept>

#include "map/map_data.hpp"

namespace dota {

// Which buildings guard which: tier n before tier n + 1 of a lane, a lane's third tower before its barracks, any
// third tower before the fourth ones and the base's small buildings, both fourth towers before the fort, any
// second tower before the shrines (rules.json buildings.order, shrine.vulnerable_after).
void derive_map_rules(GameRules& g, const MapData& map) {
  if (map.buildings.size() > 64) throw std::runtime_error("map.json: more than 64 buildings");
  auto mask = [&](int team, UnitKind kind, int tier, int lane) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < map.buildings.size(); ++i) {
      const MapBuilding& b = map.buildings[i];
      if (b.team == team && b.kind == kind && (tier == 0 || b.tier == tier) &&
          (lane < 0 || static_cast<int>(b.lane) == lane))
        bits |= 1ull << i;
    }
    return bits;
  };
  for (std::size_t i = 0; i < map.buildings.size(); ++i) {
    const MapBuilding& b = map.buildings[i];
    const int team = b.team, lane = static_cast<int>(b.lane);
    switch (b.kind) {
      case UnitKind::Tower:
        if (b.tier == 2 || b.tier == 3) g.needs_all[i] = mask(team, UnitKind::Tower, b.tier - 1, lane);
        if (b.tier == 4) g.needs_any[i] = mask(team, UnitKind::Tower, 3, -1);
        break;
      case UnitKind::Barracks:
        g.needs_all[i] = mask(team, UnitKind::Tower, 3, lane);
        break;
      case UnitKind::Filler:
        g.needs_any[i] = mask(team, UnitKind::Tower, 3, -1);
        break;
      case UnitKind::Shrine:
        g.needs_any[i] = mask(team, UnitKind::Tower, 2, -1);
        break;
      case UnitKind::Fort:
        g.needs_all[i] = mask(team, UnitKind::Tower, 4, -1);
        break;
      case UnitKind::Fountain:
        g.needs_all[i] = ~0ull;
        break;
      default:
        break;
    }
  }
  for (int team = 0; team < kTeams; ++team) {
    Vec2 fort{};
    for (const MapBuilding& b : map.buildings)
      if (b.team == team && b.kind == UnitKind::Fort) fort = b.pos;
    for (const MapBuilding& b : map.buildings)
      if (b.team == team && b.kind == UnitKind::Tower && b.tier == 3)
        g.base_radius[team] = std::max(g.base_radius[team], distance(b.pos, fort) + b.bounds);
  }
  for (int team = 0; team < kTeams; ++team)
    for (int lane = 0; lane < 3; ++lane)
      g.lane[team][lane].points = map.lanes[team][lane].waypoints;
}

bool building_protected(const Context& c, const Unit& b) {
  if (b.building == 0) return false;
  if (c.world.time < 0)
    return true;  // recorded world states (data/SOURCES.md): all are invulnerable until the horn
  const GameRules& g = *c.tables.game;
  const std::uint64_t standing = c.world.buildings_standing;
  const std::uint64_t all = g.needs_all[b.building - 1u], any = g.needs_any[b.building - 1u];
  return (standing & all) != 0 || (any != 0 && (standing & any) == any);
}

}  // namespace dota
