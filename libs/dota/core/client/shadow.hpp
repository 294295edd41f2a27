// A game that holds what one team's client says, so that the view code makes the same of it as of a simulated
// game.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/handles.hpp"
#include "client/names.hpp"
#include "client/world_state.hpp"
#include "vec/game.hpp"

namespace dota {

// A glyph is the team's, not a modifier of its units.
inline constexpr std::string_view kGlyphModifier = "modifier_fountain_glyph";

// Slot of a hero's ability; -1: it has another one or none.
std::int8_t slot_of_ability(const HeroState& h, int ability);

class Shadow {
 public:
  // `setup` outlives the shadow and has GameSettings::hide_unseen.
  Shadow(const GameSetup& setup, ClientIds ids) : game_(setup), names_(*setup.tables, std::move(ids)) {}

  // Brings the world up to a frame. Returns how many timesteps it is after the previous frame (0: the first one of
  // a game, for which it makes a new world), or -1 for a frame without heroes, which changes nothing.
  int apply(const WorldState& s);
  // What the client says of the own heroes outright, in place of what the rules would say.
  void adjust(TeamView& v) const;

  Game& game() { return game_; }
  const Game& game() const { return game_; }
  int team() const { return team_; }
  const ClientNames& names() const { return names_; }
  const ClientHandles& handles() const { return handles_; }
  // The unit with a handle; an empty one when it is not known.
  Handle unit_of(std::uint32_t handle) const;

 private:
  // Of a unit slot.
  struct Memory {
    bool listed = false;  // in this frame
    int unseen = 0;       // timesteps since it was listed
    UnitKind kind = UnitKind::None;
  };
  // The enemy's glyph: limits of the game time at which it is ready, where the client rounds it.
  struct GlyphClock {
    float earliest = 0, latest = 0;
  };

  // shadow.cpp
  bool begin(const WorldState& s);
  void take_clock(const WorldState& s, int steps);
  void take_players(const WorldState& s);
  void take_glyphs(const WorldState& s);
  void take_roshan(const WorldState& s);
  // shadow_units.cpp
  void list_units(const WorldState& s);
  Unit* slot_for(const ClientUnit& m);
  void fill_unit(const WorldState& s, const ClientUnit& m, Unit& u);
  void fill_action(const WorldState& s, const ClientUnit& m, Unit& u, bool launches);
  void take_units(const WorldState& s);
  void forget_units();
  void remove(Unit& u);
  // shadow_heroes.cpp
  void take_abilities(const WorldState& s, const ClientUnit& m, HeroState& h);
  void take_items(const WorldState& s, const ClientUnit& m, HeroState& h);
  void take_purse(const ClientUnit& m, HeroState& h);
  void follow_purchases(HeroState& h, const std::array<ItemState, kItemSlots>& before);
  // shadow_ground.cpp
  void take_modifiers(const WorldState& s, const ClientUnit& m, Unit& u);
  Handle source_of(const ClientTrackingProjectile& told, const Unit& hit);
  void take_projectiles(const WorldState& s);
  void take_zones(const WorldState& s);
  void light_up();
  void take_runes(const WorldState& s);
  void take_trees(const WorldState& s);
  void take_teleports(const WorldState& s);
  void take_fallen_buildings();
  int building_at(const ClientUnit& m, int team) const;

  int team_of(std::uint32_t team_id) const {
    return team_id == 2 ? kRadiant : team_id == 3 ? kDire : static_cast<int>(kNeutralTeam);
  }
  int hero_of_player(int player_id) const;
  World& world() { return game_.world(); }

  Game game_;
  ClientNames names_;
  ClientHandles handles_;
  int team_ = 0;
  bool begun_ = false;
  std::uint64_t taken_ = 0;                  // frames of this game before the present one
  float before_ = 0;                         // time of the previous frame
  std::array<int, kMaxHeroes> player_id_{};  // by hero
  std::array<Memory, kMaxUnits> memory_{};
  std::array<const ClientUnit*, kMaxHeroes> body_{};  // of heroes in this frame; null: not listed
  GlyphClock enemy_glyph_;
  float enemy_glyph_before_ = -1;  // as the client said; -1: never yet
  // What the client says outright of own heroes, by place in the team; castable: bit per ability, 16 + item.
  struct Told {
    bool listed = false;
    std::uint32_t castable = 0;
    float buyback_cost = -1;
  };
  std::array<Told, 5> told_{};
};

}  // namespace dota
