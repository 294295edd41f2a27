#include "play/world_state_events.hpp"

#include <utility>

#include "map/map_data.hpp"
#include "map/vision.hpp"

namespace dota {
namespace {

template <class T>
void note(std::vector<T>& list, const T& event) {
  if (list.size() < WorldStateEvents::kMost) list.push_back(event);
}

// A cast, with the place of its target, or else of its caster, where the team sees that unit now.
BotCast cast_of(const World& w, int team, const Event& e) {
  BotCast cast{e.unit, false, {}, e.id, e.hero};
  const Unit* at = w.get(e.other);
  if (!at) at = w.get(e.unit);
  cast.placed = at && unit_visible(w, team, *at);
  if (cast.placed) cast.at = at->pos;
  return cast;
}

}  // namespace

WorldStateEvents::WorldStateEvents(const World& w, const TeamSight& sight) {
  for (std::size_t k = 0; k < kMaxTrees; ++k) {
    down_[k] = w.tree_regrow[k] != 0;
    for (int team = 0; team < kTeams; ++team)
      known_[team][k] = sight.felled(team, k);
  }
  for (TeamEvents& e : events_)
    e.rune_seen.fill(w.time);
}

void WorldStateEvents::after_frame(const Context& c, const TeamSight& sight, int from) {
  const World& w = c.world;
  for (int team = 0; team < kTeams; ++team) {
    TeamEvents& to = events_[team];
    for (const Event& e : events_for(w, sight, team, from)) {
      if (e.kind == EventKind::Cast && e.unit.index >= 0 && e.id >= 0)
        note(to.casts, cast_of(w, team, e));
      else if (e.kind == EventKind::CourierDeath || e.kind == EventKind::RoshanDeath)
        note(to.kills, {e.kind, e.team, e.unit, e.other, e.other_hero});
    }
    for (DamageEvent e : damage_) {
      if (e.victim / 5 != team && !sight.met(w, team, e.victim_unit)) continue;
      if (e.attacker_unit.index >= 0 && !sight.met(w, team, e.attacker_unit)) {
        e.attacker_unit = Handle{};
        e.attacker = -1;
        e.ability = -1;
      }
      note(to.damage, e);
    }
    const MapData& map = *c.tables.map;
    for (std::size_t k = 0; k < to.rune_seen.size(); ++k)
      if (cell_visible(w, team, k < kBountySpots ? map.bounty_runes[k] : map.power_runes[k - kBountySpots]))
        to.rune_seen[k] = w.time;
  }
  damage_.clear();
  note_trees(c, sight);
}

void WorldStateEvents::note_trees(const Context& c, const TeamSight& sight) {
  const std::size_t trees = std::min<std::size_t>(c.tables.map->trees.size(), kMaxTrees);
  for (std::size_t k = 0; k < trees; ++k) {
    const bool down = c.world.tree_regrow[k] != 0, changed = down_[k] != down;
    if (changed) down_[k] = down;
    for (int team = 0; team < kTeams; ++team) {
      const bool felled = sight.felled(team, k);
      if (known_[team][k] == felled) continue;
      known_[team][k] = felled;
      note(events_[team].trees, {static_cast<std::int16_t>(k), felled, !changed});
    }
  }
}

TeamEvents WorldStateEvents::take(int team) {
  TeamEvents out = std::move(events_[team]);
  events_[team] = TeamEvents{};
  events_[team].rune_seen = out.rune_seen;
  return out;
}

}  // namespace dota
