#include "pool.hpp"

#include <algorithm>
#include <vector>

namespace five {

void pool_rows(const PooledRows& of, float* pooled) {
  const std::size_t n = of.width;
  std::fill_n(pooled, of.owners * n, 0.0f);
  for (std::size_t r = 0; r < of.rows; ++r) {
    const float* row = of.values + r * n;
    float* to = pooled + static_cast<std::size_t>(of.owner[r]) * n;
    for (std::size_t i = 0; i < n; ++i)
      to[i] = row[i] > to[i] || row[i] != row[i] ? row[i] : to[i];
  }
}

void pool_gradient(const PooledRows& of, const float* pooled, const float* gradient, float* out) {
  const std::size_t n = of.width;
  std::vector<float> share(of.owners * n, 0.0f);  // first how many rows reached each, then what each of them gets
  for (std::size_t r = 0; r < of.rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(of.owner[r]) * n;
    const float *row = of.values + r * n, *most = pooled + at;
    for (std::size_t i = 0; i < n; ++i)
      share[at + i] += row[i] == most[i] ? 1.0f : 0.0f;
  }
  for (std::size_t i = 0; i < share.size(); ++i)
    share[i] = pooled[i] > 0.0f ? gradient[i] / std::max(share[i], 1.0f) : 0.0f;
  for (std::size_t r = 0; r < of.rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(of.owner[r]) * n;
    const float *row = of.values + r * n, *most = pooled + at;
    for (std::size_t i = 0; i < n; ++i)
      out[r * n + i] = row[i] == most[i] ? share[at + i] : 0.0f;
  }
}

}  // namespace five
