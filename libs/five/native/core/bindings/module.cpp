#include "bindings/module.hpp"

NB_MODULE(_native, m) {
  nanobind::set_leak_warnings(false);  // a process may end while its threads still hold objects
  m.doc() =
      "The agent's native code: the CPU actor, observation rows, pools, the LSTM cell, the gradient clip and "
      "sample collation.";
  m.attr("INTERFACE") = 3;  // Count it up when a signature changes; five.native refuses another number.
  five::bind_rows(m);       // before the actor, which takes a RowColumns
  five::bind_collate(m);
  five::bind_actor(m);
  five::bind_segment_max(m);
  five::bind_lstm(m);
  five::bind_element_clip(m);
}
