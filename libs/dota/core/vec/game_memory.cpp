// Where the states of games lie: side by side in large pages, and used again.
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "base/memory.hpp"
#include "vec/game.hpp"

namespace dota {

#if !defined(__SANITIZE_ADDRESS__)  // which is to see each state come and go

namespace {

constexpr std::size_t kStatesABlock = 16;
constexpr std::size_t kStateBytes = (sizeof(GameState) + 63) / 64 * 64;
constexpr std::size_t kBlockBytes = (kStatesABlock * kStateBytes + kHugePage - 1) / kHugePage * kHugePage;

struct FreeStates {
  std::mutex busy;
  std::vector<void*> places;
};

// Never destroyed: games may outlive everything that is.
FreeStates& free_states() {
  static FreeStates* const states = new FreeStates;
  return *states;
}

}  // namespace

void* GameState::operator new(std::size_t) {
  FreeStates& free = free_states();
  const std::lock_guard lock(free.busy);
  if (free.places.empty()) {
    // What of the block no state has yet been in is not in memory either.
    auto* const block = static_cast<std::byte*>(std::aligned_alloc(kHugePage, kBlockBytes));
    if (!block) throw std::bad_alloc();
    want_huge_pages(block, kBlockBytes);
    for (std::size_t i = kBlockBytes / kStateBytes; i-- > 0;)
      free.places.push_back(block + i * kStateBytes);
  }
  void* const place = free.places.back();
  free.places.pop_back();
  return place;
}

void GameState::operator delete(void* place) {
  FreeStates& free = free_states();
  const std::lock_guard lock(free.busy);
  free.places.push_back(place);
}

#else

void* GameState::operator new(std::size_t bytes) {
  return ::operator new(bytes, std::align_val_t{alignof(GameState)});
}
void GameState::operator delete(void* place) { ::operator delete(place, std::align_val_t{alignof(GameState)}); }

#endif

}  // namespace dota
