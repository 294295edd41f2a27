// One game: its World, both teams' views, their last unit slots and choices, and the bots.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "bots/book.hpp"
#include "bots/bots.hpp"
#include "view/actions.hpp"
#include "view/encoder.hpp"
#include "view/team_view.hpp"
#include "world/fingerprint.hpp"
#include "world/hash.hpp"

namespace dota {

// What all games of a kind share: constants, settings, layout. Games of one layout may differ in all the rest.
struct GameSetup {
  std::shared_ptr<const Tables> tables;
  GameSettings settings;
  Layout layout;
  RegistryIds ids;
  ActionVocabulary vocabulary;
  BotBook book;
  ViewConstants constants;
  std::vector<int> pool;  // Tables::heroes that lineups are drawn from
  bool mirror_match = false;
  std::string rules;  // text that differs between setups whose games would go on differently

  // Throws std::runtime_error when the layout, the ids, the pool or the settings do not fit the tables.
  GameSetup(std::shared_ptr<const Tables> tables, const GameSettings& settings, const LayoutTable& layout,
            const RegistryIds& ids, const std::vector<std::string>& hero_pool, bool mirror_match);
  // A hero as lineups outside the core name it: its id of the space `build` less one, equal in all patches; -1:
  // none.
  std::int16_t hero_outside(int hero) const;
  int hero_inside(std::int16_t outside) const;  // Tables::heroes; as many as there are when the patch lacks it
  GameSetup(const GameSetup&) = delete;         // constants point into it
  GameSetup& operator=(const GameSetup&) = delete;
};

using Lineup = std::array<int, kMaxHeroes>;  // Tables::heroes, -1: no hero

// Heroes drawn from the pool, different ones within a team; independent per team unless it is a mirror match.
Lineup draw_lineup(const GameSetup& setup, std::uint64_t seed);

// Everything that decides how a game goes on. A snapshot is a copy of it.
struct GameState {
  World world;
  std::uint64_t seed = 0;
  Lineup lineup{};
  std::array<TeamView, kTeams> views{};
  std::array<SlotTable, kTeams> slots{};
  std::array<Choices, kTeams> choices{};
  std::array<BotMemory, kTeams> memory{};
  std::array<Rng, kTeams> bot_rng{};

  static void* operator new(std::size_t bytes);  // game_memory.cpp
  static void operator delete(void* place);
};
static_assert(std::is_trivially_copyable_v<GameState>);

// Last hits, denies, kills, deaths, assists, net worth, level, XP, damage to heroes; of the whole game: what did
// not happen because a pool was full.
constexpr int kStatCount = 10;

class Game {
 public:
  // Plays under the setup given until a reset takes another; all of them outlive the game.
  explicit Game(const GameSetup& setup);

  void reset(const GameSetup& setup, std::uint64_t seed, const Lineup& lineup);
  // One timestep. `actions` int16 [2, H, 6]; controllers[t] != Policy lets a bot play the team instead. A game
  // that is over stays as it is. `chosen` (may be null) receives the commands of both teams, for a recording.
  // `ahead`, here and below: prefetched between the work; may be null.
  void step(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers,
            std::array<Command, kMaxHeroes>* chosen = nullptr, PrefetchQueue* ahead = nullptr);
  // The same with commands that are already resolved: a replay.
  void step_commands(const std::array<Command, kMaxHeroes>& commands, PrefetchQueue* ahead = nullptr);
  // What a step is made of: what policies and bots command, and the engine's part, after which observe() is due.
  void choose(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers,
              std::array<Command, kMaxHeroes>& commands);
  // What a policy's actions come to for one team, by what an observation offered it.
  void decode(const std::int16_t* actions, std::size_t team, const Available& available, const SlotTable& slots,
              std::array<Command, kMaxHeroes>& commands) const;
  void advance(const std::array<Command, kMaxHeroes>& commands);
  void remember(const std::array<Command, kMaxHeroes>& commands);  // what observations show of the last commands
  void encode(int team, Encoder& encoder, const TeamStepBuffers& out, PrefetchQueue* ahead = nullptr);
  // Signals since the last call, float32 [H, kSignals], and clears them.
  void take_signals(int team, float* out);
  void stats(int team, float* out) const;  // float32 [H, kStatCount]

  std::vector<std::uint8_t> snapshot() const;
  // Restores a snapshot under its setup, one of `setups`. Throws std::invalid_argument when the bytes are not a
  // snapshot of this build and of one of these setups; nothing changes then.
  void restore(const std::uint8_t* bytes, std::size_t size, const std::vector<const GameSetup*>& setups);
  // Gives the game another random state, so that it goes on differently, and scales the health of its standing
  // buildings. Scaling is not damage and gives no signals.
  void branch(std::uint64_t seed, float building_health);
  std::uint64_t hash() const { return hash_world(state_->world); }

  const GameSetup& setup() const { return *setup_; }
  const GameState& state() const { return *state_; }
  World& world() { return state_->world; }
  Context context() { return {state_->world, *setup_->tables, setup_->settings}; }
  void put(const GameState& state) { *state_ = state; }  // a state of this setup, of this process
  // Brings views, slots and choices up to the world.
  void observe(PrefetchQueue* ahead = nullptr);
  // The two halves of it, for a caller that changes views in between: views; then slots and choices.
  void look(PrefetchQueue* ahead = nullptr);
  void offer(PrefetchQueue* ahead = nullptr);
  TeamView& view(int team) { return state_->views[team]; }
  // Queues the memory that its next timestep and what follows it read.
  void queue_prefetches(PrefetchQueue& ahead) const;

 private:
  const GameSetup* setup_;
  std::unique_ptr<GameState> state_;
};

}  // namespace dota
