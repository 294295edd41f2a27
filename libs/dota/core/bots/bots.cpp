#include "bots/bots.hpp"

#include "map/map_data.hpp"

namespace dota {

void assign_lanes(const TeamView& view, BotMemory& memory) {
  const auto& enabled = view.constants.settings->lane_enabled;
  std::array<std::int8_t, 3> lanes{};
  int open = 0;
  for (std::int8_t lane : {std::int8_t{1}, std::int8_t{2}, std::int8_t{0}})
    if (enabled[lane]) lanes[static_cast<std::size_t>(open++)] = lane;
  // Radiant's safe lane is bottom, Dire's top: roles 1 and 5 go there, 3 and 4 to the other one.
  const std::int8_t safe = view.team == kRadiant ? 2 : 0, off = view.team == kRadiant ? 0 : 2;
  bool mid_taken = false;
  for (int i = 0; i < view.heroes_per_team; ++i) {
    const SeenHero& hero = view.heroes[static_cast<std::size_t>(i)];
    if (!hero.present) continue;
    const int role = view.constants.tables->heroes[static_cast<std::size_t>(hero.def)].role_position;
    std::int8_t lane = role == 1 || role == 5 ? safe : off;
    if ((role == 2 || view.heroes_per_team == 1) && !mid_taken) lane = 1;
    if (lane == 1) mid_taken = true;
    if (!enabled[lane]) lane = lanes[static_cast<std::size_t>(i % (open > 0 ? open : 1))];
    memory.heroes[static_cast<std::size_t>(i)].lane = lane;
  }
  if (!mid_taken && enabled[1]) memory.heroes[0].lane = 1;
  memory.assigned = true;
}

void bot_command(BotKind kind, const TeamView& view, const SlotTable& slots, const Choices& choices,
                 BotMemory& memory, Rng& rng, std::array<Command, 5>& out) {
  if (!memory.assigned) assign_lanes(view, memory);
  for (int i = 0; i < view.heroes_per_team; ++i) {
    const auto at = static_cast<std::size_t>(i);
    out[at] = kind == BotKind::Random ? random_command(view, slots, choices, i, rng)
                                      : laner_command(kind, view, choices, memory.heroes[at], i, rng);
  }
}

}  // namespace dota
