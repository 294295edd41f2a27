// A world as bytes, and whether bytes from elsewhere are a world that can be played on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "world/world.hpp"

namespace dota {

// Returns the first fault of a state, "" if it has none: an index out of range, a NaN, an endless list. A state
// without a fault can be stepped without any access outside of it.
std::string world_fault(const Context& c, const World& w);

// Where what the world keeps besides, for speed, no longer follows from the rest: Nav's lists and bodies,
// World::modifiers_watched ("" when all of it does). Between two timesteps.
std::string derived_fault(const Context& c);

std::vector<std::uint8_t> world_snapshot(const Context& c);
// Throws std::invalid_argument when the bytes are not a snapshot of this core, these data and these settings, or
// hold a faulty state; nothing changes then.
void restore_world(Context& c, const void* bytes, std::size_t size);

}  // namespace dota
