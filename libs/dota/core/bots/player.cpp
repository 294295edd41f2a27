// One decision of a scripted player: which of its concerns comes first.
#include "bots/scene.hpp"

namespace dota {
namespace {

constexpr float kCreepWorth = 250;  // world units that a hero walks for one more creep of a wave
constexpr float kLostCost = 6000;   // world units that a hero would rather walk than farm among stronger enemies
constexpr float kLeave = 2.5f;      // seconds

struct FarmLane {
  int lane = 1;
  float cost = 1e9f;  // world units: the way, less what waits there
};

// A hero's own lane while lanes are played; later the one whose wave is worth the way best. Mates there share it,
// and beyond the middle of the map enemies who are not seen may wait.
FarmLane farm_lane(const Situation& s) {
  const BotMemory& m = s.scene.memory;
  FarmLane best{s.memory.lane < 0 ? 1 : s.memory.lane};
  if (s.view.heroes_per_team < 3 || s.view.time < s.skill.group_from) return best;
  for (int lane = 0; lane < 3; ++lane) {
    if (!s.view.constants.settings->lane_enabled[lane]) continue;
    const MapLane& way = s.scene.lane(lane);
    const float at = m.own_front[lane];
    const Vec2 p = lane_point(way, at < 0 ? m.own_tower[lane] : at, 0.0f);
    float cost = s.away(p);
    if (is_lost(s, p)) cost += kLostCost;
    for (int i = 0; i < s.view.heroes_per_team; ++i)
      if (const SeenUnit* mate = i == s.index ? nullptr : s.scene.ally(i);
          mate && distance(mate->pos, p) < 1200.0f)
        cost += 2500.0f;
    for (const int i : s.scene.enemy_creeps)
      if (distance(s.scene.unit(i).pos, p) < 1000.0f) cost -= kCreepWorth;
    if (distance(p, s.scene.enemy_home) < distance(p, s.scene.home)) cost += 3000.0f;
    if (cost < best.cost) best = {lane, cost};
  }
  return best;
}

Command keep_alive(const Situation& s, const Balance& b) {
  const bool hunted = b.danger < 900.0f;
  if (hunted && s.skill.disciplined)
    if (const Command c = escape(s); said(c)) return c;
  if (!hunted && s.skill.disciplined)
    if (const Command c = eat(s); said(c)) return c;
  if (b.recent == 0 && s.skill.disciplined)
    if (const Command c = to_shrine(s); said(c)) return c;
  if (!hunted && s.away(s.scene.home) > 6000.0f && b.recent == 0)
    if (const Command c = teleport_towards(s, s.scene.home); said(c)) return c;
  return go_home(s);
}

int creeps_upon(const Situation& s) {
  int n = 0;
  for (const int i : s.scene.enemy_creeps)
    n += s.scene.unit(i).attack_target == s.body.handle;
  return n;
}

bool hit_by_hero(const Situation& s) {
  for (int i = 0; i < s.view.heroes_per_team; ++i)
    if (const SeenUnit* e = s.scene.enemy(i); e && e->attack_target == s.body.handle) return true;
  return false;
}

// Who leaves a fight does not turn round at once because an enemy is out of reach for a moment.
bool leaves(const Situation& s, const Balance& b) {
  const bool now = outnumbered(s, b);
  if (now) s.memory.leave_until = s.view.time + kLeave;
  return now || (s.skill.disciplined && s.view.time < s.memory.leave_until && b.own < s.skill.caution * b.enemy);
}

// Strikes the weakest enemy creep near.
Command strike_wave(const Situation& s) {
  const SeenUnit* best = nullptr;
  for (const int i : s.scene.enemy_creeps) {
    const SeenUnit& u = s.scene.unit(i);
    if (s.away(u.pos) > s.reach(u) + 250.0f || under_enemy_tower(s.scene, u.pos, -200.0f)) continue;
    if (!best || u.hp < best->hp) best = &u;
  }
  return best ? with(kAttack, best->handle) : Command{};
}

Command farm(const Situation& s) {
  const bool lanes = s.view.time < s.skill.group_from || s.view.heroes_per_team < 3;
  const FarmLane wave = farm_lane(s);
  const Vec2 place = last_hit_position(s, lane_position(s, wave.lane));
  if (!lanes) {
    if (const Command c = strike_wave(s); said(c)) return c;
    if (const Command c = farm_jungle(s, wave.cost); said(c) && s.role() <= 3) return c;
  }
  if (const Command c = teleport_towards(s, place); said(c)) return c;
  Command c = travel(s, place);
  if (lanes && s.skill.disciplined && c.action == kNoop) {
    // An idle hero attacks automatically and pushes the lane, so it steps back and forth. The last step leads
    // forward: a hero one step behind its position loses creeps.
    c = with(kMove);
    const int forward = s.scene.enemy_home.x > s.scene.home.x ? 1 : -1;
    const bool beyond = (s.body.pos.x - place.x) * static_cast<float>(forward) > 0;
    c.dx = static_cast<std::int8_t>(beyond ? -forward : forward);
  }
  return c;
}

// Nobody defends the lane: of two players the other one is dead, or has been gone for a while.
bool lane_open(const Situation& s) {
  if (!s.skill.dives_early || s.view.heroes_per_team > 1) return false;
  const SeenHero& enemy = s.view.heroes[1];
  return !enemy.present || !enemy.alive || enemy.since_seen > 4.0f;
}

// Strikes at what can be struck from here: waves on the way, wards that are seen, buildings.
Command strike_near(const Situation& s) {
  for (const int i : s.scene.wards) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.side == Side::Enemy && s.away(u.pos) < s.reach(u) + 400.0f) return with(kAttack, u.handle);
  }
  if (const Command c = besiege(s); said(c)) return c;
  if (s.scene.memory.plan == Plan::Farm && !lane_open(s)) return {};
  if (s.skill.casts_in_lane)
    if (const Command c = cast_on_wave(s); said(c)) return c;
  return strike_wave(s);
}

}  // namespace

