// A world from Python's settings and lineup.
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/world.hpp"
#include "rules/lineup.hpp"
#include "rules/step.hpp"

namespace nb = nanobind;

namespace dota {
namespace {

using Setter = void (*)(GameSettings&, nb::handle);

template <auto Field>
void set_field(GameSettings& s, nb::handle v) {
  s.*Field = nb::cast<std::remove_reference_t<decltype(s.*Field)>>(v);
}

const std::pair<const char*, Setter> kSettings[] = {
    {"heroes_per_team", set_field<&GameSettings::heroes_per_team>},
    {"kills_to_win", set_field<&GameSettings::kills_to_win>},
    {"tower_wins", set_field<&GameSettings::tower_wins>},
    {"neutrals", set_field<&GameSettings::neutrals>},
    {"roshan", set_field<&GameSettings::roshan>},
    {"runes", set_field<&GameSettings::runes>},
    {"courier_scripted", set_field<&GameSettings::courier_scripted>},
    {"max_game_s", set_field<&GameSettings::max_game_s>},
    {"start_s", set_field<&GameSettings::start_s>},
    {"offset_cell", set_field<&GameSettings::offset_cell>},
    {"hide_unseen", set_field<&GameSettings::hide_unseen>},
    {"aggro_orders", set_field<&GameSettings::aggro_orders>},
    {"buyback", set_field<&GameSettings::buyback>},
    {"keep_tango", set_field<&GameSettings::keep_tango>},
    {"keep_salve", set_field<&GameSettings::keep_salve>},
    {"keep_clarity", set_field<&GameSettings::keep_clarity>},
    {"keep_teleport", set_field<&GameSettings::keep_teleport>},
    {"consumables_until_s", set_field<&GameSettings::consumables_until_s>},
    {"upkeep_share", set_field<&GameSettings::upkeep_share>},
    {"random_attributes", set_field<&GameSettings::random_attributes>},
    {"random_armor", set_field<&GameSettings::random_armor>},
    {"random_move_speed", set_field<&GameSettings::random_move_speed>},
    {"random_hp_regen", set_field<&GameSettings::random_hp_regen>},
    {"random_mana_regen", set_field<&GameSettings::random_mana_regen>},
    {"random_magic_resist", set_field<&GameSettings::random_magic_resist>},
    {"random_gold", set_field<&GameSettings::random_gold>},
    {"random_xp", set_field<&GameSettings::random_xp>},
    {"random_item_drop", set_field<&GameSettings::random_item_drop>},
    {"random_item_insert", set_field<&GameSettings::random_item_insert>},
    {"random_consumables", set_field<&GameSettings::random_consumables>},
    {"random_lane_until_s", set_field<&GameSettings::random_lane_until_s>},
    {"random_skill", set_field<&GameSettings::random_skill>},
    {"random_lane", set_field<&GameSettings::random_lane>},
    {"random_roshan", set_field<&GameSettings::random_roshan>},
};

GameSettings settings_from(const nb::dict& d) {
  GameSettings s;
  for (auto [key, value] : d) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "mode_1v1_mid") {
      s.mode_1v1_mid = nb::cast<bool>(value);
      if (s.mode_1v1_mid) {
        s.lane_enabled[0] = s.lane_enabled[2] = false;
        s.tower_wins = true;
      }
      continue;
    }
    if (name == "lanes") {
      const auto on = nb::cast<std::vector<bool>>(value);
      if (on.size() != 3) throw nb::value_error("settings: 'lanes' takes three booleans: top, mid, bot");
      for (std::size_t k = 0; k < 3; ++k)
        s.lane_enabled[k] = on[k];
      continue;
    }
    bool known = false;
    for (const auto& [n, set] : kSettings)
      if (name == n) {
        set(s, value);
        known = true;
      }
    if (!known) throw nb::key_error(("settings: there is no '" + name + "'").c_str());
  }
  return s;
}

}  // namespace

int hero_index(const Tables& t, const std::string& name) {
  auto at = t.hero_index.find(name);
  if (at == t.hero_index.end()) at = t.hero_index.find("npc_dota_hero_" + name);
  if (at == t.hero_index.end()) throw nb::key_error(("there is no hero '" + name + "'").c_str());
  return at->second;
}

int checked(int value, int first, int last, const char* what) {
  if (value < first || value > last)
    throw nb::index_error((std::string(what) + " " + std::to_string(value) + " is not in " +
                           std::to_string(first) + " to " + std::to_string(last))
                              .c_str());
  return value;
}

float number_checked(float value, const char* what) {
  if (!(std::fabs(value) <= 1e9f))
    throw nb::value_error((std::string(what) + " must be a finite number up to 1e9").c_str());
  return value;
}

Vec2 place_checked(float x, float y) {
  if (!(std::fabs(x) <= 20000 && std::fabs(y) <= 20000))
    throw nb::value_error("a place is a pair of numbers within 20,000 of the map's middle");
  return {x, y};
}

PyWorld::PyWorld(const PyTables& tables, const nb::dict& settings, const std::vector<std::string>& radiant,
                 const std::vector<std::string>& dire, std::uint64_t seed)
    : tables_(tables.tables), settings_(settings_from(settings)), world_(std::make_unique<World>()) {
  std::array<int, kMaxHeroes> lineup;
  lineup.fill(-1);
  const std::vector<std::string>* teams[kTeams] = {&radiant, &dire};
  for (std::size_t t = 0; t < kTeams; ++t) {
    if (teams[t]->size() > 5) throw nb::value_error("a team has five heroes at most");
    for (std::size_t i = 0; i < teams[t]->size(); ++i)
      lineup[t * 5 + i] = hero_index(*tables_, (*teams[t])[i]);
  }
  settings_.heroes_per_team = static_cast<int>(std::max<std::size_t>(1, std::max(radiant.size(), dire.size())));
  if (const std::string why = check_lineup(*tables_, lineup); !why.empty()) throw nb::value_error(why.c_str());
  Context c = context();
  start_game(c, seed, lineup);
}

int PyWorld::item_id(const std::string& name) const {
  auto at = tables_->item_index.find(name);
  if (at == tables_->item_index.end()) at = tables_->item_index.find("item_" + name);
  if (at == tables_->item_index.end()) throw nb::key_error(("there is no item '" + name + "'").c_str());
  return at->second;
}

Unit& PyWorld::unit(int index) {
  if (index < 0 || index >= kMaxUnits || world_->units[index].kind == UnitKind::None)
    throw nb::index_error("there is no unit at this index");
  return world_->units[index];
}

HeroState& PyWorld::hero(int index) {
  if (index < 0 || index >= kMaxHeroes || !world_->heroes[index].in_game)
    throw nb::index_error("there is no hero at this index (team * 5 + place)");
  return world_->heroes[index];
}

void PyWorld::step(int steps) {
  Context c = context();
  nb::gil_scoped_release release;
  for (int i = 0; i < steps; ++i)
    step_game(c, {});
}

}  // namespace dota
