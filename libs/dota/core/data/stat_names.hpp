// The stat names of the data files.
#pragma once

#include <string>

#include "data/program.hpp"

namespace dota {

// The stat of a name as effects write it ("ms_pct", "armor_minus"); sign is -1 for the `_minus` form, which
// subtracts the positive number given. Stat::Count when the name is not one.
Stat parse_stat(const std::string& name, float* sign);
// The same for ItemDef::stats, where "ms_pct" is the speed of boots, which do not stack with each other.
Stat parse_item_stat(const std::string& name);

}  // namespace dota
