#include "segment_max.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "layer.hpp"

namespace five {

namespace {

// Rows by owner: those of owner o are order[starts[o]] to order[starts[o + 1]], in ascending order.
struct RowsByOwner {
  explicit RowsByOwner(const Segments& of) : order(of.rows), starts(of.owners + 1) {
    for (std::size_t r = 0; r < of.rows; ++r)
      ++starts[static_cast<std::size_t>(of.owner[r]) + 1];
    for (std::size_t o = 0; o < of.owners; ++o)
      starts[o + 1] += starts[o];
    std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
    for (std::size_t r = 0; r < of.rows; ++r)
      order[next[static_cast<std::size_t>(of.owner[r])]++] = r;
  }

  std::vector<std::size_t> order, starts;
};

FIVE_INLINE float number_of(std::int32_t bits) { return std::bit_cast<float>(bits); }
FIVE_INLINE float number_of(std::int16_t bits) { return to_float(Bfloat16{static_cast<std::uint16_t>(bits)}); }

FIVE_INLINE void set_bits(float x, std::int32_t& out) { out = std::bit_cast<std::int32_t>(x); }
FIVE_INLINE void set_bits(float x, std::int16_t& out) {
  Bfloat16 rounded;
  round_to(x, rounded);
  out = static_cast<std::int16_t>(rounded.bits);
}

// Numbers are handled as their bits: int32 for float32, int16 for bfloat16. Bits of numbers that are not negative
// have the numbers' order, and NaN is above all of them.
template <class Bits>
FIVE_INLINE void max_of(Bits* __restrict to, const Bits* __restrict row, std::size_t n) {
  constexpr auto kMagnitude = std::numeric_limits<Bits>::max();
  constexpr Bits kInfinity = sizeof(Bits) == 2 ? 0x7F80 : static_cast<Bits>(0x7F800000);
  for (std::size_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<Bits>(row[i] & kMagnitude);
    const Bits value = magnitude > kInfinity ? magnitude : row[i];
    to[i] = std::max(to[i], value);
  }
}

template <class Bits>
FIVE_INLINE void count_of(Bits* __restrict count, const Bits* __restrict row, const Bits* __restrict pooled,
                          std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    count[i] = static_cast<Bits>(count[i] + (row[i] == pooled[i] ? 1 : 0));
}

// The gradients of rows that have the maximum, and of the others: 0, or NaN if the first is not finite.
template <class Bits>
FIVE_INLINE void shares_of(Bits* __restrict share, Bits* __restrict other, const Bits* __restrict count,
                           const Bits* __restrict pooled, const Bits* __restrict gradient, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const float most = number_of(pooled[i]), number = std::max(1.0f, static_cast<float>(count[i]));
    const float each = number_of(gradient[i]) / number * (most > 0.0f ? 1.0f : most);
    set_bits(each, share[i]);
    set_bits(each * 0.0f, other[i]);
  }
}

template <class Bits>
FIVE_INLINE void select_of(Bits* __restrict out, const Bits* __restrict row, const Bits* __restrict pooled,
                           const Bits* __restrict share, const Bits* __restrict other, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    const Bits first = share[i], second = other[i];  // loaded unconditionally, so that the loop is vectorised
    out[i] = row[i] == pooled[i] ? first : second;
  }
}

// The functions of a row compiled for one instruction set. They are never inlined, because the compiler would
// otherwise unroll the loop over rows and not vectorise the loop over numbers.
#define FIVE_ROWS(name, attributes)                                                                  \
  template <class Bits>                                                                              \
  struct name {                                                                                      \
    attributes static void max(Bits* to, const Bits* row, std::size_t n) { max_of(to, row, n); }     \
    attributes static void count(Bits* to, const Bits* row, const Bits* pooled, std::size_t n) {     \
      count_of(to, row, pooled, n);                                                                  \
    }                                                                                                \
    attributes static void shares(Bits* share, Bits* other, const Bits* count, const Bits* pooled,   \
                                  const Bits* gradient, std::size_t n) {                             \
      shares_of(share, other, count, pooled, gradient, n);                                           \
    }                                                                                                \
    attributes static void select(Bits* out, const Bits* row, const Bits* pooled, const Bits* share, \
                                  const Bits* other, std::size_t n) {                                \
      select_of(out, row, pooled, share, other, n);                                                  \
    }                                                                                                \
  };

