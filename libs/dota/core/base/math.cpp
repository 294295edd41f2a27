#include "base/math.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_AVX2 1
#include <immintrin.h>
#endif

namespace dota {

#ifdef FIVE_AVX2
namespace {

// a + b * c: with contraction off never fused, so that it is rounded as in sin_cos().
__attribute__((target("avx2"), always_inline)) inline __m256d plus(double a, __m256d b, __m256d c) {
  return _mm256_add_pd(_mm256_set1_pd(a), _mm256_mul_pd(b, c));
}

// A sign for each whole number whose second bit is set.
__attribute__((target("avx2"), always_inline)) inline __m128 second_bit(__m128i k) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_srli_epi32(k, 1), 31));
}

// sin_cos() of four angles at a time, operation by operation, for as many as are whole fours; how many those are.
__attribute__((target("avx2"))) std::size_t sin_cos_avx2(const float* angles, std::size_t n, float* sines,
                                                         float* cosines) {
  const __m256d one = _mm256_set1_pd(1.0);
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m128 given = _mm_loadu_ps(angles + i);
    const __m128 size = _mm_andnot_ps(_mm_set1_ps(-0.0f), given);
    const __m256d x = _mm256_cvtps_pd(_mm_and_ps(given, _mm_cmplt_ps(size, _mm_set1_ps(1e9f))));
    const __m256d turns = _mm256_floor_pd(
        _mm256_add_pd(_mm256_mul_pd(x, _mm256_set1_pd(0.63661977236758134308)), _mm256_set1_pd(0.5)));
    const __m256d r = _mm256_sub_pd(_mm256_sub_pd(x, _mm256_mul_pd(turns, _mm256_set1_pd(1.57079632673412561417))),
                                    _mm256_mul_pd(turns, _mm256_set1_pd(6.07710050650619224932e-11)));
    const __m256d q = _mm256_mul_pd(r, r);
    __m256d s = plus(1.0 / 362880, q, _mm256_set1_pd(-1.0 / 39916800));
    s = plus(-1.0 / 5040, q, s);
    s = plus(1.0 / 120, q, s);
    s = plus(-1.0 / 6, q, s);
    s = _mm256_mul_pd(r, _mm256_add_pd(one, _mm256_mul_pd(q, s)));
    __m256d c = plus(-1.0 / 3628800, q, _mm256_set1_pd(1.0 / 479001600));
    c = plus(1.0 / 40320, q, c);
    c = plus(-1.0 / 720, q, c);
    c = plus(1.0 / 24, q, c);
    c = plus(-0.5, q, c);
    c = _mm256_add_pd(one, _mm256_mul_pd(q, c));
    // Odd quarters change the two; the sine is negative in the last two, the cosine in the middle ones.
    const __m128i quarter = _mm256_cvttpd_epi32(turns);
    const __m128 odd = _mm_castsi128_ps(_mm_slli_epi32(quarter, 31));
    const __m128 single_s = _mm256_cvtpd_ps(s), single_c = _mm256_cvtpd_ps(c);
    _mm_storeu_ps(sines + i, _mm_xor_ps(_mm_blendv_ps(single_s, single_c, odd), second_bit(quarter)));
    _mm_storeu_ps(cosines + i, _mm_xor_ps(_mm_blendv_ps(single_c, single_s, odd),
                                          second_bit(_mm_add_epi32(quarter, _mm_set1_epi32(1)))));
  }
  return i;
}

const bool kHasAvx2 = __builtin_cpu_supports("avx2");

}  // namespace
#endif

void sin_cos_of(const float* angles, std::size_t n, float* sines, float* cosines) {
  std::size_t i = 0;
#ifdef FIVE_AVX2
  if (kHasAvx2) i = sin_cos_avx2(angles, n, sines, cosines);
#endif
  for (; i < n; ++i) {
    const SinCos v = sin_cos(angles[i]);
    sines[i] = v.sin;
    cosines[i] = v.cos;
  }
}

}  // namespace dota
