// The jungle: whom of the neutral creeps a hero can kill, and where to find them.
#include <cmath>

#include "bots/scene.hpp"

namespace dota {
namespace {

constexpr float kCampSeen = 450;  // a camp this near is known to be empty or not

// Level from which a hero takes on a camp of the tier alone.
int level_for(int tier) {
  static constexpr int kLevels[] = {3, 5, 7, 13};
  return kLevels[std::clamp(tier, 0, 3)];
}

}  // namespace

Command farm_jungle(const Situation& s) {
  if (!s.skill.jungles || s.health() < 0.45f) return {};
  BotMemory& m = s.scene.memory;
  const SeenUnit* prey = nullptr;
  for (const int i : s.scene.neutrals) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind != UnitKind::Neutral || s.away(u.pos) > 700.0f || (u.status & kUntargetable)) continue;
    const UnitDef& def = s.view.constants.tables->units[u.type];
    if (def.ancient && s.hero.level < level_for(3)) continue;
    if (!prey || u.hp < prey->hp) prey = &u;
  }
  if (prey) {
    if (s.skill.casts_in_lane)
      if (const Command c = cast_on_wave(s); said(c)) return c;
    return with(kAttack, prey->handle);
  }
  const auto& camps = s.scene.map.camps;
  if (s.memory.camp >= 0 && s.away(camps[static_cast<std::size_t>(s.memory.camp)].pos) < kCampSeen) {
    // Nobody there: it fills again when the next minute begins.
    m.camp_empty_until[static_cast<std::size_t>(s.memory.camp)] =
        s.view.time + std::max(s.view.time_to_neutrals, 1.0f) + 1.0f;
    s.memory.camp = -1;
  }
  float best = 3600.0f;
  int found = -1;
  for (std::size_t i = 0; i < camps.size() && i < kMaxCamps; ++i) {
    if (s.hero.level < level_for(camps[i].tier)) continue;
    const float away = s.away(camps[i].pos);
    const float ready_in = m.camp_empty_until[i] - s.view.time;
    if (ready_in > 5.0f) continue;
    float cost =
        away + (camps[i].side == s.view.team ? 0.0f : 1200.0f) - 250.0f * static_cast<float>(camps[i].tier);
    if (static_cast<int>(i) == s.memory.camp) cost -= 300.0f;
    bool taken = false;
    for (int k = 0; k < s.view.heroes_per_team; ++k)
      taken |= k != s.index && m.heroes[static_cast<std::size_t>(k)].camp == static_cast<int>(i) &&
               s.scene.ally(k) != nullptr;
    if (taken || cost >= best) continue;
    best = cost;
    found = static_cast<int>(i);
  }
  s.memory.camp = static_cast<std::int8_t>(found);
  return found < 0 ? Command{} : travel(s, camps[static_cast<std::size_t>(found)].pos);
}

}  // namespace dota
