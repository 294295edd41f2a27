#include "bots/bots.hpp"

namespace dota {
namespace {

// Returns a uniformly random valid target of the class for the hero; an empty handle if no target is valid.
Handle random_target(const Choices& choices, const SlotTable& slots, int hero, MaskClass mask, Rng& rng) {
  const auto& row = choices.mask[hero][ordinal(mask)];
  int valid = 0;
  for (int s = 0; s < slots.count; ++s)
    valid += row[s];
  if (valid == 0) return {};
  int pick = rng.below(valid);
  for (int s = 0; s < slots.count; ++s)
    if (row[s] && pick-- == 0) return slots.handle[s];
  return {};
}

}  // namespace

Command random_command(const TeamView& view, const SlotTable& slots, const Choices& choices, int hero, Rng& rng) {
  const auto& offered = choices.available[hero];
  int count = 0;
  while (count < kMaxAvailable && offered[count] != kNoAction)
    ++count;
  Command command;
  command.action = kNoop;
  if (count == 0) return command;
  command.action = static_cast<std::int16_t>(offered[rng.below(count)]);
  command.delay = static_cast<std::uint8_t>(rng.below(kFramesPerStep));
  const ActionDef& def = view.constants.actions->defs[command.action];
  if (def.target == TargetType::Unit || def.target == TargetType::UnitOffset)
    command.target = random_target(choices, slots, hero, def.mask, rng);
  if (def.target == TargetType::Teleport)
    command.teleport = random_target(choices, slots, hero, MaskClass::Teleport, rng);
  command.dx = static_cast<std::int8_t>(rng.between(-4, 4));
  command.dy = static_cast<std::int8_t>(rng.between(-4, 4));
  return command;
}

}  // namespace dota
