#include "play/team_sight.hpp"

#include "map/map_data.hpp"
#include "map/vision.hpp"

namespace dota {
namespace {

// What the game announces to both teams, or shows on its scoreboard.
bool announced(EventKind k) {
  switch (k) {
    case EventKind::HeroDeath:
    case EventKind::HeroKill:
    case EventKind::Assist:
    case EventKind::Reincarnation:
    case EventKind::Respawn:
    case EventKind::Buyback:
    case EventKind::BuildingDeath:
    case EventKind::RoshanDeath:
    case EventKind::CourierDeath:
    case EventKind::LevelUp:
    case EventKind::Aegis:
    case EventKind::Glyph:
    case EventKind::Megas:
    case EventKind::Won:
      return true;
    default:
      return false;
  }
}

// What nobody sees of another team's hero, wherever he stands.
bool hidden(EventKind k) {
  return k == EventKind::Learned || k == EventKind::Bought || k == EventKind::Sold || k == EventKind::Assembled;
}

bool names_slayer(const Event& e) {
  return e.kind == EventKind::HeroDeath || e.kind == EventKind::HeroKill || e.kind == EventKind::Assist;
}

}  // namespace

void TeamSight::look_before(const World& w) {
  for (int k = 0; k < kMaxUnits; ++k) {
    const Unit& u = w.units[k];
    const bool there = k < w.units_end && u.kind != UnitKind::None && u.alive;
    generation_[k] = u.generation;
    for (int team = 0; team < kTeams; ++team)
      before_[team][k] = there && unit_visible(w, team, u);
  }
}

void TeamSight::look_after(const World& w, const MapData& map) {
  for (std::size_t k = 0; k < map.trees.size() && k < kMaxTrees; ++k) {
    const bool down = w.tree_regrow[k] != 0;
    for (int team = 0; team < kTeams; ++team) {
      bool& known = felled_[team][k];
      if (known != down && cell_visible(w, team, map.trees[k].pos)) known = down;
    }
  }
}

bool TeamSight::met(const World& w, int team, Handle h) const {
  if (h.index < 0 || h.index >= kMaxUnits) return false;
  const std::size_t at = h.index;
  if (generation_[at] == h.generation && before_[team][at]) return true;
  const Unit* u = w.get(h);
  return u && u->alive && unit_visible(w, team, *u);
}

std::vector<Event> events_for(const World& w, const TeamSight& sight, int team, int from) {
  std::vector<Event> out;
  for (int k = from; k < w.event_count; ++k) {
    Event e = w.events[k];
    const bool own = e.team == team;
    const bool seen = e.unit.index >= 0 && (own || sight.met(w, team, e.unit));
    if (!own && (hidden(e.kind) || (!seen && !announced(e.kind)))) continue;
    if (!own && !seen) e.unit = Handle{};  // announced: who, not where
    const Unit* other = w.get(e.other);
    const bool theirs = other ? other->team == team : e.other_hero >= 0 && e.other_hero / 5 == team;
    if (e.other.index >= 0 && !theirs && !sight.met(w, team, e.other)) {
      e.other = Handle{};
      if (!names_slayer(e) || e.other_hero < 0) {
        e.other_hero = -1;
        e.other_type = -1;
      }
    }
    const bool gold =
        e.kind == EventKind::HeroKill || e.kind == EventKind::LastHit || e.kind == EventKind::Buyback;
    if (!own && gold) e.value = 0;
    out.push_back(e);
  }
  return out;
}

}  // namespace dota
