// Large memory that is looked at all over, and memory that is asked for ahead.
#pragma once

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

// Asks for memory that is soon looked at, line by line of 64 bytes, without waiting for it.
inline void fetch_lines(const void* memory, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory) / 64 * 64;
  const auto end = reinterpret_cast<std::uintptr_t>(memory) + bytes;
  for (std::uintptr_t line = first; line < end; line += 64)
    __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
  // gcc takes a function that only prefetches for one without effect, and drops calls of it.
  asm volatile("");
}

}  // namespace dota
