// Rows of observations, read again: which are there, and their numbers as float32, standardised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace five {

// Where rows of one kind lie in an array of team-steps: row `slot` of a step at offset + slot * stride in each of
// its `lines` lines of `width` numbers (a line for each hero where heroes see differently, else one).
struct RowPlaces {
  std::size_t width = 0, lines = 1, offset = 0, stride = 0, fields = 0;
};

// Reads one row of n values: out = clamp(shift + value * scale, -clip, clip), see `standard_rows`.
using RowReader = void (*)(const std::uint16_t* in, std::size_t n, const float* scale, const float* shift,
                           float clip, float* out);
RowReader row_reader();

// Of rows, [groups][fields] each, zeros to begin with: how many there were; the first of each group; the sums of
// how far all are from that, and of the squares.
struct RowSums {
  double *count, *near, *total, *squares;
};

// out[row][line][field] = clamp(shift + value * scale, -clip, clip) of the float16 values `in` [size], in float32,
// rounded once before it is clipped. `group` says which of the scales and shifts, [groups][fields], are a row's;
// null: the first. `sums`: what is added up of the values meanwhile, as they were; null: nothing. `portable`:
// without the processor's own conversion, for the test that compares them.
void standard_rows(const std::uint16_t* in, std::size_t size, const RowPlaces& places, const std::int64_t* step,
                   const std::int64_t* slot, const std::int64_t* group, std::size_t rows, const float* scale,
                   const float* shift, float clip, float* out, const RowSums* sums = nullptr,
                   bool portable = false);

// Columns of a team-step that a row may hang on, and in which order what is there is listed.
struct RowColumns {
  std::vector<std::int64_t> columns;  // where an id that is not 0 says that the row is there
  std::vector<std::int64_t> owners;   // of the first columns: the column of what the row hangs on
  // Rows behind those that have owners are there too where one of three numbers in `shared` is not 0.
  std::size_t status_rows = 0, status_offset = 0, status_stride = 0;
};

// Appends column and step of all rows that are there, by column and then by step.
void find_rows(const RowColumns& where, const std::uint16_t* ids, std::size_t id_width,
               const std::uint16_t* shared, std::size_t shared_width, std::size_t steps,
               std::vector<std::int64_t>& column, std::vector<std::int64_t>& step);

}  // namespace five
