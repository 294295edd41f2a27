// Writes one team's observation into the caller's arrays: what the team sees, as the layout's numbers.
#pragma once

#include <cstdint>
#include <vector>

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
  void encode(const TeamView& view, const SlotTable& slots, const Choices& choices, const TeamStepBuffers& out);

 private:
  void encode_global(const TeamView& v);
  void encode_units(const TeamView& v, const SlotTable& slots);
  void encode_vectors(const TeamView& v, const SlotTable& slots);
  void encode_heroes(const TeamView& v);
  void encode_allies(const TeamView& v);
  void encode_modifiers(const TeamView& v, const SlotTable& slots);
  void encode_abilities(const TeamView& v);
  void encode_items(const TeamView& v);
  void encode_in_line(const TeamView& v);
  void encode_pickups(const TeamView& v);
  void encode_minimap(const TeamView& v);
  void encode_nearby(const TeamView& v);
  void encode_previous(const TeamView& v);

  float& f(const Slot& s, int row = 0, int k = 0) { return shared_[static_cast<std::size_t>(s.row(row) + k)]; }
  float& p(int hero, const Slot& s, int row = 0, int k = 0) {
    return private_[static_cast<std::size_t>(hero * pitch_private_ + s.row(row) + k)];
  }
  std::uint16_t& id(const Slot& s, int row = 0) { return ids_[static_cast<std::size_t>(s.row(row))]; }
  std::uint16_t& pid(int hero, const Slot& s, int row = 0, int k = 0) {
    return private_ids_[static_cast<std::size_t>(hero * pitch_private_ids_ + s.row(row) + k)];
  }

  const Layout& layout_;
  int pitch_private_, pitch_private_ids_;
  float turn_ = 1;                                   // -1 where the map is shown turned
  std::vector<std::array<float, 3>> minimap_cells_;  // the cells' own coordinates and numbers
  std::vector<float> shared_, private_;              // zero between observations
  std::vector<std::uint16_t> ids_, private_ids_;
  std::array<std::array<float, kMaxUnits>, 4> line_x_,
      line_y_;  // by class: own creeps, enemy creeps, own heroes, enemy heroes
  std::array<int, 4> line_n_{};
};

}  // namespace dota
