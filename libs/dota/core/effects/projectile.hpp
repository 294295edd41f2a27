// What launching projectiles and their flight share.
#pragma once

#include "effects/interpreter.hpp"

namespace dota {

// The nearest enemy within range of `from` that is neither among `taken` (bits of unit slots; may be nullptr) nor
// `not_this`: where a chain or a bounce goes on. nullptr: there is none.
Unit* next_link(Context& c, const Invocation& inv, const EffectNode& n, Vec2 from, float range,
                const std::uint64_t* taken, Handle not_this);

}  // namespace dota
