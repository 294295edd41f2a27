// A team's view of units, projectiles, areas and ground items.
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/protection.hpp"
#include "map/vision.hpp"
#include "view/fill.hpp"
#include "world/game_rules.hpp"

namespace dota {

namespace {

float physical_resistance(const Rules& r, float armor) {
  return r.armor_a * armor / (r.armor_b + r.armor_c * std::fabs(armor));
}

int seen_hero_index(const TeamView& v, int world_hero) {
  const int team = world_hero / 5, place = world_hero % 5;
  return team == v.team ? place : v.heroes_per_team + place;
}
// What all teams that see the unit see alike: all but its side and its number as a hero.
void fill_unit(const Context& c, const Unit& u, SeenUnit& s) {
  const World& w = c.world;
  const UnitDef& def = c.tables.units[u.type];
  s.handle = w.handle(u);
  s.kind = u.kind;
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
  s.since_attack = std::clamp(w.time - u.last_attack, 0.0f, kLongest);
  const bool timed = u.act != Act::Idle && u.act != Act::Walk && u.act != Act::Dead;
  s.act_left = timed ? left(u.act_until, w.time) : 0;
  s.shrine_cooldown = u.kind == UnitKind::Shrine ? left(u.shrine_ready, w.time) : 0;
  const bool fortified = u.team < kTeams && (u.building > 0 || u.kind == UnitKind::LaneCreep);
  const float glyph_until = fortified ? w.teams[u.team].glyph_until : 0;
  s.glyph_left = glyph_until > 0 ? left(glyph_until, w.time) : 0;
  if (s.glyph_left > 0) s.status |= kGlyphed;
  const bool swinging = u.act == Act::AttackWindup || u.act == Act::AttackBackswing;
  s.attacking = u.alive && (swinging || (s.since_attack < u.attack_interval && w.get(u.attack_target)));
  s.attack_target = s.attacking ? u.attack_target : Handle{};
  s.invulnerable = (u.status & kInvulnerable) || (u.building > 0 && building_protected(c, u));
  s.tower_eta = s.ranged_creep_eta = 0;
  s.melee_creeps_attacking = 0;
}

// Hit points, newest first, as they were; the newest are `hp`.
HpHistory history_of(const World& w, const Unit& u, float hp) {
  std::array<float, 2 * kHistory> twice;
  std::copy(u.hp_history.begin(), u.hp_history.end(), twice.begin());
  std::copy(u.hp_history.begin(), u.hp_history.end(), twice.begin() + kHistory);
  const float* const newest = twice.data() + kHistory + w.step_index % kHistory;
  HpHistory out;
  for (int k = 0; k < kHistory; ++k)
    out[k] = newest[-k];
  out[0] = hp;
  return out;
}

// The same as far as a team saw it: bit k of `seen`, k timesteps ago. It sees the unit now.
void fill_history(const HpHistory& was, std::uint16_t seen, HpHistory& out) {
  static_assert(kHistory == 16);
  if (seen == 0xFFFF) {
    out = was;
    return;
  }
  float last = was[0];
  for (std::size_t k = 0; k < kHistory; ++k) {
    const float then = was[k];
    last = (seen >> k) & 1u ? then : last;
    out[k] = last;
  }
}
}  // namespace

void fill_units(const Context& c, std::array<TeamView, kTeams>& views, PrefetchQueue* ahead) {
  const World& w = c.world;
  for (TeamView& v : views) {
    v.unit_count = 0;
    v.index_of.fill(-1);
  }
  const auto tell_side = [](const TeamView& v, const Unit& u, SeenUnit& s) {
    s.side = u.team == v.team ? Side::Own : (u.team == kNeutralTeam ? Side::Neutral : Side::Enemy);
    s.hero = static_cast<std::int8_t>(u.hero < 0 ? -1 : seen_hero_index(v, u.hero));
  };
  // The second team's copy of a unit is made after all units: reading freshly written small fields at once would
  // stall on store forwarding.
  struct Twice {
    std::int16_t unit = 0, from = 0, to = 0;
  };
  std::array<Twice, kMaxUnits> twice;
  std::size_t repeated = 0;
  for (int i = 0; i < w.units_end; ++i) {
    const Unit& u = w.units[i];
    if (u.kind == UnitKind::None) {
      for (TeamView& v : views)
        v.seen_bits[i] = 0;
      continue;
    }
    prefetch_some(ahead, 8);
    std::int16_t first = -1;
    HpHistory history;
    for (TeamView& v : views) {
      if (v.seen_generation[i] != u.generation) {
        v.seen_generation[i] = u.generation;
        v.seen_bits[i] = 0;
      }
      v.seen_bits[i] = static_cast<std::uint16_t>(v.seen_bits[i] << 1);
      const bool own = u.team == v.team;
      if (!own && (!u.alive || !unit_visible(w, v.team, u))) continue;
      if (!u.alive && u.hero < 0) continue;
      v.seen_bits[i] |= 1u;
      const std::int16_t to = v.unit_count++;
      if (first < 0) {
        SeenUnit& s = v.units[to];
        first = to;
        fill_unit(c, u, s);
        tell_side(v, u, s);
        s.modifier_count = u.hero >= 0 ? 0 : fill_modifiers(w, u, v.unit_modifiers[to]);
        history = history_of(w, u, s.hp);
      } else {
        twice[repeated++] = {static_cast<std::int16_t>(i), first, to};
      }
      fill_history(history, v.seen_bits[i], v.hp_histories[to]);
      v.index_of[i] = to;
      if (!own && u.kind == UnitKind::Courier) v.courier_seen_at = w.time;
    }
  }
  const TeamView& told = views[0];
  TeamView& v = views[1];
  for (std::size_t k = 0; k < repeated; ++k) {
    const std::size_t from = twice[k].from, to = twice[k].to;
    v.units[to] = told.units[from];
    tell_side(v, w.units[twice[k].unit], v.units[to]);
    std::copy_n(told.unit_modifiers[from].begin(), told.units[from].modifier_count, v.unit_modifiers[to].begin());
  }
}

void fill_projectiles(const Context& c, TeamView& v) {
  const World& w = c.world;
  v.projectile_count = 0;
  for (int i = 0; i < w.projectiles_end && v.projectile_count < kViewProjectiles; ++i) {
    const Projectile& p = w.projectiles[i];
    if (p.kind == Projectile::Kind::None) continue;
    if (p.team != v.team && !cell_visible(w, v.team, p.pos)) continue;
    SeenProjectile& s = v.projectiles[v.projectile_count++];
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
    SeenUnit& hit = v.units[target];
    s.eta = std::max(distance(p.pos, hit.pos) / p.speed, kDt);
    const Unit* source = w.get(p.source);
    if (!source || p.kind != Projectile::Kind::Attack) continue;
    s.source_tower = source->kind == UnitKind::Tower;
    s.source_ranged_creep = source->kind == UnitKind::LaneCreep;
    float* soonest = s.source_tower ? &hit.tower_eta : (s.source_ranged_creep ? &hit.ranged_creep_eta : nullptr);
    if (soonest && (*soonest <= 0 || s.eta < *soonest)) *soonest = s.eta;
  }
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& s = v.units[i];
    if (s.kind != UnitKind::LaneCreep || !s.melee || !s.attacking) continue;
    const int target = v.find(s.attack_target);
    if (target >= 0) ++v.units[target].melee_creeps_attacking;
  }
}

