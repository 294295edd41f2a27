// The map for Python: its grids and places, and a ground to try walking and sight on without a game.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <tuple>

#include "bindings/data.hpp"
#include "bindings/world.hpp"
#include "effects/running.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/routes.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"
#include "world/hash.hpp"

namespace nb = nanobind;

namespace dota {

namespace {

using Point = std::pair<float, float>;
Vec2 vec(Point p) { return {p.first, p.second}; }
Point pair(Vec2 v) { return {v.x, v.y}; }

// A world with the map's trees and buildings in it and nothing else; bodies are put in by hand and have no game.
struct Ground {
  std::shared_ptr<const Tables> tables;
  std::unique_ptr<World> world = std::make_unique<World>();
  GameSettings settings;

  explicit Ground(const PyTables& t) : tables(t.tables) {
    world->buildings_standing = (1ull << tables->map->buildings.size()) - 1;
    Context c = context();
    build_spatial(c);
  }
  Context context() { return {*world, *tables, settings}; }

  Unit& unit(int i) {
    if (i < 0 || i >= world->units_end) throw nb::index_error("no such body");
    return world->units[i];
  }

  int add(const std::string& type, int team, Point at) {
    const auto found = tables->unit_index.find(type);
    if (found == tables->unit_index.end())
      throw nb::key_error(("unit '" + type + "' is not in the tables").c_str());
    if (world->units_end == kMaxUnits) throw nb::value_error("the world is full");
    const UnitDef& d = tables->units[found->second];
    Unit& u = world->units[world->units_end++];
    set_kind(*world, u, d.kind);
    u.type = static_cast<std::uint16_t>(found->second);
    u.team = static_cast<std::uint8_t>(team);
    u.alive = true;
    u.hp = u.max_hp = d.hp;
    u.move_speed = d.move_speed;
    u.turn_rate = d.turn_rate;
    u.radius = d.hull_radius;
    u.vision_day = d.vision_day;
    u.vision_night = d.vision_night;
    u.true_sight = d.true_sight;
    u.pos = vec(at);
    Context c = context();
    build_spatial(c);
    return world->units_end - 1;
  }

  // Runs frames in which each body named walks to its goal, until all have arrived. Returns the frames it took, or
  // -1.
  int walk(const std::vector<std::tuple<int, float, float>>& goals, float arrive, int frames) {
    for (int f = 0; f < frames; ++f) {
      Context c = context();
      build_spatial(c);
      bool all = true;
      for (const auto& [i, x, y] : goals)
        all = move_towards(c, unit(i), {x, y}, arrive) && all;
      world->time += kDt;
      ++world->frame;
      if (all) return f;
    }
    return -1;
  }

