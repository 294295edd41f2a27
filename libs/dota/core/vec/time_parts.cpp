// What the parts of a timestep cost, for the benchmark of the engine.
#include <ctime>
#include <stdexcept>

#include "vec/vec_game.hpp"
#include "world/hash.hpp"

namespace dota {

namespace {

// Reads the thread's processor time; each lap is the time since the one before.
class Stopwatch {
 public:
  Stopwatch() : last_(now()) {}
  double lap() {
    const double at = now(), since = at - last_;
    last_ = at;
    return since;
  }

 private:
  static double now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  }
  double last_;
};

}  // namespace

PartSeconds VecGame::time_parts(int steps, BotKind bots) {
  const std::lock_guard lock(busy_);
  std::vector<GameState> before, after;
  for (const auto& game : games_)
    before.push_back(game->state());
  std::vector<std::array<Command, kMaxHeroes>> played(games_.size() * steps);
  PartSeconds out;
  const std::array<BotKind, kTeams> who = {bots, bots};
  std::size_t at = 0;
  Stopwatch watch;
  for (int step = 0; step < steps; ++step)
    for (int i = 0; i < size(); ++i) {
      Game& g = game(i);
      std::array<Command, kMaxHeroes>& commands = played[at++];
      g.choose(nullptr, who, commands);
      out.bots += watch.lap();
      g.advance(commands);
      out.engine += watch.lap();
      PrefetchQueue* const ahead = queue_prefetches(0, (i + 1) % size());
      g.observe(ahead);
      out.views += watch.lap();
      if (!buffers_.available) continue;
      for (int team = 0; team < kTeams; ++team)
        encode(i, team, 0, ahead);
      out.encode += watch.lap();
    }
  for (int i = 0; i < size(); ++i) {
    after.push_back(game(i).state());
    game(i).put(before[i]);
  }
  at = 0;
  watch.lap();
  for (int step = 0; step < steps; ++step)
    for (int i = 0; i < size(); ++i)
      game(i).advance(played[at++]);
  out.alone = watch.lap();
  for (int i = 0; i < size(); ++i) {
    const GameState& end = after[i];
    if (game(i).hash() != hash_world(end.world))
      throw std::logic_error("a game went another way when its commands were played again");
    game(i).put(end);
  }
  return out;
}

}  // namespace dota
