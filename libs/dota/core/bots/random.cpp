#include "bots/bots.hpp"

namespace dota {

namespace {

// A valid slot of the mask, each alike likely; -1 when there is none.
int draw_slot(const std::array<std::uint8_t, kMaxSlots>& mask, int count, Rng& rng) {
  int valid = 0;
  for (int s = 0; s < count; ++s) valid += mask[static_cast<std::size_t>(s)];
  if (valid == 0) return -1;
  int nth = rng.below(valid);
  for (int s = 0; s < count; ++s)
    if (mask[static_cast<std::size_t>(s)] && nth-- == 0) return s;
  return -1;
}

}  // namespace

void random_command(const TeamView& view, const SlotTable& slots, const Choices& choices, Rng& rng,
                    std::array<Command, 5>& out) {
  const ActionVocabulary& actions = *view.constants.actions;
  for (std::size_t h = 0; h < view.heroes_per_team; ++h) {
    const auto& available = choices.available[h];
    int offered = 0;
    while (offered < kMaxAvailable && available[static_cast<std::size_t>(offered)] != kNoAction) ++offered;
    const int slot = rng.below(offered > 0 ? offered : 1);
    const ActionDef& def = actions.defs[available[static_cast<std::size_t>(slot)]];
    const int target = draw_slot(choices.mask[h][static_cast<std::size_t>(def.mask)], slots.count, rng);
    const std::int16_t row[kActionParts] = {
        static_cast<std::int16_t>(slot),   static_cast<std::int16_t>(rng.below(kFramesPerStep)),
        static_cast<std::int16_t>(target), static_cast<std::int16_t>(target),
        static_cast<std::int16_t>(rng.below(kOffsets)), static_cast<std::int16_t>(rng.below(kOffsets))};
    int named = -1;
    out[h] = decode_action(row, actions, available, slots, view.mirrored, &named);
  }
}

}  // namespace dota
