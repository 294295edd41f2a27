// What happened in a world's last timestep, for Python.
#pragma once

#include <span>

#include <nanobind/nanobind.h>

#include "world/world.hpp"

namespace dota {

// A tuple an event, in the order of dota.events.Event's fields.
nanobind::list events_of(std::span<const Event> events, const Tables& t, float start_s);
inline std::span<const Event> last_events(const World& w) {
  return {w.events.data(), static_cast<std::size_t>(w.event_count)};
}

}  // namespace dota
