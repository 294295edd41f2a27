// The observation layout of dota.spaces in C++: every field the encoder writes, resolved by name once into
// offsets. Shapes come from Python's Layout and from nowhere else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "rules/actions.hpp"

namespace dota {

// Array of a team-step that holds a field.
enum class ObsArray : std::uint8_t { Shared, Private, SharedIds, PrivateIds, Model, Count };
constexpr int kObsArrays = static_cast<int>(ObsArray::Count);

// The table that Python hands over: what Layout.describe() holds, with the offsets spelt out.
struct LayoutTable {
  struct Field {
    std::string name;
    int count = 0;
    ObsArray array = ObsArray::Shared;
    int offset = 0;
  };
  struct Block {
    std::string name;
    int instances = 0;
    std::vector<Field> fields;
    std::array<int, kObsArrays> offset{}, stride{};
  };
  struct Group {
    std::string name;
    int start = 0, count = 0;
  };
  int heroes = 0, units = 0;
  bool mirror_dire = false;
  int hero_modifiers = 0, unit_modifiers = 0, minimap = 0, nearby_map = 0, passability = 0;
  std::array<int, kObsArrays> widths{};
  std::vector<Block> blocks;
  std::vector<Group> groups;
  std::vector<ActionRow> actions;
  std::vector<std::string> omitted;  // "block.field" of fields that this layout leaves out
};

// Location of a field in its array: row i starts at `at + i * stride`.
struct Slot {
  int at = 0, stride = 0;
  int row(int i) const { return at + i * stride; }
};

// A block's rows in an array as they travel: one after another, each of the numbers that the encoder makes for it
// less those of fields that the layout leaves out.
struct Rows {
  struct Piece {
    int from = 0, at = 0, n = 0;  // numbers `from`, from + 1, ... of what the encoder makes lie from `at` on
  };
  int at = 0, stride = 0;
  int made = 0;               // numbers that the encoder makes for a row
  std::vector<Piece> pieces;  // one, if nothing is left out
  bool whole() const { return pieces.size() == 1 && pieces[0].n == made && stride == made; }
  std::size_t row(int i) const { return at + i * stride; }
};

enum class Group : std::uint8_t {
  AlliedHeroes,
  EnemyHeroes,
  AlliedCreeps,
  EnemyCreeps,
  NeutralCreeps,
  AlliedBuildings,
  EnemyBuildings,
  AlliedWards,
  EnemyWards,
  AlliedCourier,
  EnemyCourier,
  Count
};
constexpr int kGroups = static_cast<int>(Group::Count);

constexpr int kMaxAvailable = 30, kActionParts = 6, kOffsets = 9, kMaxSlots = 512;

class Layout {
 public:
  // Throws std::runtime_error naming the block and field that is missing or has another count or array.
  explicit Layout(const LayoutTable& table);

  struct GroupRange {
    int start = 0, count = 0;
  };
  const GroupRange& group(Group g) const { return groups[ordinal(g)]; }
  int width(ObsArray a) const { return table.widths[ordinal(a)]; }
  // Numbers that the encoder needs for a row of an array: its width, and behind it room for the fields that are
  // left out. They are written there like any other and never copied out, so that no code that writes has to ask.
  int pitch(ObsArray a) const { return width(a) + aside_[ordinal(a)]; }
  // "block.field" of every travelling field that the encoder does not write.
  std::vector<std::string> unwritten_fields() const;
  // For the test of strides: which field (index in the order of the table, plus one) the encoder writes at each
  // cell of an array, and which row of it; 0 where none. Throws when two fields meet in one cell.
  void trace(ObsArray array, std::vector<int>& field, std::vector<int>& row) const;

  LayoutTable table;
  int heroes = 0, units = 0;
  std::array<GroupRange, kGroups> groups{};

  struct {
    Slot time, day, time_to_day_change, time_to_creeps, time_to_neutrals, time_to_bounty, time_to_runes,
        enemy_courier_unseen, roshan_spawn_min, roshan_spawn_max, roshan_max_hp, roshan_alive, roshan_dead,
        roshan_cheese, roshan_refresher, roshan_randomisation, glyph_cooldown, stock;
  } global;
  struct {
    Slot position, facing, attacking, since_attack, max_hp, hp_history, damage, attack_speed, physical_resistance,
        glyphed, glyph_timer, move_speed, mine, neutral, animation_time, ranged_creep_eta, tower_eta,
        melee_creeps_attacking, shrine_cooldown, vector, i_attack_it, it_attacks_me, projectile_eta, unit,
        animation;
  } unit;
  struct {
    Slot alive, deaths, in_sight, since_seen, teleporting, teleport_target, teleport_time, respawn_time, gold,
        level, max_mana, mana, mana_regen, hp_regen, magic_resistance, attributes, invisible, using_ability,
        in_line;
  } hero;
  struct {
    Slot purchase_settings, buyback, empty_slots, lanes, passability, build, next_item;
  } ally;
  struct {
    Slot remaining, stacks, modifier;
  } hero_modifier, unit_modifier;
  struct {
    Slot cooldown, in_use, castable, levels, ability;
  } ability;
  struct {
    Slot location, charges, on_cooldown, cooldown, disabled, enable_time, toggled, treads, item;
  } item;
  struct {
    Slot status, location, distance, pickup;
  } pickup;
  struct {
    Slot visible, creeps, wards, enemy_heroes, cell;
    bool exists = false;  // the layout has the block
  } minimap;
  struct {
    Slot elevation, passable, creeps, area, area_effect;
    bool exists = false;
  } nearby;
  struct {
    Slot offsets, action, target_slot;
  } previous;
  int pickups = 0;
  // Blocks that the encoder makes row by row: what all heroes see of a unit, and what differs from hero to hero;
  // the ground around a hero. Their numbers, in order, are those of UnitRow, UnitLook and GroundRow (encoder.hpp).
  Rows unit_rows, look_rows, ground_rows;

 private:
  Slot resolve(const char* block, const char* field, int count, ObsArray array);
  int instances(const char* block, int expected);
  // Where the rows of a block's fields in an array lie, whose sizes are given in the order in which they are made.
  Rows rows(const char* block, ObsArray array, const std::vector<std::pair<Slot, int>>& fields) const;
  std::vector<std::pair<int, int>> written_;  // (block, field)
  std::array<int, kObsArrays> aside_{};
  int rows_ = 0;  // of the block that is being resolved
};

}  // namespace dota
