#include "view/pack.hpp"

#include <bit>
#include <cstring>

namespace dota {

static_assert(std::endian::native == std::endian::little, "the packed form is little-endian");

std::size_t pack16(const std::uint16_t* in, std::size_t n, std::uint8_t* out) {
  if (n == 0) return 0;  // both pointers may be null then
  const std::size_t head = (n + 7) / 8;
  std::memset(out, 0, head);
  std::uint8_t* values = out + head;
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    std::uint64_t bits = 0;
    // Four values at a time: most of an observation is zero, and whole words of it are skipped.
    for (std::size_t k = 0; k < 64; k += 4) {
      std::uint64_t four;
      std::memcpy(&four, in + i + k, 8);
      if (four == 0) continue;
      for (std::size_t j = 0; j < 4; ++j) {
        const std::uint16_t v = in[i + k + j];
        std::memcpy(values, &v, 2);
        const std::uint64_t set = v != 0;
        values += 2 * set;
        bits |= set << (k + j);
      }
    }
    std::memcpy(out + i / 8, &bits, 8);
  }
  for (; i < n; ++i)
    if (in[i] != 0) {
      out[i / 8] = static_cast<std::uint8_t>(out[i / 8] | (1u << (i & 7)));
      std::memcpy(values, in + i, 2);
      values += 2;
    }
  return static_cast<std::size_t>(values - out);
}

bool unpack16(const std::uint8_t* in, std::size_t size, std::uint16_t* out, std::size_t n) {
  if (n == 0) return size == 0;
  const std::size_t head = (n + 7) / 8;
  if (size < head) return false;
  std::size_t set = 0;
  for (std::size_t i = 0; i < head; ++i)
    set += static_cast<std::size_t>(std::popcount(in[i]));
  if (size != head + 2 * set) return false;
  if (n & 7 && in[head - 1] >> (n & 7)) return false;
  const std::uint8_t* values = in + head;
  std::memset(out, 0, 2 * n);
  bool nonzero = true;
  for (std::size_t i = 0; i < n; i += 64) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, in + i / 8, n - i >= 64 ? 8 : (n - i + 7) / 8);
    while (bits) {
      const auto k = static_cast<std::size_t>(std::countr_zero(bits));
      bits &= bits - 1;
      std::memcpy(out + i + k, values, 2);
      nonzero &= out[i + k] != 0;
      values += 2;
    }
  }
  return nonzero;
}

}  // namespace dota
