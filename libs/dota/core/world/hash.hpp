// The checksum of a game's state.
#pragma once

#include <cstdint>

#include "world/world.hpp"

namespace dota {

std::uint64_t hash_world(const World& w);

}  // namespace dota
