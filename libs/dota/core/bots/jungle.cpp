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
// Of leading a camp to the lane's own creeps. They see it from kPullSeen before it is upon them; a way that takes
// the camp longer than kPullRun seconds is too long, for it turns back.
constexpr float kPullSeen = 400, kPullRun = 4.5f;
constexpr float kCampSpeed = 290, kWaveSpeed = 325;  // world units a second, about
// Seconds: between two, at most beside the camp, and until a blow that was begun has fallen.
constexpr float kPullEvery = 45, kPullWait = 4, kPullBlow = 2.5f;

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

// The weakest creep of a camp that is fighting own lane creeps near by.
const SeenUnit* pulled_creep(const Situation& s) {
  const SeenUnit* found = nullptr;
  for (const int i : s.scene.neutrals) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind != UnitKind::Neutral || s.away(u.pos) > 700.0f || (found && u.hp >= found->hp)) continue;
    for (const int k : s.scene.own_creeps) {
      const SeenUnit& creep = s.scene.unit(k);
      if (creep.lane < 0 || !(creep.attack_target == u.handle || u.attack_target == creep.handle)) continue;
      found = &u;
      break;
    }
  }
  return found;
}

// Seconds until the next own creep that is still behind it comes to a place of its lane.
float wave_due(const Situation& s, int lane, Vec2 place, float at) {
  float nearest = 1e9f;
  for (const int i : s.scene.own_creeps) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind == UnitKind::LaneCreep && u.lane == lane && lane_progress(s.scene.lane(lane), u.pos) < at)
      nearest = std::min(nearest, distance(u.pos, place));
  }
  return nearest / kWaveSpeed;
}

}  // namespace

Command pull_camp(const Situation& s) {
  const int lane = s.memory.lane;
  if (!s.skill.jungles || s.role() < 4 || lane < 0 || s.view.time < 60.0f || s.health() < 0.5f) return {};
  if (const SeenUnit* prey = pulled_creep(s)) return with(kAttack, prey->handle);
  BotMemory& m = s.scene.memory;
  const auto& camps = s.scene.map.camps;
  const MapLane& way = s.scene.lane(lane);
  int best = -1;
  float at = 0;
  Vec2 meeting;
  for (std::size_t i = 0; i < camps.size() && i < kMaxCamps; ++i) {
    if (camps[i].side != s.view.team || camps[i].tier >= 3 || m.camp_empty_until[i] > s.view.time ||
        s.away(camps[i].pos) > kStackWay || (best >= 0 && s.away(camps[i].pos) >= s.away(camps[best].pos)))
      continue;
    const float progress = lane_progress(way, camps[i].pos);
    const Vec2 place = lane_point(way, progress, 0.0f);
    if (distance(place, camps[i].pos) > kPullSeen + kPullRun * kCampSpeed) continue;
    best = static_cast<int>(i);
    at = progress;
    meeting = place;
  }
  if (best < 0) return {};
  const MapCamp& camp = camps[best];
  bool chased = false;
  const SeenUnit* prey = one_of(s, camp, &chased);
  const bool blow = s.body.act == Act::AttackWindup && s.memory.last.action == kAttack;
  const float ordered = s.view.time - s.memory.pull_ordered;
  if (ordered < kPullBlow && s.body.since_attack < ordered && !blow) {
    s.memory.pull_ordered = BotMemory::kLongAgo;
    s.memory.lead_until = s.view.time + kPullRun;
    s.memory.next_pull = s.view.time + kPullEvery;
  }
  if (s.view.time < s.memory.lead_until) return travel(s, meeting);
  if (s.view.time < s.memory.next_pull) return {};
  if (ordered < kPullBlow && prey) return with(kAttack, prey->handle);
  const float stand = s.body.attack_range + 150.0f, gap = std::max(s.away(camp.pos) - stand, 0.0f);
  if (!prey && s.away(camp.pos) < kCampSeen) {
    m.camp_empty_until[best] = s.view.time + std::max(s.view.time_to_neutrals, 1.0f) + 1.0f;
    return {};
  }
  // The blow, then the camp's way to where the creeps see it.
  const float lead =
      s.body.attack_interval * 0.3f + std::max(distance(meeting, camp.pos) - kPullSeen, 0.0f) / kCampSpeed;
  const float spare = wave_due(s, lane, meeting, at) - lead - gap / std::max(s.body.move_speed, 100.0f);
  if (spare < -0.7f || spare > kPullWait) return {};
  if (gap > 0) return travel(s, camp.pos);
  if (spare > 0.2f || !prey) return with(kNoop);
  s.memory.pull_ordered = s.view.time;
  return with(kAttack, prey->handle);
}

Command stack_camp(const Situation& s) {
  const float left = s.view.time_to_neutrals;
  if (!s.skill.jungles || s.role() < 4 || s.view.time < 60.0f || s.health() < 0.5f || left > kLeaveFor ||
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
  const bool struck = s.body.since_attack < kStrikeAt - left;  // they come: one blow is enough
  if ((chased || struck) && !blow) return travel(s, lane_position(s, std::max<int>(s.memory.lane, 0)));
  const float stand = s.body.attack_range + 150.0f, way = std::max(s.away(nearest->pos) - stand, 0.0f);
  if (left < kStrikeAt)
    return prey && s.away(prey->pos) < stand + 150.0f ? with(kAttack, prey->handle) : Command{};
  if (way > (left - kStrikeAt + 1.0f) * s.body.move_speed) return {};  // too late
  return way > 0 ? travel(s, nearest->pos) : with(kNoop);
}

Command farm_jungle(const Situation& s, float cheaper_than) {
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
  if (s.memory.camp >= 0 && s.away(camps[s.memory.camp].pos) < kCampSeen) {
    // Nobody there: it fills again when the next minute begins.
    m.camp_empty_until[s.memory.camp] = s.view.time + std::max(s.view.time_to_neutrals, 1.0f) + 1.0f;
    s.memory.camp = -1;
  }
  float best = std::min(3600.0f, cheaper_than);
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
      taken |= k != s.index && m.heroes[k].camp == static_cast<int>(i) && s.scene.ally(k) != nullptr;
    if (taken || cost >= best) continue;
    best = cost;
    found = static_cast<int>(i);
  }
  s.memory.camp = static_cast<std::int8_t>(found);
  return found < 0 ? Command{} : travel(s, camps[found].pos);
}

}  // namespace dota
