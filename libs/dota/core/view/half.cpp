#include "view/half.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_F16C 1
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace dota {

std::uint16_t to_half(float x) {
  if (x != x) return 0;  // not a number: an observation never holds one
  if (x > kHalfMax) x = kHalfMax;
  if (x < -kHalfMax) x = -kHalfMax;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24, which adding 0.5 rounds to nearest even
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

void to_half_portable(const float* in, std::uint16_t* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = to_half(in[i]);
}

#ifdef FIVE_F16C
namespace {

// CPUID is read because clang 14 does not know "f16c" in __builtin_cpu_supports().
bool has_f16c() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && __builtin_cpu_supports("avx");
  }();
  return has;
}

__attribute__((target("avx,f16c"), always_inline)) inline __m128i eight_halves(__m256 x) {
  x = _mm256_and_ps(x, _mm256_cmp_ps(x, x, _CMP_ORD_Q));  // not a number becomes 0
  x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(kHalfMax)), _mm256_set1_ps(-kHalfMax));
  return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

template <bool kTake, class Float>
__attribute__((target("avx,f16c"))) void to_half_f16c(Float* in, std::uint16_t* out, std::size_t n) {
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    // Where whole stretches are zero there is nothing to convert, nor to clear.
    if constexpr (kTake)
      for (; i + 32 <= n; i += 32) {
        const __m256 a = _mm256_or_ps(_mm256_loadu_ps(in + i), _mm256_loadu_ps(in + i + 8));
        const __m256 b = _mm256_or_ps(_mm256_loadu_ps(in + i + 16), _mm256_loadu_ps(in + i + 24));
        const __m256i bits = _mm256_castps_si256(_mm256_or_ps(a, b));
        if (!_mm256_testz_si256(bits, bits)) break;
        std::memset(out + i, 0, 32 * sizeof(std::uint16_t));
      }
    if (i + 8 > n) break;
    const __m256 x = _mm256_loadu_ps(in + i);
    if constexpr (kTake) _mm256_storeu_ps(in + i, _mm256_setzero_ps());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), eight_halves(x));
  }
  if constexpr (!kTake)
    if (i < n && n >= 8) {  // the last eight, of which some are done
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + n - 8), eight_halves(_mm256_loadu_ps(in + n - 8)));
      return;
    }
  for (; i < n; ++i) {
    out[i] = to_half(in[i]);
    if constexpr (kTake) in[i] = 0;
  }
}

}  // namespace
#endif

void to_half(const float* in, std::uint16_t* out, std::size_t n) {
#ifdef FIVE_F16C
  if (has_f16c()) return to_half_f16c<false>(in, out, n);
#endif
  to_half_portable(in, out, n);
}

void take_half(float* in, std::uint16_t* out, std::size_t n) {
#ifdef FIVE_F16C
  if (has_f16c()) return to_half_f16c<true>(in, out, n);
#endif
  to_half_portable(in, out, n);
  std::fill(in, in + n, 0.0f);
}

}  // namespace dota
