// The seams between the systems of the game, in the order a frame runs them. Each is implemented in the file
// named.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace dota {

// ---- data/loader.cpp ------------------------------------------------------------------------------------------
// Builds the tables of one patch from its six files (heroes, abilities, items, units, rules, map).
// Throws std::runtime_error naming the file and key that is wrong.
struct LoadedTables;  // owns Tables and MapData
std::shared_ptr<const Tables> load_tables(const Node& heroes, const Node& abilities, const Node& items,
                                          const Node& units, const Node& rules, const Node& map);

// ---- map/ -----------------------------------------------------------------------------------------------------
// Cell of the 64-unit grid walkable for ground units now (terrain, standing trees, standing buildings).
bool walkable(const World& w, const MapData& map, Vec2 p);
int elevation(const MapData& map, Vec2 p);
// Moves the unit by at most `step` units towards `goal` around terrain, trees, buildings and other units; turns it
// first. Sets velocity and facing. Returns true when it stands within `arrive` of the goal.
bool move_towards(Context& c, Unit& u, Vec2 goal, float arrive);
// Turns towards p at the unit's turn rate for one frame; true when within the action angle.
bool turn_towards(Context& c, Unit& u, Vec2 p);
// Nearest walkable place to p for a body of that radius (blink, spawn, teleport).
Vec2 free_place(const World& w, const MapData& map, Vec2 p, float radius);
void update_vision(Context& c);  // once a timestep
// Adds to the team's fog of this timestep what is seen from p (areas that give vision); flying ignores heights,
// trees.
void reveal_area(World& w, const MapData& map, int team, Vec2 p, float radius, bool flying);
bool cell_visible(const World& w, int team, Vec2 p);                       // fog only
bool unit_visible(const World& w, int team, const Unit& u);                // fog, invisibility, true sight
int tree_at(const World& w, const MapData& map, Vec2 p, float radius);     // nearest standing tree, or -1
bool tree_near(const World& w, const MapData& map, Vec2 p, float radius);  // whether tree_at() finds one
void cut_tree(World& w, const Tables& t, int tree);
void block_line(Context& c, Area& a);  // grid.cpp: nobody walks over the area's line; who stands there steps aside
void unblock_line(World& w, const MapData& map, Area& a);
// Units within `radius` (edge of their hull counts when `edge`) of p, by index order. Rebuilt once a frame.
struct UnitList {
  std::array<std::int16_t, kMaxUnits> ids;
  int n = 0;
};
void build_spatial(Context& c);  // also brings Nav up to trees and buildings; start_game calls it first
void place_unit(World& w, Unit& u, Vec2 p);  // sets pos and lists the unit there: every jump that is not a walk
void unlist_unit(World& w, const Unit& u);   // takes a freed slot out of the hash
void units_near(const Context& c, Vec2 p, float radius, UnitList& out);
// False: units_near() finds none of the team's there. Much cheaper, for those who look around and see nobody.
bool team_near(const World& w, int team, Vec2 p, float radius);

// ---- world/units.cpp: births, deaths, derived stats
// --------------------------------------------------------------
Unit* spawn_unit(Context& c, int unit_type, int team, Vec2 pos, float facing);  // nullptr when full
void remove_unit(Context& c, Unit& u);
void refresh_stats(Context& c,
                   Unit& u);  // when stats_dirty: base, level, items, talents, modifiers, auras -> derived
bool is_enemy(const Unit& a, const Unit& b);
// Status bits a unit has by its kind, to which its modifiers' bits are added (wards are invisible, and so on).
std::uint32_t inherent_status(const Context& c, const Unit& u);
// refresh_stats() itself adds ItemDef::stats; talents come through stat_sum(). A dead hero keeps its slot with
// alive = false; every other unit's slot is freed at death.

// ---- world/damage.cpp
// --------------------------------------------------------------------------------------------
struct DamageInfo {
  Unit* source = nullptr;  // may be null (its owner is gone)
  Unit* target = nullptr;
  float amount = 0;
  DamageType type = DamageType::Physical;
  bool attack = false;  // an attack's own hit: class table and block apply
  std::int16_t ability = -1;
  bool no_reflect = false;
};
float deal_damage(Context& c,
                  const DamageInfo& d);  // after armor, resistance, shields; handles death. Returns hp lost
void heal(Context& c, Unit& target, float amount);
void give_mana(Context& c, Unit& target, float amount);
void kill(Context& c, Unit& victim,
          Unit* killer);  // bounties, XP, events, respawn timers, buildings' consequences

// ---- world/death.cpp holds kill(); world/attack.cpp
// --------------------------------------------------------------------------------------------
bool can_attack(const Context& c, const Unit& a,
                const Unit& b);  // allowed target (deny rules, immunity, visibility)
