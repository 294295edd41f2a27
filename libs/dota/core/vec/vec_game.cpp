#include "vec/vec_game.hpp"

#include "rules/step.hpp"

#include <algorithm>

namespace dota {

VecGame::VecGame(std::vector<std::shared_ptr<const GameSetup>> setups, int games, std::uint64_t seed, int threads)
    : setups_(std::move(setups)),
      seed_(seed),
      episode_(games, 0),
      chosen_(games),
      earlier_(games),
      ahead_(std::max(threads, 1)),
      pool_(std::max(threads, 1)) {
  for (int i = 0; i < games; ++i)
    games_.push_back(std::make_unique<Game>(*setups_.front()));
  for (int i = 0; i < pool_.threads(); ++i)
    encoders_.emplace_back(setups_.front()->layout);
}

void VecGame::bind(const VecBuffers& buffers) {
  const std::lock_guard lock(busy_);
  buffers_ = buffers;
  packed_.reset();
  if (buffers.available && !buffers.shared) packed_.emplace(setups_.front()->layout, size(), pool_.threads());
}

int VecGame::add_variant(std::shared_ptr<const GameSetup> setup) {
  const std::lock_guard lock(busy_);
  setups_.push_back(std::move(setup));
  return variants() - 1;
}

int VecGame::variant(int i) const {
  const GameSetup* const setup = &games_[i]->setup();
  const auto at = std::find_if(setups_.begin(), setups_.end(), [&](const auto& s) { return s.get() == setup; });
  return static_cast<int>(at - setups_.begin());
}

void VecGame::reset(const std::vector<int>& which, const Lineup* lineups, const int* variants) {
  const std::lock_guard lock(busy_);
  pool_.run(static_cast<int>(which.size()), [&](int thread, int k, int) {
    const std::size_t i = which[k];
    const GameSetup& setup = variants ? this->setup(variants[k]) : games_[i]->setup();
    const std::uint64_t seed = splitmix(splitmix(seed_ + static_cast<std::uint64_t>(i)) + episode_[i]++);
    earlier_[i].clear();
    games_[i]->reset(setup, seed, lineups ? lineups[k] : draw_lineup(setup, seed));
    write(static_cast<int>(i), thread, false);
  });
}

void VecGame::reset_as(int i, int variant, std::uint64_t seed, const Lineup& lineup) {
  const std::lock_guard lock(busy_);
  earlier_[i].clear();
  games_[i]->reset(setup(variant), seed, lineup);
  write(i, 0, false);
}

void VecGame::restore(int i, const std::uint8_t* bytes, std::size_t size) {
  const std::lock_guard lock(busy_);
  earlier_[i].clear();
  std::vector<const GameSetup*> known;
  for (const auto& setup : setups_)
    known.push_back(setup.get());
  games_[i]->restore(bytes, size, known);
  write(i, 0, true);
}

void VecGame::branch(int i, std::uint64_t seed, float building_health) {
  const std::lock_guard lock(busy_);
  games_[i]->branch(seed, building_health);
  write(i, 0, true);
}

void VecGame::step(const std::vector<int>& which, const std::int16_t* actions, const std::uint8_t* controllers) {
  const std::lock_guard lock(busy_);
  const int row = kTeams * setups_.front()->settings.heroes_per_team * kActionParts;
  pool_.run(static_cast<int>(which.size()), [&](int thread, int k, int next) {
    const int i = which[k];
    PrefetchQueue* const ahead = queue_prefetches(thread, next < 0 ? -1 : which[next]);
    const std::array<BotKind, kTeams> who = {static_cast<BotKind>(controllers[i * kTeams]),
                                             static_cast<BotKind>(controllers[i * kTeams + 1])};
    Game& game = *games_[i];
    auto& chosen = chosen_[i];
    auto& earlier = earlier_[i];
    chosen.clear();
    earlier.clear();
    do {
      if (!chosen.empty()) {
        const std::span<const Event> events = game.state().world.last_events();
        earlier.insert(earlier.end(), events.begin(), events.end());
      }
      game.step(actions + i * row, who, &chosen.emplace_back(), ahead);
    } while (game.state().world.winner == Winner::None &&
             !policies_choose(game.state().world, game.setup().settings));
    write(i, thread, false, ahead);
  });
}

std::vector<Event> VecGame::events(int i) const {
  std::vector<Event> all = earlier_[i];
  const std::span<const Event> last = games_[i]->state().world.last_events();
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

void VecGame::step_commands(const std::vector<int>& which, const std::array<Command, kMaxHeroes>* commands) {
  const std::lock_guard lock(busy_);
  pool_.run(static_cast<int>(which.size()), [&](int thread, int k, int next) {
    const int i = which[k];
    PrefetchQueue* const ahead = queue_prefetches(thread, next < 0 ? -1 : which[next]);
    earlier_[i].clear();
    games_[i]->step_commands(commands[k], ahead);
    write(i, thread, false, ahead);
  });
}

void VecGame::write(int i) {
  const std::lock_guard lock(busy_);
  write(i, 0, true);
}

void VecGame::finish(int i) {
  const std::lock_guard lock(busy_);
  write(i, 0, false);
}

void VecGame::encode(int game, int team, int thread, PrefetchQueue* ahead) {
  const Layout& l = games_[game]->setup().layout;
  const std::size_t heroes = l.heroes, at = game * kTeams + team;
  TeamStepBuffers out;
  if (packed_) {
    packed_->room(thread, out);
  } else {
    out.shared = buffers_.shared + at * l.width(ObsArray::Shared);
    out.private_ = buffers_.private_ + at * heroes * l.width(ObsArray::Private);
  }
  out.shared_ids = buffers_.shared_ids + at * l.width(ObsArray::SharedIds);
  out.private_ids = buffers_.private_ids + at * heroes * l.width(ObsArray::PrivateIds);
  out.available = buffers_.available + at * heroes * kMaxAvailable;
  out.target_mask = buffers_.target_mask + at * heroes * kMaskClasses * l.units;
  games_[game]->encode(team, encoders_[thread], out, ahead);
  if (packed_) packed_->pack(thread, game, team);
}

PrefetchQueue* VecGame::queue_prefetches(int thread, int next) {
  if (next < 0) return nullptr;
  PrefetchQueue& ahead = ahead_[thread];
  ahead.clear();
  games_[next]->queue_prefetches(ahead);
  return &ahead;
}

void VecGame::write(int game, int thread, bool keep_signals, PrefetchQueue* ahead) {
  Game& g = *games_[game];
  const Layout& l = g.setup().layout;
  const std::size_t heroes = l.heroes;
  for (int team = 0; team < kTeams; ++team) {
    const std::size_t at = game * kTeams + team;
    if (buffers_.available) encode(game, team, thread, ahead);
    if (!keep_signals) g.take_signals(team, buffers_.signals + at * heroes * kSignals);
    g.stats(team, buffers_.stats + at * heroes * kStatCount);
    for (std::size_t h = 0; h < heroes; ++h)
      buffers_.lineups[at * heroes + h] = g.setup().hero_outside(g.state().lineup[team * 5 + h]);
  }
  buffers_.game_time[game] = g.state().world.time;
  buffers_.winner[game] = static_cast<std::uint8_t>(g.state().world.winner);
}

}  // namespace dota
