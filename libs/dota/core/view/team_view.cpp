#include "view/team_view.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <vector>

#include "map/map_data.hpp"
#include "world/game_rules.hpp"

namespace dota {

namespace {

float left(float until, float now) { return std::clamp(until - now, 0.0f, kForever); }

// Seconds from `now` until the next multiple: first, first + every, ...
float until_next(float first, float every, float now) {
  if (now < first || every <= 0) return std::max(first - now, 0.0f);
  const float passed = std::fmod(now - first, every);
  return every - passed;
}

float physical_resistance(const Rules& r, float armor) {
  return r.armor_a * armor / (r.armor_b + r.armor_c * std::fabs(armor));
}

int seen_hero_index(const TeamView& v, int world_hero) {
  const int team = world_hero / 5, place = world_hero % 5;
  return team == v.team ? place : v.heroes_per_team + place;
}

template <std::size_t N>
std::uint8_t fill_modifiers(const World& w, const Unit& u, std::array<SeenModifier, N>& out) {
  std::size_t n = 0;
  for (std::int16_t i = u.modifiers; i >= 0 && n < N; i = w.modifiers[static_cast<std::size_t>(i)].next) {
    const Modifier& m = w.modifiers[static_cast<std::size_t>(i)];
    if (m.name < 0) continue;
    out[n++] = {m.name, m.stacks, left(m.until, w.time)};
  }
  return static_cast<std::uint8_t>(n);
}

void fill_unit(const Context& c, const TeamView& v, const Unit& u, SeenUnit& s) {
  const World& w = c.world;
  const UnitDef& def = c.tables.units[u.type];
  s.handle = w.handle(u);
  s.kind = u.kind;
  s.side = u.team == v.team ? Side::Own : (u.team == kNeutralTeam ? Side::Neutral : Side::Enemy);
  s.hero = static_cast<std::int8_t>(u.hero < 0 ? -1 : seen_hero_index(v, u.hero));
  s.lane = u.lane;
  s.tier = u.tier;
  s.building = u.building;
  s.visible = true;
  s.melee = def.projectile_speed <= 0;
  s.act = u.act;
  s.type = u.type;
  s.status = u.status;
  s.pos = u.pos;
  s.velocity = u.velocity;
  s.level = static_cast<std::int8_t>(elevation(*c.tables.map, u.pos));
  s.facing = u.facing;
  s.radius = u.radius;
  s.hp = u.alive ? u.hp : 0;
  s.max_hp = u.max_hp;
  s.damage = 0.5f * (u.dmg_min + u.dmg_max) + u.dmg_bonus;
  s.attack_speed = u.attack_speed;
  s.attack_range = u.attack_range;
  s.attack_interval = u.attack_interval;
  s.physical_resistance = physical_resistance(c.tables.rules, u.armor);
  s.move_speed = u.move_speed;
  s.since_attack = std::clamp(w.time - u.last_attack, 0.0f, kForever);
  const bool timed = u.act != Act::Idle && u.act != Act::Walk && u.act != Act::Dead;
  s.act_left = timed ? left(u.act_until, w.time) : 0;
  s.shrine_cooldown = u.kind == UnitKind::Shrine ? left(u.shrine_ready, w.time) : 0;
  const bool fortified = u.team < kTeams && (u.building > 0 || u.kind == UnitKind::LaneCreep);
  s.glyph_left = fortified ? left(w.teams[u.team].glyph_until, w.time) : 0;
  if (s.glyph_left > 0) s.status |= kGlyphed;
  const bool swinging = u.act == Act::AttackWindup || u.act == Act::AttackBackswing;
  s.attacking = u.alive && (swinging || (s.since_attack < u.attack_interval && w.get(u.attack_target)));
  s.attack_target = s.attacking ? u.attack_target : Handle{};
  s.invulnerable = (u.status & kInvulnerable) || (u.building > 0 && building_protected(c, u));
  s.tower_eta = s.ranged_creep_eta = 0;
  s.melee_creeps_attacking = 0;
  s.modifier_count = u.hero >= 0 ? 0 : fill_modifiers(w, u, s.modifiers);
}

void fill_history(const World& w, const Unit& u, std::uint16_t seen, SeenUnit& s) {
  float last = s.hp;
  for (int k = 0; k < kHistory; ++k) {
    if ((seen >> k) & 1u)
      last = k == 0 ? s.hp : u.hp_history[static_cast<std::size_t>((w.step_index - k + kHistory * 2) % kHistory)];
    s.hp_history[static_cast<std::size_t>(k)] = last;
  }
}

void fill_units(Context& c, TeamView& v) {
  const World& w = c.world;
  v.unit_count = 0;
  v.index_of.fill(-1);
  for (int i = 0; i < w.units_end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Unit& u = w.units[at];
    if (u.kind == UnitKind::None) {
      v.seen_bits[at] = 0;
      continue;
    }
    if (v.seen_generation[at] != u.generation) {
      v.seen_generation[at] = u.generation;
      v.seen_bits[at] = 0;
    }
    v.seen_bits[at] = static_cast<std::uint16_t>(v.seen_bits[at] << 1);
    const bool own = u.team == v.team;
    if (!own && (!u.alive || !unit_visible(w, v.team, u))) continue;
    if (!u.alive && u.hero < 0) continue;
    v.seen_bits[at] |= 1u;
    SeenUnit& s = v.units[static_cast<std::size_t>(v.unit_count)];
    fill_unit(c, v, u, s);
    fill_history(w, u, v.seen_bits[at], s);
    v.index_of[at] = v.unit_count++;
    if (!own && u.kind == UnitKind::Courier) v.courier_seen_at = w.time;
  }
}

void fill_projectiles(const Context& c, TeamView& v) {
  const World& w = c.world;
  v.projectile_count = 0;
  for (int i = 0; i < w.projectiles_end && v.projectile_count < kViewProjectiles; ++i) {
    const Projectile& p = w.projectiles[static_cast<std::size_t>(i)];
    if (p.kind == Projectile::Kind::None) continue;
    if (p.team != v.team && !cell_visible(w, v.team, p.pos)) continue;
    SeenProjectile& s = v.projectiles[static_cast<std::size_t>(v.projectile_count++)];
    s = SeenProjectile{};
    s.source = p.source;
    s.target = p.target;
    s.kind = p.kind;
    s.side = p.team == v.team ? Side::Own : (p.team == kNeutralTeam ? Side::Neutral : Side::Enemy);
    s.pos = p.pos;
    s.direction = p.direction;
    s.speed = p.speed;
    s.ability = p.ability;
    const int target = p.disjointed ? -1 : v.find(p.target);
    if (target < 0 || p.speed <= 0) continue;
    SeenUnit& hit = v.units[static_cast<std::size_t>(target)];
    s.eta = std::max(distance(p.pos, hit.pos) / p.speed, kDt);
    const Unit* source = w.get(p.source);
    if (!source || p.kind != Projectile::Kind::Attack) continue;
    s.source_tower = source->kind == UnitKind::Tower;
    s.source_ranged_creep = source->kind == UnitKind::LaneCreep;
    float* soonest = s.source_tower ? &hit.tower_eta : (s.source_ranged_creep ? &hit.ranged_creep_eta : nullptr);
    if (soonest && (*soonest <= 0 || s.eta < *soonest)) *soonest = s.eta;
  }
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& s = v.units[static_cast<std::size_t>(i)];
    if (s.kind != UnitKind::LaneCreep || !s.melee || !s.attacking) continue;
    const int target = v.find(s.attack_target);
    if (target >= 0) ++v.units[static_cast<std::size_t>(target)].melee_creeps_attacking;
  }
}

void fill_areas(const Context& c, TeamView& v) {
  const World& w = c.world;
  v.area_count = 0;
  for (const Area& a : w.areas) {
    if (!a.active || v.area_count >= kViewAreas) continue;
    if (a.team != v.team && !cell_visible(w, v.team, a.pos)) continue;
    SeenArea& s = v.areas[static_cast<std::size_t>(v.area_count++)];
    s.side = a.team == v.team ? Side::Own : (a.team == kNeutralTeam ? Side::Neutral : Side::Enemy);
    s.pos = a.pos;
    s.radius = a.radius;
    s.starts_in = left(a.start, w.time);
    s.remaining = left(a.until, w.time);
    s.ability = a.ability;
  }
}

void fill_pickups(const Context& c, TeamView& v) {
  const World& w = c.world;
  for (int i = 0; i < kMaxPickups; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Pickup& p = w.pickups[at];
    SeenPickup& s = v.pickups[at];
    const bool seen = cell_visible(w, v.team, p.pos);
    s.pos = p.pos;
    s.status = p.known[v.team];
    if (i < static_cast<int>(c.tables.map->bounty_runes.size()))
      s.kind = static_cast<std::int8_t>(PickupKind::Bounty);
    else if (s.status != 1)
      s.kind = -1;
    else if (seen && p.present)
      s.kind = p.kind;
  }
}

// What only a seen hero shows.
void fill_hero_body(const Context& c, const HeroState& h, const Unit& u, bool own, SeenHero& s) {
  const World& w = c.world;
  s.mana = u.mana;
  s.max_mana = u.max_mana;
  s.mana_regen = u.mana_regen;
  s.hp_regen = u.hp_regen;
  s.magic_resistance = u.magic_resist;
  s.attributes = {u.str, u.agi, u.intellect};
  s.invisible = (u.status & kInvisible) != 0;
  const bool casting = u.act == Act::CastWindup || u.act == Act::CastBackswing || u.act == Act::Channel;
  s.using_ability = u.alive && casting;
  s.modifier_count = fill_modifiers(w, u, s.modifiers);
  s.teleporting = false;
  s.teleport_target = {};
  s.teleport_time = 0;
  if (u.alive && u.act == Act::Channel) {
    const AbilityDef* a = slot_ability(c, u, u.order.slot, nullptr);
    if (a && a->target == TargetType::Teleport) {
      s.teleporting = true;
      s.teleport_target = u.order.point;
      s.teleport_time = left(u.act_until, w.time);
    }
  }
  for (int i = 0; i < kAbilitySlots; ++i) {
    const AbilityState& a = h.abilities[static_cast<std::size_t>(i)];
    SeenAbility& o = s.abilities[static_cast<std::size_t>(i)];
    o = {a.id,
         a.level,
         a.charges,
         a.id >= 0 && u.alive && castable(c, u, i),
         false,
         a.toggled,
         left(a.ready, w.time)};
    o.in_use = a.toggled || (s.using_ability && u.order.slot == i);
  }
  for (int i = 0; i < kItemSlots; ++i) {
    SeenItem& o = s.items[static_cast<std::size_t>(i)];
    o = SeenItem{};
    // Backpack and stash are shown to no one but the owner's team.
    if (!own && i >= kInventory && i != kTpSlot) continue;
    const ItemState& it = h.items[static_cast<std::size_t>(i)];
    if (it.id < 0) continue;
    const bool usable = i < kInventory || i == kTpSlot;
    o = {it.id,
         it.charges,
         it.toggle,
         usable && u.alive && castable(c, u, 16 + i),
         left(it.ready, w.time),
         left(it.enabled_at, w.time)};
  }
}

void fill_own_hero(const Context& c, const TeamView& v, const HeroState& h, const Unit& u, SeenHero& s) {
  const World& w = c.world;
  const GameSettings& g = c.settings;
  s.gold = h.gold + h.reliable;
  s.can_buyback = can_buyback(c, h);
  s.buyback_cost = buyback_cost(c, h);
  s.buyback_cooldown = left(h.buyback_ready, w.time);
  s.lanes_allowed = w.time < h.lanes_until ? h.lanes_allowed : 7;
  s.build_id = h.build_id;
  const HeroDef& def = c.tables.heroes[static_cast<std::size_t>(h.def)];
  const auto next = static_cast<std::size_t>(std::max<int>(h.build_next, 0));
  s.next_item = static_cast<std::int16_t>(next < def.item_order.size() ? def.item_order[next] : -1);
  const float order = static_cast<float>(std::max<std::size_t>(def.item_order.size(), 1));
  s.purchase = {static_cast<float>(g.keep_tango),
                static_cast<float>(g.keep_salve),
                static_cast<float>(g.keep_clarity),
                static_cast<float>(g.keep_teleport),
                left(g.consumables_until_s, std::max(w.time, 0.0f)) / kForever,
                static_cast<float>(std::popcount(h.build_skip)) / order,
                h.build_insert >= 0 ? 1.0f : 0.0f};
  s.previous = h.previous;
  s.previous_slot = h.previous_target_slot;
  const std::int8_t turn = v.mirrored ? -1 : 1;
  s.previous_offset = {static_cast<std::int8_t>(h.previous.dx * turn),
                       static_cast<std::int8_t>(h.previous.dy * turn)};
  s.tree_near = false;
  s.rune_near = -1;
  if (!u.alive) return;
  for (int i = 0; i < kInventory; ++i) {
    if (!s.items[static_cast<std::size_t>(i)].castable) continue;
    const AbilityDef* a = slot_ability(c, u, 16 + i, nullptr);
    if (a && a->target_tree)
      s.tree_near = s.tree_near || tree_at(w, *c.tables.map, u.pos, a->at(a->cast_range, 1) + kWalkMargin) >= 0;
  }
  float nearest = kWalkMargin;
  for (int i = 0; i < kMaxPickups; ++i) {
    const SeenPickup& p = v.pickups[static_cast<std::size_t>(i)];
    if (p.status != 1 || distance(p.pos, u.pos) > nearest) continue;
    nearest = distance(p.pos, u.pos);
    s.rune_near = static_cast<std::int8_t>(i);
  }
}

void fill_heroes(const Context& c, TeamView& v) {
  const World& w = c.world;
  const int n = v.heroes_per_team;
  for (int i = 0; i < 2 * n; ++i) {
    const bool own = i < n;
    const int team = own ? v.team : 1 - v.team;
    const HeroState& h = w.heroes[static_cast<std::size_t>(team * 5 + i % n)];
    SeenHero& s = v.heroes[static_cast<std::size_t>(i)];
    s.present = h.in_game;
    s.unit = -1;
    if (!h.in_game) continue;
    const Unit* u = w.get(h.unit);
    s.def = h.def;
    s.deaths = h.deaths;
    s.level = h.level;
    s.alive = u && u->alive;
    s.respawn_time = s.alive ? 0 : left(h.respawn_at, w.time);
    const int index = v.find(h.unit);
    s.in_sight = s.alive && index >= 0;
    if (own) {
      s.unit = static_cast<std::int16_t>(index);
      s.since_seen = 0;
      if (u) {
        fill_hero_body(c, h, *u, true, s);
        fill_own_hero(c, v, h, *u, s);
      }
      continue;
    }
    const auto e = static_cast<std::size_t>(i - n);
    if (s.in_sight) {
      fill_hero_body(c, h, *u, false, s);
      v.remembered[e] = v.units[static_cast<std::size_t>(index)];
      v.enemy_seen_at[e] = w.time;
      s.unit = static_cast<std::int16_t>(index);
      s.since_seen = 0;
      continue;
    }
    s.since_seen = std::min(w.time - v.enemy_seen_at[e], kForever);
    s.teleporting = s.using_ability = false;
    SeenUnit& body = v.remembered[e];
    if (body.kind == UnitKind::None) {  // never seen: it began at its fountain, as everyone knows
      const UnitDef& def =
          c.tables.units[static_cast<std::size_t>(c.tables.heroes[static_cast<std::size_t>(h.def)].unit)];
      body.kind = UnitKind::Hero;
      body.side = Side::Enemy;
      body.type = static_cast<std::uint16_t>(c.tables.heroes[static_cast<std::size_t>(h.def)].unit);
      body.pos = c.tables.map->hero_spawn[static_cast<std::size_t>(team)];
      body.hp = body.max_hp = def.hp;
      body.hp_history.fill(def.hp);
      body.move_speed = def.move_speed;
      body.radius = def.hull_radius;
    }
    body.hero = static_cast<std::int8_t>(i);
    body.visible = body.attacking = false;
    body.attack_target = {};
    body.act = Act::Idle;
    body.velocity = {};
    body.tower_eta = body.ranged_creep_eta = 0;
    body.melee_creeps_attacking = 0;
    if (!s.alive) body.hp = 0;
    s.unit = v.unit_count;
    v.units[static_cast<std::size_t>(v.unit_count++)] = body;
  }
}

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
  v.enemy_courier_unseen = std::min(w.time - v.courier_seen_at, kForever);
  v.kills = {w.teams[v.team].kills, w.teams[1 - v.team].kills};
  for (std::size_t i = 0; i < 2; ++i)
    v.glyph_cooldown[i] = left(w.teams[i == 0 ? v.team : 1 - v.team].glyph_ready, w.time);
  v.stock = w.teams[v.team].stock;
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
  const UnitDef& def = c.tables.units[static_cast<std::size_t>(g.roshan_unit)];
  v.roshan_max_hp = def.hp + g.roshan_hp_min * std::max(w.time, 0.0f) / 60.0f;
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& s = v.units[static_cast<std::size_t>(i)];
    if (s.kind != UnitKind::Roshan) continue;
    v.roshan_alive = true;
    v.roshan_dead = false;
    v.roshan_max_hp = s.max_hp;
  }
  v.roshan_randomisation = w.roshan_health_scale;
  const auto& drops = g.roshan_drops[static_cast<std::size_t>(std::min<int>(w.roshan_kills, 2))];
  for (const int item : drops) {
    const std::string& name = c.tables.items[static_cast<std::size_t>(item)].name;
    v.roshan_cheese = v.roshan_cheese || name == "item_cheese";
    v.roshan_refresher = v.roshan_refresher || name == "item_refresher_shard";
  }
}