bool in_attack_range(const Unit& a, const Unit& b);
void attack_frame(Context& c, Unit& u, Unit& target);  // chase, turn, windup, launch
void land_attack(Context& c, Unit* source, Unit& target, float damage,
                 bool crit);  // miss, modifiers, procs, damage

// ---- world/orders.cpp: an order's life from issue to completion, casting included
// ---------------------------------
void issue_order(Context& c, Unit& u, const Order& o);
void run_order(Context& c, Unit& u);  // once a frame a living unit
// Without the checks that a command needs: what an AI has decided, or what an effect forces.
void take_order(Context& c, Unit& u, const Order& o);

// ---- world/creature_ai.cpp: decisions become orders
bool creature_casts(Context& c, Unit& u, Unit& enemy);  // true: it was ordered to cast something
bool busy_casting(const Unit& u);
void keep_attacking(Context& c, Unit& u,
                    const Unit& target);  // these three change nothing when it does that already
void keep_moving(Context& c, Unit& u, Vec2 goal);
void rest(Context& c, Unit& u);

// ---- world/heroes.cpp, economy.cpp, items.cpp, courier.cpp
// --------------------------------------------------------
void give_xp(Context& c, HeroState& h, float xp);
void give_gold(Context& c, HeroState& h, float gold, bool reliable);
float net_worth(const Context& c, const HeroState& h);
void heroes_frame(Context& c);  // respawn, passive gold, skill build, purchases, item swap, charges
bool buyback(Context& c, HeroState& h);
bool can_buyback(const Context& c, const HeroState& h);
float buyback_cost(const Context& c, const HeroState& h);
bool has_talent(const HeroState& h, int talent);     // index into HeroDef::talents
void take_item(Context& c, HeroState& h, int slot);  // out of the slot, gone
void drop_items(Context& c, Unit& hero);             // what falls to the ground when he dies
void pick_up(Context& c);                            // who stands near what lies there, and has room, has it
void take_item(Context& c, Unit& u, int slot);       // the same of any unit, by the slot of an order (16 + i)
// Why the line-up cannot be played ("" when it can): a hero whose programs have primitives that are not built.
std::string check_lineup(const Tables& t, const std::array<int, kMaxHeroes>& lineup);
// Whether the scripted buyer buys the item: false when its own or a component's program has missing primitives.
bool item_supported(const Tables& t, int item);
// Items of the line-up's builds that are skipped for that reason, by name.
std::vector<std::string> items_not_bought(const Tables& t, const std::array<int, kMaxHeroes>& lineup);
// Items of its builds that are bought for their stats although what they can be used for is not built.
std::vector<std::string> items_without_use(const Tables& t, const std::array<int, kMaxHeroes>& lineup);
bool give_item(Context& c, HeroState& h, int item, int charges);  // combines recipes; false when no room
void courier_frame(Context& c);

// ---- world/creeps.cpp, towers.cpp, neutrals.cpp, runes.cpp
// ----------------------------------------------------------
void creeps_frame(Context& c);     // waves, lane walking, aggro
void buildings_frame(Context& c);  // buildings.cpp: backdoor protection, fountain and shrine healing
// A hero near the tower was ordered to attack one of its side's heroes, or one of his own side.
void tower_notices(Context& c, Unit& tower, Unit& attacker, bool on_allied_hero, bool on_own_side);
void towers_frame(Context& c);  // targets, glyph, protection order, backdoor, fountain, shrines
bool building_protected(const Context& c, const Unit& b);
bool use_glyph(Context& c, int team);
bool use_shrine(Context& c, Unit& hero);
void neutrals_frame(Context& c);  // camps
void roshan_frame(Context& c);
void neutral_hurt(Context& c, Unit& neutral, Unit& attacker);  // its whole camp turns on him
void runes_frame(Context& c);
bool reincarnate(Context& c, Unit& hero);  // Aegis: true when the hero is to rise again and did not die for good
void roshan_died(Context& c, Unit& roshan, Unit* killer);
void camp_member_died(Context& c, const Unit& neutral);
void notify_attack_order(Context& c, Unit& attacker, Unit& target);  // creep and tower aggro

// ---- effects/
// -------------------------------------------------------------------------------------------------------
Program compile_program(const Node& ability, const std::string& name,
                        Tables& tables);  // tables: modifier names grow
