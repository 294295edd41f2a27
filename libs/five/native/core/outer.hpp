// Sums of outer products: what a layer's weights get of the rows that it saw.
#pragma once

#include <cstddef>

#include "layer.hpp"

namespace five {

// Columns that a row of numbers is padded to, so that it is whole vectors in every set of instructions.
constexpr std::size_t padded_to_vectors(std::size_t columns) { return (columns + 15) / 16 * 16; }

// sums [out][padded in] += the sum over rows of d [rows][d_stride] (x) x [rows][padded in], `out` columns of d.
// Columns behind `in` are padding, whatever is there.
void add_outer(const float* d, std::size_t d_stride, std::size_t out, const float* x, std::size_t in,
               std::size_t rows, float* sums, Instructions with);

}  // namespace five
