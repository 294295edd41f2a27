// A game as a spectator sees it: everything, without fog.
#include <algorithm>
#include <string>

#include <nanobind/stl/string.h>

#include "bindings/vec.hpp"
#include "map/vision.hpp"
#include "world/world.hpp"

namespace nb = nanobind;

namespace dota {

const char* kind_name(UnitKind k) {
  static constexpr const char* kNames[] = {"none", "hero",   "creep",  "neutral",  "roshan",  "tower", "barracks",
                                           "fort", "filler", "shrine", "fountain", "courier", "ward",  "summon"};
  return kNames[ordinal(k)];
}

nb::dict spectator_frame(const GameState& state, const Tables& t) {
  const World& w = state.world;
  nb::list units, projectiles, areas;
  for (int k = 0; k < w.units_end; ++k) {
    const Unit& u = w.units[k];
    if (u.kind == UnitKind::None) continue;
    nb::dict d;
    d["slot"] = k;
    d["generation"] = u.generation;
    d["kind"] = kind_name(u.kind);
    d["name"] = t.units[u.type].name;
    d["team"] = u.team;
    d["hero"] = u.hero;
    d["alive"] = u.alive;
    d["x"] = u.pos.x;
    d["y"] = u.pos.y;
    d["facing"] = u.facing;
    d["hp"] = u.hp;
    d["max_hp"] = u.max_hp;
    d["mana"] = u.mana;
    d["max_mana"] = u.max_mana;
    d["act"] = static_cast<int>(u.act);
    d["order"] = static_cast<int>(u.order.type);
    d["seen_by"] = nb::make_tuple(u.team == kRadiant || unit_visible(w, kRadiant, u),
                                  u.team == kDire || unit_visible(w, kDire, u));
    if (u.hero >= 0) {
      const HeroState& h = w.heroes[u.hero];
      d["level"] = h.level;
      d["gold"] = h.gold + h.reliable;
      nb::list items;
      for (const ItemState& s : h.items)
        items.append(s.id < 0 ? std::string() : t.items[s.id].name);
      d["items"] = items;
      nb::list abilities;
      for (const AbilityState& s : h.abilities)
        abilities.append(nb::make_tuple(s.id < 0 ? std::string() : t.abilities[s.id].name,
                                        static_cast<int>(s.level), std::max(s.ready - w.time, 0.0f)));
      d["abilities"] = abilities;
    }
    units.append(d);
  }
  for (int k = 0; k < w.projectiles_end; ++k) {
    const Projectile& p = w.projectiles[k];
    if (p.kind != Projectile::Kind::None) projectiles.append(nb::make_tuple(p.pos.x, p.pos.y, p.team));
  }
  for (const Area& a : w.areas)
    if (a.active) areas.append(nb::make_tuple(a.pos.x, a.pos.y, a.radius, a.team));
  nb::dict out;
  out["time"] = w.time;
  out["frame"] = w.frame;
  out["winner"] = static_cast<int>(w.winner);
  out["day"] = w.is_day;
  out["kills"] = nb::make_tuple(w.teams[0].kills, w.teams[1].kills);
  out["units"] = units;
  out["projectiles"] = projectiles;
  out["areas"] = areas;
  std::uint32_t dropped = 0;
  for (const std::uint32_t n : w.dropped)
    dropped += n;
  out["dropped"] = dropped;  // effects and units that found their pool full
  return out;
}

}  // namespace dota
