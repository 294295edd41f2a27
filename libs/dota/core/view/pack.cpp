#include "view/pack.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_X86 1
#include <immintrin.h>
#endif

namespace dota {

static_assert(std::endian::native == std::endian::little, "the packed form is little-endian");

namespace {

// Whole words of 64 values; `values` is moved on behind what was written. Returns how many values it has packed.
std::size_t pack_words(const std::uint16_t* in, std::size_t n, std::uint8_t* out, std::uint8_t*& values) {
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
  return i;
}

#ifdef FIVE_X86
// Table of pshufb masks by a byte of presence bits: positions of the set values' bytes in a register of eight.
constexpr auto kGather = [] {
  std::array<std::array<std::uint8_t, 16>, 256> table{};
  for (std::size_t bits = 0; bits < 256; ++bits) {
    std::size_t n = 0;
    for (std::size_t k = 0; k < 8; ++k)
      if (bits >> k & 1u) {
        table[bits][n++] = static_cast<std::uint8_t>(2 * k);
        table[bits][n++] = static_cast<std::uint8_t>(2 * k + 1);
      }
    while (n < 16)
      table[bits][n++] = 0x80;
  }
  return table;
}();

// The same, eight values at a time. Each store writes 16 bytes, which is as much as `out` has room for at most.
__attribute__((target("ssse3,popcnt"))) std::size_t pack_words_ssse3(const std::uint16_t* in, std::size_t n,
                                                                     std::uint8_t* out, std::uint8_t*& values) {
  const __m128i zero = _mm_setzero_si128();
  std::uint8_t* to = values;
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < 64; k += 16) {
      const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i + k));
      const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i + k + 8));
      const __m128i none = _mm_packs_epi16(_mm_cmpeq_epi16(a, zero), _mm_cmpeq_epi16(b, zero));
      const unsigned set = ~static_cast<unsigned>(_mm_movemask_epi8(none)) & 0xFFFFu;
      if (set == 0) continue;
      bits |= static_cast<std::uint64_t>(set) << k;
      const auto gather = [](unsigned byte) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(kGather[byte].data()));
      };
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(a, gather(set & 255u)));
      to += 2 * _mm_popcnt_u32(set & 255u);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(b, gather(set >> 8)));
      to += 2 * _mm_popcnt_u32(set >> 8);
    }
    std::memcpy(out + i / 8, &bits, 8);
  }
  values = to;
  return i;
}

// The same, 32 values at a time: the processor itself puts those together that are not zero.
__attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt"))) std::size_t pack_words_vbmi2(
    const std::uint16_t* in, std::size_t n, std::uint8_t* out, std::uint8_t*& values) {
  std::uint8_t* to = values;
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    const __m512i a = _mm512_loadu_si512(in + i), b = _mm512_loadu_si512(in + i + 32);
    const __mmask32 low = _mm512_test_epi16_mask(a, a), high = _mm512_test_epi16_mask(b, b);
    const std::uint64_t bits = low | static_cast<std::uint64_t>(high) << 32;
    std::memcpy(out + i / 8, &bits, 8);
    if (bits == 0) continue;
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi16(low, a));
    to += 2 * _mm_popcnt_u32(low);
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi16(high, b));
    to += 2 * _mm_popcnt_u32(high);
  }
  values = to;
  return i;
}

const bool kHasSsse3 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
const bool kHasVbmi2 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("popcnt");
#endif

std::size_t pack_rest(const std::uint16_t* in, std::size_t n, std::size_t i, std::uint8_t* out,
                      std::uint8_t* values) {
  std::memset(out + i / 8, 0, (n + 7) / 8 - i / 8);
  for (; i < n; ++i)
    if (in[i] != 0) {
      out[i / 8] = static_cast<std::uint8_t>(out[i / 8] | (1u << (i & 7)));
      std::memcpy(values, in + i, 2);
      values += 2;
    }
  return values - out;
}

}  // namespace

