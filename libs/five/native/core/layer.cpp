#include "layer.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_X86 1
#include <immintrin.h>
#endif

namespace five {

namespace {

constexpr std::size_t kVectors = 3;  // Vectors of a panel at most.
constexpr std::size_t kAligned = 64;

// Some rows of x times one panel. `left` is the number of the panel's columns that y has.
struct Tile {
  const float* x;
  std::size_t x_stride, in;
  const float* panel;
  float* y;
  std::size_t y_stride, left;
  bool accumulate, relu;
};

void portable_tile(const Tile& t, std::size_t rows, std::size_t width) {
  for (std::size_t r = 0; r < rows; ++r) {
    float sums[kVectors * 8];
    std::memcpy(sums, t.panel + t.in * width, width * sizeof(float));
    for (std::size_t k = 0; k < t.in; ++k) {
      const float value = t.x[r * t.x_stride + k];
      for (std::size_t c = 0; c < width; ++c)
        sums[c] += value * t.panel[k * width + c];
    }
    float* out = t.y + r * t.y_stride;
    for (std::size_t c = 0; c < std::min(t.left, width); ++c) {
      const float sum = t.accumulate ? sums[c] + out[c] : sums[c];
      out[c] = t.relu ? std::max(sum, 0.0f) : sum;
    }
  }
}

#ifdef FIVE_X86
using TileFunction = void (*)(const Tile&);

// Declares `sums`: the biases plus the products of R rows of x with V vectors of the panel. A macro, because
// neither a template nor a lambda can get the target of its intrinsics from a parameter.
// clang-format off
#define FIVE_SUM_TILE(Vector, lanes, load, broadcast, multiply_add)      \
  Vector sums[R][V];                                                     \
  const float* bias = t.panel + t.in * V * (lanes);                      \
  _Pragma("GCC unroll 8")                                                \
  for (std::size_t r = 0; r < R; ++r)                                    \
    _Pragma("GCC unroll 3")                                              \
    for (std::size_t v = 0; v < V; ++v)                                  \
      sums[r][v] = load(bias + v * (lanes));                             \
  const float* w = t.panel;                                              \
  for (std::size_t k = 0; k < t.in; ++k, w += V * (lanes)) {             \
    Vector column[V];                                                    \
    _Pragma("GCC unroll 3")                                              \
    for (std::size_t v = 0; v < V; ++v)                                  \
      column[v] = load(w + v * (lanes));                                 \
    _Pragma("GCC unroll 8")                                              \
    for (std::size_t r = 0; r < R; ++r) {                                \
      const Vector value = broadcast(t.x[r * t.x_stride + k]);           \
      _Pragma("GCC unroll 3")                                            \
      for (std::size_t v = 0; v < V; ++v)                                \
        sums[r][v] = multiply_add(value, column[v], sums[r][v]);         \
    }                                                                    \
  }
// clang-format on

template <std::size_t V, std::size_t R>
__attribute__((target("avx512f"))) void tile_avx512(const Tile& t) {
  FIVE_SUM_TILE(__m512, 16, _mm512_load_ps, _mm512_set1_ps, _mm512_fmadd_ps)
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v) {
      const std::size_t columns_left = t.left > v * 16 ? std::min<std::size_t>(t.left - v * 16, 16) : 0;
      const auto mask = static_cast<__mmask16>((1u << columns_left) - 1);
      float* out = t.y + r * t.y_stride + v * 16;
      __m512 sum = sums[r][v];
      if (t.accumulate) sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, out));
      // This operand order propagates NaN. gcc 12 warns of uninitialised memory in the form without a mask.
      if (t.relu) sum = _mm512_maskz_max_ps(0xFFFF, _mm512_setzero_ps(), sum);
      _mm512_mask_storeu_ps(out, mask, sum);
    }
}

template <std::size_t V, std::size_t R>
__attribute__((target("avx2,fma"))) void tile_avx2(const Tile& t) {
  FIVE_SUM_TILE(__m256, 8, _mm256_load_ps, _mm256_set1_ps, _mm256_fmadd_ps)
#pragma GCC unroll 4
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v) {
      const std::size_t columns_left = t.left > v * 8 ? std::min<std::size_t>(t.left - v * 8, 8) : 0;
      float* out = t.y + r * t.y_stride + v * 8;
      __m256 sum = sums[r][v];
      if (columns_left == 8) {
        if (t.accumulate) sum = _mm256_add_ps(sum, _mm256_loadu_ps(out));
        if (t.relu) sum = _mm256_max_ps(_mm256_setzero_ps(), sum);
        _mm256_storeu_ps(out, sum);
        continue;
      }
      float lanes[8];
      _mm256_storeu_ps(lanes, sum);
      for (std::size_t c = 0; c < columns_left; ++c) {
        const float one = t.accumulate ? lanes[c] + out[c] : lanes[c];
        out[c] = t.relu ? std::max(one, 0.0f) : one;
      }
    }
}

