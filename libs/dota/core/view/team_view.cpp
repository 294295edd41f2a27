#include "view/team_view.hpp"

#include "view/fill.hpp"

namespace dota {

void reset_view(TeamView& v, const ViewConstants& constants, int team, bool mirrored) {
  v = TeamView{};
  v.constants = constants;
  v.team = static_cast<std::uint8_t>(team);
  v.heroes_per_team = static_cast<std::uint8_t>(constants.settings->heroes_per_team);
  v.mirrored = mirrored;
  v.courier_seen_at = constants.settings->start_s;
  v.enemy_seen_at.fill(constants.settings->start_s);
}

void fill_views(const Context& c, std::array<TeamView, kTeams>& views, PrefetchQueue* ahead) {
  fill_units(c, views, ahead);
  for (TeamView& v : views) {
    fill_projectiles(c, v);
    fill_areas(c, v);
    fill_pickups(c, v);
    prefetch_some(ahead);
    fill_heroes(c, v, v.team == 0 ? nullptr : views.data());
    prefetch_some(ahead);
    fill_clock(c, v);
    fill_roshan(c, v);
  }
}
}  // namespace dota
