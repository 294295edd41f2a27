// Maximum over the rows of each owner, and its gradient.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bfloat16.hpp"

namespace five {

// Rows [rows][width] and the owner [rows] of each, below `owners`.
struct Segments {
  const std::int64_t* owner;
  std::size_t rows, owners, width;
};

// pooled [owners][width] = max(0, maximum over an owner's rows); 0 for an owner without rows. NaN propagates.
void segment_max(const Segments& of, const float* values, float* pooled);
void segment_max(const Segments& of, const Bfloat16* values, Bfloat16* pooled);

// Writes the gradient [rows][width] of `values` for the gradient [owners][width] of `pooled`. Rows that share a
// maximum share its gradient. A maximum of 0 has no gradient; NaN propagates to all rows of the owner.
void segment_max_gradient(const Segments& of, const float* values, const float* pooled, const float* gradient,
                          float* out);
void segment_max_gradient(const Segments& of, const Bfloat16* values, const Bfloat16* pooled,
                          const Bfloat16* gradient, Bfloat16* out);

}  // namespace five
