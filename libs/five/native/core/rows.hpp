// Observation rows: which are present, and their numbers as standardised float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace five {

// Position of rows of one kind in an array of team-steps. Row `slot` of a step is at offset + slot * stride in
// each of its `lines` lines of `width` numbers. The private array has one line for each hero, the others have one
// line.
struct RowLayout {
  std::size_t width = 0, lines = 1, offset = 0, stride = 0, fields = 0;
};

// Reads one row of n values: out = clamp(shift + value * scale, -clip, clip), see `standard_rows`.
using RowReader = void (*)(const std::uint16_t* in, std::size_t n, const float* scale, const float* shift,
                           float clip, float* out);
RowReader row_reader();

// Running sums of values, [groups][fields] each, which start at zero: the count, the first value, and the sums of
// the differences from it and of their squares.
struct RowSums {
  double *count, *pivot, *total, *squares;
};

// out[row][line][field] = clamp(shift + value * scale, -clip, clip) of the float16 values `in` [size], in float32
// and rounded once before clipping. `group` selects each row's scale and shift, [groups][fields]; null: group 0.
// `sums` accumulates the raw values where it is not null. `portable` avoids F16C, for the test that compares both.
void standard_rows(const std::uint16_t* in, std::size_t size, const RowLayout& layout, const std::int64_t* step,
                   const std::int64_t* slot, const std::int64_t* group, std::size_t rows, const float* scale,
                   const float* shift, float clip, float* out, const RowSums* sums = nullptr,
                   bool portable = false);

// Ids of a team-step that say which rows are present, in the order in which rows are listed.
struct RowColumns {
  std::vector<std::int64_t> columns;  // Id columns: not 0 where the row is present.
  std::vector<std::int64_t> owners;   // Of the first columns: the column of the row's owner.
  // Rows behind those with owners are also present where one of three numbers in `shared` is not 0.
  std::size_t status_rows = 0, status_offset = 0, status_stride = 0;
};

// Appends column and step of all rows that are present, by column and then by step.
void find_rows(const RowColumns& where, const std::uint16_t* ids, std::size_t id_width,
               const std::uint16_t* shared, std::size_t shared_width, std::size_t steps,
               std::vector<std::int64_t>& column, std::vector<std::int64_t>& step);

}  // namespace five