bool passable(const World& w, Cell cell) { return cell.inside() && !nav_blocked(w, cell.index()); }

void fill_terrain(const Context& c, const Layout& layout, TeamView& v) {
  const World& w = c.world;
  const MapData& map = *c.tables.map;
  const int near = layout.table.nearby_map, pass = layout.table.passability;
  // Around a body the passability grid has one cell more on one side; a turned reader sees that side turned too.
  const int first = v.mirrored ? -pass / 2 + 1 - pass % 2 : -pass / 2;
  for (int h = 0; h < v.heroes_per_team; ++h) {
    const SeenUnit* body = v.body(h);
    if (!body) continue;
    const auto at = static_cast<std::size_t>(h);
    const Cell center = cell_of(body->pos);
    for (int y = 0; y < pass; ++y)
      for (int x = 0; x < pass; ++x)
        v.passable[at][static_cast<std::size_t>(y * pass + x)] =
            passable(w, {center.x + first + x, center.y + first + y}) ? 1 : 0;
    for (int y = 0; y < near; ++y)
      for (int x = 0; x < near; ++x) {
        const Vec2 p{body->pos.x + (static_cast<float>(x) + 0.5f - 0.5f * static_cast<float>(near)) * kNearbyCell,
                     body->pos.y + (static_cast<float>(y) + 0.5f - 0.5f * static_cast<float>(near)) * kNearbyCell};
        const Cell cell = cell_of(p);
        const auto i = static_cast<std::size_t>(y * near + x);
        v.nearby_passable[at][i] = passable(w, cell) ? 1 : 0;
        v.nearby_level[at][i] =
            cell.inside() ? map.elevation[static_cast<std::size_t>(cell.index())] : static_cast<std::int8_t>(-9);
      }
  }
}

