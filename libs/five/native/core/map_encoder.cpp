#include <algorithm>
#include <stdexcept>

#include "actor.hpp"
#include "row_math.hpp"

namespace five {

namespace {

constexpr std::size_t kKernel = 2;  // Positions along a side of a kernel.

// Convolves a map x [side][side][channels] into y [columns][columns][filters]. The inputs of a kernel's row are
// adjacent, so each row of outputs is two linear layers over rows that overlap.
void convolve(const Convolution& layer, const float* x, std::size_t side, std::size_t columns, float* y) {
  const std::size_t channels = layer.top.in() / kKernel, filters = layer.top.out();
  for (std::size_t row = 0; row < columns; ++row, x += side * channels, y += columns * filters) {
    layer.top(x, channels, columns, y, filters);
    layer.bottom(x + side * channels, channels, columns, y, filters, true);
  }
}

// Adds the products of the cells' ids to the first layer's sums y [columns][columns][filters].
void add_products(const MapEncoder& map, const std::uint16_t* ids, std::size_t columns, float* y) {
  const std::size_t filters = map.first.top.out(), kernel = kKernel * kKernel * filters;
  for (std::size_t i = 0; i < map.side * map.side * map.id_fields; ++i) {
    const std::size_t cell = i / map.id_fields, field = i % map.id_fields, id = ids[i];
    if (id == 0) continue;
    if (id >= map.vocabulary) throw std::out_of_range("act: an id without an embedding");
    const float* product = map.products.data() + (field * map.vocabulary + id) * kernel;
    for (std::size_t k = 0; k < kKernel * kKernel; ++k, product += filters) {
      // Wraps around, to a large number, left of and above the outputs.
      const std::size_t row = cell / map.side - k / kKernel, column = cell % map.side - k % kKernel;
      if (row >= columns || column >= columns) continue;
      float* to = y + (row * columns + column) * filters;
      for (std::size_t f = 0; f < filters; ++f)
        to[f] += product[f];
    }
  }
}

// Writes the maximum of 2x2 positions of x [2 * side][2 * side][filters], at least 0, to y [side][side][filters].
void pool(const RowMath& math, float* x, std::size_t side, std::size_t filters, float* __restrict y) {
  for (std::size_t row = 0; row < side; ++row, x += 2 * side * filters) {
    float* upper = x;
    x += 2 * side * filters;
    math.max_into(upper, x, 2 * side * filters);
    for (std::size_t column = 0; column < side; ++column, upper += 2 * filters, y += filters)
      for (std::size_t f = 0; f < filters; ++f)
        y[f] = std::max(0.0f, std::max(upper[f], upper[filters + f]));
  }
}

}  // namespace

std::size_t MapEncoder::pooled_side() const { return pools ? (side - 1) / 2 : side - 1; }

std::size_t MapEncoder::last_side() const { return pooled_side() - (second.top.out() ? 1 : 0); }

std::size_t MapEncoder::width() const { return side ? first.top.out() * last_side() * last_side() : 0; }

void encode_map(const MapEncoder& map, const float* cells, const std::uint16_t* ids, const RowMath& math,
                float* out) {
  thread_local std::vector<float> sums, pools, seconds;
  const std::size_t filters = map.first.top.out(), side = map.pooled_side(), last = map.last_side();
  const std::size_t columns = map.pools ? 2 * side : side;  // Those that a pool reads.
  sums.resize(columns * columns * filters);
  convolve(map.first, cells, map.side, columns, sums.data());
  add_products(map, ids, columns, sums.data());
  const float* y = sums.data();
  if (map.pools) {
    pools.resize(side * side * filters);
    pool(math, sums.data(), side, filters, pools.data());
    y = pools.data();
  } else {
    for (float& x : sums)
      x = std::max(0.0f, x);
  }
  if (map.second.top.out()) {
    seconds.resize(last * last * filters);
    convolve(map.second, y, side, last, seconds.data());
    y = seconds.data();
  }
  for (std::size_t position = 0; position < last * last; ++position)
    for (std::size_t f = 0; f < filters; ++f)
      out[f * last * last + position] = std::max(0.0f, *y++);
}

}  // namespace five