std::size_t pack16(const std::uint16_t* in, std::size_t n, std::uint8_t* out, PackWay way) {
  if (n == 0) return 0;  // both pointers may be null then
  std::uint8_t* values = out + (n + 7) / 8;
  std::size_t done = 0;
#ifdef FIVE_X86
  const bool any = way == PackWay::Best;
  if (kHasVbmi2 && (any || way == PackWay::Compress))
    done = pack_words_vbmi2(in, n, out, values);
  else if (kHasSsse3 && (any || way == PackWay::Shuffle))
    done = pack_words_ssse3(in, n, out, values);
  else
#else
  static_cast<void>(way);
#endif
    done = pack_words(in, n, out, values);
  return pack_rest(in, n, done, out, values);
}

bool join16(std::span<const std::span<const std::uint8_t>> rows, std::size_t n, std::uint8_t* out) {
  const std::size_t head = (n + 7) / 8, bits = (rows.size() * n + 7) / 8;
  std::memset(out, 0, bits);
  std::uint8_t* values = out + bits;
  std::size_t at = 0;  // the bit at which the row begins
  for (const std::span<const std::uint8_t> row : rows) {
    if (row.size() < head || (n & 7 && row[head - 1] >> (n & 7))) return false;
    const std::size_t shift = at & 7;
    std::uint8_t* to = out + at / 8;
    std::size_t i = 0;
    std::uint8_t over = 0;  // what of the bits before belongs into the next byte
    for (; i + 8 <= head; i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, row.data() + i, 8);
      const std::uint64_t moved = word << shift | over;
      over = static_cast<std::uint8_t>(word >> 56 >> (8 - shift));
      // The first byte holds the end of the row before.
      const std::uint64_t there = i == 0 ? to[0] : 0;
      const std::uint64_t both = moved | there;
      std::memcpy(to + i, &both, 8);
    }
    for (; i < head; ++i) {
      to[i] = static_cast<std::uint8_t>(to[i] | row[i] << shift | over);
      over = static_cast<std::uint8_t>(row[i] >> (8 - shift));
    }
    if (over) to[head] = over;
    std::memcpy(values, row.data() + head, row.size() - head);
    values += row.size() - head;
    at += n;
  }
  return true;
}

namespace {

// How many bits are set in n bytes.
std::size_t count_bits(const std::uint8_t* in, std::size_t n) {
  std::size_t set = 0, i = 0;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, in + i, 8);
    set += std::popcount(word);
  }
  for (; i < n; ++i)
    set += std::popcount(in[i]);
  return set;
}

// Copies n bits, from the bit `at` on, to the beginning of `out`; the bits behind them in its last byte are 0.
void copy_bits(std::span<const std::uint8_t> in, std::size_t at, std::size_t n, std::uint8_t* out) {
  const std::size_t shift = at & 7, bytes = (n + 7) / 8;
  const std::uint8_t* from = in.data() + at / 8;
  const std::size_t there = in.size() - at / 8;
  std::size_t i = 0;
  for (; i + 8 <= bytes && i + 9 <= there; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, 8);
    // Twice, as a shift by 64 is undefined.
    word = word >> shift | std::uint64_t{from[i + 8]} << 1 << (63 - shift);
    std::memcpy(out + i, &word, 8);
  }
  for (; i < bytes; ++i) {
    const unsigned next = i + 1 < there ? from[i + 1] : 0;
    out[i] = static_cast<std::uint8_t>((from[i] | next << 8) >> shift);
  }
  if (n & 7) out[bytes - 1] = static_cast<std::uint8_t>(out[bytes - 1] & ((1u << (n & 7)) - 1));
}

