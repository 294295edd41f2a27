#include "stored_array.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_X86 1
#include <immintrin.h>
#endif

namespace five {

static_assert(std::endian::native == std::endian::little, "the packed form is little-endian");

namespace {

// Reads the bits and values of a packed array row by row, and nothing behind `end`.
struct Reader {
  const std::uint8_t* bits;
  std::size_t at;  // Index of the next bit.
  const std::uint8_t* values;
  const std::uint8_t* end;

  // Returns the next `count` bits, 64 at most.
  std::uint64_t take(std::size_t count) {
    const std::uint8_t* from = bits + at / 8;
    const unsigned shift = at & 7;
    at += count;
    std::uint64_t word = 0, next = 0;
    if (from + 9 <= end) {
      std::memcpy(&word, from, 8);
      next = from[8];
    } else {
      const auto there = static_cast<std::size_t>(end - from);
      std::memcpy(&word, from, std::min<std::size_t>(there, 8));
      if (there > 8) next = from[8];
    }
    word >>= shift;
    if (shift) word |= next << (64 - shift);
    return count == 64 ? word : word & ((std::uint64_t{1} << count) - 1);
  }
};

// Returns the number of set bits in [at, at + count).
std::size_t ones_portable(const std::uint8_t* data, std::size_t at, std::size_t count, const std::uint8_t* end) {
  Reader reader{data, at, nullptr, end};
  std::size_t set = 0;
  for (; count >= 64; count -= 64)
    set += static_cast<std::size_t>(std::popcount(reader.take(64)));
  return set + static_cast<std::size_t>(std::popcount(reader.take(count)));
}

// Writes up to 64 values by their presence bits; XORs them with `before` where it is not null.
void write_word(std::uint64_t bits, std::size_t count, Reader& reader, std::uint8_t* out,
                const std::uint8_t* before) {
  if (before)
    std::memcpy(out, before, 2 * count);
  else
    std::memset(out, 0, 2 * count);
  while (bits) {
    const auto k = static_cast<std::size_t>(std::countr_zero(bits));
    bits &= bits - 1;
    std::uint16_t value, there;
    std::memcpy(&value, reader.values, 2);
    std::memcpy(&there, out + 2 * k, 2);
    there = static_cast<std::uint16_t>(there ^ value);
    std::memcpy(out + 2 * k, &there, 2);
    reader.values += 2;
  }
}

void write_row(Reader& reader, std::size_t n, std::uint8_t* out, const std::uint8_t* before) {
  for (std::size_t i = 0; i < n; i += 64) {
    const std::size_t count = std::min<std::size_t>(n - i, 64);
    write_word(reader.take(count), count, reader, out + 2 * i, before ? before + 2 * i : nullptr);
  }
}

#ifdef FIVE_X86
// ones_portable() with POPCNT; whole bytes where the bits are aligned to one.
__attribute__((target("popcnt"))) std::size_t ones_popcnt(const std::uint8_t* data, std::size_t at,
                                                          std::size_t count, const std::uint8_t* end) {
  std::size_t set = 0;
  if (at % 8 == 0)
    for (; count >= 64; count -= 64, at += 64) {
      std::uint64_t word;
      std::memcpy(&word, data + at / 8, 8);
      set += static_cast<std::size_t>(__builtin_popcountll(word));
    }
  Reader reader{data, at, nullptr, end};
  for (; count >= 64; count -= 64)
    set += static_cast<std::size_t>(__builtin_popcountll(reader.take(64)));
  return set + static_cast<std::size_t>(__builtin_popcountll(reader.take(count)));
}

// PSHUFB masks by byte of presence bits: they spread consecutive values over eight positions.
constexpr auto kScatter = [] {
  std::array<std::array<std::uint8_t, 16>, 256> table{};
  for (std::size_t bits = 0; bits < 256; ++bits) {
    std::uint8_t n = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      const bool set = bits >> k & 1u;
      table[bits][2 * k] = set ? n : 0x80;
      table[bits][2 * k + 1] = set ? static_cast<std::uint8_t>(n + 1) : 0x80;
      n = static_cast<std::uint8_t>(n + 2 * set);
    }
  }
  return table;
}();

// write_row() with eight values at a time.
__attribute__((target("ssse3,popcnt"))) void write_row_ssse3(Reader& reader, std::size_t n, std::uint8_t* out,
                                                             const std::uint8_t* before) {
  std::size_t i = 0;
  // A load reads 16 bytes, perhaps more than this word has: without room for 64 values write_row() does the rest.
  for (; i + 64 <= n && reader.values + 128 <= reader.end; i += 64) {
    std::uint64_t bits = reader.take(64);
    for (std::size_t k = 0; k < 64; k += 8, bits >>= 8) {
      const auto byte = static_cast<unsigned>(bits & 255u);
      const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i*>(kScatter[byte].data()));
      __m128i eight = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(reader.values)), places);
      if (before)
        eight = _mm_xor_si128(eight, _mm_loadu_si128(reinterpret_cast<const __m128i*>(before + 2 * (i + k))));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 2 * (i + k)), eight);
      reader.values += 2 * _mm_popcnt_u32(byte);
    }
  }
  write_row(reader, n - i, out + 2 * i, before ? before + 2 * i : nullptr);
}

