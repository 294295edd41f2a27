#include "client/shadow.hpp"

#include <algorithm>
#include <cmath>

#include "map/nav.hpp"
#include "map/vision.hpp"
#include "rules/inventory.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr float kStep = kDt * kFramesPerStep;
constexpr int kLongGap = 1 << 20;  // timesteps

}  // namespace

Handle Shadow::unit_of(std::uint32_t handle) const {
  const int slot = handles_.slot_of(handle);
  if (slot < 0) return {};
  return game_.state().world.handle(game_.state().world.units[slot]);
}

int Shadow::hero_of_player(int player_id) const {
  for (std::size_t i = 0; i < kMaxHeroes; ++i)
    if (player_id >= 0 && player_id_[i] == player_id) return static_cast<int>(i);
  return -1;
}

// A game of the frame's heroes, whose units then come from frames.
bool Shadow::begin(const WorldState& s) {
  const int heroes = game_.setup().settings.heroes_per_team;
  Lineup lineup;
  lineup.fill(-1);
  player_id_.fill(-1);
  std::array<int, kTeams> seats{};
  for (const ClientPlayer& p : s.players) {
    // Frames of 2017 lack players' teams: the first five players are the Radiant's.
    const int team = p.team_id != 0 ? team_of(p.team_id) : p.player_id < 5 ? kRadiant : kDire;
    if (team >= kTeams || seats[team] >= heroes || p.player_id < 0 || p.hero_id == 0) continue;
    const int seat = team * 5 + seats[team]++;
    player_id_[seat] = p.player_id;
    lineup[seat] = std::max(names_.hero(p.hero_id), 0);  // a hero that the patch lacks looks like another one
  }
  if (seats[0] + seats[1] == 0) return false;
  game_.reset(game_.setup(), 0, lineup);
  team_ = team_of(s.team_id);
  handles_ = ClientHandles{};
  taken_ = 0;
  memory_ = {};
  enemy_glyph_ = {};
  enemy_glyph_before_ = -1;
  World& w = world();
  for (int i = 0; i < w.units_end; ++i) {
    Unit& u = w.units[i];
    u.modifiers = -1;
    if (u.kind == UnitKind::None) continue;
    memory_[i].kind = u.kind;
    if (u.kind == UnitKind::Courier)
      remove(u);
    else if (u.team != team_)
      u.status |= kUnseen;
  }
  w.teams[0].courier = w.teams[1].courier = Handle{};
  for (HeroState& h : w.heroes) {
    h.items = {};
    h.gold = h.reliable = 0;
    for (AbilityState& a : h.abilities)
      a.level = 0;
  }
  w.frame = 0;
  begun_ = true;
  return true;
}

void Shadow::take_clock(const WorldState& s, int steps) {
  World& w = world();
  before_ = w.time;
  w.time = s.dota_time;
  w.frame = static_cast<std::int32_t>(std::lround((w.time - game_.setup().settings.start_s) / kDt));
  // Between frames that were lost, health stayed as it was.
  for (int k = 1; k < std::min(steps, kHistory); ++k) {
    const std::size_t newest = w.step_index % kHistory;
    ++w.step_index;
    for (int i = 0; i < w.units_end; ++i)
      w.units[i].hp_history[w.step_index % kHistory] = w.units[i].hp_history[newest];
  }
  w.step_index = std::max<std::int32_t>(
      0, static_cast<std::int32_t>(std::lround((w.time - game_.setup().settings.start_s) / kStep)));
  constexpr float kSixOClock = 0.25f;  // of a day
  w.is_day = s.time_of_day >= kSixOClock && s.time_of_day < 3 * kSixOClock;
}

