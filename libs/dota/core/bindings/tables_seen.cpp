// A game as numbers for spectators: tables of 16-bit columns and bitmaps, the frames that dota.spectator encodes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/vec.hpp"
#include "effects/gold.hpp"
#include "map/vision.hpp"
#include "world/game_rules.hpp"

namespace nb = nanobind;

namespace dota {

namespace {

struct Columns {
  const char* name;
  int rows;
  std::vector<const char*> fields;
};

// What a frame's tables hold. Ids are one more than the core's (0: none), so that an empty row is all zeros.
// A change here makes another schema: recordings carry theirs, and go on being readable.
const std::vector<Columns>& columns() {
  static const std::vector<Columns> kColumns = {
      {"clock",
       1,
       {"frame", "frame_high", "time", "time_high", "winner", "day", "radiant_kills", "dire_kills", "roshan",
        "radiant_glyph", "dire_glyph"}},
      {"unit",
       kMaxUnits,
       {"generation", "type", "look", "x", "y", "facing", "hp", "max_hp", "mana", "max_mana", "act", "status",
        "target"}},
      {"hero",
       kMaxHeroes,
       {"unit", "level", "gold", "net_worth", "xp", "kills", "deaths", "assists", "last_hits", "denies", "damage",
        "respawn", "buyback", "talents", "talents_high"}},
      {"ability", kMaxHeroes * kAbilitySlots, {"id", "level", "charges", "ready"}},
      {"item", kMaxHeroes * kItemSlots, {"id", "charges", "ready"}},
      {"projectile", kMaxProjectiles, {"generation", "look", "ability", "x", "y", "target"}},
      {"area", kMaxAreas, {"generation", "look", "ability", "x", "y", "radius"}},
      {"rune", kMaxPickups, {"kind", "x", "y"}},
      {"ground_item", kMaxGroundItems, {"id", "x", "y"}},
      {"stock", static_cast<int>(kTeams) * kStocked, {"item", "left", "next"}},
      {"scan", static_cast<int>(kTeams), {"ready", "radius", "until", "x", "y", "found"}},
  };
  return kColumns;
}
constexpr int kFogBits = kFogCells * kFogCells;

constexpr float kLowest = -8320,
                kExtent = 16640;                 // world units: the map's side, which coordinates are quantised in
constexpr float kBeforeHorn = 100, kTicks = 15;  // moments: ticks of 1/15 s since 100 s before the horn

std::uint16_t small(float v) { return static_cast<std::uint16_t>(std::clamp(std::round(v), 0.0f, 65535.0f)); }
std::uint16_t coordinate(float v) { return small((v - kLowest) / kExtent * 65535.0f); }
std::uint16_t moment(float game_time) {
  return game_time <= -kBeforeHorn ? 0 : small((game_time + kBeforeHorn) * kTicks);
}
std::uint16_t id(int index) { return static_cast<std::uint16_t>(index + 1); }
// Points of a living thing: never 0 while any is left.
std::uint16_t points(float v) { return v <= 0 ? 0 : std::max<std::uint16_t>(small(v), 1); }
std::uint16_t target(const World& w, Handle h) { return w.get(h) ? id(h.index) : 0; }
std::uint16_t target_seen(const World& w, Handle h, const TeamEyes* eyes) {
  const Unit* u = w.get(h);
  return u && (!eyes || u->team == eyes->team || (u->alive && unit_visible(w, eyes->team, *u))) ? id(h.index) : 0;
}

struct Row {
  std::uint16_t* at;
  void put(int v) { *at++ = static_cast<std::uint16_t>(v); }
};

class Writer {
 public:
  explicit Writer(const nb::dict& out) : out_(out) {}
  Row rows(const char* name) {
    for (const Columns& c : columns())
      if (std::string(c.name) == name) {
        const auto a = array<std::uint16_t>(name, c.rows * c.fields.size());
        std::fill_n(a.data(), a.size(), std::uint16_t{0});
        return {a.data()};
      }
    throw std::logic_error(std::string("there is no table ") + name);
  }
  // Bits, lowest first, `count` of them in whole bytes.
  std::uint8_t* bits(const char* name, int count) {
    const auto a = array<std::uint8_t>(name, (count + 7) / 8);
    std::fill_n(a.data(), a.size(), std::uint8_t{0});
    return a.data();
  }