void fill_areas(const Context& c, TeamView& v) {
  const World& w = c.world;
  v.area_count = 0;
  for (const Area& a : w.areas_in_use()) {
    if (!a.active || v.area_count >= kViewAreas) continue;
    if (a.team != v.team && !cell_visible(w, v.team, a.pos)) continue;
    SeenArea& s = v.areas[v.area_count++];
    s.side = a.team == v.team ? Side::Own : (a.team == kNeutralTeam ? Side::Neutral : Side::Enemy);
    s.pos = a.pos;
    s.radius = a.radius;
    s.starts_in = left(a.start, w.time);
    s.remaining = left(a.until, w.time);
    s.ability = a.ability;
  }
}

// All spots are known from the start, and seen to be empty before their first rune, of which the world notes
// nothing. Which of them has the next power rune nobody knows: the world forgets only what was known of that one.
void fill_pickups(const Context& c, TeamView& v) {
  const World& w = c.world;
  const MapData& map = *c.tables.map;
  const GameRules& g = *c.tables.game;
  const auto appeared = [&](float first, float every, float next) {  // in this timestep
    return next > first && w.time - (next - every) < (kFramesPerStep - 0.5f) * kDt;
  };
  const bool bounties = appeared(g.bounty_first, g.bounty_every, w.next_bounty);
  const bool power = appeared(g.power_first, g.power_every, w.next_power_rune);
  for (int i = 0; i < kMaxPickups; ++i) {
    const Pickup& p = w.pickups[i];
    SeenPickup& s = v.pickups[i];
    const bool bounty = i < kBountySpots;
    if (c.settings.runes) s.pos = bounty ? map.bounty_runes[i] : map.power_runes[i - kBountySpots];
    const bool seen = c.settings.runes && cell_visible(w, v.team, s.pos);
    const std::uint8_t known = p.known[v.team];
    if (seen) {
      s.seen_empty = known == 0 && !p.present;
      s.outdated = false;
    } else if (bounty ? bounties : power) {
      s.seen_empty = false;
      s.outdated = true;
    }
    s.status = s.outdated ? 0 : known == 0 && s.seen_empty ? 2 : known;
    if (bounty)
      s.kind = static_cast<std::int8_t>(PickupKind::Bounty);
    else if (s.status != 1)
      s.kind = -1;
    else if (seen && p.present)
      s.kind = p.kind;
  }
}

}  // namespace dota
