// The jungle: whom of the neutral creeps a hero can kill, and where to find them.
#include <cmath>

#include "bots/scene.hpp"

namespace dota {
namespace {

constexpr float kCampSeen = 450;  // a camp this near is known to be empty or not
// Of drawing a camp away, seconds before its next creeps: when the hero leaves for it, and when it strikes, so
// that they follow it out of their box and have not turned back.
constexpr float kLeaveFor = 11, kStrikeAt = 4.2f;
constexpr float kStackWay = 1900;  // world units that it goes for it at most

// Level from which a hero takes on a camp of the tier alone.
int level_for(int tier) {
  static constexpr int kLevels[] = {3, 5, 7, 13};
  return kLevels[std::clamp(tier, 0, 3)];
}

// Creeps of the camp that are in sight; whether one of them is after the hero.
const SeenUnit* one_of(const Situation& s, const MapCamp& camp, bool* chased) {
  const SeenUnit* found = nullptr;
  for (const int i : s.scene.neutrals) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind != UnitKind::Neutral || distance(u.pos, camp.pos) > 1200.0f) continue;
    *chased = *chased || u.attack_target == s.body.handle;
    if (distance(u.pos, camp.pos) < kCampSeen && (!found || s.away(u.pos) < s.away(found->pos))) found = &u;
  }
  return found;
}

}  // namespace

Command stack_camp(const Situation& s) {
  const float left = s.view.time_to_neutrals;
  if (!s.skill.disciplined || s.role() < 4 || s.view.time < 60.0f || s.health() < 0.5f || left > kLeaveFor ||
      left <= 0)
    return {};
  const BotMemory& m = s.scene.memory;
  const auto& camps = s.scene.map.camps;
  const MapCamp* nearest = nullptr;
  for (std::size_t i = 0; i < camps.size() && i < kMaxCamps; ++i)
    if (camps[i].side == s.view.team && camps[i].tier < 3 && m.camp_empty_until[i] <= s.view.time &&
        s.away(camps[i].pos) < kStackWay && (!nearest || s.away(camps[i].pos) < s.away(nearest->pos)))
      nearest = &camps[i];
  if (!nearest) return {};
  bool chased = false;
  const SeenUnit* prey = one_of(s, *nearest, &chased);
  const bool blow = s.body.act == Act::AttackWindup && s.memory.last.action == kAttack;
  if (chased && !blow) return travel(s, lane_position(s, std::max<int>(s.memory.lane, 0)));
  const float stand = s.body.attack_range + 150.0f, way = std::max(s.away(nearest->pos) - stand, 0.0f);
  if (left < kStrikeAt)
    return prey && s.away(prey->pos) < stand + 150.0f ? with(kAttack, prey->handle) : Command{};
  if (way > (left - kStrikeAt + 1.0f) * s.body.move_speed) return {};  // too late
  return way > 0 ? travel(s, nearest->pos) : with(kNoop);
}

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
