#include "outer.hpp"

#include <algorithm>
#include <array>

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_X86 1
#include <immintrin.h>
#endif

namespace five {

namespace {

constexpr std::size_t kVectors = 3;  // of columns of x at once

// One tile of the sums: some columns of d with some vectors of x.
struct Tile {
  const float *d, *x;
  std::size_t d_stride, x_stride, rows;
  float* sums;  // x_stride apart
};

void portable_tile(const Tile& t, std::size_t out, std::size_t width) {
  for (std::size_t k = 0; k < t.rows; ++k)
    for (std::size_t r = 0; r < out; ++r) {
      const float value = t.d[k * t.d_stride + r];
      for (std::size_t c = 0; c < width; ++c)
        t.sums[r * t.x_stride + c] += value * t.x[k * t.x_stride + c];
    }
}

#ifdef FIVE_X86
using Run = void (*)(const Tile&);

template <std::size_t V, std::size_t R>
__attribute__((target("avx512f"))) void tile_avx512(const Tile& t) {
  __m512 sums[R][V];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v)
      sums[r][v] = _mm512_loadu_ps(t.sums + r * t.x_stride + v * 16);
  const float *d = t.d, *x = t.x;
  for (std::size_t k = 0; k < t.rows; ++k, d += t.d_stride, x += t.x_stride) {
    __m512 columns[V];
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v)
      columns[v] = _mm512_loadu_ps(x + v * 16);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      const __m512 value = _mm512_set1_ps(d[r]);
#pragma GCC unroll 3
      for (std::size_t v = 0; v < V; ++v)
        sums[r][v] = _mm512_fmadd_ps(value, columns[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v)
      _mm512_storeu_ps(t.sums + r * t.x_stride + v * 16, sums[r][v]);
}

template <std::size_t V, std::size_t R>
__attribute__((target("avx2,fma"))) void tile_avx2(const Tile& t) {
  __m256 sums[R][V];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v)
      sums[r][v] = _mm256_loadu_ps(t.sums + r * t.x_stride + v * 8);
  const float *d = t.d, *x = t.x;
  for (std::size_t k = 0; k < t.rows; ++k, d += t.d_stride, x += t.x_stride) {
    __m256 columns[V];
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v)
      columns[v] = _mm256_loadu_ps(x + v * 8);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < R; ++r) {
      const __m256 value = _mm256_set1_ps(d[r]);
#pragma GCC unroll 3
      for (std::size_t v = 0; v < V; ++v)
        sums[r][v] = _mm256_fmadd_ps(value, columns[v], sums[r][v]);
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 3
    for (std::size_t v = 0; v < V; ++v)
      _mm256_storeu_ps(t.sums + r * t.x_stride + v * 8, sums[r][v]);
}

constexpr std::size_t kOut512 = 8, kOut256 = 4;  // columns of d at once

template <std::size_t V>
constexpr std::array<Run, kOut512> kAvx512Of{tile_avx512<V, 1>, tile_avx512<V, 2>, tile_avx512<V, 3>,
                                             tile_avx512<V, 4>, tile_avx512<V, 5>, tile_avx512<V, 6>,
                                             tile_avx512<V, 7>, tile_avx512<V, 8>};
template <std::size_t V>
constexpr std::array<Run, kOut256> kAvx2Of{tile_avx2<V, 1>, tile_avx2<V, 2>, tile_avx2<V, 3>, tile_avx2<V, 4>};

constexpr std::array<std::array<Run, kOut512>, kVectors> kAvx512Tiles{kAvx512Of<1>, kAvx512Of<2>, kAvx512Of<3>};
constexpr std::array<std::array<Run, kOut256>, kVectors> kAvx2Tiles{kAvx2Of<1>, kAvx2Of<2>, kAvx2Of<3>};
#endif

}  // namespace

void add_outer(const float* d, std::size_t d_stride, std::size_t out, const float* x, std::size_t in,
               std::size_t rows, float* sums, Instructions with) {
  const std::size_t stride = padded_to_vectors(in);
#ifdef FIVE_X86
  if (with != Instructions::kPortable) {
    const bool wide = with == Instructions::kAvx512;
    const std::size_t lanes = wide ? 16 : 8, most = wide ? kOut512 : kOut256;
    const std::size_t vectors = (in + lanes - 1) / lanes;
    for (std::size_t first = 0; first < vectors; first += kVectors) {
      const std::size_t count = std::min(kVectors, vectors - first);
      for (std::size_t o = 0; o < out; o += most) {
        const std::size_t here = std::min(most, out - o);
        const Tile tile{d + o, x + first * lanes, d_stride, stride, rows, sums + o * stride + first * lanes};
        (wide ? kAvx512Tiles[count - 1][here - 1] : kAvx2Tiles[count - 1][here - 1])(tile);
      }
    }
    return;
  }
#endif
  portable_tile({d, x, d_stride, stride, rows, sums}, out, in);
}

}  // namespace five
