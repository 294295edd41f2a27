#include "vec/game.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "base/memory.hpp"
#include "effects/gold.hpp"
#include "map/map_data.hpp"
#include "rules/lineup.hpp"
#include "rules/step.hpp"
#include "rules/validate.hpp"
#include "vec/game_fault.hpp"

namespace dota {

namespace {

constexpr char kMagic[] = "FIVEGAM2";

std::uint64_t bot_state(std::uint64_t seed, int team) {
  return splitmix(seed + 0x626F74ull + static_cast<std::uint64_t>(team));
}

// Games of another layout, kind or other rules give other numbers: their snapshots do not fit.
std::uint64_t settings_of(const GameSetup& s) {
  const int numbers[] = {s.layout.units,
                         s.layout.heroes,
                         s.layout.width(ObsArray::Shared),
                         s.layout.width(ObsArray::Private),
                         static_cast<int>(s.vocabulary.defs.size()),
                         s.layout.table.mirror_dire ? 1 : 0};
  return mix_text(s.rules, mix_bytes(numbers, sizeof numbers, settings_fingerprint(s.settings)));
}

}  // namespace

GameSetup::GameSetup(std::shared_ptr<const Tables> t, const GameSettings& s, const LayoutTable& table,
                     const RegistryIds& i, const std::vector<std::string>& hero_pool, bool mirror)
    : tables(std::move(t)),
      settings(s),
      layout(table),
      ids(i),
      vocabulary(table.actions, ids.casts, *tables),
      mirror_match(mirror) {
  ids.check(*tables);
  if (layout.heroes != settings.heroes_per_team)
    throw std::runtime_error("the layout has " + std::to_string(layout.heroes) + " heroes a team, the game has " +
                             std::to_string(settings.heroes_per_team));
  for (const std::string& name : hero_pool) {
    const auto found = tables->hero_index.find("npc_dota_hero_" + name);
    if (found == tables->hero_index.end())
      throw std::runtime_error("hero_pool: '" + name + "' is not in patch " + tables->version);
    pool.push_back(found->second);
    Lineup alone;
    alone.fill(-1);
    alone[0] = found->second;
    const std::string refused = check_lineup(*tables, alone);
    if (!refused.empty()) throw std::runtime_error("hero_pool: " + refused);
  }
  if (static_cast<int>(pool.size()) < settings.heroes_per_team)
    throw std::runtime_error("hero_pool has " + std::to_string(pool.size()) + " heroes, a team needs " +
                             std::to_string(settings.heroes_per_team));
  settings.actions = &vocabulary;
  constants = make_constants(*tables, settings, vocabulary, ids);
  book = make_bot_book(*tables, vocabulary);
  constants.book = &book;
}

std::int16_t GameSetup::hero_outside(int hero) const {
  return static_cast<std::int16_t>(RegistryIds::of(ids.build, hero) - 1);
}

int GameSetup::hero_inside(std::int16_t outside) const {
  if (outside < 0) return -1;
  const auto found = std::find(ids.build.begin(), ids.build.end(), static_cast<std::uint16_t>(outside + 1));
  return static_cast<int>(found - ids.build.begin());
}

Lineup draw_lineup(const GameSetup& setup, std::uint64_t seed) {
  Rng rng;
  rng.state = splitmix(seed ^ 0x4C494E455550ull);
  Lineup out;
  out.fill(-1);
  const int n = setup.settings.heroes_per_team;
  for (int team = 0; team < kTeams; ++team) {
    std::vector<int> heroes = setup.pool;
    for (int i = 0; i < n; ++i) {
      const int pick = rng.between(i, static_cast<int>(heroes.size()) - 1);
      std::swap(heroes[i], heroes[pick]);
      out[team * 5 + i] = team == 1 && setup.mirror_match ? out[i] : heroes[i];
    }
  }
  return out;
}

Game::Game(const GameSetup& setup) : setup_(&setup), state_(std::make_unique<GameState>()) {}

void Game::reset(const GameSetup& setup, std::uint64_t seed, const Lineup& lineup) {
  setup_ = &setup;
  GameState& s = *state_;
  s.seed = seed;
  s.lineup = lineup;
  Context c = context();
  start_game(c, seed, lineup);
  for (int team = 0; team < kTeams; ++team) {
    reset_view(s.views[team], setup_->constants, team, setup_->layout.table.mirror_dire && team == kDire);
    s.memory[team] = {};
    s.bot_rng[team].state = bot_state(seed, team);
  }
  observe();
}

namespace {

void queue_view(const TeamView& v, PrefetchQueue& ahead) {
  const std::size_t units = v.unit_count;
  ahead.add(&v, offsetof(TeamView, units));
  ahead.add(v.units.data(), units * sizeof(SeenUnit));
  ahead.add(v.hp_histories.data(), units * sizeof(HpHistory));
  ahead.add(&v.index_of, sizeof v.index_of);
  ahead.add(&v.heroes, 2 * v.heroes_per_team * sizeof(SeenHero));
  ahead.add(&v.pickups, sizeof v.pickups);
  ahead.add(&v.seen_bits, sizeof v - offsetof(TeamView, seen_bits));
}

}  // namespace

void Game::queue_prefetches(PrefetchQueue& ahead) const {
  const GameState& s = *state_;
  queue_step(s.world, ahead);
  const std::size_t units = setup_->layout.units;
  for (std::size_t t = 0; t < kTeams; ++t) {
    queue_view(s.views[t], ahead);
    ahead.add(&s.slots[t].unit, units * sizeof(s.slots[t].unit[0]));
    ahead.add(&s.slots[t].handle, units * sizeof(Handle));
    ahead.add(&s.choices[t].available, sizeof(Available));
    for (int i = 0; i < setup_->layout.heroes; ++i)
      for (const auto& row : s.choices[t].mask[i])
        ahead.add(row.data(), units);
  }
}

void Game::observe(PrefetchQueue* ahead) {
  look(ahead);
  offer(ahead);
}

void Game::look(PrefetchQueue* ahead) {
  GameState& s = *state_;
  Context c = context();
  // The engine leaves the lines that views read besides, of attack, armor and health before, in far memory.
  const MapData& map = *c.tables.map;
  for (int i = 0; i < s.world.units_end; ++i) {
    const Unit& u = s.world.units[i];
    if (u.kind == UnitKind::None) continue;
    prefetch_lines(&u.armor, 4 * 64);
    prefetch_lines(&c.tables.units[u.type].projectile_speed, sizeof(float));
    if (const Cell at = cell_of(u.pos); at.inside()) prefetch_lines(&map.elevation[at.index()], 1);
  }
  fill_views(c, s.views, ahead);
}

void Game::offer(PrefetchQueue* ahead) {
  GameState& s = *state_;
  for (std::size_t t = 0; t < kTeams; ++t) {
    assign_slots(setup_->layout, s.views[t], s.slots[t]);
    prefetch_some(ahead);
    find_choices(s.views[t], s.slots[t], commitments(setup_->settings), s.choices[t]);
  }
}

void Game::step(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers,
                std::array<Command, kMaxHeroes>* chosen, PrefetchQueue* ahead) {
  std::array<Command, kMaxHeroes> commands{};
  choose(actions, controllers, commands);
  if (chosen) *chosen = commands;
  step_commands(commands, ahead);
}

void Game::choose(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers,
                  std::array<Command, kMaxHeroes>& commands) {
  GameState& s = *state_;
  const int n = setup_->settings.heroes_per_team;
  for (std::size_t t = 0; t < kTeams; ++t) {
    if (controllers[t] == BotKind::Policy) {
      if (!policies_choose(s.world, setup_->settings)) continue;
      decode(actions, t, s.choices[t].available, s.slots[t], commands);
      continue;
    }
    std::array<Command, 5> out{};
    const auto command = [&](const Choices& choices) {
      bot_command(controllers[t], s.views[t], s.slots[t], choices, s.memory[t], s.bot_rng[t], out);
    };
    if (const Commitments commit = commitments(setup_->settings); commit.any()) {
      Choices free;  // bots are not bound
      find_free_choices(s.views[t], s.slots[t], commit, s.choices[t], free);
      command(free);
    } else {
      command(s.choices[t]);
    }
    for (int i = 0; i < n; ++i)
      commands[t * 5 + i] = out[i];
  }
}

void Game::decode(const std::int16_t* actions, std::size_t team, const Available& available,
                  const SlotTable& slots, std::array<Command, kMaxHeroes>& commands) const {
  const int n = setup_->settings.heroes_per_team;
  for (int i = 0; i < n; ++i) {
    int slot = -1;
    commands[team * 5 + i] =
        decode_action(actions + (static_cast<int>(team) * n + i) * kActionParts, setup_->vocabulary, available[i],
                      slots, state_->views[team].mirrored, &slot);
  }
}

void Game::step_commands(const std::array<Command, kMaxHeroes>& commands, PrefetchQueue* ahead) {
  if (state_->world.winner != Winner::None) return;
  advance(commands);
  observe(ahead);
}

void Game::advance(const std::array<Command, kMaxHeroes>& commands) {
  remember(commands);
  Context c = context();
  step_game(c, commands);
}

void Game::remember(const std::array<Command, kMaxHeroes>& commands) {
  GameState& s = *state_;
  if (!policies_choose(s.world, setup_->settings)) return;
  for (std::size_t i = 0; i < kMaxHeroes; ++i) {
    HeroState& h = s.world.heroes[i];
    if (!h.in_game) continue;
    h.previous = commands[i];
    std::uint8_t& since_move = s.views[i / 5].choices_since_move[i % 5];
    if (commands[i].action == kMove || commands[i].action == kFollow)
      since_move = 0;
    else if (since_move < 255)
      ++since_move;
    std::int16_t& previous = s.views[i / 5].previous_slots[i % 5];
    previous = -1;
    const Handle target = commands[i].teleport.index >= 0 ? commands[i].teleport : commands[i].target;
    if (target.index < 0) continue;
    const SlotTable& slots = s.slots[i / 5];
    for (int k = 0; k < slots.count; ++k)
      if (slots.handle[k] == target) {
        previous = static_cast<std::int16_t>(k);
        break;
      }
  }
}

void Game::encode(int team, Encoder& encoder, const TeamStepBuffers& out, PrefetchQueue* ahead) {
  fill_ground(context(), setup_->layout, state_->views[team]);
  encoder.encode(state_->views[team], state_->slots[team], state_->choices[team], out, ahead);
}

void Game::take_signals(int team, float* out) {
  for (int i = 0; i < setup_->settings.heroes_per_team; ++i) {
    HeroState& h = state_->world.heroes[team * 5 + i];
    std::copy(h.signals.begin(), h.signals.end(), out + i * kSignals);
    h.signals.fill(0);
  }
}

void Game::stats(int team, float* out) const {
  std::uint32_t dropped = 0;
  for (const std::uint32_t n : state_->world.dropped)
    dropped += n;
  const Context c{state_->world, *setup_->tables, setup_->settings};
  for (int i = 0; i < setup_->settings.heroes_per_team; ++i) {
    const HeroState& h = state_->world.heroes[team * 5 + i];
    const float row[kStatCount] = {static_cast<float>(h.last_hits),
                                   static_cast<float>(h.denies),
                                   static_cast<float>(h.kills),
                                   static_cast<float>(h.deaths),
                                   static_cast<float>(h.assists),
                                   net_worth(c, h),
                                   static_cast<float>(h.level),
                                   h.xp,
                                   h.damage_dealt,
                                   static_cast<float>(dropped)};
    std::copy_n(row, kStatCount, out + i * kStatCount);
  }
}

std::vector<std::uint8_t> Game::snapshot() const {
  std::vector<std::uint8_t> out(sizeof(SnapshotHead) + sizeof(GameState));
  std::uint8_t* payload = out.data() + sizeof(SnapshotHead);
  std::memcpy(payload, state_.get(), sizeof(GameState));
  // Addresses of this process mean nothing in another one.
  for (std::size_t t = 0; t < kTeams; ++t) {
    const auto at = reinterpret_cast<const std::uint8_t*>(&state_->views[t].constants) -
                    reinterpret_cast<const std::uint8_t*>(state_.get());
    std::memset(payload + at, 0, sizeof(ViewConstants));
  }
  const SnapshotHead head =
      snapshot_head(kMagic, setup_->tables->fingerprint, settings_of(*setup_), payload, sizeof(GameState));
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

void Game::branch(std::uint64_t seed, float building_health) {
  GameState& s = *state_;
  s.seed = s.world.seed = seed;
  s.world.rng.state = splitmix(seed);
  for (int team = 0; team < kTeams; ++team)
    s.bot_rng[team].state = bot_state(seed, team);
  for (int i = 0; i < s.world.units_end; ++i) {
    Unit& b = s.world.units[i];
    if (!is_building(b.kind) || !b.alive) continue;
    b.hp = std::max(b.hp * building_health, 1.0f);
    b.backdoor_hp = std::max(b.backdoor_hp * building_health, b.hp);
    b.credited = b.hp / b.max_hp;
  }
  observe();
}

void Game::restore(const std::uint8_t* bytes, std::size_t size, const std::vector<const GameSetup*>& setups) {
  const SnapshotHead head = read_snapshot_head(kMagic, bytes, size, sizeof(GameState));
  if (std::none_of(setups.begin(), setups.end(),
                   [&](const GameSetup* s) { return s->tables->fingerprint == head.data; }))
    throw std::invalid_argument(
        "snapshot: it was taken of a game with other data (another patch, or data that were "
        "corrected since)");
  const auto setup = std::find_if(setups.begin(), setups.end(), [&](const GameSetup* s) {
    return s->tables->fingerprint == head.data && settings_of(*s) == head.settings;
  });
  if (setup == setups.end())
    throw std::invalid_argument("snapshot: it was taken of a game with other settings or another layout");
  auto state = std::make_unique<GameState>();
  std::memcpy(static_cast<void*>(state.get()), bytes + sizeof head, sizeof(GameState));
  Context c{state->world, *(*setup)->tables, (*setup)->settings};
  for (const std::string& fault : {world_fault(c, state->world), game_fault(**setup, *state)})
    if (!fault.empty()) throw std::invalid_argument("snapshot: " + fault);
  renew_derived(c);
  state_ = std::move(state);
  setup_ = *setup;
  for (TeamView& v : state_->views)
    v.constants = setup_->constants;
}

}  // namespace dota
