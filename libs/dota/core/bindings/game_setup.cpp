// Settings, registry and tables of a game as Python describes them, made into a GameSetup.
#include <memory>
#include <stdexcept>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/data.hpp"
#include "bindings/vec.hpp"

namespace nb = nanobind;

namespace dota {

namespace {

GameSettings game_settings(nb::handle described) {
  const Node n = node_from_python(described);
  GameSettings s;
  const auto flag = [&](const char* key) { return n.num(key) != 0; };
  s.heroes_per_team = integer(n, "heroes_per_team");
  s.mode_1v1_mid = flag("mode_1v1_mid");
  s.tower_wins = s.mode_1v1_mid;
  s.kills_to_win = s.mode_1v1_mid ? integer(n, "kills_to_win") : 0;
  if (s.mode_1v1_mid) s.lane_enabled[0] = s.lane_enabled[2] = false;
  s.neutrals = flag("neutrals");
  s.roshan = flag("roshan");
  s.runes = flag("runes");
  s.courier_scripted = flag("courier_scripted");
  s.buyback = flag("buyback");
  s.timesteps_per_action = integer(n, "timesteps_per_action");
  s.commit_windups = flag("commit_windups");
  s.commit_moves = integer(n, "commit_moves");
  s.save_consumables = flag("save_consumables");
  s.hide_unseen = flag("hide_unseen");
  s.aggro_orders = flag("aggro_orders");
  s.max_game_s = n.num("max_game_seconds");
  s.start_s = n.num("start_seconds");
  s.offset_cell = n.num("offset_cell");
  const Node& kept = n.at("consumables");
  s.keep_tango = integer(kept, "tango");
  s.keep_salve = integer(kept, "salve");
  s.keep_clarity = integer(kept, "clarity");
  s.keep_teleport = integer(kept, "town_portal");
  s.consumables_until_s = kept.num("until_seconds");
  s.upkeep_share = kept.num("income_share");
  const Node& r = n.at("randomisation");
  s.random_attributes = r.num("attributes");
  s.random_armor = r.num("armor");
  s.random_move_speed = r.num("move_speed");
  s.random_hp_regen = r.num("hp_regen");
  s.random_mana_regen = r.num("mana_regen");
  s.random_magic_resist = r.num("magic_resistance");
  s.random_gold = r.num("gold");
  s.random_xp = r.num("xp");
  s.random_item_drop = r.num("item_drop");
  s.random_item_insert = r.num("item_insert");
  s.random_consumables = r.num("consumables");
  s.random_skill = r.num("skill");
  s.random_lane = r.num("lane");
  s.random_lane_until_s = r.num("lane_until_seconds");
  s.random_roshan = r.num("roshan");
  return s;
}

RegistryIds registry_ids(nb::handle described) {
  const auto list = [&](const char* space) { return nb::cast<RegistryIds::List>(described[space]); };
  return {
      list("unit"),  list("modifier"),  list("ability"), list("item"),
      list("build"), list("animation"), list("pickup"),  nb::cast<std::vector<std::string>>(described["casts"])};
}

}  // namespace

std::shared_ptr<const GameSetup> game_setup(const LayoutTable& layout, nb::handle variant) {
  const nb::object settings = variant["settings"];
  auto setup = std::make_shared<GameSetup>(nb::cast<const PyTables&>(variant["tables"]).tables,
                                           game_settings(settings), layout, registry_ids(variant["ids"]),
                                           nb::cast<std::vector<std::string>>(settings["hero_pool"]),
                                           nb::cast<bool>(settings["mirror_match"]));
  setup->rules = nb::cast<std::string>(variant["rules"]);
  for (const std::string& name : nb::cast<std::vector<std::string>>(settings["scripted_actions"])) {
    if (name == "buyback")
      setup->vocabulary.scripted_buyback = true;
    else if (name == "glyph")
      setup->vocabulary.scripted_glyph = true;
    else if (name == "shrine")
      setup->vocabulary.scripted_shrine = true;
    else
      throw std::runtime_error("scripted_actions: '" + name + "' is not an action that the script can keep");
  }
  return setup;
}

}  // namespace dota
