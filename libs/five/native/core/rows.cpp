#include "rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_F16C 1
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace five {

namespace {

float from_half(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3FFu;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -value : value;
  }
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

#ifdef FIVE_F16C
// CPUID is read because clang 14 does not know "f16c" in __builtin_cpu_supports().
bool has_f16c() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) && __builtin_cpu_supports("avx") &&
           __builtin_cpu_supports("fma");
  }();
  return has;
}
#endif

// Prefetches `bytes` of memory in cache lines of 64 bytes.
inline void prefetch_lines(const void* memory, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory) / 64 * 64;
  const auto end = reinterpret_cast<std::uintptr_t>(memory) + bytes;
  for (std::uintptr_t line = first; line < end; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
}

float standard(float value, float scale, float shift, float clip) {
  return std::clamp(std::fma(value, scale, shift), -clip, clip);
}

void portable_row(const std::uint16_t* in, std::size_t n, const float* scale, const float* shift, float clip,
                  float* out) {
  for (std::size_t i = 0; i < n; ++i)
    out[i] = standard(from_half(in[i]), scale[i], shift[i], clip);
}

#ifdef FIVE_F16C
__attribute__((target("avx,f16c,fma"), always_inline)) inline __m256 eight(__m128i halves, __m256 scale,
                                                                           __m256 shift, __m256 most,
                                                                           __m256 least) {
  const __m256 moved = _mm256_fmadd_ps(_mm256_cvtph_ps(halves), scale, shift);
  // This operand order propagates NaN.
  return _mm256_min_ps(most, _mm256_max_ps(least, moved));
}

__attribute__((target("avx,f16c,fma"))) void f16c_row(const std::uint16_t* in, std::size_t n, const float* scale,
                                                      const float* shift, float clip, float* out) {
  const __m256 most = _mm256_set1_ps(clip), least = _mm256_set1_ps(-clip);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i, eight(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)),
                                    _mm256_loadu_ps(scale + i), _mm256_loadu_ps(shift + i), most, least));
  if (i == n) return;
  if (n >= 8) {  // The last eight overlap with the previous ones.
    i = n - 8;
    _mm256_storeu_ps(out + i, eight(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)),
                                    _mm256_loadu_ps(scale + i), _mm256_loadu_ps(shift + i), most, least));
    return;
  }
  alignas(16) std::uint16_t halves[8] = {};
  float some[3][8] = {};
  std::memcpy(halves, in, n * sizeof(std::uint16_t));
  std::memcpy(some[0], scale, n * sizeof(float));
  std::memcpy(some[1], shift, n * sizeof(float));
  _mm256_storeu_ps(some[2], eight(_mm_load_si128(reinterpret_cast<const __m128i*>(halves)),
                                  _mm256_loadu_ps(some[0]), _mm256_loadu_ps(some[1]), most, least));
  std::memcpy(out, some[2], n * sizeof(float));
}
#endif

constexpr std::size_t kPrefetchRows = 12;  // Rows to prefetch, which are at scattered addresses.
constexpr std::size_t kSumLines = 64;      // Lines to add up in float32.

// Scale and shift of one group, padded to whole vectors, and the sums of its last lines.
struct GroupRows {
  explicit GroupRows(std::size_t n) : fields(n), padded((n + 7) / 8 * 8) {
    for (auto* each : {&scale, &shift, &pivot, &total, &squares})
      each->assign(padded, 0.0f);
  }

  void enter(std::size_t group_at, const float* scales, const float* shifts, const std::uint16_t* first,
             const RowSums* sums) {
    at = group_at;
    std::copy_n(scales, fields, scale.begin());
    std::copy_n(shifts, fields, shift.begin());
    if (sums == nullptr) return;
    for (std::size_t i = 0; i < fields; ++i) {
      if (sums->count[at + i] == 0.0) sums->pivot[at + i] = static_cast<double>(from_half(first[i]));
      pivot[i] = static_cast<float>(sums->pivot[at + i]);
    }
  }

  void leave(const RowSums* sums) {
    if (sums != nullptr && lines > 0)
      for (std::size_t i = 0; i < fields; ++i) {
        sums->count[at + i] += static_cast<double>(lines);
        sums->total[at + i] += static_cast<double>(total[i]);
        sums->squares[at + i] += static_cast<double>(squares[i]);
      }
    std::fill(total.begin(), total.end(), 0.0f);
    std::fill(squares.begin(), squares.end(), 0.0f);
    lines = 0;
  }

  std::size_t fields, padded, at = 0, lines = 0;
  std::vector<float> scale, shift, pivot, total, squares;
};

// Reads one line and adds it to the group's sums.
using GroupReader = void (*)(const std::uint16_t* in, GroupRows& of, float clip, float* out);

