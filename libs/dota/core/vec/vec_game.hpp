// Many games stepped in one call, each for its whole timestep before the next is touched, on a pool of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "vec/game.hpp"
#include "vec/packed_steps.hpp"
#include "vec/pool.hpp"

namespace dota {

// The caller's arrays for all games; [G, 2, ...] row-major, one entry per game and team. Without `available`
// nothing is observed; with it, but without `shared` and `private_`, what these would hold is packed.
struct VecBuffers {
  std::uint16_t *shared = nullptr, *private_ = nullptr, *shared_ids = nullptr, *private_ids = nullptr,
                *available = nullptr;
  std::uint8_t* target_mask = nullptr;
  float* signals = nullptr;         // [G, 2, H, kSignals]
  float* stats = nullptr;           // [G, 2, H, kStatCount]
  float* game_time = nullptr;       // [G]
  std::uint8_t* winner = nullptr;   // [G]
  std::int16_t* lineups = nullptr;  // [G, 2, H] Tables::heroes
};

// Processor time of the calling thread, seconds. `alone` is the engine's when nothing else is done between its
// timesteps; the others are parts of the same timesteps, in turn.
struct PartSeconds {
  double alone = 0, engine = 0, bots = 0, views = 0, encode = 0;
};

class VecGame {
 public:
  // `setups`, at least one, share a layout: the variants that a game may be played in. All begin in the first.
  VecGame(std::vector<std::shared_ptr<const GameSetup>> setups, int games, std::uint64_t seed, int threads);

  int size() const { return static_cast<int>(games_.size()); }
  int variants() const { return static_cast<int>(setups_.size()); }
  const GameSetup& setup(int variant) const { return *setups_[variant]; }
  int variant(int i) const;  // that game i is played in
  // One more variant, of the same layout; its index. Not while another call is under way.
  int add_variant(std::shared_ptr<const GameSetup> setup);
  Game& game(int i) { return *games_[i]; }
  void bind(const VecBuffers& buffers);
  // A team's last observation in the packed form, while observations are bound that are packed; else none.
  const PackedSteps* packed() const { return packed_ ? &*packed_ : nullptr; }

  // Starts new games; game k's e-th episode has the seed splitmix(seed, k, e) on any thread count and in any
  // variant. `lineups` may be null (drawn) or hold one lineup per entry of `which`; `variants` likewise (null: as
  // they were).
  void reset(const std::vector<int>& which, const Lineup* lineups, const int* variants);
  // Starts game i with a seed, variant and lineup of its own.
  void reset_as(int i, int variant, std::uint64_t seed, const Lineup& lineup);
  // As Game::restore, among all variants.
  void restore(int i, const std::uint8_t* bytes, std::size_t size);
  void branch(int i, std::uint64_t seed, float building_health);  // as Game::branch
  // `actions` int16 [G, 2, H, 6] and `controllers` uint8 [G, 2]: all games', of which `which` are stepped.
  void step(const std::vector<int>& which, const std::int16_t* actions, const std::uint8_t* controllers);
  // One timestep of each of these games by commands that are already resolved, game after game.
  void step_commands(const std::vector<int>& which, const std::array<Command, kMaxHeroes>* commands);
  void finish(int i);  // the same after a timestep that was made elsewhere: signals are those since the last one
  void write(int i);   // observation and outputs as they are now, signals kept
  // Commands of the timesteps of the last step, one after another.
  const std::vector<std::array<Command, kMaxHeroes>>& chosen(int i) const { return chosen_[i]; }
  std::vector<Event> events(int i) const;  // what happened in the last step
  // Plays `steps` timesteps of all games, bots on both sides, on the calling thread, then the same again by the
  // commands recorded. encode: 0 when no observations are bound. Throws std::logic_error when the two differ.
  PartSeconds time_parts(int steps, BotKind bots);
  std::uint64_t episode_seed(int i) const { return games_[i]->state().seed; }

 private:
  // The prefetch queue of the thread's next game; null where it is not known (`next` -1).
  PrefetchQueue* queue_prefetches(int thread, int next);
  void write(int game, int thread, bool keep_signals, PrefetchQueue* ahead = nullptr);
  void encode(int game, int team, int thread, PrefetchQueue* ahead);

  std::vector<std::shared_ptr<const GameSetup>> setups_;
  std::uint64_t seed_;
  std::vector<std::unique_ptr<Game>> games_;
  std::vector<std::uint32_t> episode_;
  std::vector<std::vector<std::array<Command, kMaxHeroes>>> chosen_;
  std::vector<std::vector<Event>> earlier_;  // events of the last step's timesteps but the last
  std::vector<Encoder> encoders_;            // one a thread
  std::vector<PrefetchQueue> ahead_;         // one a thread
  VecBuffers buffers_;
  std::optional<PackedSteps> packed_;
  Pool pool_;
  std::mutex busy_;  // one call at a time, from whichever thread
};

}  // namespace dota
