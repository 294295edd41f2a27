#include "bots/bots.hpp"

#include "bots/scene.hpp"
#include "map/map_data.hpp"

namespace dota {

void assign_lanes(const TeamView& view, BotMemory& memory) {
  const auto& enabled = view.constants.settings->lane_enabled;
  std::array<std::int8_t, 3> lanes{};
  int open = 0;
  for (std::int8_t lane : {std::int8_t{1}, std::int8_t{2}, std::int8_t{0}})
    if (enabled[lane]) lanes[open++] = lane;
  // Radiant's safe lane is bottom, Dire's top: roles 1 and 5 go there, 3 and 4 to the other one.
  const std::int8_t safe = view.team == kRadiant ? 2 : 0, off = view.team == kRadiant ? 0 : 2;
  bool mid_taken = false;
  std::array<int, 3> there{};
  for (int i = 0; i < view.heroes_per_team; ++i) {
    const SeenHero& hero = view.heroes[i];
    if (!hero.present) continue;
    const int role = view.constants.tables->heroes[hero.def].role_position;
    std::int8_t lane = role == 1 || role == 5 ? safe : off;
    if ((role == 2 || view.heroes_per_team == 1) && !mid_taken) lane = 1;
    if (lane == 1) mid_taken = true;
    if (!enabled[lane]) lane = lanes[i % (open > 0 ? open : 1)];
    if (lane != 1 && open == 3 && there[lane] >= 2)
      lane = there[2 - lane] < 2 ? static_cast<std::int8_t>(2 - lane) : std::int8_t{1};
    ++there[lane];
    memory.heroes[i].lane = lane;
  }
  if (there[1] == 0 && enabled[1]) memory.heroes[0].lane = 1;
  memory.assigned = true;
}

void bot_command(BotKind kind, const TeamView& view, const SlotTable& slots, const Choices& choices,
                 BotMemory& memory, Rng& rng, std::array<Command, 5>& out) {
  if (kind == BotKind::Random) {
    for (int i = 0; i < view.heroes_per_team; ++i)
      out[i] = random_command(view, slots, choices, i, rng);
    return;
  }
  if (!memory.assigned) assign_lanes(view, memory);
  bool any = false;
  for (int i = 0; i < view.heroes_per_team; ++i) {
    out[i] = with(kNoop);
    any |= view.time >= memory.heroes[i].next_decision;
  }
  if (!any) return;
  const Skill skill = skill_of(kind);
  const Scene scene(view, choices, skill, memory, rng);
  make_plan(scene);
  for (int i = 0; i < view.heroes_per_team; ++i) {
    BotMemory::Hero& remembered = memory.heroes[i];
    const SeenUnit* body = view.body(i);
    if (view.time < remembered.next_decision || !view.heroes[i].present || !body) continue;
    remembered.next_decision = view.time + skill.decide_every;
    const Command c = decide(Situation(scene, i, *body));
    // A repeated command continues without being issued again.
    out[i] = remembered.last = c;
  }
}

}  // namespace dota
