// What launching projectiles and their flight share.
#pragma once

#include "effects/interpreter.hpp"

namespace dota {

constexpr std::uint8_t kEndless = 255;  // jumps left of what jumps on as long as it finds somebody

// Returns the next target of a chain or bounce: the nearest enemy within range of `from` that is neither in
// `taken` (bits of unit slots; may be nullptr) nor `not_this`; nullptr if no enemy qualifies.
Unit* next_link(Context& c, const Invocation& inv, const EffectNode& n, Vec2 from, float range,
                const std::uint64_t* taken, Handle not_this);

// Strikes the unit, then waits there for the next jump of the chain. `before` holds whom the chain struck, how
// many strikes it made (in `jumps_left`) and the rest of its last wait; an empty one begins the chain.
void strike_chain(Context& c, Invocation& inv, const EffectNode& n, int node, Unit& u, const Projectile& before);

}  // namespace dota
