// What a person orders for a hero, and what becomes of it.
#pragma once

#include "world/refusal.hpp"
#include "world/world.hpp"

namespace dota {

// dota.play.KINDS names them in this order.
enum class PersonKind : std::uint8_t {
  Move,
  Follow,
  Attack,
  AttackMove,
  Stop,
  Hold,
  Cast,
  Use,
  Toggle,  // autocast
  Level,
  Talent,
  Buy,
  Sell,
  Swap,
  Drop,
  Pickup,
  Courier,
  Buyback,
  Glyph,
  Shrine,
  Scan,
  Count
};

enum class Errand : std::uint8_t { None, Deliver, Return, Stash };

struct PersonOrder {
  PersonKind kind = PersonKind::Count;
  bool targeted = false, aimed = false;  // whether `target` and `at` were given
  bool queue = false;                    // after what the hero is doing, instead of at once
  bool once = false;                     // Attack: stop after one attack
  Errand errand = Errand::None;          // Courier
  Handle target;
  Vec2 at;
  std::int16_t slot = -1, to = -1;
  std::int16_t item = -1;  // Tables::items, -1: none of that name
};

const char* word(Refusal r);  // "": none

// Carries the order out, or only says whether it could be (`apply` false: nothing changes). `again`: the hero
// walks there first, and the order is to be tried again when it has arrived.
struct Outcome {
  Refusal refusal = Refusal::None;
  bool again = false;
};
Outcome carry_out(Context& c, HeroState& h, const PersonOrder& o, bool apply);
// What can be said of an order that waits for its turn.
Refusal queueable(Context& c, const HeroState& h, const PersonOrder& o);
bool moves_hero(PersonKind k);  // it takes the place of what the hero is doing

// unit_orders.cpp, goods.cpp: the parts of carry_out(). `u` lives.
Outcome order_unit(Context& c, HeroState& h, Unit& u, const PersonOrder& o, bool apply);
Outcome order_goods(Context& c, HeroState& h, const PersonOrder& o, bool apply);
// The unit, if the hero's team sees it now.
Unit* seen_unit(Context& c, int team, Handle h);
void walk_to(Context& c, Unit& u, Vec2 goal);

}  // namespace dota