// Seen fog cells of each minimap cell: the hot loop of the minimap, compiled for processors that count bits as
// well.
#if defined(__x86_64__) && defined(__GNUC__)
__attribute__((target_clones("popcnt", "default")))
#endif
void count_seen(const std::uint64_t* words, int n, int* seen) {
  for (int r = 0; r < kFogCells; ++r) {
    int* row = seen + r * n / kFogCells * n;
    for (int x = 0; x < n; ++x) {
      int from = r * kFogCells + (x * kFogCells + n - 1) / n;
      const int to = r * kFogCells + ((x + 1) * kFogCells + n - 1) / n;
      while (from < to) {
        const int shift = from & 63, take = std::min(64 - shift, to - from);
        std::uint64_t word = words[from >> 6] >> shift;
        if (take < 64) word &= (1ull << take) - 1;
        row[x] += __builtin_popcountll(word);
        from += take;
      }
    }
  }
}

void fill_minimap(const Context& c, const Layout& layout, TeamView& v) {
  const int n = layout.table.minimap;
  const auto& bits = c.world.fog[v.team].visible;
  std::array<int, kMaxMinimapSide * kMaxMinimapSide> seen{};
  count_seen(bits.data(), n, seen.data());
  for (int y = 0; y < n; ++y)
    for (int x = 0; x < n; ++x) {
      const int rows = ((y + 1) * kFogCells + n - 1) / n - (y * kFogCells + n - 1) / n;
      const int columns = ((x + 1) * kFogCells + n - 1) / n - (x * kFogCells + n - 1) / n;
      const auto i = static_cast<std::size_t>(y * n + x);
      v.minimap_visible[i] = static_cast<float>(seen[i]) / static_cast<float>(rows * columns);
    }
}

}  // namespace

