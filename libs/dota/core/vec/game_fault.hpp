// The check of a foreign game's state besides its world, which rules/validate.hpp checks.
#pragma once

#include <string>

#include "vec/game.hpp"

namespace dota {

// Why a state whose world is sound cannot be played on; "" if it can: its views, unit slots, choices and the
// memory of bots refer only to what exists.
std::string game_fault(const GameSetup& setup, const GameState& state);

}  // namespace dota