  std::vector<int> near(Point p, float radius) {
    const UnitList found = units_near(context(), vec(p), radius);
    return {found.slots().begin(), found.slots().end()};
  }
};

nb::object grid_array(const std::vector<std::int16_t>& values) {
  auto* data = new std::int16_t[values.size()];
  std::copy(values.begin(), values.end(), data);
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<std::int16_t*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, std::int16_t, nb::ndim<2>>(data, {kGrid, kGrid}, owner));
}

template <class T>
std::vector<std::int16_t> widened(const std::vector<T>& v) {
  return {v.begin(), v.end()};
}

nb::object map_grid(const PyTables& t, const std::string& name) {
  const MapData& m = *t->map;
  if (name == "elevation") return grid_array(widened(m.elevation));
  if (name == "terrain_blocked") return grid_array(widened(m.terrain_blocked));
  if (name == "fow_blocker") return grid_array(widened(m.fow_blocker));
  if (name == "no_ward") return grid_array(widened(m.no_ward));
  if (name == "tree_count") return grid_array(widened(m.tree_count));
  if (name == "building") return grid_array(widened(m.building_cell));
  if (name == "blocked_at_start") return grid_array(widened(m.blocked_at_start));
  if (name == "region") return grid_array(m.routes->region);
  throw nb::key_error(("no grid '" + name + "'").c_str());
}

nb::list map_buildings(const PyTables& t) {
  nb::list out;
  for (const MapBuilding& b : t->map->buildings) {
    nb::dict d;
    d["id"] = b.id;
    d["kind"] = static_cast<int>(b.kind);
    d["team"] = b.team;
    d["tier"] = b.tier;
    d["lane"] = static_cast<int>(b.lane);
    d["melee"] = b.melee;
    d["unit"] = t->units[b.unit].name;
    d["pos"] = pair(b.pos);
    d["bounds"] = b.bounds;
    out.append(d);
  }
  return out;
}

std::vector<Point> map_lane(const PyTables& t, int team, int lane) {
  if (team < 0 || team >= kTeams || lane < 0 || lane > 2) throw nb::index_error("team is 0 or 1, lane 0 to 2");
  const MapLane& l = t->map->lanes[team][lane];
  std::vector<Point> out{pair(l.spawn)};
  for (Vec2 p : l.waypoints)
    out.push_back(pair(p));
  return out;
}

void bind_ground(nb::module_& m) {
  nb::class_<Ground>(m, "Ground", "The map with bodies on it that walk and see, without a game around them.")
      .def(nb::init<const PyTables&>(), nb::arg("tables"))
      .def("add", &Ground::add, nb::arg("unit"), nb::arg("team"), nb::arg("at"),
           "Puts a body down; returns its index.")
      .def("walk", &Ground::walk, nb::arg("goals"), nb::arg("arrive") = 1.0f, nb::arg("frames") = 30000,
           "Walks bodies to (index, x, y) goals; the frames it took, or -1 when not all arrived.")
      .def(
          "place", [](Ground& g, int i, Point p) { place_unit(*g.world, g.unit(i), vec(p)); }, nb::arg("index"),
          nb::arg("at"))
      .def(
          "face", [](Ground& g, int i, float radians) { g.unit(i).facing = radians; }, nb::arg("index"),
          nb::arg("radians"))
      .def(
          "facing", [](Ground& g, int i) { return g.unit(i).facing; }, nb::arg("index"))
      .def(
          "position", [](Ground& g, int i) { return pair(g.unit(i).pos); }, nb::arg("index"))
      .def(
          "turn_towards",
          [](Ground& g, int i, Point p) {
            Context c = g.context();
            return turn_towards(c, g.unit(i), vec(p));
          },
          nb::arg("index"), nb::arg("point"))
      .def(
          "set_status", [](Ground& g, int i, std::uint32_t bits) { g.unit(i).status = bits; }, nb::arg("index"),
          nb::arg("bits"))
      .def(
          "walkable", [](Ground& g, Point p) { return walkable(*g.world, *g.tables->map, vec(p)); },
          nb::arg("point"))
      .def(
          "elevation", [](Ground& g, Point p) { return elevation(*g.tables->map, vec(p)); }, nb::arg("point"))
      .def(
          "free_place",
          [](Ground& g, Point p, float r) { return pair(free_place(*g.world, *g.tables->map, vec(p), r)); },
          nb::arg("point"), nb::arg("radius"))
      .def("units_near", &Ground::near, nb::arg("point"), nb::arg("radius"))
      .def(
          "tree_at", [](Ground& g, Point p, float r) { return tree_at(*g.world, *g.tables->map, vec(p), r); },
          nb::arg("point"), nb::arg("radius"))
      .def(
          "cut_tree",
          [](Ground& g, int tree) {
            cut_tree(*g.world, *g.tables,
                     checked(tree, 0, static_cast<int>(g.tables->map->trees.size()) - 1, "tree"));
          },
          nb::arg("tree"))
      .def(
          "fell_building",
          [](Ground& g, int b) {
            if (b < 0 || b >= std::ssize(g.tables->map->buildings)) throw nb::index_error("no such building");
            g.world->buildings_standing &= ~(1ull << b);
            Context c = g.context();
            build_spatial(c);
          },
          nb::arg("building"))
      .def(
          "pass_time",
          [](Ground& g, float seconds) {
            g.world->time += seconds;
            Context c = g.context();
            build_spatial(c);
          },
          nb::arg("seconds"))
      .def(
          "set_day", [](Ground& g, bool day) { g.world->is_day = day; }, nb::arg("day"))
      .def("update_vision",
           [](Ground& g) {
             Context c = g.context();
             update_vision(c);
             reveal_effects(c);
           })
      .def(
          "reveal",
          [](Ground& g, int team, Point p, float r, bool flying) {
            reveal_area(*g.world, *g.tables->map, team_checked(team), vec(p), r, flying);
          },
          nb::arg("team"), nb::arg("at"), nb::arg("radius"), nb::arg("flying"))
      .def(
          "cell_visible",
          [](Ground& g, int team, Point p) { return cell_visible(*g.world, team_checked(team), vec(p)); },
          nb::arg("team"), nb::arg("point"))
      .def(
          "unit_visible",
          [](Ground& g, int team, int i) { return unit_visible(*g.world, team_checked(team), g.unit(i)); },
          nb::arg("team"), nb::arg("index"))
      .def(
          "fog",
          [](Ground& g, int team) {
            team_checked(team);
            nb::list rows;
            for (int y = 0; y < kFogCells; ++y) {
              std::string row(kFogCells, '.');
              for (int x = 0; x < kFogCells; ++x)
                if (cell_visible(*g.world, team,
                                 {kMapMin + (static_cast<float>(x) + 0.5f) * 128,
                                  kMapMin + (static_cast<float>(y) + 0.5f) * 128}))
                  row[x] = '#';
              rows.append(row);
            }
            return rows;
          },
          nb::arg("team"), "Rows of 130 fog cells, lowest y first: '#' seen, '.' not.")
      .def("hash", [](Ground& g) { return hash_world(*g.world); })
      .def(
          "copy",
          [](Ground& g) {
            auto other = std::make_unique<Ground>(PyTables{g.tables});
            *other->world = *g.world;
            return other.release();
          },
          nb::rv_policy::take_ownership);
}

}  // namespace

