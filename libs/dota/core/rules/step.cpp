#include <algorithm>
#include <bit>
#include <cmath>

#include "base/memory.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"
#include "rules/actions.hpp"
#include "rules/buildings.hpp"
#include "rules/courier.hpp"
#include "rules/creeps.hpp"
#include "rules/heroes.hpp"
#include "rules/orders.hpp"
#include "rules/runes.hpp"
#include "rules/scan.hpp"
#include "rules/signals.hpp"
#include "rules/step.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

void day_and_night(Context& c) {
  World& w = c.world;
  const Rules& r = c.tables.rules;
  const float cycle = r.day_length_s + r.night_length_s;
  const float t = w.time < 0 ? 0 : std::fmod(w.time, cycle);
  w.is_day = t < r.day_length_s;
}

void regenerate(Unit& u) {
  if (u.hp < u.max_hp && u.hits_left == 0) u.hp = std::min(u.max_hp, u.hp + u.hp_regen * kDt);
  if (u.mana < u.max_mana) u.mana = std::min(u.max_mana, u.mana + u.mana_regen * kDt);
}

// Returns whether lists are iterated backwards in this frame, chosen at random: heroes and creeps of a wave are
// adjacent in a list, and a fixed order would decide every tie (two attackers of a creep in one frame) for the
// same unit.
bool backwards(const World& w) {
  std::uint64_t h = w.seed + 0x9E3779B97F4A7C15ull * static_cast<std::uint64_t>(w.frame + 1);
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ull;
  return (h >> 40) & 1u;
}

void unit_frame(Context& c, Unit& u) {
  World& w = c.world;
  if (!u.alive) {
    if (u.stats_dirty && u.kind == UnitKind::Hero) refresh_stats(c, u);
    return;
  }
  if (u.stats_dirty) refresh_stats(c, u);
  regenerate(u);
  run_order(c, u);
  if (u.alive && u.expires != 0 && w.due(u.expires)) remove_unit(c, u);
}

void units_frame(Context& c) {
  World& w = c.world;
  const int end = w.units_end;
  const bool back = backwards(w);
  for (int i = 0; i < end; ++i)
    unit_frame(c, w.units[back ? end - 1 - i : i]);
}

// What decides a game besides a fallen Ancient.
void check_end(Context& c) {
  World& w = c.world;
  if (w.winner != Winner::None) return;
  const auto beaten = [&](int team) {
    if (c.settings.kills_to_win == 0) return false;
    int deaths = 0;
    for (int i = team * 5; i < team * 5 + 5; ++i)
      deaths += w.heroes[i].deaths;
    return deaths >= c.settings.kills_to_win;
  };
  const bool radiant = beaten(kRadiant), dire = beaten(kDire);
  if (radiant != dire)
    w.winner = radiant ? Winner::Dire : Winner::Radiant;
  else if (radiant || w.time >= c.settings.max_game_s)  // both in one frame, or neither in time
    w.winner = Winner::Draw;
}

void run_frame(Context& c) {
  World& w = c.world;
  ++w.frame;
  w.time = static_cast<float>(static_cast<double>(c.settings.start_s) + w.frame / 30.0);
  day_and_night(c);
  build_spatial(c);
  creeps_frame(c);
  neutrals_frame(c);
  roshan_frame(c);
  towers_frame(c);
  heroes_frame(c);
  courier_frame(c);
  runes_frame(c);
  units_frame(c);
  projectiles_frame(c);
  areas_frame(c);
  modifiers_frame(c);
  scans_frame(c);
  check_end(c);
  w.freed = {};
}

void remember_health(World& w) {
  const std::size_t slot = w.step_index % kHistory;
  for (int i = 0; i < w.units_end; ++i) {
    Unit& u = w.units[i];
    const float hp = u.alive ? u.hp : 0;
    if (u.kind != UnitKind::None &&
        std::bit_cast<std::uint32_t>(u.hp_history[slot]) != std::bit_cast<std::uint32_t>(hp))
      u.hp_history[slot] = hp;
  }
}

void notice_runes(World& w) {
  for (Pickup& p : w.pickups)
    for (int team = 0; team < kTeams; ++team)
      if (p.kind >= 0 && cell_visible(w, team, p.pos)) p.known[team] = p.present ? 1 : 2;
}