void portable_group(const std::uint16_t* in, GroupRows& of, float clip, float* out) {
  for (std::size_t i = 0; i < of.fields; ++i) {
    const float value = from_half(in[i]), deviation = value - of.pivot[i];
    out[i] = standard(value, of.scale[i], of.shift[i], clip);
    of.total[i] += deviation;
    of.squares[i] = std::fma(deviation, deviation, of.squares[i]);
  }
}

#ifdef FIVE_F16C
__attribute__((target("avx,f16c,fma"))) void f16c_group(const std::uint16_t* in, GroupRows& of, float clip,
                                                        float* out) {
  const __m256 most = _mm256_set1_ps(clip), least = _mm256_set1_ps(-clip);
  const float *scale = of.scale.data(), *shift = of.shift.data(), *pivot = of.pivot.data();
  float *total = of.total.data(), *squares = of.squares.data();
  for (std::size_t i = 0; i < of.padded; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(out + i, eight(halves, _mm256_loadu_ps(scale + i), _mm256_loadu_ps(shift + i), most, least));
    const __m256 deviation = _mm256_sub_ps(_mm256_cvtph_ps(halves), _mm256_loadu_ps(pivot + i));
    _mm256_storeu_ps(total + i, _mm256_add_ps(_mm256_loadu_ps(total + i), deviation));
    _mm256_storeu_ps(squares + i, _mm256_fmadd_ps(deviation, deviation, _mm256_loadu_ps(squares + i)));
  }
}
#endif

GroupReader group_reader(bool portable) {
#ifdef FIVE_F16C
  if (!portable && has_f16c()) return f16c_group;
#endif
  return portable_group;
}

}  // namespace

RowReader row_reader() {
#ifdef FIVE_F16C
  if (has_f16c()) return f16c_row;
#endif
  return portable_row;
}

void standard_rows(const std::uint16_t* in, std::size_t size, const RowLayout& layout, const std::int64_t* step,
                   const std::int64_t* slot, const std::int64_t* group, std::size_t rows, const float* scale,
                   const float* shift, float clip, float* out, const RowSums* sums, bool portable) {
  const std::size_t n = layout.fields, total = rows * layout.lines * n;
  const std::uint16_t* const in_end = in + size;
  const float* const out_end = out + total;
  const auto line_of = [&](std::size_t r) {
    return in + static_cast<std::size_t>(step[r]) * layout.lines * layout.width + layout.offset +
           static_cast<std::size_t>(slot[r]) * layout.stride;
  };
  const GroupReader fast = group_reader(portable);
  GroupRows now(n);
  std::int64_t last = -1;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::int64_t g = group == nullptr ? 0 : group[r];
    const std::uint16_t* line = line_of(r);
    if (r + kPrefetchRows < rows) prefetch_lines(line_of(r + kPrefetchRows), n * sizeof(std::uint16_t));
    if (g != last) {
      const std::size_t of = static_cast<std::size_t>(g) * n;
      now.leave(sums);
      now.enter(of, scale + of, shift + of, line, sums);
      last = g;
    }
    for (std::size_t l = 0; l < layout.lines; ++l, line += layout.width, out += n) {
      // Whole vectors read and write beyond the line; the next line overwrites the surplus.
      if (line + now.padded <= in_end && out + now.padded <= out_end)
        fast(line, now, clip, out);
      else
        portable_group(line, now, clip, out);
      if (++now.lines == kSumLines) now.leave(sums);
    }
  }
  now.leave(sums);
}

void find_rows(const RowColumns& where, const std::uint16_t* ids, std::size_t id_width,
               const std::uint16_t* shared, std::size_t shared_width, std::size_t steps,
               std::vector<std::int64_t>& column, std::vector<std::int64_t>& step) {
  for (std::size_t c = 0; c < where.columns.size(); ++c) {
    const std::uint16_t* id = ids + where.columns[c];
    const std::uint16_t* owner =
        c < where.owners.size() ? ids + where.columns[static_cast<std::size_t>(where.owners[c])] : nullptr;
    const std::size_t ownerless = c - where.owners.size();
    const bool by_status = owner == nullptr && ownerless < where.status_rows;
    const std::uint16_t* status =
        by_status ? shared + where.status_offset + ownerless * where.status_stride : nullptr;
    for (std::size_t s = 0; s < steps; ++s) {
      bool present = id[s * id_width] != 0;
      if (owner != nullptr) present = present && owner[s * id_width] != 0;
      if (by_status) {
        const std::uint16_t* three = status + s * shared_width;
        present = present || ((three[0] | three[1] | three[2]) & 0x7FFF) != 0;
      }
      if (!present) continue;
      column.push_back(static_cast<std::int64_t>(c));
      step.push_back(static_cast<std::int64_t>(s));
    }
  }
}

}  // namespace five
