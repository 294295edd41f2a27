#include "rules/load_tables.hpp"
#include "data/loading.hpp"
#include "effects/compile/programs.hpp"
#include "map/map_data.hpp"
#include "map/protection.hpp"
#include "world/fingerprint.hpp"
#include "world/game_rules.hpp"

namespace dota {

// Tables with the map they point to.
struct LoadedTables {
  Tables tables;
  std::shared_ptr<const MapData> map;
};

std::shared_ptr<const Tables> load_tables(const Node& heroes, const Node& abilities, const Node& items,
                                          const Node& units, const Node& rules, const Node& map) {
  auto loaded = std::make_shared<LoadedTables>();
  Tables& t = loaded->tables;
  t.version = heroes.str("version");
  for (const Node* file : {&heroes, &abilities, &items, &units, &rules, &map})
    t.fingerprint = splitmix(t.fingerprint ^ node_fingerprint(*file));
  const std::pair<const char*, const Node*> files[] = {{"abilities.json", &abilities},
                                                       {"items.json", &items},
                                                       {"units.json", &units},
                                                       {"rules.json", &rules},
                                                       {"map.json", &map}};
  for (const auto& [file, node] : files)
    if (node->str("version") != t.version)
      throw std::runtime_error(std::string(file) + " is of version '" + node->str("version") +
                               "' but heroes.json of '" + t.version + "'");
  reading("rules.json", [&] { check_rules(rules.at("rules")); });
  reading("units.json", [&] { check_bodies(units.at("units")); });
  reading("heroes.json", [&] { check_bodies(heroes.at("heroes")); });
  reading("abilities.json", [&] { check_casts(abilities.at("abilities")); });
  reading("items.json", [&] { check_casts(items.at("items")); });
  load_rules(rules, t);
  reading("units.json", [&] { load_units(units, t); });
  reading("heroes.json", [&] { load_hero_bodies(heroes, t); });
  reading("units.json", [&] { load_camp_sets(units, t); });
  reading("abilities.json", [&] { load_abilities(abilities, t); });
  reading("units.json", [&] { load_unit_abilities(units, t); });
  reading("items.json", [&] { load_items(items, t); });
  reading("heroes.json", [&] { load_heroes(heroes, t); });
  check_affects(abilities, t);
  compile_programs(abilities, items, t);
  link_programs(t);
  reading("map.json", [&] { loaded->map = read_map(map, t); });
  t.map = loaded->map.get();
  reading("rules.json", [&] {
    const auto game = read_game_rules(t);
    derive_map_rules(*game, *loaded->map);
    t.game = game;
  });
  return {loaded, &loaded->tables};
}

}  // namespace dota
