// What happened in a world's last timestep, for Python.
#pragma once

#include <span>

#include <nanobind/nanobind.h>

#include "world/world.hpp"

namespace dota {

// A tuple an event, in the order of dota.events.Event's fields.
nanobind::list events_of(std::span<const Event> events, const Tables& t, float start_s);

}  // namespace dota
