#include "vec/packed_steps.hpp"

#include "view/pack.hpp"

namespace dota {

PackedSteps::PackedSteps(const Layout& layout, int games, int threads)
    : values_{static_cast<std::size_t>(layout.width(ObsArray::Shared)),
              static_cast<std::size_t>(layout.heroes * layout.width(ObsArray::Private))},
      rooms_(threads),
      rows_(games * kTeams) {
  for (std::size_t array = 0; array < kArrays; ++array) {
    for (auto& room : rooms_)
      room[array].resize(values_[array]);
    for (auto& row : rows_)
      row[array].bytes = std::make_unique_for_overwrite<std::uint8_t[]>(pack_bound(values_[array]));
  }
}

void PackedSteps::room(int thread, TeamStepBuffers& out) {
  auto& room = rooms_[thread];
  out.shared = room[0].data();
  out.private_ = room[1].data();
}

void PackedSteps::pack(int thread, int game, int team) {
  for (std::size_t array = 0; array < kArrays; ++array) {
    Row& row = rows_[game * kTeams + team][array];
    row.size = pack16(rooms_[thread][array].data(), values_[array], row.bytes.get());
  }
}

std::span<const std::uint8_t> PackedSteps::row(std::size_t array, int game, int team) const {
  const Row& row = rows_[game * kTeams + team][array];
  return {row.bytes.get(), row.size};
}

}  // namespace dota
