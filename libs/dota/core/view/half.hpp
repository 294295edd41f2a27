// float32 to float16, rounded to nearest even, saturating instead of overflowing to infinity.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dota {

constexpr float kHalfMax = 65504.0f;
constexpr std::uint16_t kHalfOne = 0x3C00, kHalfMinusOne = 0xBC00;

std::uint16_t to_half(float x);
// Converts n values; uses the processor's F16C instructions where it has them, with the same result bit for bit.
void to_half(const float* in, std::uint16_t* out, std::size_t n);
// The same, and leaves zeros where it has read: one pass over memory less for who writes there again.
void take_half(float* in, std::uint16_t* out, std::size_t n);
// The same as to_half() without F16C, for the test that compares them.
void to_half_portable(const float* in, std::uint16_t* out, std::size_t n);

}  // namespace dota
