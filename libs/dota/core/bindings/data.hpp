// What the bindings share: the handle that Python holds on a patch's tables.
#pragma once

#include <algorithm>
#include <memory>

#include <nanobind/nanobind.h>

#include "data/node.hpp"
#include "data/tables.hpp"
#include "world/world.hpp"

namespace dota {

// _core.Tables
struct PyTables {
  std::shared_ptr<const Tables> tables;
  const Tables* operator->() const { return tables.get(); }
};

// Python's parsed JSON as a Node. Raises TypeError on anything JSON cannot hold.
Node node_from_python(nanobind::handle h);

}  // namespace dota