Command decide(const Situation& s) {
  if (!s.hero.alive) return s.offered(kBuyback) && wants_buyback(s) ? with(kBuyback) : with(kNoop);
  if (s.hero.using_ability || s.body.act == Act::Channel) return with(kNoop);
  const Balance b = balance_near(s);
  s.memory.quiet = b.recent == 0;
  const bool at_home = s.away(s.scene.home) < 1000.0f;
  if (s.health() < s.skill.retreat_below) s.memory.retreating = true;
  // The fountain heals on while the hero walks out of its reach, and some seconds longer: who knows it leaves
  // earlier.
  const float full = s.skill.disciplined ? 0.65f : 0.92f, enough = s.skill.disciplined ? 0.5f : 0.8f;
  if (s.health() > (at_home ? full : s.skill.return_above) && (!at_home || s.mana() > enough))
    s.memory.retreating = false;
  if (s.skill.disciplined && b.enemies > 0 && b.allies == 1 && s.health() < 0.42f &&
      b.nearest->hp > (s.health() + 0.25f) * b.nearest->max_hp)
    s.memory.retreating = true;
  if (at_home && s.mana() < 0.4f && s.skill.disciplined && b.enemies == 0) s.memory.retreating = true;

  if (s.skill.casts) {
    if (const Command c = reveal(s); said(c)) return c;
    if (const Command c = stop_wasting(s); said(c)) return c;
  }
  if (const Command c = recover(s, b); said(c)) return c;
  if (s.skill.disciplined && b.enemies == 0)
    if (const Command c = tread(s); said(c)) return c;
  if (s.skill.disciplined)
    if (const Command c = help_allies(s); said(c)) return c;
  if (s.memory.retreating || leaves(s, b)) {
    s.memory.fighting = false;
    return keep_alive(s, b);
  }
  if (const Command c = fight(s, b); said(c)) return c;
  if (hit_by_tower(s) && (s.health() < 0.6f || b.allies < 3)) return go_home(s);
  // A tree may stand the wrong way: nobody turns from a fight to walk to one, nor from an enemy who strikes him.
  if (s.skill.disciplined && b.enemies > 0 && s.health() > 0.45f && !hit_by_hero(s))
    if (const Command c = eat(s); said(c)) return c;

  if (s.skill.disciplined && s.health() < (b.enemies > 0 ? 0.85f : 0.5f) && creeps_upon(s) >= 2) return go_home(s);

  const bool laning = s.view.time < s.skill.group_from || s.view.heroes_per_team < 3;
  if (s.skill.casts_in_lane && b.enemies > 0 && !under_enemy_tower(s.scene, s.body.pos, 0.0f))
    if (const Command c = cast_at(s, *b.nearest, Intent::Harass); said(c)) return c;
  if (b.enemies == 0)
    if (const Command c = take_runes(s); said(c)) return c;
  if (b.enemies == 0 && s.view.time > -60.0f && s.scene.memory.plan != Plan::Roshan)
    if (const Command c = place_wards(s); said(c)) return c;
  // A blow that is on its way is not taken back for a better place to stand.
  if (s.skill.foresees && s.body.act == Act::AttackWindup && s.memory.last.action == kAttack) return s.memory.last;
  if (laning && (b.enemies == 0 || s.away(b.nearest->pos) > 600.0f)) {
    if (const Command c = pull_camp(s); said(c)) return c;
    if (const Command c = stack_camp(s); said(c)) return c;
  }
  if (laning || s.scene.memory.plan == Plan::Farm)
    if (const Command c = last_hits(s); said(c)) return c;
  if (const Command c = harass(s); said(c)) return c;
  if (s.scene.memory.plan != Plan::Roshan)
    if (const Command c = strike_near(s); said(c)) return c;
  if (const Command c = follow_plan(s); said(c)) return c;
  return farm(s);
}

}  // namespace dota
