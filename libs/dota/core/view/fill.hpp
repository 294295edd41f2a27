// The parts of fill_views(), in the order it runs them. Each reads what the ones before it filled.
#pragma once

#include <algorithm>

#include "base/memory.hpp"
#include "view/team_view.hpp"

namespace dota {

void fill_units(const Context& c, std::array<TeamView, kTeams>& views, PrefetchQueue* ahead);
void fill_projectiles(const Context& c, TeamView& v);
void fill_areas(const Context& c, TeamView& v);
void fill_pickups(const Context& c, TeamView& v);
// `other`: the other team's view, if it is filled already; else nullptr.
void fill_heroes(const Context& c, TeamView& v, const TeamView* other);
void fill_clock(const Context& c, TeamView& v);
void fill_roshan(const Context& c, TeamView& v);

inline float left(float until, float now) { return std::clamp(until - now, 0.0f, kLongest); }

// The first N named modifiers of the unit; how many there are.
template <std::size_t N>
std::uint8_t fill_modifiers(const World& w, const Unit& u, std::array<SeenModifier, N>& out) {
  std::size_t n = 0;
  for (std::int16_t i = u.modifiers; i >= 0 && n < N; i = w.modifiers[i].next) {
    const Modifier& m = w.modifiers[i];
    if (m.name < 0) continue;
    out[n++] = {m.name, m.stacks, left(m.until, w.time)};
  }
  return static_cast<std::uint8_t>(n);
}

}  // namespace dota
