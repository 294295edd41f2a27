// What the bindings of layouts, games and spectators share.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "data/node.hpp"
#include "play/team_sight.hpp"
#include "vec/game.hpp"

namespace dota {

template <class T>
using Array = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu>;

// A team as one that looks at a game in which people play.
struct TeamEyes {
  int team;
  const TeamView& view;
  const TeamSight& sight;
};

inline int integer(const Node& n, const char* key) { return static_cast<int>(n.num(key)); }

// dota.tables.core_layout()'s dict. Throws std::runtime_error naming what is wrong.
LayoutTable layout_table(nanobind::handle described);
// What dota.vec_game describes: its tables, settings, registry ids and rules. Throws std::runtime_error.
std::shared_ptr<const GameSetup> game_setup(const LayoutTable& layout, nanobind::handle variant);
// Everything of a game, without fog.
nanobind::dict spectator_frame(const GameState& state, const Tables& tables);
const char* kind_name(UnitKind kind);
// The same as numbers, for encoding: into the arrays of `out`, which SEEN_TABLES and SEEN_BITS describe.
// `eyes`: of the team that looks; null: everything.
void write_tables_seen(const Context& c, const nanobind::dict& out, const TeamEyes* eyes);
void bind_tables_seen(nanobind::module_& m);  // SEEN_TABLES, SEEN_BITS, UNIT_KINDS
void bind_play(nanobind::module_& m);         // games that people play in
void bind_layout(nanobind::module_& m);       // Layout and packing

}  // namespace dota
