#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/math.hpp"
#include "effects/experience.hpp"
#include "effects/items.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"
#include "rules/courier.hpp"
#include "rules/lineup.hpp"
#include "rules/step.hpp"
#include "world/events.hpp"
#include "world/fingerprint.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

float gaussian(Rng& rng) {
  const float a = std::max(1e-7f, rng.uniform()), b = rng.uniform();
  return std::sqrt(-2 * ln(a)) * sin_cos(6.2831853f * b).cos;
}

// A factor around 1, never below a tenth.
float scatter(Rng& rng, float deviation) {
  return deviation > 0 ? std::max(0.1f, 1 + deviation * gaussian(rng)) : 1.0f;
}

void place_buildings(Context& c) {
  World& w = c.world;
  const MapData& map = *c.tables.map;
  for (std::size_t i = 0; i < map.buildings.size(); ++i) {
    const MapBuilding& b = map.buildings[i];
    Unit* u = spawn_unit(c, b.unit, b.team, b.pos, b.team == kRadiant ? 0.785f : -2.356f);
    if (!u) continue;
    u->lane = static_cast<std::int8_t>(b.lane);
    u->tier = static_cast<std::uint8_t>(b.tier);
    u->building = static_cast<std::uint8_t>(i + 1);
    u->shrine_ready = c.tables.game->shrine_first;
    u->backdoor_until = -1e9f;
    u->backdoor_hp = u->max_hp;
    w.buildings_standing |= 1ull << i;
    if (b.kind == UnitKind::Fort) w.teams[b.team].fort = w.handle(*u);
  }
}

// An item that this hero buys goes in before the rest of his build; one that the build has anyway comes there and
// not a second time.
void insert_item(Context& c, HeroState& h, const HeroDef& def) {
  std::vector<int> pool;
  for (const int item : def.item_pool)
    if (item_supported(c.tables, item)) pool.push_back(item);
  if (pool.empty()) return;
  const int item = pool[c.world.rng.below(static_cast<int>(pool.size()))];
  h.build_insert = static_cast<std::int16_t>(item);
  const auto at = std::find(def.item_order.begin(), def.item_order.end(), item) - def.item_order.begin();
  if (at < std::min<std::ptrdiff_t>(std::ssize(def.item_order), 32)) h.build_skip |= 1u << at;
}

// Each of the buyer's targets for this hero, and the time until which it keeps them: as set, or drawn, charges
// from none to twice as many.
void draw_consumables(Context& c, HeroState& h) {
  const GameSettings& s = c.settings;
  Rng& rng = c.world.rng;
  const auto drawn = [&] { return s.random_consumables > 0 && rng.uniform() < s.random_consumables; };
  const std::array<int, kKept> set{s.keep_tango, s.keep_salve, s.keep_clarity, s.keep_teleport};
  for (std::size_t k = 0; k < kKept; ++k)
    h.keep[k] = static_cast<std::uint8_t>(drawn() ? rng.below(2 * set[k] + 1) : set[k]);
  h.keep_until = drawn() ? rng.uniform() * s.consumables_until_s : s.consumables_until_s;
}

// Berner et al. 2019, appendix O.2: what the game varies at the start. The magnitudes are the settings'.
void randomise_hero(Context& c, HeroState& h, Unit& u) {
  World& w = c.world;
  const GameSettings& s = c.settings;
  const HeroDef& def = c.tables.heroes[h.def];
  const UnitDef& body = c.tables.units[u.type];
  Rng& rng = w.rng;
  for (std::size_t k = 0; k < 3; ++k)
    u.extra_attr[k] = def.base[k] * (scatter(rng, s.random_attributes) - 1);
  if (s.random_armor > 0) u.extra_armor = s.random_armor * gaussian(rng);
  u.extra_ms = body.move_speed * (scatter(rng, s.random_move_speed) - 1);
  if (s.random_hp_regen > 0) u.extra_hp_regen = s.random_hp_regen * std::fabs(gaussian(rng));
  if (s.random_mana_regen > 0) u.extra_mana_regen = s.random_mana_regen * std::fabs(gaussian(rng));
  if (s.random_magic_resist > 0) u.extra_mr = std::clamp(s.random_magic_resist * gaussian(rng), -25.0f, 25.0f);
  h.gold *= scatter(rng, s.random_gold);
  h.income = h.gold;
  const auto& table = c.tables.rules.xp_for_level;
  float xp = 0;
  if (s.random_xp > 0) {  // mean of an exponential, in levels
    const float levels =
        std::min(static_cast<float>(c.tables.game->max_level) - 1, -s.random_xp * ln(1 - rng.uniform()));
    const auto whole = static_cast<std::size_t>(levels);
    const std::size_t next = std::min(whole + 1, table.size() - 1);
    xp = table[whole] + (table[next] - table[whole]) * (levels - static_cast<float>(whole));
  }
  if (xp > 0) give_xp(c, h, xp);
  for (std::size_t k = 0; k < def.item_order.size() && k < 32; ++k)
    if (s.random_item_drop > 0 && rng.uniform() < s.random_item_drop) h.build_skip |= 1u << k;
  if (s.random_item_insert > 0 && rng.uniform() < s.random_item_insert) insert_item(c, h, def);
  for (std::size_t k = 0; k + 1 < def.skill_build.size() && k < 31; ++k)
    if (s.random_skill > 0 && rng.uniform() < s.random_skill) h.skill_swaps |= 1u << k++;  // pairs do not overlap
  if (s.random_lane > 0 && rng.uniform() < s.random_lane) {
    h.lanes_allowed = static_cast<std::uint8_t>(1 + rng.below(6));
    h.lanes_until = rng.uniform() * s.random_lane_until_s;
  }
  draw_consumables(c, h);
}

