#include "rules/scan.hpp"

#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {

bool start_scan(Context& c, int team, Vec2 at) {
  TeamState& t = c.world.teams[team];
  if (!c.world.due(t.scan_ready)) return false;
  t.scan_at = at;
  t.scan_until = c.world.time + c.tables.game->scan_duration;
  t.scan_ready = c.world.time + c.tables.game->scan_cooldown;
  t.scan_found = false;
  record_team_event(c, EventKind::Scan, team);
  return true;
}

void scans_frame(Context& c) {
  World& w = c.world;
  for (int team = 0; team < kTeams; ++team) {
    TeamState& t = w.teams[team];
    if (t.scan_found || w.due(t.scan_until)) continue;
    for (const HeroState& h : w.heroes) {
      const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
      if (!u || !u->alive || u->team == team || distance(u->pos, t.scan_at) > c.tables.game->scan_radius) continue;
      t.scan_found = true;
      record_team_event(c, EventKind::ScanFound, team);
      break;
    }
  }
}

}  // namespace dota
