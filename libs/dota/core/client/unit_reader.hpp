// Decoder of a world state's units.
#pragma once

#include <string_view>

#include "client/message_reader.hpp"
#include "client/world_state.hpp"

namespace dota {

void read_vector(MessageReader& r, const WireField& field, ClientVector& out);
// Appends the unit, its abilities, items, modifiers and projectiles to the lists of `out`.
void read_unit(MessageReader& r, std::string_view bytes, WorldState& out);

}  // namespace dota
