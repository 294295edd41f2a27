#include "element_clip.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "elementary.hpp"
#include "layer.hpp"

namespace five {

namespace {

constexpr std::size_t kBlock = 1024;

FIVE_INLINE std::size_t clip_of(float* __restrict gradient, float* __restrict v, std::size_t n, float scale,
                                float decay, float share) {
  std::size_t clipped = 0;
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t size = std::min(n - start, kBlock);
    float* __restrict values = gradient + start;
    float* __restrict moments = v + start;
    std::uint32_t over[kBlock];  // a sum within the loop would not be vectorised
    for (std::size_t i = 0; i < size; ++i) {
      const float value = values[i], root = std::sqrt(moments[i] * scale);
      const float bound = root == 0.0f ? std::numeric_limits<float>::max() : root;
      over[i] = std::fabs(value) > bound ? 1 : 0;
      moments[i] = moments[i] * decay + share * value * value;
      // This operand order propagates NaN.
      values[i] = std::min(std::max(value, -bound), bound);
    }
    std::uint32_t here = 0;
    for (std::size_t i = 0; i < size; ++i)
      here += over[i];
    clipped += here;
  }
  return clipped;
}

std::size_t portable_clip(float* gradient, float* v, std::size_t n, float scale, float decay, float share) {
  return clip_of(gradient, v, n, scale, decay, share);
}

#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) std::size_t avx2_clip(float* gradient, float* v, std::size_t n, float scale,
                                                          float decay, float share) {
  return clip_of(gradient, v, n, scale, decay, share);
}
#endif

}  // namespace

std::size_t clip_elements(float* gradient, float* v, std::size_t n, float scale, float decay, float share) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (best_instruction_set() != InstructionSet::kPortable) return avx2_clip(gradient, v, n, scale, decay, share);
#endif
  return portable_clip(gradient, v, n, scale, decay, share);
}

}  // namespace five
