// Decoder of a client's world states.
#pragma once

#include <string>
#include <string_view>

#include "client/world_state.hpp"

namespace dota {

constexpr std::size_t kMaxClientFrame = 1u << 20;  // bytes; a client of 2026 cuts frames at 65,536
constexpr std::size_t kMaxClientUnits = 1024;      // a game has at most kMaxUnits, a real one a few hundred
constexpr float kMaxClientTime = 1e5f;             // seconds
// Limit of each other list of a frame.
constexpr std::size_t kMaxClientList = 8192;

// Decodes a serialized CMsgBotWorldState. `out` is cleared first; its texts point into `frame`. Accepts numbers as
// integers or 32-bit floats whatever the schema of a year says. Skips fields that it does not read and counts in
// `unknown_fields` those that the schema does not have. Returns an empty string, or why the frame is refused:
// damaged, cut off, too large, not a finite number, or without a team; `out` is unusable then. A frame from before
// the heroes are picked has no units.
std::string read_world_state(std::string_view frame, WorldState& out);

}  // namespace dota