// write_row() with 32 values at a time: VPEXPANDW spreads the values that are not zero.
__attribute__((target("avx512f,avx512bw,avx512vbmi2,bmi2,popcnt"))) void write_row_vbmi2(
    Reader& reader, std::size_t n, std::uint8_t* out, const std::uint8_t* before) {
  for (std::size_t i = 0; i < n; i += 64) {
    const std::size_t count = std::min<std::size_t>(n - i, 64);
    const std::uint64_t bits = reader.take(count);
    for (std::size_t k = 0; k < count; k += 32) {
      const auto set = static_cast<__mmask32>(bits >> k);
      const auto values = static_cast<unsigned>(_mm_popcnt_u32(set));
      // Masked loads and stores access nothing outside their mask.
      __m512i wide =
          _mm512_maskz_expand_epi16(set, _mm512_maskz_loadu_epi16(_bzhi_u32(~0u, values), reader.values));
      reader.values += 2 * values;
      const __mmask32 here = _bzhi_u32(~0u, static_cast<unsigned>(std::min<std::size_t>(count - k, 32)));
      if (before) wide = _mm512_xor_si512(wide, _mm512_maskz_loadu_epi16(here, before + 2 * (i + k)));
      _mm512_mask_storeu_epi16(out + 2 * (i + k), here, wide);
    }
  }
}

const bool kHasPopcnt = __builtin_cpu_supports("popcnt");
const bool kHasSsse3 = __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
const bool kHasVbmi2 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                       __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("bmi2") &&
                       __builtin_cpu_supports("popcnt");
#endif

std::size_t ones(const std::uint8_t* data, std::size_t at, std::size_t count, const std::uint8_t* end) {
#ifdef FIVE_X86
  if (kHasPopcnt) return ones_popcnt(data, at, count, end);
#endif
  return ones_portable(data, at, count, end);
}

using WriteRow = void (*)(Reader&, std::size_t, std::uint8_t*, const std::uint8_t*);

WriteRow row_writer(UnpackMethod method) {
#ifdef FIVE_X86
  const bool any = method == UnpackMethod::Best;
  if (kHasVbmi2 && (any || method == UnpackMethod::Expand)) return write_row_vbmi2;
  if (kHasSsse3 && (any || method == UnpackMethod::Shuffle)) return write_row_ssse3;
#else
  static_cast<void>(method);
#endif
  return write_row;
}

}  // namespace

bool index_parts(StoredArray& array, std::size_t parts) {
  const std::size_t size = array.data.size(), bytes = array.rows * array.width;
  if (array.encoding == Encoding::Plain) return size == parts * bytes;
  if (array.width % 2 != 0) return false;
  const std::size_t n = bytes / 2, head = (parts * n + 7) / 8;
  if (size < head) return false;
  const std::uint8_t* data = array.data.data();
  if (parts * n % 8 != 0 && data[head - 1] >> (parts * n % 8)) return false;
  array.values.resize(parts);
  std::size_t at = head;
  for (std::size_t part = 0; part < parts; ++part) {
    array.values[part] = at;
    at += 2 * ones(data, part * n, n, data + head);
  }
  return size == at;
}

void write_part(const StoredArray& array, std::size_t part, std::uint8_t* out, std::size_t stride,
                UnpackMethod method) {
  const std::uint8_t* data = array.data.data();
  if (array.encoding == Encoding::Plain) {
    const std::uint8_t* from = data + part * array.rows * array.width;
    for (std::size_t r = 0; r < array.rows; ++r)
      std::memcpy(out + r * stride, from + r * array.width, array.width);
    return;
  }
  const std::size_t n = array.width / 2;
  Reader reader{data, part * array.rows * n, data + array.values[part], data + array.data.size()};
  const WriteRow write = row_writer(method);
  for (std::size_t r = 0; r < array.rows; ++r) {
    std::uint8_t* row = out + r * stride;
    write(reader, n, row, r > 0 && array.encoding == Encoding::Changes ? row - stride : nullptr);
  }
}

}  // namespace five