ViewConstants make_constants(const Tables& tables, const GameSettings& settings, const ActionVocabulary& actions) {
  ViewConstants out{&tables, &settings, &actions, {}, -1};
  const auto treads = tables.item_index.find("item_power_treads");
  if (treads != tables.item_index.end()) out.treads = treads->second;
  for (std::size_t turned = 0; turned < 2; ++turned)
    for (int team = 0; team < kTeams; ++team) {
      std::vector<std::tuple<int, int, int, std::size_t>> order;  // importance, tier, lane, building
      for (std::size_t b = 0; b < tables.map->buildings.size() && b < 64; ++b) {
        const MapBuilding& building = tables.map->buildings[b];
        if (building.team != team) continue;
        const int lane = static_cast<int>(building.lane);
        const bool played = lane < 0 || settings.lane_enabled[lane];
        int importance = 7;
        switch (building.kind) {
          case UnitKind::Tower:
            importance = lane < 0 ? 1 : (played ? 0 : 6);
            break;
          case UnitKind::Fort:
            importance = 2;
            break;
          case UnitKind::Barracks:
            importance = played ? 3 : 6;
            break;
          case UnitKind::Shrine:
            importance = 4;
            break;
          case UnitKind::Fountain:
            importance = 5;
            break;
          default:
            break;
        }
        order.emplace_back(importance, building.tier, turned && lane >= 0 ? 2 - lane : lane, b);
      }
      std::sort(order.begin(), order.end());
      for (std::size_t rank = 0; rank < order.size(); ++rank)
        out.building_slot[turned][std::get<3>(order[rank])] = static_cast<std::int8_t>(rank);
    }
  return out;
}