void place_hero(Context& c, int index, int def_index) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const HeroDef& def = c.tables.heroes[def_index];
  HeroState& h = w.heroes[index];
  const int team = index / 5;
  const Vec2 home = c.tables.map->hero_spawn[team];
  const float angle = 6.2831853f * static_cast<float>(index % 5) / 5;
  const Vec2 pos = free_place(w, *c.tables.map, home + heading(angle) * 100, 24);
  h.def = static_cast<std::int16_t>(def_index);
  h.build_id = static_cast<std::uint16_t>(def_index);  // the data hold one build a hero
  h.in_game = true;
  h.gold = c.tables.rules.start_gold;
  h.ability_points = 1;
  h.hurt_by.fill(-99);
  Unit* u = spawn_unit(c, def.unit, team, pos, team == kRadiant ? 0.785f : -2.356f);
  if (!u) return;
  u->hero = static_cast<std::int8_t>(index);
  u->spawn = home;
  h.unit = w.handle(*u);
  for (std::size_t k = 0; k < def.abilities.size() && k < kAbilitySlots; ++k)
    h.abilities[k].id = static_cast<std::int16_t>(def.abilities[k]);
  for (int t = 0; t < kTeams; ++t) {
    h.seen_pos[t] = pos;
    h.seen_at[t] = t == team ? w.time : -1e9f;
  }
  randomise_hero(c, h, *u);
  for (int item : def.item_start) {
    const ItemDef& bought = c.tables.items[item];
    if (!item_supported(c.tables, item) || h.gold < static_cast<float>(bought.cost)) continue;
    if (place_item(c, h, item, bought.initial_charges, false)) {
      h.gold -= static_cast<float>(bought.cost);
      h.spent += static_cast<float>(bought.cost);
      record_event(c, EventKind::Bought, *u, nullptr, item, static_cast<float>(bought.cost));
    }
  }
  for (int k = 0; g.tp_item >= 0 && k < g.free_scrolls; ++k)
    place_item(c, h, g.tp_item, 1, false);
  learn_skills(c, h);
  apply_learned(c, *u);
  refresh_stats(c, *u);
  u->hp = u->max_hp;
  u->mana = u->max_mana;
  u->hp_history.fill(u->hp);
  h.signals.fill(0);
}

}  // namespace

void start_game(Context& c, std::uint64_t seed, const std::array<int, kMaxHeroes>& lineup) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const GameSettings& s = c.settings;
  new (&w) World();
  w.seed = seed;
  w.rng.state = splitmix(seed);  // neighbouring seeds start far apart
  w.time = s.start_s;
  w.heroes_per_team = static_cast<std::uint8_t>(s.heroes_per_team);
  w.next_wave = g.wave_first;
  w.next_bounty = g.bounty_first;
  w.next_power_rune = g.power_first;
  w.roshan_respawn = g.roshan_first;
  for (Camp& camp : w.camps)
    camp.next_spawn = g.neutral_first;
  for (std::size_t k = 0; k < kStocked; ++k)
    for (TeamState& t : w.teams) {
      const int item = g.stock_items[k];
      if (item < 0) continue;
      t.stock[k] = static_cast<std::int8_t>(c.tables.items[item].stock_initial);
      t.stock_next[k] = std::max(w.time + c.tables.items[item].stock_time, c.tables.items[item].stock_first_s);
    }
  build_spatial(c);
  for (TeamState& t : w.teams) {
    t.glyph_ready = g.glyph_first;
    t.scan_ready = g.scan_first;
  }
  if (s.random_roshan > 0) w.roshan_health_scale = std::max(0.01f, w.rng.uniform());
  for (int i = 0; i < kMaxHeroes; ++i)
    if (lineup[i] >= 0 && i % 5 < s.heroes_per_team) place_hero(c, i, lineup[i]);
  place_buildings(c);
  for (TeamState& t : w.teams)
    t.courier_respawn = w.time;  // courier_frame() sends them out
  build_spatial(c);
  courier_frame(c);
  update_vision(c);
  reveal_effects(c);
}

}  // namespace dota
