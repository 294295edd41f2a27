// Line of sight where trees are down: the standing map's masks, with what the felled trees have opened.
#pragma once

#include "map/sight.hpp"
#include "world/world.hpp"

namespace dota {

struct FelledCache;  // of a thread: masks that were cast, walls to cast with

// What can be seen in one world at one timestep. Opens walls of the thread's scratch map as it needs them, and
// closes them when it goes: one at a time in a thread.
class Lookout {
 public:
  Lookout(const World& w, const MapData& map);
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  // Before from(), in two passes over all viewers, since what they look at lies far apart: each asks for the
  // memory that comes next. fetch() is true when find_opened() is still to be called; `cached` is the viewer's
  // cache, which both bring up to date: which trees that are down lie within its sight.
  bool fetch(Cell viewer, float radius, VisibilityCache& cached);
  void find_opened(Cell viewer, float radius, VisibilityCache& cached);
  // The fog cells seen from a navigation cell, up to at least `radius` away. Valid until the next call. `cached`:
  // as find_opened() left it.
  const SightMask& from(Cell viewer, float radius, VisibilityCache& cached);
  // Which trees are down, as one number.
  std::uint64_t felled_key() const { return key_; }

 private:
  // In bands of rows, so that the few within a viewer's reach are found fast; within a band by id.
  static constexpr int kBandRows = 16, kBands = (kGrid + kBandRows - 1) / kBandRows;
  // The trees that are down, each at the cell above and to the right of its foot: it stood on that cell and the
  // three to its left and below.
  struct Felled {
    std::array<std::int16_t, kMaxTrees> id, x, y, level;
    std::array<bool, kMaxTrees> opened;
    std::array<std::int16_t, kBands + 1> first{};  // of each band
    int n = 0;
  };
  struct Near {
    std::array<std::int16_t, kMaxTrees> at;  // index into Felled
    int n = 0;
  };

  bool still_is(const VisibilityCache& cached, Cell viewer, int reach) const;
  void fetch_for(Cell viewer, const VisibilityCache& cached) const;  // what from() will read
  void find_near(Cell viewer, int reach, int level, Near& near) const;
  bool comes_to(const SightMask& touched, Cell viewer, std::size_t felled) const;
  std::uint64_t key_of(const Near& near, const SightMask& touched, Cell viewer) const;
  unsigned octants_of(const Near& near, const SightMask& touched, Cell viewer) const;
  void open(std::size_t felled);

  const World& w_;
  const MapData& map_;
  FelledCache* cache_ = nullptr;  // of the thread, when a tree is down
  std::uint64_t key_ = 0;
  Felled felled_;
  StandingMask spare_;
};

}  // namespace dota
