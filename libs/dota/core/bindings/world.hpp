// The world that Python holds, and the parts of its class: each file binds what belongs together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "bindings/data.hpp"
#include "world/game_rules.hpp"

namespace dota {

// A hero by its name, with or without npc_dota_hero_. Raises KeyError.
int hero_index(const Tables& t, const std::string& name);

// These raise IndexError or ValueError for values out of range; the core does not check them again.
int checked(int value, int first, int last, const char* what);
inline int team_checked(int team) { return checked(team, 0, kTeams - 1, "team"); }
Vec2 place_checked(float x, float y);  // on the map, give or take its own size
float number_checked(float value, const char* what);

// _core.World
class PyWorld {
 public:
  // Starts a game. Raises ValueError for a lineup that cannot be played, KeyError for unknown names.
  PyWorld(const PyTables& tables, const nanobind::dict& settings, const std::vector<std::string>& radiant,
          const std::vector<std::string>& dire, std::uint64_t seed);

  Context context() { return {*world_, *tables_, settings_}; }
  World& world() { return *world_; }
  const Tables& tables() const { return *tables_; }

  // These raise KeyError or IndexError for unknown names and indices.
  int item_id(const std::string& name) const;
  Unit& unit(int index);
  HeroState& hero(int index);

  void step(int steps);

 private:
  std::shared_ptr<const Tables> tables_;
  GameSettings settings_;
  std::unique_ptr<World> world_;
};

void bind_world_units(nanobind::class_<PyWorld>& world);
void bind_world_heroes(nanobind::class_<PyWorld>& world);

}  // namespace dota
