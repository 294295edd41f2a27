// Elementary functions in operations that every CPU can vectorise, for loops compiled for one instruction set.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#define FIVE_INLINE __attribute__((always_inline)) inline

namespace five {

// Cody and Waite's range reduction and the polynomial of Cephes, in operations that every CPU can vectorise.
FIVE_INLINE float exp_of(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  constexpr float kRounds = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer.
  const float shifted = x * 1.44269504f + kRounds;
  const float whole = shifted - kRounds;
  float r = x - whole * 0.693359375f;
  r = r - whole * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto power = (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(kRounds) + 127u) << 23;
  return p * std::bit_cast<float>(power);
}

FIVE_INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

FIVE_INLINE float tanh_of(float x) {
  // Near zero the quotient cancels, so the series is used.
  const float square = x * x;
  const float near = x + x * square * (-1.0f / 3.0f + square * (2.0f / 15.0f - square * (17.0f / 315.0f)));
  const float e = exp_of(2.0f * x);
  const float far = 1.0f - 2.0f / (e + 1.0f);
  return square < 0.0225f ? near : far;
}

}  // namespace five
