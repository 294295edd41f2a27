// What a frame says of effects and of the ground: modifiers, projectiles, zones, runes, trees, fallen buildings.
#include <algorithm>
#include <cmath>
#include <limits>

#include "client/shadow.hpp"
#include "effects/abilities.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/nav.hpp"
#include "map/vision.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr float kSameSpot = 300;  // a client's place of a rune or a building, and the map's
constexpr float kSameTree = 8;    // the same of a tree
constexpr float kFarthest = 20000;

Vec2 place(const ClientVector& v) {
  return {std::clamp(v.x, -kFarthest, kFarthest), std::clamp(v.y, -kFarthest, kFarthest)};
}

std::uint8_t byte(std::uint32_t v) { return static_cast<std::uint8_t>(std::min(v, 255u)); }

// Kind of a rune by a client's number; -1: unknown, or illusion, which this patch's observations lack.
std::int8_t rune_kind(int type) {
  constexpr PickupKind kKinds[] = {PickupKind::DoubleDamage, PickupKind::Haste,        PickupKind::Count,
                                   PickupKind::Invisibility, PickupKind::Regeneration, PickupKind::Bounty,
                                   PickupKind::Arcane};
  if (type < 0 || type >= static_cast<int>(std::size(kKinds)) || kKinds[type] == PickupKind::Count) return -1;
  return static_cast<std::int8_t>(kKinds[type]);
}

}  // namespace

void Shadow::take_modifiers(const WorldState& s, const ClientUnit& m, Unit& u) {
  World& w = world();
  std::int16_t last = -1;
  for (const ClientModifier& told : s.modifiers_of(m)) {
    if (told.name == kGlyphModifier) continue;
    const int name = names_.modifier(told.name);
    if (name < 0 || w.modifiers_end >= kMaxModifiers) continue;
    const std::int16_t at = w.modifiers_end++;
    Modifier& out = w.modifiers[at];
    out.name = static_cast<std::int16_t>(name);
    out.owner = w.handle(u).index;
    out.stacks = byte(told.stack_count);
    out.until =
        told.remaining_duration < 0 ? std::numeric_limits<float>::infinity() : w.time + told.remaining_duration;
    (last < 0 ? u.modifiers : w.modifiers[last].next) = at;
    last = at;
  }
}

// The unit that shot. Of one out of sight a client says the type alone: any such unit that is not seen will do.
Handle Shadow::source_of(const ClientTrackingProjectile& told, const Unit& hit) {
  const World& w = world();
  if (const Handle known = unit_of(told.caster_handle); known.index >= 0) return known;
  const auto type = static_cast<ClientUnitType>(told.caster_unit_type);
  const UnitKind kind = type == ClientUnitType::Tower       ? UnitKind::Tower
                        : type == ClientUnitType::LaneCreep ? UnitKind::LaneCreep
                                                            : UnitKind::None;
  Handle out;
  const auto look = [&](const Unit& u) {
    const UnitDef& def = game_.setup().tables->units[u.type];
    if (u.team != hit.team && !memory_[w.handle(u).index].listed && def.projectile_speed > 0) out = w.handle(u);
  };
  if (kind == UnitKind::Tower) each_unit<UnitKind::Tower>(w, look);
  if (kind == UnitKind::LaneCreep) each_unit<UnitKind::LaneCreep>(w, look);
  return out;
}

// Those on their way to a unit that is seen, and those that fly straight.
void Shadow::take_projectiles(const WorldState& s) {
  World& w = world();
  std::fill_n(w.projectiles.begin(), w.projectiles_end, Projectile{});
  w.projectiles_end = 0;
  const auto add = [&]() -> Projectile* {
    return w.projectiles_end < kMaxProjectiles ? &w.projectiles[w.projectiles_end++] : nullptr;
  };
  for (const ClientUnit& m : s.units) {
    const Handle target = unit_of(m.handle);
    const Unit* hit = w.get(target);
    if (!hit) continue;
    for (const ClientTrackingProjectile& told : s.projectiles_of(m)) {
      Projectile* p = add();
      if (!p) return;
      p->kind = told.is_attack ? Projectile::Kind::Attack : Projectile::Kind::Homing;
      p->source = source_of(told, *hit);
      p->target = target;
      p->pos = p->origin = place(told.location);
      p->speed = told.velocity < 1 ? 0 : std::min(told.velocity, kFarthest);
      const Unit* source = w.get(p->source);
      p->team = source ? source->team : hit->team == team_ ? static_cast<std::uint8_t>(1 - team_) : hit->team;
      p->ability = static_cast<std::int16_t>(told.ability_id ? names_.ability(told.ability_id) : -1);
    }
  }
  for (const ClientLinearProjectile& told : s.linear_projectiles) {
    Projectile* p = add();
    if (!p) return;
    p->kind = Projectile::Kind::Linear;
    p->source = unit_of(told.caster_handle);
    p->pos = p->origin = place(told.location);
    const Vec2 velocity = place(told.velocity);
    p->speed = velocity.length();
    if (p->speed > 0) p->direction = velocity * (1 / p->speed);
    p->w0 = p->w1 = std::clamp(told.radius, 0.0f, kFarthest);
    const Unit* source = w.get(p->source);
    p->team = source ? source->team : static_cast<std::uint8_t>(1 - team_);
    p->ability = static_cast<std::int16_t>(told.ability_id ? names_.ability(told.ability_id) : -1);
  }
}

