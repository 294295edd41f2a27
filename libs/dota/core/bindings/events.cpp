// The events of a timestep as Python sees them: dota.events wraps the tuples.
#include "bindings/events.hpp"

#include <nanobind/stl/string.h>

namespace nb = nanobind;

namespace dota {
namespace {

std::string unit_name(const Tables& t, int type) { return type < 0 ? std::string() : t.units[type].name; }

const char* const kRunes[] = {"bounty", "double_damage", "haste", "invisibility", "regeneration", "arcane"};
static_assert(sizeof(kRunes) / sizeof(kRunes[0]) == ordinal(PickupKind::Count));

std::string thing_name(const Tables& t, const Event& e) {
  if (e.id < 0) return {};
  const std::size_t i = e.id;
  switch (e.kind) {
    case EventKind::Cast:
    case EventKind::Learned:
      return t.abilities[i].name;
    case EventKind::Bought:
    case EventKind::Sold:
    case EventKind::Assembled:
      return t.items[i].name;
    case EventKind::Rune:
      return kRunes[i];
    default:
      return {};
  }
}

}  // namespace

nb::list events_of(std::span<const Event> events, const Tables& t, float start_s) {
  nb::list out;
  for (const Event& e : events) {
    out.append(nb::make_tuple(
        e.frame, static_cast<double>(start_s) + e.frame / 30.0, static_cast<int>(e.kind), static_cast<int>(e.team),
        static_cast<int>(e.unit.index), static_cast<int>(e.unit.generation), unit_name(t, e.unit_type),
        static_cast<int>(e.hero), static_cast<int>(e.other.index), static_cast<int>(e.other.generation),
        unit_name(t, e.other_type), static_cast<int>(e.other_hero), thing_name(t, e), e.value));
  }
  return out;
}

}  // namespace dota
