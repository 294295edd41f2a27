// What a scripted player's rules look at, and the words they answer with.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>

#include "bots/book.hpp"
#include "bots/bots.hpp"
#include "bots/skill.hpp"
#include "map/map_data.hpp"

namespace dota {

// Indices into TeamView::units.
struct UnitIndices {
  int n = 0;
  std::array<std::int16_t, kMaxUnits + 5> at;
  void add(int unit) { at[n++] = static_cast<std::int16_t>(unit); }
  const std::int16_t* begin() const { return at.data(); }
  const std::int16_t* end() const { return at.data() + n; }
};

// A team's view sorted by what matters to its rules; made once a timestep in which a hero decides.
struct Scene {
  const TeamView& view;
  const Choices& choices;
  const BotBook& book;
  const Skill& skill;
  BotMemory& memory;
  Rng& rng;
  const MapData& map;
  Vec2 home, enemy_home;
  UnitIndices own_creeps, enemy_creeps, neutrals, own_buildings, enemy_buildings, wards;
  int own_alive = 0, enemy_alive = 0;

  Scene(const TeamView& view, const Choices& choices, const Skill& skill, BotMemory& memory, Rng& rng);
  const SeenUnit& unit(int i) const { return view.units[i]; }
  const MapLane& lane(int which) const { return map.lanes[view.team][which]; }
  // Returns an enemy hero (0..H-1) that is visible and alive; else nullptr.
  const SeenUnit* enemy(int which) const;
  // Returns an enemy hero that is alive and visible, or was visible a few seconds ago, as last seen; else nullptr.
  // Undisciplined bots remember nothing: for them it equals enemy().
  const SeenUnit* recent_enemy(int which) const;
  const SeenUnit* ally(int which) const;  // an own hero that lives
};

// One hero's part of it.
struct Situation {
  const Scene& scene;
  const TeamView& view;
  const SeenHero& hero;
  const SeenUnit& body;
  const int index;
  const Skill& skill;
  BotMemory::Hero& memory;
  std::bitset<512> offers;  // actions that the hero is offered

  Situation(const Scene& s, int which, const SeenUnit& unit)
      : scene(s),
        view(s.view),
        hero(s.view.heroes[which]),
        body(unit),
        index(which),
        skill(s.skill),
        memory(s.memory.heroes[which]) {
    for (const std::uint16_t action : s.choices.available[which]) {
      if (action == kNoAction) break;
      offers.set(action);
    }
  }
  bool offered(int action) const { return action > 0 && offers.test(action); }
  float health() const { return body.max_hp > 0 ? body.hp / body.max_hp : 0; }
  float mana() const { return hero.max_mana > 0 ? hero.mana / hero.max_mana : 0; }
  float away(Vec2 p) const { return distance(p, body.pos); }
  float reach(const SeenUnit& u) const { return body.attack_range + body.radius + u.radius; }
  bool can_act() const { return !(body.status & (kStunned | kHexed | kBanished)); }
  int role() const { return view.constants.tables->heroes[hero.def].role_position; }
};

// "Nothing to say" is an action of kNoAction.
inline bool said(const Command& c) { return c.action != kNoAction; }
inline Command with(int action, Handle target = {}) {
  Command c;
  c.action = static_cast<std::int16_t>(action);
  c.target = target;
  return c;
}

// ---- scene.cpp
// Where along the lane a point is: the waypoint segment nearest to it, plus the share of it walked.
float lane_progress(const MapLane& lane, Vec2 p);
// The point `back` world units before the place `at` of the lane.
Vec2 lane_point(const MapLane& lane, float at, float back);
// Health times blows, square-rooted, so that what stands side by side adds up (Lanchester's square law).
float strength(const TeamView& view, const SeenUnit& u);
bool under_enemy_tower(const Scene& s, Vec2 p, float margin);
bool hit_by_tower(const Situation& s);

// ---- travel.cpp: ways over the standing map, which everyone knows
Command move_to(const Situation& s, Vec2 p);  // straight there, as far as an offset reaches, in whole cells
Command travel(const Situation& s, Vec2 p);   // around obstacles
// Returns the walking distance in world units from the hero to p, or to an open cell near p, along travel()'s
// path; the straight distance if there is no path.
float walk(const Situation& s, Vec2 p);
Command go_home(const Situation& s);
Command teleport_towards(const Situation& s, Vec2 p);  // when that saves much walking

// ---- laning.cpp
Command last_hits(const Situation& s);
Command harass(const Situation& s);
Vec2 lane_position(const Situation& s, int lane);
// Returns the place nearest to `place` from which the creep that dies next can be struck; `place` if none does
// soon.
Vec2 last_hit_position(const Situation& s, Vec2 place);

// ---- casting.cpp
enum class Intent : std::uint8_t { Harass, Fight, Farm };
Command cast_at(const Situation& s, const SeenUnit& target, Intent intent);
Command cast_on_wave(const Situation& s);  // what strikes many creeps at once
Command help_allies(const Situation& s);   // heals, shields
Command stop_wasting(const Situation& s);  // switches off what strikes nobody and costs mana
Command escape(const Situation& s);        // what brings the hero away, hides or shields it
float burst(const Situation& s);           // damage of all that is ready

// ---- fighting.cpp
struct Balance {
  float own = 0, enemy = 0;
  int allies = 1, enemies = 0;  // heroes near, the hero itself counted
  const SeenUnit* nearest = nullptr;
  int recent = 0;       // enemies near, those included that were visible a few seconds ago
  float danger = 1e9f;  // distance of the nearest of them
};
Balance balance_near(const Situation& s);
Command fight(const Situation& s, const Balance& b);
bool outnumbered(const Situation& s, const Balance& b);
// Whether the enemies who are at a place, as far as known, are stronger than the own heroes there and this one.
bool is_lost(const Situation& s, Vec2 place);

// ---- supplies.cpp
Command tread(const Situation& s);                      // Power Treads to the hero's own attribute
Command recover(const Situation& s, const Balance& b);  // potions, shrines, glyph
Command eat(const Situation& s);                        // a tango, or to a tree where it can be eaten
Command to_shrine(const Situation& s);                  // to a shrine that is ready and nearer to walk than home
Command reveal(const Situation& s);                     // dust where an enemy has just vanished
Command take_runes(const Situation& s);
Command place_wards(const Situation& s);

// ---- objectives.cpp
void make_plan(const Scene& s);
Command besiege(const Situation& s);      // a building that can be attacked now
Command follow_plan(const Situation& s);  // to where the plan wants the hero
Command take_roshan(const Situation& s);
bool wants_buyback(const Situation& s);

// ---- jungle.cpp
Command farm_jungle(const Situation& s, float cheaper_than);  // than that much way, in world units
Command stack_camp(const Situation& s);  // draws a camp's creeps out of it when the next ones are due
Command pull_camp(const Situation& s);   // leads them to the wave of its lane, and strikes those that fight there

// ---- player.cpp
Command decide(const Situation& s);

}  // namespace dota
