// Which unit slot of the world each of a client's handles has, and the other way round.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "world/values.hpp"

namespace dota {

// A unit keeps its slot while it is remembered, also when it is out of sight.
class ClientHandles {
 public:
  // Slot of the handle, or -1.
  int slot_of(std::uint32_t handle) const {
    const auto found = slots_.find(handle);
    return found != slots_.end() ? found->second : -1;
  }
  // Handle of the unit in the slot, 0: none.
  std::uint32_t handle_of(int slot) const { return handles_[slot]; }
  // Gives the slot to the handle; whatever handle had the slot, and whatever slot had the handle, loses it.
  void bind(std::uint32_t handle, int slot) {
    if (const int before = slot_of(handle); before >= 0) release(before);
    release(slot);
    handles_[slot] = handle;
    slots_[handle] = static_cast<std::int16_t>(slot);
  }
  void release(int slot) {
    slots_.erase(handles_[slot]);
    handles_[slot] = 0;
  }

 private:
  std::unordered_map<std::uint32_t, std::int16_t> slots_;
  std::array<std::uint32_t, kMaxUnits> handles_{};
};

}  // namespace dota