// Once, after heroes, abilities, items and units are all in the tables: talents that change specials, stacks
// shared between abilities, unit types named by programs, programs of plain talents and of runes.
void link_programs(Tables& tables);
// upgrades.cpp: a number of the ability's own fields for that unit, with its talents and scepter.
float cast_number(const Context& c, const Unit& u, const AbilityDef& a, CastNumber what, int level);
// Charges an ability holds at most, 0 when it goes by its cooldown; seconds in which one comes back.
int charge_limit(const Context& c, const Unit& u, const AbilityDef& a, int level);
float charge_restore(const Context& c, const Unit& u, const AbilityDef& a, int level);
// Whether the slot (0-5 ability, 16+i item) can be cast now, apart from range and target.
bool castable(const Context& c, const Unit& u, int slot);
const AbilityDef* slot_ability(const Context& c, const Unit& u, int slot, int* level);  // nullptr: empty
bool valid_cast_target(const Context& c, const Unit& caster, const AbilityDef& a, const Unit& target);
void cast_effect(Context& c, Unit& caster, int slot, const Order& o);  // costs are paid by orders.cpp just before
void channel_end(Context& c, Unit& caster, bool finished);
struct AttackRoll {
  float damage = 0;
  bool crit = false, true_strike = false;
};
void on_attack_start(Context& c, Unit& source, Unit& target, AttackRoll& roll);  // crits, next-attack modifiers
// Procs, cleave, orbs. `rolled`: the attack's damage before armor and block (cleave reads it); < 0: not known.
void on_attack_landed(Context& c, Unit& source, Unit& target, float damage_dealt, float rolled = -1);
// damaged_by_enemy, ends_on; `blow`: as it was dealt, before reductions
void on_damaged(Context& c, Unit& target, Unit* source, float amount, const DamageInfo& blow);
void on_spell_damage(Context& c, Unit& source, const Unit& target, float amount);  // what spells give back
float blocked_damage(Context& c, Unit& target);  // what a block takes off an attack, before armor
float absorb_damage(Context& c, Unit& target, float amount, DamageType type, bool attack);  // shields
void on_kill(Context& c, Unit& killer, Unit& victim);
void on_death(Context& c, Unit& victim, Unit* killer);
void on_ability_cast(Context& c, Unit& caster, const AbilityDef& a);  // magic wand charges of enemies near
void modifiers_frame(Context& c);                                     // expiry, ticks, auras, status bits
void projectiles_frame(Context& c);
void areas_frame(Context& c);
void apply_learned(Context& c,
                   Unit& u);  // passives of abilities, items and talents -> modifiers; on level or item change
// Over its modifiers, talents included, the stats of ItemDef::stats not. Percentages that stack multiplicatively
// (MrPct, EvasionPct, MissPct, StatusResPct) come back combined, 100 * (1 - prod(1 - p/100)); MsSet and BootsMsPct
// as the greatest; the rest as the sum.
float stat_sum(const World& w, const Unit& u, Stat s);
void clear_modifiers(Context& c, Unit& u);
// The modifier of a power rune (a PickupKind), with rules.json's runes.effects; GameRules::rune_effects holds
// them.
void apply_rune(Context& c, Unit& u, int kind);
bool store_rune(Context& c, Unit& hero, int kind);  // a bottle takes it: true
void disjoint(Context& c, Unit& u);                 // its incoming projectiles lose it
void reveal_effects(Context& c);  // after update_vision(): what areas and bolts let their team see

// ---- world/step.cpp
// ---------------------------------------------------------------------------------------------------
void start_game(Context& c, std::uint64_t seed, const std::array<int, kMaxHeroes>& lineup);  // -1: no hero
void step_game(Context& c,
               const std::array<Command, kMaxHeroes>& commands);  // one timestep: 4 frames, one step late
std::uint64_t hash_world(const World& w);
int mid_lane_assigned(const Context& c, const HeroState& h);
// Adds to a hero's (or every hero of a team's) signal since the last observation.
inline void signal(HeroState& h, Signal s, float v) { h.signals[static_cast<std::size_t>(s)] += v; }
void signal_team(World& w, int team, Signal s, float v);
// world/events.cpp: notes what happened, and gives the signals of it (world/event.hpp says who is who)
void happened(Context& c, EventKind kind, Unit& unit, const Unit* other = nullptr, int id = -1, float value = 0);
void hero_event(Context& c, EventKind kind, const HeroState& h, const Unit* other = nullptr, int id = -1,
                float value = 0);
void team_event(Context& c, EventKind kind, int team);
// world/signals.cpp, which says what each signal counts and whose it is
void building_destroyed_signal(Context& c, Unit& b);
void step_signals(Context& c);  // health, mana, lanes and buildings, once a timestep

// ---- view/actions.cpp
// -----------------------------------------------------------------------------------------------
void apply_command(Context& c, HeroState& h, const Command& cmd);  // an impossible one is a no-op

}  // namespace dota
