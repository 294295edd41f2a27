// What orders share: the parts of a cast, and small distances that orders end at.
#pragma once

#include "world/world.hpp"

namespace dota {

constexpr float kArrive = 16;           // a move order is done this near its point
constexpr float kFollowDistance = 100;  // a follower stops this far from its leader, edge to edge
constexpr float kPickupReach = 128;     // a rune is taken from this near

void end_order(Context& c, Unit& u);  // the order is done or void: back to the one before the cast, or idle

constexpr std::uint32_t kind_bit(UnitKind kind) { return 1u << static_cast<unsigned>(kind); }
static_assert(kUnitKinds <= 32);
// Attackable, of one of the kinds (a bit each), within range of the edge; nullptr when none.
Unit* nearest_enemy(Context& c, Unit& u, float range, std::uint32_t kinds = ~0u);
// The same by urgency: who attacks a hero of u's side before who attacks anyone on it before the rest, the nearest
// of them first; `avoid` only when there is nobody else.
Unit* most_urgent_enemy(Context& c, Unit& u, float range, std::uint32_t kinds = ~0u, Handle avoid = {});

// Where a cast order aims: its target's place, its tree, or its point.
Vec2 cast_point_of(const Context& c, const Unit& u, const Order& o);
// Whether the order's aim is within the ability's range (edge to edge for units; always when it has no range).
bool cast_in_range(const Context& c, const Unit& u, const AbilityDef& a, int level, const Order& o);
// False for a ward where the map allows none (map.json no_ward).
bool may_aim_there(const Context& c, const AbilityDef& a, const Order& o);
void run_cast(Context& c, Unit& u);                  // walks up, turns, winds up, casts
void cast_now(Context& c, Unit& u, const Order& o);  // pays the costs and fires the effect
void run_channel(Context& c, Unit& u);

}  // namespace dota