 private:
  template <class T>
  Array<T> array(const char* name, std::size_t size) {
    if (!out_.contains(name)) throw nb::value_error((std::string("array '") + name + "' is missing").c_str());
    const auto a = nb::cast<Array<T>>(out_[name]);
    if (a.size() != size)
      throw nb::value_error((std::string("array '") + name + "' holds " + std::to_string(a.size()) + " values, " +
                             std::to_string(size) + " are needed")
                                .c_str());
    return a;
  }
  const nb::dict& out_;
};

void put_clock(const World& w, Row r, const TeamEyes* eyes) {
  const auto frame = static_cast<std::uint32_t>(w.frame);
  const auto hundredths = static_cast<std::uint32_t>(static_cast<std::int32_t>(std::lround(w.time * 100)));
  r.put(static_cast<int>(frame & 0xFFFF));
  r.put(static_cast<int>(frame >> 16));
  r.put(static_cast<int>(hundredths & 0xFFFF));
  r.put(static_cast<int>(hundredths >> 16));
  r.put(static_cast<int>(w.winner));
  r.put(w.is_day ? 1 : 0);
  r.put(w.teams[kRadiant].kills);
  r.put(w.teams[kDire].kills);
  r.put(eyes ? 0 : moment(w.roshan_respawn));  // players know its limits only
  r.put(moment(w.teams[kRadiant].glyph_until));
  r.put(moment(w.teams[kDire].glyph_until));
}

// look: kind, then from bit 4 the team, 6 alive, 7 and 8 seen by Radiant and Dire, from 11 the hero plus one.
// A team sees no more than fog and invisibility let it: of other units no orders, and whom they aim at only while
// they strike and both are in sight; of its own not who sees them.
void put_units(const World& w, Row r, const TeamEyes* eyes) {
  const std::size_t width = columns()[1].fields.size();
  for (int k = 0; k < w.units_end; ++k) {
    const Unit& u = w.units[k];
    if (u.kind == UnitKind::None) continue;
    Row row{r.at + k * width};
    const bool radiant = (!eyes || eyes->team == kRadiant) && unit_visible(w, kRadiant, u);
    const bool dire = (!eyes || eyes->team == kDire) && unit_visible(w, kDire, u);
    const bool own = !eyes || u.team == eyes->team;
    if (!own && !(u.alive && (radiant || dire))) continue;
    row.put(u.generation);
    row.put(id(u.type));
    row.put(static_cast<int>(u.kind) | u.team << 4 | (u.alive ? 1 : 0) << 6 | (radiant ? 1 : 0) << 7 |
            (dire ? 1 : 0) << 8 | (u.hero + 1) << 11);
    row.put(coordinate(u.pos.x));
    row.put(coordinate(u.pos.y));
    row.put(static_cast<int>(std::lround(u.facing / 6.2831853f * 256.0f)) & 255);
    row.put(points(u.hp));
    row.put(points(u.max_hp));
    row.put(points(u.mana));
    row.put(points(u.max_mana));
    row.put(static_cast<int>(u.act) | (own ? static_cast<int>(u.order.type) << 8 : 0));
    row.put(static_cast<int>(u.status & 0xFFFF));
    const bool strikes = u.act == Act::AttackWindup || u.act == Act::AttackBackswing;
    const bool ordered = u.order.type == OrderType::AttackUnit || u.order.type == OrderType::CastUnit;
    const Handle aim = own ? (ordered ? u.order.target : u.attack_target) : strikes ? u.attack_target : Handle{};
    row.put(target_seen(w, aim, eyes));
  }
}

// Another team's hero: what the scoreboard shows, and abilities and items as they were last seen.
void put_enemy(const World& w, const HeroState& h, const TeamEyes& eyes, Row r, Row a, Row t) {
  const std::size_t i = &h - w.heroes.data();
  const SeenHero& seen = eyes.view.heroes[eyes.view.heroes_per_team + i % 5];
  const float seen_at = eyes.view.enemy_seen_at[i % 5];
  const auto until = [&](float left) { return left > 0 && seen_at + left > w.time ? moment(seen_at + left) : 0; };
  r.put(target_seen(w, h.unit, &eyes));
  r.put(h.level);
  for (int hidden = 0; hidden < 3; ++hidden)  // gold, net worth, experience
    r.put(0);
  r.put(h.kills);
  r.put(h.deaths);
  r.put(h.assists);
  for (int hidden = 0; hidden < 3; ++hidden)  // last hits, denies, damage
    r.put(0);
  r.put(h.respawn_at > w.time ? moment(h.respawn_at) : 0);
  for (const SeenAbility& s : seen.abilities) {
    a.put(id(s.id));
    a.put(s.id < 0 ? 0 : s.level);
    a.put(s.id < 0 ? 0 : static_cast<std::uint8_t>(s.charges));
    a.put(s.id < 0 ? 0 : until(s.cooldown));
  }
  for (const SeenItem& s : seen.items) {
    t.put(id(s.id));
    t.put(s.id < 0 ? 0 : static_cast<std::uint8_t>(s.charges));
    t.put(s.id < 0 ? 0 : until(s.cooldown));
  }
}

void put_heroes(const Context& c, Row heroes, Row abilities, Row items, const TeamEyes* eyes) {
  const World& w = c.world;
  for (std::size_t i = 0; i < kMaxHeroes; ++i) {
    const HeroState& h = w.heroes[i];
    if (!h.in_game) continue;
    Row r{heroes.at + i * columns()[2].fields.size()};
    Row a{abilities.at + i * kAbilitySlots * columns()[3].fields.size()};
    Row t{items.at + i * kItemSlots * columns()[4].fields.size()};
    if (eyes && static_cast<int>(i) / 5 != eyes->team) {
      put_enemy(w, h, *eyes, r, a, t);
      continue;
    }
    r.put(target(w, h.unit));
    r.put(h.level);
    r.put(small(h.gold + h.reliable));
    r.put(small(net_worth(c, h)));
    r.put(small(h.xp));
    r.put(h.kills);
    r.put(h.deaths);
    r.put(h.assists);
    r.put(h.last_hits);
    r.put(h.denies);
    r.put(small(h.damage_dealt / 10));
    r.put(h.respawn_at > w.time ? moment(h.respawn_at) : 0);
    r.put(h.buyback_ready > w.time ? moment(h.buyback_ready) : 0);
    r.put(static_cast<int>(h.talents & 0xFFFF));
    r.put(static_cast<int>(h.talents >> 16));
    for (const AbilityState& s : h.abilities) {
      a.put(id(s.id));
      a.put(s.id < 0 ? 0 : s.level);
      a.put(s.id < 0 ? 0 : static_cast<std::uint8_t>(s.charges));
      a.put(s.id >= 0 && s.ready > w.time ? moment(s.ready) : 0);
    }
    for (const ItemState& s : h.items) {
      t.put(id(s.id));
      t.put(s.id < 0 ? 0 : static_cast<std::uint8_t>(s.charges));
      t.put(s.id >= 0 && s.ready > w.time ? moment(s.ready) : 0);
    }
  }
}

// look: the projectile's kind, from bit 4 the team, 6 a critical hit. An area's: bit 0 active, from 4 the team.
void put_effects(const World& w, Row projectiles, Row areas, const TeamEyes* eyes) {
  const auto hidden = [&](int team, Vec2 at) {
    return eyes && team != eyes->team && !cell_visible(w, eyes->team, at);
  };
  for (int k = 0; k < w.projectiles_end; ++k) {
    const Projectile& p = w.projectiles[k];
    if (p.kind == Projectile::Kind::None || p.waits > 0 || hidden(p.team, p.pos)) continue;
    const bool own = !eyes || p.team == eyes->team;
    Row r{projectiles.at + k * columns()[5].fields.size()};
    r.put(p.generation);
    r.put(static_cast<int>(p.kind) | p.team << 4 | (p.crit && own ? 1 : 0) << 6);
    r.put(id(p.ability));
    r.put(coordinate(p.pos.x));
    r.put(coordinate(p.pos.y));
    r.put(target_seen(w, p.target, eyes));
  }
  for (std::size_t k = 0; k < w.areas.size(); ++k) {
    const Area& a = w.areas[k];
    if (!a.active || hidden(a.team, a.pos)) continue;
    Row r{areas.at + k * columns()[6].fields.size()};
    r.put(a.generation);
    r.put(1 | a.team << 4);
    r.put(id(a.ability));
    r.put(coordinate(a.pos.x));
    r.put(coordinate(a.pos.y));
    r.put(small(a.radius));
  }
}

void put_ground(const World& w, Row runes, Row items, const TeamEyes* eyes) {
  for (std::size_t k = 0; k < w.pickups.size(); ++k) {
    const Pickup& p = w.pickups[k];
    const bool there = eyes ? eyes->view.pickups[k].status == 1 : p.present;  // as far as the team has seen
    const int kind = !there ? -1 : eyes ? eyes->view.pickups[k].kind : p.kind;
    runes.put(kind + 1);
    runes.put(kind < 0 ? 0 : coordinate(p.pos.x));
    runes.put(kind < 0 ? 0 : coordinate(p.pos.y));
  }
  for (const GroundItem& g : w.ground) {
    const bool there = g.id >= 0 && (!eyes || cell_visible(w, eyes->team, g.pos));
    items.put(there ? id(g.id) : 0);
    items.put(there ? coordinate(g.pos.x) : 0);
    items.put(there ? coordinate(g.pos.y) : 0);
  }
}

// Writes the stock of a team's limited shop items, and the time of the next restock.
void put_stock(const Context& c, Row r, const TeamEyes* eyes) {
  for (std::size_t team = 0; team < kTeams; ++team)
    for (std::size_t k = 0; k < kStocked; ++k) {
      const TeamState& t = c.world.teams[team];
      const int item = c.tables.game->stock_items[k];
      const bool told = item >= 0 && (!eyes || eyes->team == static_cast<int>(team));
      r.put(told ? id(item) : 0);
      r.put(told ? t.stock[k] : 0);
      r.put(told && t.stock[k] < c.tables.items[item].stock_max ? moment(t.stock_next[k]) : 0);
    }
}

}  // namespace

// Writes the team's own scans only.
void put_scans(const Context& c, Row r, const TeamEyes* eyes) {
  for (int team = 0; team < kTeams; ++team, r.at += 6) {
    if (eyes && eyes->team != team) continue;
    const TeamState& t = c.world.teams[team];
    Row row = r;
    row.put(moment(t.scan_ready));
    row.put(small(c.tables.game->scan_radius));
    if (c.world.due(t.scan_until)) continue;
    row.put(moment(t.scan_until));
    row.put(coordinate(t.scan_at.x));
    row.put(coordinate(t.scan_at.y));
    row.put(t.scan_found ? 1 : 0);
  }
}

void write_tables_seen(const Context& c, const nb::dict& out, const TeamEyes* eyes) {
  const World& w = c.world;
  Writer to(out);
  put_clock(w, to.rows("clock"), eyes);
  put_units(w, to.rows("unit"), eyes);
  put_heroes(c, to.rows("hero"), to.rows("ability"), to.rows("item"), eyes);
  put_effects(w, to.rows("projectile"), to.rows("area"), eyes);
  put_ground(w, to.rows("rune"), to.rows("ground_item"), eyes);
  put_stock(c, to.rows("stock"), eyes);
  put_scans(c, to.rows("scan"), eyes);
  const char* fogs[] = {"radiant_fog", "dire_fog"};
  for (std::size_t team = 0; team < kTeams; ++team) {
    std::uint8_t* fog = to.bits(fogs[team], kFogBits);
    if (!eyes || eyes->team == static_cast<int>(team))
      std::memcpy(fog, w.fog[team].visible.data(), (kFogBits + 7) / 8);
  }
  std::uint8_t* felled = to.bits("felled", kMaxTrees);
  for (std::size_t k = 0; k < kMaxTrees; ++k)
    if (eyes ? eyes->sight.felled(eyes->team, k) : w.tree_regrow[k] != 0)
      felled[k / 8] |= static_cast<std::uint8_t>(1u << (k % 8));
}

void bind_tables_seen(nb::module_& m) {
  nb::list tables;
  for (const Columns& c : columns()) {
    nb::list fields;
    for (const char* field : c.fields)
      fields.append(field);
    tables.append(nb::make_tuple(c.name, c.rows, fields));
  }
  m.attr("SEEN_TABLES") = tables;
  nb::list bits;
  bits.append(nb::make_tuple("radiant_fog", kFogBits));
  bits.append(nb::make_tuple("dire_fog", kFogBits));
  bits.append(nb::make_tuple("felled", kMaxTrees));
  m.attr("SEEN_BITS") = bits;
  nb::list kinds;
  for (int k = 0; k < kUnitKinds; ++k)
    kinds.append(kind_name(static_cast<UnitKind>(k)));
  m.attr("UNIT_KINDS") = kinds;
}

}  // namespace dota
