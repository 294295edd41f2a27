// The game's constants, read once from the data folder and shared, read-only, by every world.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/node.hpp"
#include "data/program.hpp"

namespace dota {

struct MapData;    // map/map_data.hpp
struct GameRules;  // world/game_rules.hpp

enum class UnitKind : std::uint8_t {
  None,
  Hero,
  LaneCreep,
  Neutral,
  Roshan,
  Tower,
  Barracks,
  Fort,
  Filler,
  Shrine,
  Fountain,
  Courier,
  Ward,
  Summon
};
constexpr bool is_building(UnitKind k) {
  return k == UnitKind::Tower || k == UnitKind::Barracks || k == UnitKind::Fort || k == UnitKind::Filler ||
         k == UnitKind::Shrine || k == UnitKind::Fountain;
}
constexpr int kUnitKinds = static_cast<int>(UnitKind::Summon) + 1;
enum class AttackClass : std::uint8_t { Basic, Pierce, Siege, Hero };
enum class DefendClass : std::uint8_t { Basic, Structure, Hero };
enum class Attribute : std::uint8_t { Str, Agi, Int };
enum class MoveCap : std::uint8_t { None, Ground, Fly };
enum class Lane : std::int8_t { None = -1, Top = 0, Mid = 1, Bot = 2 };

// What a primary action reads besides delay (Berner et al. 2019, table 5).
enum class TargetType : std::uint8_t { None, Point, Unit, UnitOffset, Teleport, Ward };

// One row of units.json, or a hero's body at level 1. Lengths in world units, times in seconds.
struct UnitDef {
  std::string name;
  UnitKind kind = UnitKind::None;
  int level = 1;
  float hp = 0, hp_regen = 0, mana = 0, mana_regen = 0, armor = 0, magic_resist_pct = 0;
  float dmg_min = 0, dmg_max = 0, attack_time = 1, attack_point = 0, attack_range = 0, acquisition_range = 0;
  float projectile_speed = 0;  // 0: melee
  float move_speed = 0, turn_rate = 0.5f, gold_min = 0, gold_max = 0, xp = 0;
  float vision_day = 0, vision_night = 0, hull_radius = 8, true_sight = 0;
  MoveCap move_cap = MoveCap::Ground;
  AttackClass attack_class = AttackClass::Basic;
  DefendClass defend_class = DefendClass::Basic;
  bool can_attack = true, ancient = false;
  int hits_to_kill = 0;
  float accuracy = 0;          // chance, 0 to 1, that an attack cannot miss
  int hero = -1;               // index into Tables::heroes
  bool siege = false;          // siege creeps, of kind LaneCreep
  std::vector<int> abilities;  // indices into Tables::abilities (neutrals, Roshan, towers)
};

struct TalentDef {
  int level = 0;
  std::string name;
  int ability = -1;  // its index in Tables::abilities, where the vocabulary of abilities holds it too
  std::vector<std::pair<std::string, float>> values;
  std::vector<std::pair<int, std::string>> affects;  // (ability index, special or field)
  Node effects;                                      // what it does by itself, until it is compiled; Null: nothing
};

struct HeroDef {
  std::string name;  // npc_dota_hero_*
  int number = 0;    // by which Dota 2's protocols name it
  int unit = -1;     // its body in Tables::units
  Attribute primary = Attribute::Str;
  std::array<float, 3> base{}, gain{};  // str, agi, int
  std::vector<int> abilities;           // indices into Tables::abilities, slot order
  std::vector<TalentDef> talents;
  std::vector<int> skill_build;  // 25 entries: >= 0 ability index, <= -2 talent -(i+2), -1 no point
  std::vector<int> item_start, item_order;
  std::vector<int> item_pool;  // what the hero buys: the game's own list of his, then the order; consumables not
  int role_position = 3;
  bool has_charges = false;     // an ability of his is used up and comes back by charges
  bool hides = false;           // an ability makes him invisible
  bool bashes = false;          // an ability of his is a bash, beside which no item's bash works
  bool reacts_to_hits = false;  // a passive acts when an ability of his hits an enemy
};

// Number of a cast that is stored in the ability's own fields, not in its program.
enum class CastNumber : std::uint8_t { Range, Point, Channel, Cooldown, Mana };
// Change of such a number: a talent adds to it, Aghanim's Scepter replaces it.
struct CastChange {
  CastNumber what = CastNumber::Range;
  std::string talent;          // "": the scepter
  int index = -1;              // into HeroDef::talents; -1: the hero of this patch does not have the talent
  float add = 0;               // what the talent adds
  std::vector<float> instead;  // what the scepter puts there, per rank
  bool unlimited = false;      // or else: no limit at all
};

// An ability, or the active part of an item. Per-level lists hold one value per rank, or one for all.
struct AbilityDef {
  std::string name;
  int id = -1;
  int number = 0;  // by which Dota 2's protocols name it; talents: 0
  int max_level = 1, required_level = 1, levels_between = 2, slot = 0;
  bool learnable = true, ultimate = false, passive = false, channelled = false, autocast = false, toggle = false;
  bool attack_behavior = false, immediate = false, ignore_channel = false, ignore_backswing = false,
       root_disables = false, aoe = false;
  bool target_enemy = false, target_friendly = false, target_hero = false, target_basic = false,
       target_building = false, target_tree = false;
  bool target_ally_self = false;  // of its own side it is aimed at its caster alone (Eul's)
  bool blinks_to_target = false;  // to another unit than its caster (Blink Strike)
  bool target_immune_enemies = false, target_immune_allies = true, target_invulnerable = false, hidden = false,
       target_ancients = true;
  bool pierces_immunity = false, pierces_immunity_scepter = false;  // the second: with Aghanim's Scepter
  bool at_point = false;            // can be aimed at the ground, also where it is aimed at units
  bool granted_by_scepter = false;  // not learned: its rank is 1 with Aghanim's Scepter
  // target_tree without target_hero (tango): Order::tree is the standing tree nearest to the point aimed at.
  int linked_skill = -1;     // index of the ability whose rank it copies (Shadow Fiend's razes)
  int is_item = -1;          // index into Tables::items when this is an item's active
  int shared_cooldown = -1;  // index into Tables::cooldown_groups
  int owner_unit = -1;       // Tables::units of the unit or hero it belongs to; -1 items and talents
  TargetType target = TargetType::None;
  std::vector<float> cast_range, cast_point, channel_time, cooldown, mana_cost;
  std::vector<float> cast_range_buffer;  // how much farther the target may go during the cast; empty: anywhere
  float cast_range_enemy = 0;            // of an item used on an enemy, where it is another; 0: the same
  bool free_on_self = false;             // no cooldown when it is used on its bearer
  std::vector<CastChange> changes;       // cast_number() counts them
  Program program;                       // compiled effects
  float at(const std::vector<float>& v, int level) const {
    return v.empty() ? 0.0f : v[level < 1 ? 0 : (level > int(v.size()) ? v.size() - 1 : level - 1)];
  }
};

struct ItemDef {
  std::string name;
  int number = 0;  // by which Dota 2's protocols name it
  int cost = 0, initial_charges = 0, stock_max = 0, stock_initial = 0;
  float stock_time = 0, stock_first_s = 0;  // between two, and game time of the first after the initial ones
  bool stackable = false, consumable = false, purchasable = true, requires_charges = false, secret_shop = false,
       side_shop = false, sold_secretly = false, excluded = false,  // secret_shop: sold nowhere else
      counts_once = false;                                          // a second one gives nothing (Wind Lace)
  int recipe_cost = 0, base_level = 1;  // base_level: rank at which its active runs (Dagon)
  bool sellable = true, droppable = true;
  std::vector<std::vector<int>> recipes;  // alternatives of component item indices
  int ability = -1;                       // Tables::abilities index of its effects; -1 when it has none
  std::vector<std::pair<Stat, float>> stats;
};

// Numbers of rules.json that the systems read. Filled by name; a missing number is an error at load.
struct Rules {
  Node root;  // the whole tree, for code that runs at load only
  float pregame_s, day_length_s, night_length_s;
  float hp_per_str, hp_regen_per_str, mr_pct_per_str, mana_per_int, mana_regen_per_int, spell_amp_pct_per_int,
      armor_per_agi, as_per_agi, ms_pct_per_agi;
  float armor_a, armor_b, armor_c;
  float class_table[4][3];  // AttackClass x DefendClass
  float as_min, as_max, ms_min, ms_max, action_angle_rad, uphill_miss_pct;
  float deny_creep_frac, deny_tower_frac, deny_hero_frac;
  std::array<float, 25> xp_for_level, respawn_s;
  float xp_radius, deny_enemy_xp_frac;
  float start_gold, passive_gold, passive_every_s;
  float tree_regrow_s;
};

struct Tables {
  std::string version;            // "7.21d"
  std::uint64_t fingerprint = 0;  // of the six files it was made from
  Rules rules;
  std::vector<UnitDef> units;
  std::vector<HeroDef> heroes;
  std::vector<AbilityDef> abilities;  // abilities, then item actives, then talents (no program)
  std::vector<ItemDef> items;
  std::vector<std::string> modifiers;  // names a modifier can carry: one per effect that applies one
  std::vector<std::vector<std::vector<int>>> camp_sets;  // [tier small, medium, large, ancient][set][unit]
  std::vector<std::string> cooldown_groups;
  std::vector<int> pool_finals, pool_ti8;  // indices into heroes: the 17 of April 2019, the 18 of August 2018
  std::unordered_map<std::string, int> unit_index, hero_index, ability_index, item_index;
  std::array<int, 5> rune_abilities{-1, -1, -1, -1, -1};  // Tables::abilities, order of rules.runes.power.kinds
  const MapData* map = nullptr;                           // owned by the loader
  std::shared_ptr<const GameRules> game;                  // made last by the loader: game = read_game_rules(*this)
};

}  // namespace dota
