#include "row_math.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "elementary.hpp"

namespace five {

namespace {

constexpr std::size_t kLanes = 16;  // Partial sums, so that every CPU can vectorise a sum.

FIVE_INLINE void log_softmax_of(float* x, std::size_t n) {
  float most = x[0];
  for (std::size_t i = 1; i < n; ++i)
    most = std::max(most, x[i]);
  float parts[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l)
      parts[l] += exp_of(x[i + l] - most);
  for (; i < n; ++i)
    parts[0] += exp_of(x[i] - most);
  float sum = 0.0f;
  for (const float part : parts)
    sum += part;
  const float log_sum = std::log(sum);
  for (std::size_t j = 0; j < n; ++j)
    x[j] = x[j] - most - log_sum;
}

FIVE_INLINE void lstm_cell_of(const float* __restrict gates, std::size_t d, float* __restrict h,
                              float* __restrict c) {
  for (std::size_t i = 0; i < d; ++i) {
    c[i] = sigmoid_of(gates[d + i]) * c[i] + sigmoid_of(gates[i]) * tanh_of(gates[2 * d + i]);
    h[i] = sigmoid_of(gates[3 * d + i]) * tanh_of(c[i]);
  }
}

FIVE_INLINE float dot_of(const float* a, const float* b, std::size_t n) {
  float parts[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l)
      parts[l] += a[i + l] * b[i + l];
  float sum = 0.0f;
  for (; i < n; ++i)
    sum += a[i] * b[i];
  for (const float part : parts)
    sum += part;
  return sum;
}

// The polynomial of Cephes around 1, for normal numbers.
FIVE_INLINE float log_of(float x) {
  x = std::max(x, 1.1754944e-38f);
  const auto bits = std::bit_cast<std::uint32_t>(x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const std::uint32_t shifted = bits - 0x3F3504F3u;
  const auto e = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float square = m * m;
  const float small = p * m * square + -2.12194440e-4f * e - 0.5f * square;
  return m + small + 0.693359375f * e;
}

FIVE_INLINE void gumbel_of(const float* __restrict u, float* __restrict to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    to[i] = log_of(-log_of(u[i]));
}

FIVE_INLINE void max_of(float* __restrict to, const float* __restrict row, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    to[i] = std::max(to[i], row[i]);
}

// The functions compiled for one instruction set. They are called through pointers only, so that the compiler
// cannot inline code for newer instructions into portable code.
#define FIVE_ROW_MATH(name, attributes)                                                                    \
  struct name {                                                                                            \
    attributes static void log_softmax(float* x, std::size_t n) { log_softmax_of(x, n); }                  \
    attributes static void lstm_cell(const float* gates, std::size_t d, float* h, float* c) {              \
      lstm_cell_of(gates, d, h, c);                                                                        \
    }                                                                                                      \
    attributes static float dot(const float* a, const float* b, std::size_t n) { return dot_of(a, b, n); } \
    attributes static void gumbel(const float* u, float* to, std::size_t n) { gumbel_of(u, to, n); }       \
    attributes static void max_into(float* to, const float* row, std::size_t n) { max_of(to, row, n); }    \
    static RowMath all() { return {log_softmax, lstm_cell, dot, gumbel, max_into}; }                       \
  };

FIVE_ROW_MATH(Portable, )
#if defined(__x86_64__) && defined(__GNUC__)
FIVE_ROW_MATH(Avx2, __attribute__((target("avx2,fma"))))
FIVE_ROW_MATH(Avx512, __attribute__((target("avx512f"))))
#endif

}  // namespace

RowMath row_math(InstructionSet instructions) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (instructions == InstructionSet::kAvx512) return Avx512::all();
  if (instructions == InstructionSet::kAvx2) return Avx2::all();
#endif
  return Portable::all();
}

float sigmoid(float x) { return sigmoid_of(x); }
float exponential(float x) { return exp_of(x); }

}  // namespace five
