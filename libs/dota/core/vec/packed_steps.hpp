// Packed observations of games and teams. They are packed right after encoding, while still in the cache, and are
// never stored in full.
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
  // Returns the last packed observation of a game and team; empty before the first.
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
