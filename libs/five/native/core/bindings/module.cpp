#include "bindings/module.hpp"

NB_MODULE(_native, m) {
  nanobind::set_leak_warnings(false);  // a process may end while its threads still hold objects
  m.doc() = "The agent's native code: the CPU actor, observation rows and sample collation.";
  m.attr("INTERFACE") = 1;  // Count it up when a signature changes; five.native refuses another number.
  five::bind_rows(m);       // before the actor, which takes a RowColumns
  five::bind_collate(m);
  five::bind_actor(m);
}