// Calls visit(memory, bytes) for what every frame reads. `unit_bytes`: how much of each unit.
template <class Visit>
void visit_frame_memory(const World& w, std::size_t unit_bytes, Visit&& visit) {
  visit(w.heroes.data(), sizeof w.heroes);
  for (std::size_t word = 0; word < UnitSet{}.size(); ++word) {
    std::uint64_t in_use = 0;
    for (std::size_t kind = 1; kind < w.of_kind.size(); ++kind)
      in_use |= w.of_kind[kind][word];
    for (; in_use; in_use &= in_use - 1)
      visit(&w.units[word * 64 + std::countr_zero(in_use)], unit_bytes);
  }
  visit(w.nav.cell.data(), w.units_end * sizeof w.nav.cell[0]);
  visit(w.nav.bodies.data(), w.units_end * sizeof(Body));
  visit(w.nav.head.data(), sizeof w.nav.head);
  visit(w.nav.held.data(), sizeof w.nav.held);
  visit(w.nav.blocked.data(), sizeof w.nav.blocked);
  for (std::size_t word = 0; word < w.modifiers_watched.size(); ++word)
    for (std::uint64_t bits = w.modifiers_watched[word]; bits; bits &= bits - 1)
      visit(&w.modifiers[word * 64 + std::countr_zero(bits)], 64);
  visit(w.projectiles.data(), w.projectiles_end * sizeof(Projectile));
}

// Calls visit(memory, bytes) for what the end of a timestep reads besides units.
template <class Visit>
void visit_end_memory(const World& w, Visit&& visit) {
  visit(&w.still, sizeof w.still);
  visit(&w.fog, sizeof w.fog);
  visit(w.visibility_caches.data(), w.units_end * sizeof(VisibilityCache));
}

// By the time a game has its turn again, the process's other games have evicted it from the near caches: all that
// every frame reads is prefetched at once, which is faster than to miss one line after the other.
void prefetch_step(const World& w) {
  visit_frame_memory(w, 3 * 64, prefetch_lines);
  each_unit<UnitKind::Hero>(w, [](const Unit& u) { prefetch_lines(&u, sizeof u); });
  each_building(w, [](const Unit& b) { prefetch_lines(&b.backdoor_until, sizeof b.backdoor_until); });
}

// Prefetches what a timestep ends with.
void prefetch_end(const World& w) {
  visit_end_memory(w, prefetch_lines);
  for (int i = 0; i < w.units_end; ++i)
    prefetch_lines(&w.units[i].hp_history, 4);
  each_building(w, [](const Unit& b) { prefetch_lines(&b.credited, sizeof b.credited); });
}

}  // namespace

void queue_step(const World& w, PrefetchQueue& ahead) {
  const auto add = [&](const void* memory, std::size_t bytes) { ahead.add(memory, bytes); };
  visit_frame_memory(w, sizeof(Unit), add);
  visit_end_memory(w, add);
}

void renew_derived(Context& c) {
  World& w = c.world;
  w.still = StillFog{};
  w.visibility_caches = {};
  w.nav.listed = false;
  renew_bodies(w);
  watch_modifiers(c);
}

void begin_step(Context& c) {
  prefetch_step(c.world);
  c.world.event_count = 0;
}

void step_frame(Context& c, int f) {
  World& w = c.world;
  const bool back = backwards(w);
  for (int i = 0; i < kMaxHeroes; ++i) {
    HeroState& h = w.heroes[back ? kMaxHeroes - 1 - i : i];
    if (h.in_game && h.pending.action != 0 && h.pending.delay == f) apply_command(c, h, h.pending);
  }
  run_frame(c);
}

void end_step(Context& c, const std::array<Command, kMaxHeroes>& commands) {
  World& w = c.world;
  for (std::size_t i = 0; i < kMaxHeroes; ++i) {
    w.heroes[i].pending = commands[i];
    if (policies_choose(w, c.settings)) w.heroes[i].previous = commands[i];
  }
  ++w.step_index;
  prefetch_end(w);
  update_vision(c);
  reveal_effects(c);
  notice_runes(w);
  remember_health(w);
  step_signals(c);
  if (w.winner != Winner::None)
    record_team_event(c, EventKind::Won,
                      w.winner == Winner::Radiant ? kRadiant
                      : w.winner == Winner::Dire  ? kDire
                                                  : kNeutralTeam);
}

void step_game(Context& c, const std::array<Command, kMaxHeroes>& commands) {
  if (c.world.winner != Winner::None) return;
  begin_step(c);
  for (int f = 0; f < kFramesPerStep && c.world.winner == Winner::None; ++f)
    step_frame(c, f);
  end_step(c, commands);
}

}  // namespace dota