void Shadow::take_zones(const WorldState& s) {
  World& w = world();
  std::fill_n(w.areas.begin(), w.areas_end, Area{});
  w.areas_end = 0;
  for (const ClientZone& told : s.zones) {
    if (w.areas_end >= kMaxAreas) return;
    Area& a = w.areas[w.areas_end++];
    a.active = true;
    a.owner = unit_of(told.caster_handle);
    const Unit* owner = w.get(a.owner);
    const int seat = hero_of_player(told.caster_player_id);
    a.team = owner ? owner->team : static_cast<std::uint8_t>(seat >= 0 ? seat / 5 : 1 - team_);
    a.pos = place(told.location);
    a.radius = std::clamp(told.radius, 0.0f, kFarthest);
    a.start = w.time;
    a.until = w.time + kDt * kFramesPerStep;  // until the next frame says it again
    a.ability = static_cast<std::int16_t>(names_.ability(told.ability_id));
  }
}

// A client lists others' zones and projectiles where its team sees the ground, by whatever gives that sight.
void Shadow::light_up() {
  World& w = world();
  const auto show = [&](int team, Vec2 at) {
    const Cell cell = cell_of(at);
    if (team == team_ || !cell.inside()) return;
    const std::size_t bit = cell.y / 2 * kFogCells + cell.x / 2;
    w.fog[team_].visible[bit >> 6] |= 1ull << (bit & 63);
  };
  for (const Area& a : w.areas_in_use())
    show(a.team, a.pos);
  for (int i = 0; i < w.projectiles_end; ++i)
    show(w.projectiles[i].team, w.projectiles[i].pos);
}

void Shadow::take_runes(const WorldState& s) {
  World& w = world();
  const MapData& map = *game_.setup().tables->map;
  const auto spot = [&](Vec2 at) {
    int best = -1;
    float nearest = kSameSpot;
    for (int i = 0; i < kMaxPickups; ++i) {
      const std::size_t k = i;
      const bool bounty = k < map.bounty_runes.size();
      if (!bounty && k - map.bounty_runes.size() >= map.power_runes.size()) break;
      const Vec2 there = bounty ? map.bounty_runes[k] : map.power_runes[k - map.bounty_runes.size()];
      if (distance(there, at) >= nearest) continue;
      nearest = distance(there, at);
      best = i;
    }
    return best;
  };
  for (const ClientRune& told : s.runes) {
    const int at = spot(place(told.location));
    if (at < 0) continue;
    Pickup& p = w.pickups[at];
    p.pos = place(told.location);
    p.known[team_] = static_cast<std::uint8_t>(told.status <= 2 ? told.status : 0);
    p.present = told.status == 1;
    p.kind = rune_kind(told.type);
  }
}

// Events name a tree by its place, since its number is that of another map in other versions.
void Shadow::take_trees(const WorldState& s) {
  World& w = world();
  const Tables& t = *game_.setup().tables;
  for (const ClientTreeEvent& e : s.tree_events) {
    const Vec2 at = place(e.location);
    const auto& trees = t.map->trees;
    std::size_t tree = trees.size();
    for (std::size_t k = 0; k < trees.size() && tree == trees.size(); ++k)
      if (std::fabs(trees[k].pos.x - at.x) < kSameTree && std::fabs(trees[k].pos.y - at.y) < kSameTree) tree = k;
    if (tree == trees.size()) continue;
    if (e.destroyed)
      cut_tree(w, t, static_cast<int>(tree));
    else if (e.respawned && w.tree_regrow[tree] != 0)
      w.tree_regrow[tree] = w.nav.next_regrow = w.time == 1 ? -kDt : w.time - 1;  // not 0: that is a standing tree
  }
}

// Where and when heroes arrive that teleport.
void Shadow::take_teleports(const WorldState& s) {
  World& w = world();
  for (const ClientTeleport& told : s.teleports) {
    const int seat = hero_of_player(told.player_id);
    Unit* u = seat >= 0 ? w.get(w.heroes[seat].unit) : nullptr;
    if (!u || u->act != Act::Channel) continue;
    u->order.point = place(told.location);
    u->act_until = w.time + std::max(told.time_remaining, 0.0f);
  }
}

int Shadow::building_at(const ClientUnit& m, int team) const {
  const std::vector<MapBuilding>& buildings = game_.setup().tables->map->buildings;
  const Vec2 at = place(m.location);
  for (std::size_t k = 0; k < buildings.size(); ++k)
    if (buildings[k].team == team && distance(buildings[k].pos, at) < kSameSpot &&
        game_.setup().tables->units[buildings[k].unit].name == m.name)
      return static_cast<int>(k);
  return -1;
}

// A building that is not listed has fallen if it is an own one, if the team sees its place, or if another one can
// be hurt that it guards.
void Shadow::take_fallen_buildings() {
  World& w = world();
  const GameRules& g = *game_.setup().tables->game;
  for (int i = 0; i < w.units_end; ++i) {
    Unit& b = w.units[i];
    if (b.kind == UnitKind::None || b.building == 0) continue;
    const std::size_t number = b.building - 1u;
    if (memory_[i].listed) {
      const bool guarded = b.kind == UnitKind::Tower || b.kind == UnitKind::Barracks || b.kind == UnitKind::Fort;
      if (guarded && !(b.status & kInvulnerable)) w.buildings_standing &= ~g.needs_all[number];
      continue;
    }
    if (b.team != team_ && !cell_visible(w, team_, b.pos)) continue;
    w.buildings_standing &= ~(1ull << number);
  }
  for (int i = 0; i < w.units_end; ++i) {
    Unit& b = w.units[i];
    if (b.kind == UnitKind::None || b.building == 0 || (w.buildings_standing >> (b.building - 1u) & 1u)) continue;
    if (!memory_[i].listed) remove(b);
  }
}

}  // namespace dota
