#include "effects/building_death.hpp"

#include "effects/gold.hpp"
#include "map/map_data.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {

void building_death(Context& c, Unit& b, Unit* killer, HeroState* taker) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const MapBuilding& place = c.tables.map->buildings[b.building - 1u];
  const int enemy = 1 - b.team;
  const bool denied = killer && killer->team == b.team;
  TeamState& own = w.teams[b.team];
  TeamState& other = w.teams[enemy];
  w.buildings_standing &= ~(1ull << (b.building - 1u));
  record_event(c, EventKind::BuildingDeath, b, killer);
  const int lane = static_cast<int>(place.lane);
  switch (b.kind) {
    case UnitKind::Tower:
      ++own.towers_lost;
      if (!denied) team_gold(c, enemy, g.tower_team_gold[b.tier]);
      if (taker)
        give_gold(c, *taker, g.tower_last_hit, true);
      else if (killer && !denied && b.last_damaged_by_player <= kNever)
        split_gold(c, enemy, g.tower_last_hit);
      if (b.tier == 1 && g.glyph_on_tier1) own.glyph_ready = w.time;
      if (b.tier == 1 && lane == static_cast<int>(Lane::Mid) && c.settings.tower_wins)
        w.winner = enemy == kRadiant ? Winner::Radiant : Winner::Dire;
      break;
    case UnitKind::Barracks: {
      team_gold(c, enemy, g.rax_team_gold[place.melee ? 0 : 1]);
      (place.melee ? other.super_melee : other.super_ranged) |= static_cast<std::uint8_t>(1u << lane);
      if (!other.megas && other.super_melee == 7 && other.super_ranged == 7) {
        other.megas = true;
        record_team_event(c, EventKind::Megas, enemy);
      }
      break;
    }
    case UnitKind::Filler:
      if (taker) give_gold(c, *taker, g.filler_gold, true);
      break;
    case UnitKind::Shrine:
      team_gold(c, enemy, g.shrine_gold);
      break;
    case UnitKind::Fort:
      w.winner = enemy == kRadiant ? Winner::Radiant : Winner::Dire;
      break;
    default:
      break;
  }
}

}  // namespace dota
