#include "view/rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "view/half.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define FIVE_F16C 1
#include <immintrin.h>
#endif

namespace dota {

namespace {

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
  // In this order what is no number stays none.
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
  if (n >= 8) {  // the last eight, of which some are done
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

}  // namespace

RowReader row_reader(bool portable) {
#ifdef FIVE_F16C
  if (!portable && has_f16c() && __builtin_cpu_supports("fma")) return f16c_row;
#endif
  return portable_row;
}

void standard_rows(const std::uint16_t* in, const RowPlaces& places, const std::int64_t* step,
                   const std::int64_t* slot, const std::int64_t* group, std::size_t rows, const float* scale,
                   const float* shift, float clip, float* out, bool portable) {
  const RowReader row = row_reader(portable);
  const std::size_t n = places.fields;
  for (std::size_t r = 0; r < rows; ++r) {
    const std::size_t at = places.offset + static_cast<std::size_t>(slot[r]) * places.stride;
    const std::size_t of = group == nullptr ? 0 : static_cast<std::size_t>(group[r]) * n;
    const std::uint16_t* line = in + static_cast<std::size_t>(step[r]) * places.lines * places.width + at;
    for (std::size_t l = 0; l < places.lines; ++l, line += places.width, out += n)
      row(line, n, scale + of, shift + of, clip, out);
  }
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
      bool there = id[s * id_width] != 0;
      if (owner != nullptr) there = there && owner[s * id_width] != 0;
      if (by_status) {
        const std::uint16_t* three = status + s * shared_width;
        there = there || ((three[0] | three[1] | three[2]) & 0x7FFF) != 0;
      }
      if (!there) continue;
      column.push_back(static_cast<std::int64_t>(c));
      step.push_back(static_cast<std::int64_t>(s));
    }
  }
}

}  // namespace dota