void bind_map(nb::module_& m) {
  m.def("map_grid", &map_grid, nb::arg("tables"), nb::arg("name"),
        "A grid of the map, int16 [260, 260], row 0 at the lowest y: elevation, terrain_blocked, fow_blocker, "
        "no_ward, "
        "tree_count, building (index + 1), blocked_at_start, region.");
  m.def("map_buildings", &map_buildings, nb::arg("tables"));
  m.def("map_lane", &map_lane, nb::arg("tables"), nb::arg("team"), nb::arg("lane"),
        "Spawn, then waypoints in walking order.");
  m.def(
      "map_trees",
      [](const PyTables& t) {
        std::vector<std::tuple<float, float, int>> out;
        for (const MapTree& tree : t->map->trees)
          out.emplace_back(tree.pos.x, tree.pos.y, tree.level);
        return out;
      },
      nb::arg("tables"));
  m.def(
      "map_camps",
      [](const PyTables& t) {
        nb::list out;
        for (const MapCamp& camp : t->map->camps)
          out.append(nb::make_tuple(camp.id, camp.tier, pair(camp.pos), pair(camp.box_min), pair(camp.box_max)));
        return out;
      },
      nb::arg("tables"));
  m.def(
      "map_places",
      [](const PyTables& t) {
        const MapData& map = *t->map;
        nb::dict d;
        std::vector<Point> bounty, power;
        for (Vec2 p : map.bounty_runes)
          bounty.push_back(pair(p));
        for (Vec2 p : map.power_runes)
          power.push_back(pair(p));
        d["bounty"] = bounty;
        d["power"] = power;
        d["roshan"] = pair(map.roshan);
        d["hero_spawn"] = nb::make_tuple(pair(map.hero_spawn[0]), pair(map.hero_spawn[1]));
        d["shops"] = map.shops.size();
        return d;
      },
      nb::arg("tables"));
  bind_ground(m);
}

}  // namespace dota
