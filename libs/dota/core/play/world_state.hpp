// What a team sees, as Dota 2 tells it to a bot: the message CMsgBotWorldState
// (protos/valve/bot_world_state.proto).
#pragma once

#include <array>
#include <string>

#include "play/bot_handles.hpp"
#include "play/wire_writer.hpp"
#include "play/world_state_events.hpp"
#include "vec/game.hpp"

namespace dota {

// The game as one team sees it, for the parts of the writer.
struct BotEye {
  const Context& c;
  const TeamView& view;
  int team;

  const World& w() const { return c.world; }
  bool own(const Unit& u) const { return u.team == team; }
  // Whether the unit is among the message's units: what lives and can be seen, and the team's heroes.
  bool lists(const Unit& u) const;
  // The unit's handle if the message lists it, else 0.
  std::uint32_t handle(Handle h) const;
  const Unit* listed(Handle h) const;
};

// Valve's numbers of the heroes of players that have no hero in the game; 0: the player is not listed.
using AbsentHeroes = std::array<int, kMaxHeroes>;

// The message for a team. `events`: what happened since its previous message. `absent`: heroes of the players that
// the message lists as alive, although they have no hero in the game.
std::string write_world_state(const BotEye& eye, const TeamEvents& events, const AbsentHeroes& absent);

// world_state_units.cpp, world_state_heroes.cpp, world_state_effects.cpp: parts of write_world_state().
void write_unit(WireWriter& out, const BotEye& eye, const Unit& u);
void write_hero(WireWriter& out, const BotEye& eye, const Unit& u);
void write_abilities(WireWriter& out, const BotEye& eye, const Unit& u);
void write_items(WireWriter& out, const BotEye& eye, const Unit& u);
void write_modifiers(WireWriter& out, const BotEye& eye, const Unit& u);
void write_incoming_projectiles(WireWriter& out, const BotEye& eye, const Unit& u);
void write_linear_projectiles(WireWriter& out, const BotEye& eye);
void write_avoidance_zones(WireWriter& out, const BotEye& eye);

// Values that several parts write.
inline std::uint64_t team_number(int team) { return static_cast<std::uint64_t>(team) + 2; }  // 4: neutral
int unit_type_number(UnitKind kind);
int player_of(const World& w, const Unit& u);  // hero, or owner of a summon; -1: nobody's
void write_place(WireWriter& out, std::uint32_t field, const BotEye& eye, Vec2 at);
std::uint64_t ability_number(const Tables& t, int ability);
// The slot in which the unit has the ability, or the item whose active it is; -1: none.
int slot_with(const BotEye& eye, const Unit& u, int ability);

}  // namespace dota