void Shadow::take_players(const WorldState& s) {
  World& w = world();
  std::array<int, kTeams> kills{};
  for (const ClientPlayer& p : s.players) {
    const int seat = hero_of_player(p.player_id);
    if (seat < 0) continue;
    HeroState& h = w.heroes[seat];
    h.kills = static_cast<std::uint16_t>(p.kills);
    h.deaths = static_cast<std::uint16_t>(p.deaths);
    h.assists = static_cast<std::uint16_t>(p.assists);
    h.respawn_at = w.time + std::max(p.respawn_time, 0.0f);
    kills[seat / 5] += static_cast<int>(std::min(p.kills, 255u));
    if (Unit* u = w.get(h.unit)) {
      if (u->alive && !p.is_alive) {
        u->hp = 0;
        u->act = Act::Dead;
      }
      u->alive = p.is_alive;
    }
  }
  for (std::size_t t = 0; t < kTeams; ++t)
    w.teams[t].kills = static_cast<std::uint8_t>(std::min(kills[t], 255));
}

// The own cooldown is exact. The enemy's is whole seconds until 2021: what is known of the moment at which it ends
// becomes narrower with every frame.
void Shadow::take_glyphs(const WorldState& s) {
  World& w = world();
  const GameRules& g = *game_.setup().tables->game;
  const auto used = [&](TeamState& t, float ready) {
    if (ready > t.glyph_ready + 1) t.glyph_until = ready - g.glyph_cooldown + g.glyph_duration;
    t.glyph_ready = ready;
  };
  // A unit that is under the enemy's glyph shows how long it lasts yet.
  float until = 0;
  for (const ClientUnit& m : s.units)
    for (const ClientModifier& told : s.modifiers_of(m))
      if (team_of(m.team_id) == 1 - team_ && told.name == kGlyphModifier) until = w.time + told.remaining_duration;
  TeamState &own = w.teams[team_], &enemy = w.teams[1 - team_];
  used(own, w.time + s.glyph_cooldown);
  const float left = s.glyph_cooldown_enemy;
  const bool whole = std::floor(left) == left;  // rounded up
  GlyphClock now{w.time + left - (whole ? 1.0f : 0.0f), w.time + left};
  if (until > 0) now.earliest = now.latest = until - g.glyph_duration + g.glyph_cooldown;
  const GlyphClock used_now{before_ + g.glyph_cooldown, w.time + g.glyph_cooldown};
  if (until <= 0 && left > 0 && enemy_glyph_before_ == 0 && used_now.latest >= now.earliest &&
      used_now.earliest <= now.latest)
    now = used_now;
  else if (now.earliest <= enemy_glyph_.latest && now.latest >= enemy_glyph_.earliest)
    now = {std::max(now.earliest, enemy_glyph_.earliest), std::min(now.latest, enemy_glyph_.latest)};
  enemy_glyph_ = now;
  enemy_glyph_before_ = left;
  used(enemy, left > 0 ? now.latest : std::min(enemy.glyph_ready, w.time));
  if (until > 0) enemy.glyph_until = until;
}

void Shadow::take_roshan(const WorldState& s) {
  World& w = world();
  if (s.roshan_killed == 0) return;
  w.roshan_kills = static_cast<std::uint8_t>(std::min<std::uint32_t>(w.roshan_kills + s.roshan_killed, 255u));
  w.roshan_died = w.time;
}

int Shadow::apply(const WorldState& s) {
  const World& now = world();
  const bool again = begun_ && (s.dota_time < now.time - 1 || team_of(s.team_id) != team_);
  int steps = 0;
  if (s.units.empty()) return -1;
  if (!begun_ || again) {
    if (!begin(s)) return -1;
  } else {
    const float gap = (s.dota_time - now.time) / kStep;
    steps = std::clamp(static_cast<int>(std::lround(std::min(gap, static_cast<float>(kLongGap)))), 1, kLongGap);
  }
  World& w = world();
  Context c = game_.context();
  w.freed = {};
  take_clock(s, steps);
  take_players(s);
  take_trees(s);
  list_units(s);
  take_units(s);
  take_teleports(s);
  take_projectiles(s);
  take_zones(s);
  take_runes(s);
  take_glyphs(s);
  take_roshan(s);
  restock(c);
  forget_units();
  refresh_nav(c);
  update_vision(c);
  light_up();
  take_fallen_buildings();
  refresh_nav(c);
  for (int i = 0; i < w.units_end; ++i)
    w.units[i].hp_history[w.step_index % kHistory] = w.units[i].alive ? w.units[i].hp : 0;
  ++taken_;
  return steps;
}

}  // namespace dota
