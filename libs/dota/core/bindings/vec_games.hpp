// The games that Python holds (vec.cpp), for what else is bound on them (play.cpp).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "bindings/vec.hpp"
#include "vec/vec_game.hpp"

namespace dota {

struct PyVecGame {
  VecGame vec;
  std::vector<nanobind::object> kept;  // the arrays that `vec` writes into

  PyVecGame(nanobind::handle layout, const nanobind::list& variants, int games, std::uint64_t seed, int threads)
      : vec(setups(layout, variants), games, seed, threads) {}
  static std::vector<std::shared_ptr<const GameSetup>> setups(nanobind::handle layout,
                                                              const nanobind::list& variants);

  int check_variant(int variant) const {
    if (variant < 0 || variant >= vec.variants())
      throw nanobind::index_error(
          ("variant " + std::to_string(variant) + " of " + std::to_string(vec.variants())).c_str());
    return variant;
  }
  int check(int i) const {
    if (i < 0 || i >= vec.size())
      throw nanobind::index_error(("game " + std::to_string(i) + " of " + std::to_string(vec.size())).c_str());
    return i;
  }
  void check(const std::vector<int>& which) const {
    std::vector<bool> named(vec.size(), false);
    for (const int i : which) {
      check(i);
      if (named[i]) throw nanobind::value_error(("game " + std::to_string(i) + " is named twice").c_str());
      named[i] = true;
    }
  }
};

void bind_game_changes(nanobind::class_<PyVecGame>& games);  // for tests

constexpr int kCommandNumbers = 8;  // action, delay, target slot and generation, teleport the same, dx, dy
nanobind::bytes command_rows(const std::array<Command, kMaxHeroes>& commands);  // int16 [10, 8]
// Converts int16 [10, 8]. Throws nanobind::value_error for values out of range.
std::array<Command, kMaxHeroes> commands_of(const std::int16_t* rows, const GameSetup& setup);

}  // namespace dota
