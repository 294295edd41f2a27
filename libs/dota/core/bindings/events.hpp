// What happened in a world's last timestep, for Python.
#pragma once

#include <nanobind/nanobind.h>

#include "world/world.hpp"

namespace dota {

// A tuple an event, in the order of dota.events.Event's fields.
nanobind::list events_of(const World& w, const Tables& t, float start_s);

}  // namespace dota
