// Large pages, and prefetching of cache lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace dota {

constexpr std::size_t kHugePage = 2u << 20;

// Asks the system to hold the memory in pages of 2 MB, where it has them: with ordinary ones the processor knows
// the place of few of them at a time, and looks up the others whenever games take turns. It may refuse; nothing
// changes.
inline void want_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto from = (reinterpret_cast<std::uintptr_t>(memory) + kHugePage - 1) / kHugePage * kHugePage;
  const auto to = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / kHugePage * kHugePage;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#endif
}

// Prefetches memory that is read soon, in cache lines of 64 bytes.
inline void prefetch_lines(const void* memory, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory) / 64 * 64;
  const auto end = reinterpret_cast<std::uintptr_t>(memory) + bytes;
  for (std::uintptr_t line = first; line < end; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
  // gcc takes a function that only prefetches for one without effect, and drops calls of it.
  asm volatile("");
}

// Memory that is needed after the present work, prefetched a few cache lines at a time between other work: all at
// once it would stall, as the processor can have only some dozen lines in flight.
class PrefetchQueue {
 public:
  void clear() { n_ = k_ = 0; }
  // Up to kMost pieces; what comes after is left out.
  void add(const void* memory, std::size_t bytes) {
    if (n_ == kMost || bytes == 0) return;
    const auto from = reinterpret_cast<std::uintptr_t>(memory);
    pieces_[n_++] = {from / 64 * 64, from + bytes};
  }
  // Prefetches the next of them.
  void prefetch(std::size_t lines) {
    while (lines > 0 && k_ < n_) {
      Piece& p = pieces_[k_];
      const std::size_t left = (p.end - p.from + 63) / 64, now = left < lines ? left : lines;
      prefetch_lines(reinterpret_cast<const void*>(p.from), now * 64);
      lines -= now;
      p.from += now * 64;
      k_ += now == left;
    }
  }

 private:
  static constexpr std::size_t kMost = 1024;
  struct Piece {
    std::uintptr_t from = 0, end = 0;
  };
  std::array<Piece, kMost> pieces_;
  std::size_t n_ = 0, k_ = 0;
};

// Called between other work. `ahead` may be null.
inline void prefetch_some(PrefetchQueue* ahead, std::size_t lines = 16) {
  if (ahead) ahead->prefetch(lines);
}

}  // namespace dota
