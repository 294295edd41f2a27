// Observations of games and teams in the packed form, for a reader that wants no other: they are packed from where
// they were encoded, while the cache still has it, and never lie in memory in full.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "view/encoder.hpp"
#include "view/layout.hpp"

namespace dota {

class PackedSteps {
 public:
  // The arrays that are packed: ObsArray::Shared and ObsArray::Private, by these numbers.
  static constexpr std::size_t kArrays = 2;

  PackedSteps(const Layout& layout, int games, int threads);

  // Where a thread's next team-step is to be encoded: its packed arrays, in `out`.
  void room(int thread, TeamStepBuffers& out);
  // Packs what the thread has encoded there.
  void pack(int thread, int game, int team);
  // What was packed last of a game and team; empty before.
  std::span<const std::uint8_t> row(std::size_t array, int game, int team) const;

 private:
  struct Row {
    std::unique_ptr<std::uint8_t[]> bytes;  // as many as it can be at most; of the rest no page is ever touched
    std::size_t size = 0;
  };

  std::array<std::size_t, kArrays> values_{};                           // of a team-step
  std::vector<std::array<std::vector<std::uint16_t>, kArrays>> rooms_;  // one a thread
  std::vector<std::array<Row, kArrays>> rows_;                          // [game * kTeams + team]
};

}  // namespace dota
