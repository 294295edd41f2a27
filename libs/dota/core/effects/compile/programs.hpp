// Effect nodes of the data made into programs, once at load.
#pragma once

#include <string>

#include "data/node.hpp"
#include "data/tables.hpp"

namespace dota {

Program compile_program(const Node& ability, const std::string& name,
                        Tables& tables);  // tables: modifier names grow
// Compiles the effects of every ability and item, once all names are known.
void compile_programs(const Node& abilities, const Node& items, Tables& t);
// Once, after heroes, abilities, items and units are all in the tables: talents that change specials, stacks
// shared between abilities, unit types named by programs, programs of plain talents and of runes.
void link_programs(Tables& tables);

}  // namespace dota