void reset_view(TeamView& v, const ViewConstants& constants, int team, bool mirrored) {
  v = TeamView{};
  v.constants = constants;
  v.team = static_cast<std::uint8_t>(team);
  v.heroes_per_team = static_cast<std::uint8_t>(constants.settings->heroes_per_team);
  v.mirrored = mirrored;
  v.courier_seen_at = constants.settings->start_s;
  v.enemy_seen_at.fill(constants.settings->start_s);
}

void fill_view(Context& c, const Layout& layout, TeamView& v) {
  fill_units(c, v);
  fill_projectiles(c, v);
  fill_areas(c, v);
  fill_pickups(c, v);
  fill_heroes(c, v);
  fill_clock(c, v);
  fill_roshan(c, v);
  fill_terrain(c, layout, v);
  fill_minimap(c, layout, v);
}

namespace {

struct Candidate {
  float distance2;
  std::int16_t index, unit;  // world slot, index into units
  bool operator<(const Candidate& o) const {
    return distance2 != o.distance2 ? distance2 < o.distance2 : index < o.index;
  }
};

Group group_of(const SeenUnit& s) {
  const bool own = s.side == Side::Own;
  switch (s.kind) {
    case UnitKind::Neutral:
    case UnitKind::Roshan:
      return s.side == Side::Neutral ? Group::NeutralCreeps : (own ? Group::AlliedCreeps : Group::EnemyCreeps);
    case UnitKind::LaneCreep:
    case UnitKind::Summon:
      return s.side == Side::Neutral ? Group::NeutralCreeps : (own ? Group::AlliedCreeps : Group::EnemyCreeps);
    case UnitKind::Courier:
      return own ? Group::AlliedCourier : Group::EnemyCourier;
    case UnitKind::Ward:
      return own ? Group::AlliedWards : Group::EnemyWards;
    case UnitKind::Hero:
    case UnitKind::None:
      return Group::Count;
    default:
      return own ? Group::AlliedBuildings : Group::EnemyBuildings;
  }
}

}  // namespace

