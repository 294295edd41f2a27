// Interpreter of compiled programs: their targets, their numbers, and the run of each node.
#pragma once

#include "effects/program_node.hpp"
#include "map/spatial.hpp"
#include "world/loadout.hpp"
#include "world/world.hpp"

namespace dota {

// One run of (a part of) a program.
struct Invocation {
  Handle caster;  // whose ability it is; may be gone by the time a late effect lands
  std::uint8_t team = kNeutralTeam;
  std::int8_t slot = -1;      // slot it was cast from: 0-5 ability, 16 + i item, -1 none
  std::int16_t ability = -1;  // Tables::abilities
  int level = 1;
  Handle target;
  Vec2 point;
  Vec2 centre;  // what "around" means when a node does not say
  std::int16_t tree = -1;
  bool child = false;     // run by another node: "to" unsaid means the unit that was hit
  bool late = false;      // its delay is over
  std::uint8_t step = 0;  // number of the jump, pulse or burst
  float share = 0;        // of the way from the centre to the edge, where strength goes by distance
  float until = 0;        // game time at which the ability itself ends, for what lasts as long
  bool killed = false, killed_hero = false;
  std::uint64_t hit[(kMaxUnits + 63) / 64] = {};  // units its damage reached so far
};

Invocation invocation_of(const Context& c, const Unit& caster, int ability, int level);
inline const Program& program_of(const Context& c, int ability) { return c.tables.abilities[ability].program; }
inline const EffectNode& node_of(const Context& c, int ability, int node) {
  return program_of(c, ability).nodes[node];
}

const EffectNode* pulsing_node(const Context& c, int ability);  // its delayed_aoe; nullptr: it has none
// The number in its rank, talents of the caster's hero and counters included.
float evaluate(const Context& c, const Invocation& inv, const Value& v, const Unit* target);
float number(const Context& c, const Invocation& inv, const EffectNode& n, Role r, const Unit* target = nullptr,
             float otherwise = 0);

// Whether the node is there for its caster: the talent or scepter that it needs (or replaces) is (or is not) his.
bool upgraded(const Context& c, const Unit* caster, const EffectNode& n);

bool is_ranged(const Context& c, const Unit& u);
bool is_basic(const Unit& u);  // anything that is neither a hero, a building nor a ward
// Whether an effect of the caster's ability may touch the unit: alive, not out of the world, not spell immune to
// it.
bool affects(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target);
// The units a node acts on.
UnitList select_targets(Context& c, const Invocation& inv, const EffectNode& n);
// Units within r of p that `who` means from the invocation's side.
UnitList select_around(Context& c, const Invocation& inv, const EffectNode& n, Who who, Vec2 p, float r);

void run_node(Context& c, Invocation& inv, int node);
void run_range(Context& c, Invocation& inv, int first, int count);
// The program's roots that have this trigger.
void run_trigger(Context& c, Invocation& inv, Trigger t);
// A child range on one unit that something of this invocation has reached.
void run_on(Context& c, const Invocation& inv, int first, int count, Unit& target);

// Damage of an ability: immunity to magic and the caster's spell amplification count. Marks inv.hit and
// inv.killed.
float ability_damage(Context& c, Invocation& inv, Unit& target, float amount, DamageType type,
                     bool nonlethal = false, bool hp_removal = false);
// Hits one enemy within r of p: any, or for periodic_strike the one with the least health.
bool strike(Context& c, Invocation& inv, const EffectNode& n, Vec2 p, float r);
// Whether an area that strikes at random is a buff of its caster, whose dispel ends it.
inline bool shown_by_buff(const EffectNode& n) {
  return n.prim == Prim::RandomTargetHits && n.on == Trigger::Cast && n.given(Role::Dur) &&
         !n.given(Role::OutlivesCaster);
}
Invocation invocation_of(const Area& a);
// What an area does at each of its ticks.
void tick_area(Context& c, Area& a, const EffectNode& n);
// Runs the ticks of an area that are due. False: one of them ended it.
bool run_ticks(Context& c, Area& a);
// Ends an area and what lives by it.
void end_area(Context& c, Area& a);
// One draw of the rising-counter distribution for a chance in percent; the counter is the caller's.
bool pseudo_random(Context& c, float chance_pct, std::uint8_t& counter);

Area* new_area(Context& c, const Invocation& inv, int node, Vec2 pos, float radius, float duration);
Projectile* free_projectile(
    World& w);  // cleared, the caller sets its kind; nullptr, and counted, if the pool is full
Projectile* new_projectile(Context& c, const Invocation& inv, int node, Projectile::Kind kind, Vec2 from);
void delay(Context& c, const Invocation& inv, int node, float seconds);

// Slot (0-5 or 16 + i) from which the unit has the ability; -1: it does not have it.
int slot_of(const Context& c, const Unit& u, int ability);
inline HeroState* hero_of(World& w, const Unit& u) { return u.hero < 0 ? nullptr : &w.heroes[u.hero]; }
inline const HeroState* hero_of(const World& w, const Unit& u) { return u.hero < 0 ? nullptr : &w.heroes[u.hero]; }

// Ground distance of the farthest sensible point: the map's diagonal. Radii called "global" use it.
constexpr float kGlobal = 30000;
constexpr float kForever = 1e30f;

}  // namespace dota
