// Handles of units, abilities and items in world states: below 2^24, so that a float holds them, and never 0.
#pragma once

#include <cstdint>

#include "world/world.hpp"

namespace dota {

// Bits 0-9: a unit's slot + 1; or, from kAbilityHandles on, the slot of the unit that has the ability or item.
// Bits 10-23: the unit's generation; or the ability's slot.
constexpr std::uint32_t kSlotBits = 10, kSlotMask = (1u << kSlotBits) - 1, kGenerationMask = 0x3FFF;
constexpr std::uint32_t kAbilityHandles = 512;
static_assert(kMaxUnits < kAbilityHandles && kAbilityHandles + kMaxUnits <= kSlotMask);

inline std::uint32_t bot_handle(Handle h) {
  return h.index < 0 ? 0 : static_cast<std::uint32_t>(h.index + 1) | (h.generation & kGenerationMask) << kSlotBits;
}
// Slot: 0-5 an ability, 16 + i an item.
inline std::uint32_t bot_ability_handle(Handle owner, int slot) {
  return (kAbilityHandles + static_cast<std::uint32_t>(owner.index)) | static_cast<std::uint32_t>(slot)
                                                                           << kSlotBits;
}
// The unit of a handle; an empty one when no unit of the world has it now.
inline Handle unit_of_bot_handle(const World& w, std::uint32_t handle) {
  const std::uint32_t slot = handle & kSlotMask;
  if (slot == 0 || slot > kMaxUnits || handle >> (kSlotBits + 14) != 0) return {};
  const Unit& u = w.units[slot - 1];
  if (u.kind == UnitKind::None || (u.generation & kGenerationMask) != handle >> kSlotBits) return {};
  return w.handle(u);
}

}  // namespace dota