void assign_slots(const Layout& layout, const TeamView& v, SlotTable& out) {
  out.count = static_cast<std::int16_t>(layout.units);
  for (int i = 0; i < layout.units; ++i) {
    out.unit[static_cast<std::size_t>(i)] = -1;
    out.handle[static_cast<std::size_t>(i)] = {};
  }
  const auto put = [&](int slot, int unit) {
    out.unit[static_cast<std::size_t>(slot)] = static_cast<std::int16_t>(unit);
    out.handle[static_cast<std::size_t>(slot)] = v.units[static_cast<std::size_t>(unit)].handle;
  };
  const int n = v.heroes_per_team;
  std::array<Vec2, 5> own{};
  int own_count = 0;
  for (int i = 0; i < 2 * n; ++i) {
    const int unit = v.heroes[static_cast<std::size_t>(i)].unit;
    if (unit < 0) continue;
    put(i < n ? layout.group(Group::AlliedHeroes).start + i : layout.group(Group::EnemyHeroes).start + i - n,
        unit);
    if (i < n) own[static_cast<std::size_t>(own_count++)] = v.units[static_cast<std::size_t>(unit)].pos;
  }
  std::array<std::array<Candidate, kMaxUnits>, kGroups> lists;
  std::array<int, kGroups> counts{};
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& s = v.units[static_cast<std::size_t>(i)];
    const Group g = group_of(s);
    if (g == Group::Count) continue;
    if (s.building > 0) {
      const int rank = v.constants.building_slot[v.mirrored ? 1 : 0][static_cast<std::size_t>(s.building - 1)];
      if (rank < layout.group(g).count) put(layout.group(g).start + rank, i);
      continue;
    }
    float nearest = 1e18f;
    for (int h = 0; h < own_count; ++h) {
      const Vec2 d = s.pos - own[static_cast<std::size_t>(h)];
      nearest = std::min(nearest, d.dot(d));
    }
    const auto at = static_cast<std::size_t>(g);
    lists[at][static_cast<std::size_t>(counts[at]++)] = {nearest, s.handle.index, static_cast<std::int16_t>(i)};
  }
  for (std::size_t g = 0; g < kGroups; ++g) {
    const auto begin = lists[g].begin(), end = begin + counts[g];
    const int take = std::min(counts[g], layout.groups[g].count);
    std::partial_sort(begin, begin + take, end);
    for (int i = 0; i < take; ++i)
      put(layout.groups[g].start + i, lists[g][static_cast<std::size_t>(i)].unit);
  }
}

}  // namespace dota
