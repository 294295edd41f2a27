// The game's clocks and Roshan, as far as a team knows of them.
#include <algorithm>
#include <cmath>

#include "view/fill.hpp"
#include "world/game_rules.hpp"

namespace dota {

namespace {

// Seconds from `now` until the next multiple: first, first + every, ...
float until_next(float first, float every, float now) {
  if (now < first || every <= 0) return std::max(first - now, 0.0f);
  const float passed = std::fmod(now - first, every);
  return every - passed;
}
}  // namespace

void fill_clock(const Context& c, TeamView& v) {
  const World& w = c.world;
  const Rules& r = c.tables.rules;
  const GameRules& g = *c.tables.game;
  v.time = w.time;
  v.day = w.is_day;
  const float cycle = r.day_length_s + r.night_length_s;
  const float phase = w.time < 0 ? 0 : std::fmod(w.time, cycle);
  v.time_to_day_change =
      w.time < 0 ? r.day_length_s - w.time : (phase < r.day_length_s ? r.day_length_s - phase : cycle - phase);
  v.time_to_creeps = until_next(g.wave_first, g.wave_every, w.time);
  v.time_to_neutrals = c.settings.neutrals ? until_next(g.neutral_first, g.neutral_every, w.time) : 0;
  v.time_to_bounty = c.settings.runes ? until_next(g.bounty_first, g.bounty_every, w.time) : 0;
  v.time_to_runes = c.settings.runes ? until_next(g.power_first, g.power_every, w.time) : 0;
  v.enemy_courier_unseen = std::min(w.time - v.courier_seen_at, kLongest);
  v.kills = {w.teams[v.team].kills, w.teams[1 - v.team].kills};
  for (std::size_t i = 0; i < 2; ++i)
    v.glyph_cooldown[i] = left(w.teams[i == 0 ? v.team : 1 - v.team].glyph_ready, w.time);
  std::copy_n(w.teams[v.team].stock.begin(), v.stock.size(), v.stock.begin());
}

// Roshan's deaths are announced to both teams; his return is known only within its limits.
void fill_roshan(const Context& c, TeamView& v) {
  const World& w = c.world;
  const GameRules& g = *c.tables.game;
  v.roshan_spawn_min = v.roshan_spawn_max = v.roshan_max_hp = v.roshan_randomisation = 0;
  v.roshan_alive = v.roshan_cheese = v.roshan_refresher = false;
  v.roshan_dead = true;
  if (!c.settings.roshan || g.roshan_unit < 0) return;
  const bool died = w.roshan_kills > 0;
  const float earliest = died ? w.roshan_died + g.roshan_min : g.roshan_first;
  const float latest = died ? w.roshan_died + g.roshan_max : g.roshan_first;
  v.roshan_spawn_min = std::max(earliest - w.time, 0.0f);
  v.roshan_spawn_max = std::max(latest - w.time, 0.0f);
  v.roshan_dead = w.time < earliest;
  v.roshan_alive = w.time >= latest;
  const UnitDef& def = c.tables.units[g.roshan_unit];
  v.roshan_max_hp = def.hp + g.roshan_hp_min * std::max(w.time, 0.0f) / 60.0f;
  each_unit<UnitKind::Roshan>(w, [&](const Unit& u) {
    const int index = v.find(w.handle(u));
    if (index < 0) return;
    v.roshan_alive = true;
    v.roshan_dead = false;
    v.roshan_max_hp = v.units[index].max_hp;
  });
  v.roshan_randomisation = w.roshan_health_scale;
  const auto& drops = g.roshan_drops[std::min<int>(w.roshan_kills, 2)];
  for (const int item : drops) {
    const std::string& name = c.tables.items[item].name;
    v.roshan_cheese = v.roshan_cheese || name == "item_cheese";
    v.roshan_refresher = v.roshan_refresher || name == "item_refresher_shard";
  }
}

}  // namespace dota
