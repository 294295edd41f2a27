// Writes one team's observation into the caller's arrays: what the team sees, as the layout's numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "base/memory.hpp"
#include "view/layout.hpp"
#include "view/team_view.hpp"

namespace dota {

// Fixed scales that bring values to order 1, so that float16 keeps their precision. The model's running
// normalisation takes over from there; these are part of the layout and listed in docs/observations.md.
namespace scale {
constexpr float kPosition = 1.0f / 8192.0f;  // world units
constexpr float kDistance = 1.0f / 2048.0f;  // world units, from hero to unit
constexpr float kLevelZ = 1.0f / 4.0f;       // ground levels
constexpr float kGameTime = 1.0f / 600.0f;   // seconds since the horn
constexpr float kMinutes = 1.0f / 60.0f;     // seconds of long clocks: day, runes, cooldowns, modifiers
constexpr float kSeconds = 1.0f;             // seconds of short clocks: attacks, projectiles, casts
constexpr float kShort = 1.0f / 10.0f;       // seconds of areas, since an attack
constexpr float kHp = 1.0f / 1000.0f;
constexpr float kMana = 1.0f / 500.0f;
constexpr float kRegen = 1.0f / 10.0f;
constexpr float kDamage = 1.0f / 100.0f;
constexpr float kAttackSpeed = 1.0f / 100.0f;
constexpr float kMoveSpeed = 1.0f / 300.0f;
constexpr float kGold = 1.0f / 2000.0f;
constexpr float kLevel = 1.0f / 25.0f;
constexpr float kAttribute = 1.0f / 50.0f;
constexpr float kCount = 1.0f / 5.0f;  // units, deaths, charges, stacks
constexpr float kCharges = 1.0f / 10.0f;
constexpr float kCourierUnseen = 1.0f / 40.0f;  // seconds, capped at 40
}  // namespace scale

// The numbers that are made of a unit, in the order of Layout::unit_rows: what all heroes of a team see of it.
struct UnitRow {
  float position[3], facing[2];
  float attacking, since_attack, max_hp;
  float hp_history[kHistory];
  float damage, attack_speed, physical_resistance, glyphed, glyph_timer, move_speed, mine, neutral, animation_time,
      ranged_creep_eta, tower_eta, melee_creeps_attacking, shrine_cooldown;
};
// The same in 16 bits, of Layout::look_rows: how a unit stands to a hero.
struct UnitLook {
  std::uint16_t vector[3], i_attack_it, it_attacks_me, projectile_eta;
};
// And of Layout::ground_rows: a cell of the ground around a hero.
struct GroundRow {
  std::uint16_t elevation, passable, creeps[2], area[2];
};

// Where one team-step goes: arrays of the layout's shapes, row-major.
struct TeamStepBuffers {
  std::uint16_t* shared = nullptr;       // float16 bits [S]
  std::uint16_t* private_ = nullptr;     // float16 bits [H, P]
  std::uint16_t* shared_ids = nullptr;   // [SI]
  std::uint16_t* private_ids = nullptr;  // [H, PI]
  std::uint16_t* available = nullptr;    // [H, 30]
  std::uint8_t* target_mask = nullptr;   // [H, 4, U]
};

// Holds the scratch memory of one thread; encode() does not allocate.
class Encoder {
 public:
  explicit Encoder(const Layout& layout);
  // `ahead` is prefetched between the work; may be null.
  void encode(const TeamView& view, const SlotTable& slots, const Choices& choices, const TeamStepBuffers& out,
              PrefetchQueue* ahead);

 private:
  void encode_global(const TeamView& v);
  void encode_units(const TeamView& v, const SlotTable& slots, std::uint16_t* shared);
  void encode_looks(const TeamView& v, const SlotTable& slots, std::uint16_t* all_private);
  void encode_heroes(const TeamView& v);
  void encode_allies(const TeamView& v);
  void encode_modifiers(const TeamView& v, const SlotTable& slots);
  void encode_abilities(const TeamView& v);
  void encode_items(const TeamView& v);
  void encode_in_line(const TeamView& v);
  void encode_pickups(const TeamView& v);
  void encode_minimap(const TeamView& v);
  void encode_nearby(const TeamView& v, std::uint16_t* all_private);
  void encode_passability(const TeamView& v, std::uint16_t* shared);
  void encode_previous(const TeamView& v);

  float& f(const Slot& s, int row = 0, int k = 0) { return shared_[s.row(row) + k]; }
  float& p(int hero, const Slot& s, int row = 0, int k = 0) {
    return private_[hero * pitch_private_ + s.row(row) + k];
  }
  std::uint16_t& id(const Slot& s, int row = 0) { return ids_[s.row(row)]; }
  std::uint16_t& pid(int hero, const Slot& s, int row = 0, int k = 0) {
    return private_ids_[hero * pitch_private_ids_ + s.row(row) + k];
  }

  // Numbers of an array that are collected as floats and turned to 16 bits together; the others are written row by
  // row.
  struct Stretch {
    std::size_t from = 0, n = 0;
  };
  static std::vector<Stretch> between(std::vector<Stretch> rows, std::size_t width);

  const Layout& layout_;
  PrefetchQueue* ahead_ = nullptr;
  std::vector<Stretch> shared_rest_, private_rest_;
  int pitch_private_, pitch_private_ids_;
  std::size_t width_private_;
  float turn_ = 1;                                                  // -1 where the map is shown turned
  std::vector<std::array<float, 3>> minimap_cells_;                 // the cells' own coordinates and numbers
  std::array<float, kMaxGridSide * kMaxGridSide> cell_x_, cell_y_;  // middles of the cells around a hero, from it
  std::array<std::uint16_t, 256> levels_;                           // per ground level, as a byte without sign
  std::vector<std::uint16_t> counts_;                               // scale::kCount added up so many times
  std::vector<float> shared_, private_;                             // zero between observations
  std::vector<std::uint16_t> ids_, private_ids_;
  std::array<std::array<float, kMaxUnits>, 4> line_x_,
      line_y_;  // by class: own creeps, enemy creeps, own heroes, enemy heroes
  std::array<int, 4> line_n_{};
};

}  // namespace dota
