// Deterministic trigonometry, logarithm and integer powers. C libraries round these differently, so that a game
// would diverge on another libc or processor. Here they consist of additions, multiplications and divisions of
// doubles, which IEEE 754 rounds identically everywhere (contraction to fused operations is off). The remaining
// library functions (sqrt, floor, ceil, fabs, fmod, lround) have one correct result, which every library returns.
//
// Errors, held by tests/dota/test_pinned_math.py against Python's math: sin and cos 6e-8 absolute up to |x| = 1e5,
// atan2 3e-7 absolute, ln 1.2e-7 relative or absolute, whichever is greater: the last bit of a float.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/vec2.hpp"

namespace dota {

struct SinCos {
  float sin = 0, cos = 1;
};

// Returns sine and cosine of an angle in radians. An infinite angle, NaN, or one beyond 1e9 counts as 0.
inline SinCos sin_cos(float angle) {
  const double x = std::fabs(angle) < 1e9f ? static_cast<double>(angle) : 0.0;
  const double turns = std::floor(x * 0.63661977236758134308 + 0.5);  // quarters of a circle
  // Two parts of pi / 2, the first with so few bits that its product with the quarters is exact.
  const double r = (x - turns * 1.57079632673412561417) - turns * 6.07710050650619224932e-11;
  const double q = r * r;  // |r| <= pi / 4: the series' first left out term is below 1e-13
  const double s =
      r * (1 + q * (-1.0 / 6 + q * (1.0 / 120 + q * (-1.0 / 5040 + q * (1.0 / 362880 + q * (-1.0 / 39916800))))));
  const double c =
      1 + q * (-0.5 + q * (1.0 / 24 +
                           q * (-1.0 / 720 + q * (1.0 / 40320 + q * (-1.0 / 3628800 + q * (1.0 / 479001600))))));
  const auto quarter = static_cast<std::uint64_t>(static_cast<std::int64_t>(turns)) & 3u;
  const double sines[] = {s, c, -s, -c}, cosines[] = {c, -s, -c, s};
  return {static_cast<float>(sines[quarter]), static_cast<float>(cosines[quarter])};
}

// The same of n angles.
void sin_cos_of(const float* angles, std::size_t n, float* sines, float* cosines);

// The unit vector of an angle.
inline Vec2 heading(float angle) {
  const SinCos v = sin_cos(angle);
  return {v.cos, v.sin};
}

// Returns the angle of (x, y) in (-pi, pi]; 0 for the null vector and for NaN.
inline float angle_of(float y, float x) {
  const double ax = std::fabs(static_cast<double>(x)), ay = std::fabs(static_cast<double>(y));
  const double most = ax > ay ? ax : ay, least = ax > ay ? ay : ax;
  if (!(most > 0 && most < 1e300)) return 0;
  double t = least / most, from = 0;
  if (t > 0.41421356237309504880) {  // tan(pi / 8): atan(t) = pi / 4 + atan((t - 1) / (t + 1))
    t = (t - 1) / (t + 1);
    from = 0.78539816339744830962;
  }
  const double q = t * t;  // |t| <= 0.4143: the first left out term of the series is below 1e-13
  double sum = 0;
  for (int k = 31; k >= 1; k -= 2)
    sum = (k % 4 == 1 ? 1.0 : -1.0) / k + q * sum;
  double a = from + t * sum;
  if (ay > ax) a = 1.57079632679489661923 - a;
  if (x < 0) a = 3.14159265358979323846 - a;
  return static_cast<float>(y < 0 ? -a : a);
}

// Returns the natural logarithm; the lowest float for 0, negative numbers and NaN.
inline float ln(float x) {
  if (!(x > 0)) return std::numeric_limits<float>::lowest();
  double d = x;
  if (d > std::numeric_limits<float>::max()) return std::numeric_limits<float>::max();
  auto bits = std::bit_cast<std::uint64_t>(d);  // normal: a float's denormals are normal doubles
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull;
  double m = std::bit_cast<double>(bits);  // [1, 2)
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  const double t = (m - 1) / (m + 1), q = t * t;  // |t| <= 0.1716: ln m = 2 (t + t^3 / 3 + ...)
  double sum = 0;
  for (int k = 19; k >= 1; k -= 2)
    sum = 1.0 / k + q * sum;
  return static_cast<float>(exponent * 0.69314718055994530942 + 2 * t * sum);
}

// base to the power of a whole number >= 0.
inline float whole_power(float base, int exponent) {
  double out = 1;
  for (int k = 0; k < exponent; ++k)
    out *= static_cast<double>(base);
  return static_cast<float>(out);
}

}  // namespace dota