constexpr std::size_t kRows512 = 8, kRows256 = 4;

constexpr std::array<std::array<TileFunction, kRows512>, kVectors> kAvx512Tiles{{
    {tile_avx512<1, 1>, tile_avx512<1, 2>, tile_avx512<1, 3>, tile_avx512<1, 4>, tile_avx512<1, 5>,
     tile_avx512<1, 6>, tile_avx512<1, 7>, tile_avx512<1, 8>},
    {tile_avx512<2, 1>, tile_avx512<2, 2>, tile_avx512<2, 3>, tile_avx512<2, 4>, tile_avx512<2, 5>,
     tile_avx512<2, 6>, tile_avx512<2, 7>, tile_avx512<2, 8>},
    {tile_avx512<3, 1>, tile_avx512<3, 2>, tile_avx512<3, 3>, tile_avx512<3, 4>, tile_avx512<3, 5>,
     tile_avx512<3, 6>, tile_avx512<3, 7>, tile_avx512<3, 8>},
}};
constexpr std::array<std::array<TileFunction, kRows256>, kVectors> kAvx2Tiles{{
    {tile_avx2<1, 1>, tile_avx2<1, 2>, tile_avx2<1, 3>, tile_avx2<1, 4>},
    {tile_avx2<2, 1>, tile_avx2<2, 2>, tile_avx2<2, 3>, tile_avx2<2, 4>},
    {tile_avx2<3, 1>, tile_avx2<3, 2>, tile_avx2<3, 3>, tile_avx2<3, 4>},
}};
#endif

}  // namespace

InstructionSet best_instruction_set() {
#ifdef FIVE_X86
  if (__builtin_cpu_supports("avx512f")) return InstructionSet::kAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::kAvx2;
#endif
  return InstructionSet::kPortable;
}

void LinearLayer::Free::operator()(float* memory) const { std::free(memory); }

LinearLayer::LinearLayer(std::size_t in, std::size_t out, const float* weight, const float* bias,
                         InstructionSet instructions)
    : in_(in), out_(out), lanes_(instructions == InstructionSet::kAvx512 ? 16 : 8), instructions_(instructions) {
  const std::size_t vectors = (out + lanes_ - 1) / lanes_;
  const std::size_t bytes = std::max<std::size_t>((in + 1) * vectors * lanes_ * sizeof(float), kAligned);
  panels_.reset(static_cast<float*>(std::aligned_alloc(kAligned, (bytes + kAligned - 1) / kAligned * kAligned)));
  if (panels_ == nullptr) throw std::bad_alloc();
  float* to = panels_.get();
  for (std::size_t first = 0; first < out; first += kVectors * lanes_) {
    const std::size_t width = std::min(kVectors, vectors - first / lanes_) * lanes_;
    for (std::size_t k = 0; k <= in; ++k)
      for (std::size_t c = first; c < first + width; ++c)
        *to++ = c >= out ? 0.0f : k < in ? weight[c * in + k] : bias == nullptr ? 0.0f : bias[c];
  }
}

void LinearLayer::operator()(const float* x, std::size_t x_stride, std::size_t rows, float* y,
                             std::size_t y_stride, bool accumulate, Activation activation) const {
  const std::size_t vectors = (out_ + lanes_ - 1) / lanes_;
  const float* panel = panels_.get();
  for (std::size_t first = 0; first < out_; first += kVectors * lanes_) {
    const std::size_t count = std::min(kVectors, vectors - first / lanes_), width = count * lanes_;
    Tile tile{
        x, x_stride, in_, panel, y + first, y_stride, out_ - first, accumulate, activation == Activation::kRelu};
    panel += (in_ + 1) * width;
#ifdef FIVE_X86
    if (instructions_ != InstructionSet::kPortable) {
      const std::size_t most = instructions_ == InstructionSet::kAvx512 ? kRows512 : kRows256;
      for (std::size_t row = 0; row < rows; row += most) {
        const std::size_t here = std::min(most, rows - row);
        (instructions_ == InstructionSet::kAvx512 ? kAvx512Tiles[count - 1][here - 1]
                                                  : kAvx2Tiles[count - 1][here - 1])(tile);
        tile.x += here * x_stride;
        tile.y += here * y_stride;
      }
      continue;
    }
#endif
    portable_tile(tile, rows, width);
  }
}

}  // namespace five
