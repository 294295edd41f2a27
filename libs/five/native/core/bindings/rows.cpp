// Python bindings of observation rows.
#include "rows.hpp"

#include <tuple>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

namespace {

using Indices = Array<const std::int64_t>;
using IndexArray = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

bool below(std::int64_t index, std::size_t bound) { return index >= 0 && static_cast<std::size_t>(index) < bound; }

// Raises IndexError for rows outside the array.
void check_rows(std::size_t size, const RowLayout& p, const Indices& step, const Indices& slot) {
  if (p.width == 0 || p.lines == 0 || size % (p.width * p.lines) != 0)
    throw nb::value_error("rows: the array size is not a multiple of a team-step");
  if (slot.size() != step.size()) throw nb::value_error("rows: step and slot differ in length");
  const std::size_t steps = size / (p.width * p.lines);
  for (std::size_t r = 0; r < step.size(); ++r)
    if (!below(step.data()[r], steps) || !below(slot.data()[r], p.width) ||
        p.offset + static_cast<std::size_t>(slot.data()[r]) * p.stride + p.fields > p.width)
      throw nb::index_error("rows: a row is outside the array");
}

// Raises IndexError for a row of an unknown group.
void check_groups(const std::optional<Indices>& group, std::size_t rows, std::size_t groups) {
  if (!group) return;
  if (group->size() != rows) throw nb::value_error("rows: step and group differ in length");
  for (std::size_t r = 0; r < rows; ++r)
    if (!below(group->data()[r], groups)) throw nb::index_error("rows: unknown group");
}

RowLayout row_layout(const std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>& given) {
  const auto [width, lines, offset, stride, fields] = given;
  return {width, lines, offset, stride, fields};
}

IndexArray array_of(std::vector<std::int64_t>&& values) {
  auto* moved = new std::vector<std::int64_t>(std::move(values));
  nb::capsule owner(moved, [](void* p) noexcept { delete static_cast<std::vector<std::int64_t>*>(p); });
  return IndexArray(moved->data(), {moved->size()}, owner);
}

}  // namespace

void bind_rows(nb::module_& m) {
  nb::class_<RowColumns>(m, "RowColumns",
                         "Rows that a team-step may have, and the ids that tell which are present.")
      .def(
          "__init__",
          [](RowColumns* self, std::vector<std::int64_t> columns, std::vector<std::int64_t> owners,
             std::tuple<std::size_t, std::size_t, std::size_t> status) {
            if (owners.size() > columns.size()) throw nb::value_error("rows: more owners than columns");
            for (const std::int64_t owner : owners)
              if (!below(owner, columns.size())) throw nb::index_error("rows: an owner is not a column");
            const auto [rows, offset, stride] = status;
            new (self) RowColumns{std::move(columns), std::move(owners), rows, offset, stride};
          },
          nb::arg("columns"), nb::arg("owners"), nb::arg("status"),
          "`status`: the number of rows without owners that three numbers mark as present too, the offset of the "
          "first and their stride.")
      .def(
          "find",
          [](const RowColumns& self, Array<const std::uint16_t> ids, Array<const std::uint16_t> shared,
             std::size_t steps) {
            if (steps == 0) return std::make_tuple(array_of({}), array_of({}));
            if (ids.size() % steps != 0 || shared.size() % steps != 0)
              throw nb::value_error("rows: ids and shared differ in team-steps");
            const std::size_t id_width = ids.size() / steps, shared_width = shared.size() / steps;
            for (const std::int64_t column : self.columns)
              if (!below(column, id_width)) throw nb::index_error("rows: a column is outside the array");
            if (self.status_rows > 0 &&
                self.status_offset + (self.status_rows - 1) * self.status_stride + 3 > shared_width)
              throw nb::index_error("rows: a status is outside the array");
            std::vector<std::int64_t> column, step;
            column.reserve(steps * self.columns.size());
            step.reserve(steps * self.columns.size());
            find_rows(self, ids.data(), id_width, shared.data(), shared_width, steps, column, step);
            return std::make_tuple(array_of(std::move(column)), array_of(std::move(step)));
          },
          nb::arg("ids").noconvert(), nb::arg("shared").noconvert(), nb::arg("steps"),
          "Returns column and step of each row that is present, by column and then by step.");
  m.def(
      "standard_rows",
      [](Array<const std::uint16_t> values,
         const std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>& layout, Indices step,
         Indices slot, std::optional<Indices> group, Array<const float> scale, Array<const float> shift,
         float clip, Array<float> out,
         const std::optional<std::tuple<Array<double>, Array<double>, Array<double>, Array<double>>>& sums,
         bool portable) {
        const RowLayout p = row_layout(layout);
        check_rows(values.size(), p, step, slot);
        if (out.size() != step.size() * p.lines * p.fields) throw nb::value_error("rows: wrong size of out");
        if (p.fields == 0) return;
        if (scale.size() != shift.size() || scale.size() < p.fields)
          throw nb::value_error("rows: scale and shift need one number a field");
        check_groups(group, step.size(), scale.size() / p.fields);
        RowSums added{};
        if (sums) {
          const auto& [count, pivot, total, squares] = *sums;
          for (const auto* each : {&count, &pivot, &total, &squares})
            if (each->size() != scale.size()) throw nb::value_error("rows: sums need one number a field");
          added = {count.data(), pivot.data(), total.data(), squares.data()};
        }
        nb::gil_scoped_release free;
        standard_rows(values.data(), values.size(), p, step.data(), slot.data(), group ? group->data() : nullptr,
                      step.size(), scale.data(), shift.data(), clip, out.data(), sums ? &added : nullptr,
                      portable);
      },
      nb::arg("values").noconvert(), nb::arg("layout"), nb::arg("step").noconvert(), nb::arg("slot").noconvert(),
      nb::arg("group").none(), nb::arg("scale").noconvert(), nb::arg("shift").noconvert(), nb::arg("clip"),
      nb::arg("out").noconvert(), nb::arg("sums") = nb::none(), nb::arg("portable") = false,
      "Writes rows of float16 values as float32, standardised and clipped. `layout`: width, lines, offset, stride "
      "and "
      "fields. `sums`: count, first value, and sums of the differences from it and of their squares, to add to.");
  m.def(
      "id_rows",
      [](Array<const std::uint16_t> ids,
         const std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>& layout, Indices step,
         Indices slot, Array<std::int64_t> out) {
        const RowLayout p = row_layout(layout);
        check_rows(ids.size(), p, step, slot);
        if (out.size() != step.size() * p.fields) throw nb::value_error("rows: wrong size of out");
        for (std::size_t r = 0; r < step.size(); ++r) {
          const std::uint16_t* row = ids.data() + static_cast<std::size_t>(step.data()[r]) * p.width + p.offset +
                                     static_cast<std::size_t>(slot.data()[r]) * p.stride;
          for (std::size_t f = 0; f < p.fields; ++f)
            out.data()[r * p.fields + f] = row[f];
        }
      },
      nb::arg("ids").noconvert(), nb::arg("layout"), nb::arg("step").noconvert(), nb::arg("slot").noconvert(),
      nb::arg("out").noconvert(), "Writes rows of ids as int64.");
}

}  // namespace five