FIVE_ROWS(Portable, __attribute__((noinline)))
#if defined(__x86_64__) && defined(__GNUC__)
FIVE_ROWS(Avx2, __attribute__((noinline, target("avx2"))))
bool has_avx2() { return best_instruction_set() != InstructionSet::kPortable; }
#else
template <class Bits>
using Avx2 = Portable<Bits>;
bool has_avx2() { return false; }
#endif

constexpr std::size_t kMaxCount = 32767;  // Counts of bfloat16 rows are int16.

template <class Row, class Bits>
void max_by_owner(const Segments& of, const Bits* values, Bits* pooled) {
  const RowsByOwner rows(of);
  std::fill_n(pooled, of.owners * of.width, Bits{0});
  for (std::size_t o = 0; o < of.owners; ++o)
    for (std::size_t i = rows.starts[o]; i < rows.starts[o + 1]; ++i)
      Row::max(pooled + o * of.width, values + rows.order[i] * of.width, of.width);
}

template <class Row, class Bits>
void gradient_by_owner(const Segments& of, const Bits* values, const Bits* pooled, const Bits* gradient,
                       Bits* out) {
  const RowsByOwner rows(of);
  std::vector<Bits> count(of.width), share(of.width), other(of.width);
  for (std::size_t o = 0; o < of.owners; ++o, pooled += of.width, gradient += of.width) {
    std::fill(count.begin(), count.end(), Bits{0});
    const std::size_t end = std::min(rows.starts[o + 1], rows.starts[o] + kMaxCount);
    for (std::size_t i = rows.starts[o]; i < end; ++i)
      Row::count(count.data(), values + rows.order[i] * of.width, pooled, of.width);
    Row::shares(share.data(), other.data(), count.data(), pooled, gradient, of.width);
    for (std::size_t i = rows.starts[o]; i < rows.starts[o + 1]; ++i) {
      const std::size_t at = rows.order[i] * of.width;
      Row::select(out + at, values + at, pooled, share.data(), other.data(), of.width);
    }
  }
}

template <class Bits, class T>
void max_as(const Segments& of, const T* values, T* pooled) {
  const auto run = has_avx2() ? max_by_owner<Avx2<Bits>, Bits> : max_by_owner<Portable<Bits>, Bits>;
  run(of, reinterpret_cast<const Bits*>(values), reinterpret_cast<Bits*>(pooled));
}

template <class Bits, class T>
void gradient_as(const Segments& of, const T* values, const T* pooled, const T* gradient, T* out) {
  const auto run = has_avx2() ? gradient_by_owner<Avx2<Bits>, Bits> : gradient_by_owner<Portable<Bits>, Bits>;
  run(of, reinterpret_cast<const Bits*>(values), reinterpret_cast<const Bits*>(pooled),
      reinterpret_cast<const Bits*>(gradient), reinterpret_cast<Bits*>(out));
}

}  // namespace

void segment_max(const Segments& of, const float* values, float* pooled) {
  max_as<std::int32_t>(of, values, pooled);
}

void segment_max(const Segments& of, const Bfloat16* values, Bfloat16* pooled) {
  max_as<std::int16_t>(of, values, pooled);
}

void segment_max_gradient(const Segments& of, const float* values, const float* pooled, const float* gradient,
                          float* out) {
  gradient_as<std::int32_t>(of, values, pooled, gradient, out);
}

void segment_max_gradient(const Segments& of, const Bfloat16* values, const Bfloat16* pooled,
                          const Bfloat16* gradient, Bfloat16* out) {
  gradient_as<std::int16_t>(of, values, pooled, gradient, out);
}

}  // namespace five
