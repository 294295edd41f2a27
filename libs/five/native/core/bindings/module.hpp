// Declarations shared by the bindings: array types and one function per source.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace five {

template <class T>
using Array = nanobind::ndarray<T, nanobind::c_contig, nanobind::device::cpu>;

void bind_actor(nanobind::module_& m);
void bind_collate(nanobind::module_& m);
void bind_element_clip(nanobind::module_& m);
void bind_lstm(nanobind::module_& m);
void bind_rows(nanobind::module_& m);
void bind_segment_max(nanobind::module_& m);

}  // namespace five
