#include <utility>

#include "data/loading.hpp"
#include "effects/compile/programs.hpp"

namespace dota {

void compile_programs(const Node& abilities, const Node& items, Tables& t) {
  reading_each(
      abilities.at("abilities"),
      [&](const std::string& name, const Node& n) {
        Program p = compile_program(n, name, t);
        t.abilities[t.ability_index.at(name)].program = std::move(p);
      },
      "abilities.json, ");
  reading_each(
      items.at("items"),
      [&](const std::string& name, const Node& n) {
        const ItemDef& d = t.items[t.item_index.at(name)];
        if (d.ability < 0) return;
        Program p = compile_program(at_base_level(n, d.base_level), name, t);
        t.abilities[d.ability].program = std::move(p);
      },
      "items.json, ");
}

}  // namespace dota
