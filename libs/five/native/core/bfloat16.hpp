// Conversion between float32 and bfloat16, in operations that every CPU can vectorise.
#pragma once

#include <bit>
#include <cstdint>

#include "elementary.hpp"

namespace five {

// The bits of a bfloat16 number.
struct Bfloat16 {
  std::uint16_t bits;
};

FIVE_INLINE float to_float(float x) { return x; }
FIVE_INLINE float to_float(Bfloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

// Writes x, rounded to the nearest number of the type, ties to even.
FIVE_INLINE void round_to(float x, float& out) { out = x; }
FIVE_INLINE void round_to(float x, Bfloat16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nearest_even = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  out.bits = static_cast<std::uint16_t>(x != x ? 0x7FC0u : nearest_even);
}

}  // namespace five
