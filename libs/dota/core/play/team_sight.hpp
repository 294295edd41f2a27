// Vision and events of a team by frame, beyond its TeamView, for human players.
#pragma once

#include <array>
#include <vector>

#include "world/world.hpp"

namespace dota {

class TeamSight {
 public:
  // Before a frame: who is to be seen now.
  void look_before(const World& w);
  // After it: what is known of the trees.
  void look_after(const World& w, const MapData& map);
  // Whether the team saw the unit before the frame, or sees it now.
  bool met(const World& w, int team, Handle h) const;
  bool felled(int team, std::size_t tree) const { return felled_[team][tree]; }

 private:
  std::array<std::array<bool, kMaxUnits>, kTeams> before_{};
  std::array<std::uint16_t, kMaxUnits> generation_{};
  std::array<std::array<bool, kMaxTrees>, kTeams> felled_{};
};

// Returns the world's events from index `from` on that the team may know: its own, announced ones, and visible
// actions of others. Unseen units and their belongings are removed from them.
std::vector<Event> events_for(const World& w, const TeamSight& sight, int team, int from);

}  // namespace dota