// Writes all n values; false when one is zero though its bit is set. There are as many as bits.
bool unpack_values(const std::uint8_t* in, const std::uint8_t* values, std::uint16_t* out, std::size_t n) {
  std::memset(out, 0, 2 * n);
  bool nonzero = true;
  for (std::size_t i = 0; i < n; i += 64) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, in + i / 8, n - i >= 64 ? 8 : (n - i + 7) / 8);
    while (bits) {
      const std::size_t k = std::countr_zero(bits);
      bits &= bits - 1;
      std::memcpy(out + i + k, values, 2);
      nonzero &= out[i + k] != 0;
      values += 2;
    }
  }
  return nonzero;
}

#ifdef FIVE_X86
// The same, 32 values at a time: the processor itself puts them where their bits are.
__attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt,bmi2"))) bool unpack_values_vbmi2(
    const std::uint8_t* in, const std::uint8_t* values, const std::uint8_t* end, std::uint16_t* out,
    std::size_t n) {
  bool nonzero = true;
  std::size_t i = 0;
  // Without masks at memory, as long as whole vectors of it are there: those are slow on some processors.
  for (; i + 32 <= n && end - values >= 64; i += 32) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, in + i / 8, 4);
    const __m512i apart = _mm512_maskz_expand_epi16(bits, _mm512_loadu_si512(values));
    nonzero &= _mm512_test_epi16_mask(apart, apart) == bits;
    _mm512_storeu_si512(out + i, apart);
    values += 2 * _mm_popcnt_u32(bits);
  }
  for (; i < n; i += 32) {
    const std::size_t here = n - i < 32 ? n - i : 32;
    std::uint32_t bits = 0;
    std::memcpy(&bits, in + i / 8, (here + 7) / 8);
    const auto count = static_cast<unsigned>(_mm_popcnt_u32(bits));
    // Not a byte behind the last value is read, nor one behind the last of `out` written.
    const __m512i some = _mm512_maskz_loadu_epi16(_bzhi_u32(~0u, count), values);
    const __m512i apart = _mm512_maskz_expand_epi16(bits, some);
    nonzero &= _mm512_test_epi16_mask(apart, apart) == bits;
    _mm512_mask_storeu_epi16(out + i, _bzhi_u32(~0u, static_cast<unsigned>(here)), apart);
    values += 2 * count;
  }
  return nonzero;
}
#endif

}  // namespace

bool split16(std::span<const std::uint8_t> packed, std::size_t rows, std::size_t n,
             const std::function<std::uint8_t*(std::size_t size)>& room) {
  if (n != 0 && rows > 8 * packed.size() / n) return false;
  const std::size_t all = rows * n, bits = (all + 7) / 8;
  if (all & 7 && packed[bits - 1] >> (all & 7)) return false;
  std::span<const std::uint8_t> values = packed.subspan(bits);
  std::vector<std::uint8_t> mask((n + 7) / 8);
  for (std::size_t row = 0; row < rows; ++row) {
    copy_bits(packed.first(bits), row * n, n, mask.data());
    const std::size_t size = 2 * count_bits(mask.data(), mask.size());
    if (values.size() < size) return false;
    std::uint8_t* out = room(mask.size() + size);
    out = std::copy(mask.begin(), mask.end(), out);
    std::copy_n(values.begin(), size, out);
    values = values.subspan(size);
  }
  return values.empty();
}

bool unpack16(const std::uint8_t* in, std::size_t size, std::uint16_t* out, std::size_t n, PackWay way) {
  if (n == 0) return size == 0;
  const std::size_t head = (n + 7) / 8;
  if (size < head) return false;
  if (size != head + 2 * count_bits(in, head)) return false;
  if (n & 7 && in[head - 1] >> (n & 7)) return false;
#ifdef FIVE_X86
  if (kHasVbmi2 && (way == PackWay::Best || way == PackWay::Compress))
    return unpack_values_vbmi2(in, in + head, in + size, out, n);
#else
  static_cast<void>(way);
#endif
  return unpack_values(in, in + head, out, n);
}

}  // namespace dota
