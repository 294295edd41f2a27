// Max-pools over rows that lie packed, and their gradient.
#pragma once

#include <cstddef>
#include <cstdint>

namespace five {

// Rows [rows][width], and which of `owners` pools [width] each belongs to.
struct PooledRows {
  const float* values;
  const std::int64_t* owner;
  std::size_t rows, owners, width;
};

// pooled [owners][width] = the largest of 0 and the owner's rows. What is no number stays none.
void pool_rows(const PooledRows& of, float* pooled);

// out [rows][width] = the pools' `gradient` where a row reached them; rows that share a maximum share its
// gradient, and a pool at its floor of zero was reached by none.
void pool_gradient(const PooledRows& of, const float* pooled, const float* gradient, float* out);

}  // namespace five
