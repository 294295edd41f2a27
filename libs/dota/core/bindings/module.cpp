#include <nanobind/nanobind.h>

#include "world/event.hpp"
#include "world/fingerprint.hpp"

namespace dota {
void bind_client(nanobind::module_& m);
void bind_data(nanobind::module_& m);
void bind_effects(nanobind::module_& m);
void bind_math(nanobind::module_& m);
void bind_map(nanobind::module_& m);
void bind_vec(nanobind::module_& m);
void bind_world(nanobind::module_& m);
}  // namespace dota

NB_MODULE(_core, m) {
  nanobind::set_leak_warnings(false);  // a process may end while its threads still hold objects
  m.doc() = "The game core: data, map, world, views, games.";
  // dota.tables refuses a core with other numbers, which was built from other sources: INTERFACE is counted up
  // when what Python calls changes, RULES_REVISION is that of dota.rule_changes.
  m.attr("INTERFACE") = 6;
  m.attr("RULES_REVISION") = 6;
  m.attr("FINGERPRINT") = dota::core_fingerprint();  // of the core's sources
  m.attr("EVENT_KINDS") = dota::kEventKinds;
  dota::bind_math(m);
  dota::bind_data(m);
  dota::bind_effects(m);
  dota::bind_map(m);
  dota::bind_vec(m);
  dota::bind_world(m);
  dota::bind_client(m);
}
