// The tables of a patch from its files.
#pragma once

#include <memory>

#include "data/node.hpp"
#include "data/tables.hpp"

namespace dota {

// Builds the tables of one patch from its six files (heroes, abilities, items, units, rules, map).
// Throws std::runtime_error naming the file and key that is wrong.
struct LoadedTables;  // owns Tables and MapData
std::shared_ptr<const Tables> load_tables(const Node& heroes, const Node& abilities, const Node& items,
                                          const Node& units, const Node& rules, const Node& map);

}  // namespace dota
