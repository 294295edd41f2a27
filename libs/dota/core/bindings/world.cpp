// One world for tests and inspection: it is stepped, looked into and changed by hand. Games are played through
// Game.
#include "bindings/world.hpp"

#include "bindings/events.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "rules/buildings.hpp"
#include "rules/lineup.hpp"
#include "rules/step.hpp"
#include "rules/validate.hpp"
#include "world/fingerprint.hpp"
#include "world/hash.hpp"

namespace nb = nanobind;

namespace dota {

void bind_world(nb::module_& m) {
  nb::class_<PyWorld> world(m, "World", "One world, for tests and inspection.");
  world
      .def(nb::init<const PyTables&, const nb::dict&, const std::vector<std::string>&,
                    const std::vector<std::string>&, std::uint64_t>(),
           nb::arg("tables"), nb::arg("settings"), nb::arg("radiant"), nb::arg("dire"), nb::arg("seed"),
           "Starts a game. Raises ValueError for a lineup that cannot be played, KeyError for unknown names.")
      .def("step", &PyWorld::step, nb::arg("steps") = 1, "Timesteps of four frames without commands.")
      .def(
          "run_frames",
          [](PyWorld& p, int frames) {
            Context c = p.context();
            for (int i = 0; i < frames && c.world.winner == Winner::None; ++i)
              step_frame(c, -1);
          },
          nb::arg("frames"),
          "Single frames, without what is done once a timestep: commands, vision, the health history, signals.")
      .def_prop_ro("time", [](PyWorld& p) { return p.world().time; })
      .def_prop_ro("frame", [](PyWorld& p) { return p.world().frame; })
      .def_prop_ro("waves", [](PyWorld& p) { return p.world().waves; })
      .def_prop_ro("is_day", [](PyWorld& p) { return p.world().is_day; })
      .def_prop_ro(
          "winner", [](PyWorld& p) { return static_cast<int>(p.world().winner); },
          "0 none, 1 Radiant, 2 Dire, 3 draw")
      .def(
          "team",
          [](PyWorld& p, int team) {
            const TeamState& t = p.world().teams[team_checked(team)];
            nb::dict d;
            d["kills"] = t.kills;
            d["towers_lost"] = t.towers_lost;
            d["super_melee"] = t.super_melee;
            d["super_ranged"] = t.super_ranged;
            d["megas"] = t.megas;
            d["glyph_ready"] = t.glyph_ready;
            d["glyph_until"] = t.glyph_until;
            d["scan_ready"] = t.scan_ready;
            d["courier"] = p.world().get(t.courier) ? static_cast<int>(t.courier.index) : -1;
            d["courier_respawn"] = t.courier_respawn;
            d["stock"] = std::vector<int>(t.stock.begin(), t.stock.end());
            return d;
          },
          nb::arg("team"))
      .def("pickups",
           [](PyWorld& p) {
             nb::list out;
             for (const Pickup& k : p.world().pickups)
               out.append(nb::make_tuple(k.present, static_cast<int>(k.kind), k.pos.x, k.pos.y));
             return out;
           })
      .def("ground_items",
           [](PyWorld& p) {
             nb::list out;
             for (const GroundItem& g : p.world().ground)
               if (g.id >= 0) out.append(nb::make_tuple(p.tables().items[g.id].name, g.pos.x, g.pos.y));
             return out;
           })
      .def("hash", [](PyWorld& p) { return hash_world(p.world()); })
      .def(
          "derived_fault", [](PyWorld& p) { return derived_fault(p.context()); },
          "Where lists that are kept for speed do not follow from the rest of the state; '' when they do.")
      .def("snapshot",
           [](PyWorld& p) {
             const auto bytes = world_snapshot(p.context());
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def(
          "restore",
          [](PyWorld& p, const nb::bytes& b) {
            Context c = p.context();
            restore_world(c, b.data(), b.size());
          },
          nb::arg("snapshot"),
          "Raises ValueError for bytes that are not a snapshot of this core, data and settings.")
      .def(
          "set_time",
          [](PyWorld& p, float time) {
            World& w = p.world();
            Context c = p.context();
            if (!(time >= c.settings.start_s && time <= 36000))
              throw nb::value_error("the time is at least the start's and at most ten hours");
            w.frame = static_cast<std::int32_t>(std::lround((time - c.settings.start_s) * 30.0f));
            w.time = time;
            const float every = c.tables.game->wave_every;
            w.waves = static_cast<int>(std::ceil(std::max(0.0f, time) / every));
            w.next_wave = static_cast<float>(w.waves) * every;
            for (HeroState& h : w.heroes)
              h.passive_ticks = static_cast<int>(std::max(0.0f, time) / c.tables.rules.passive_every_s);
          },
          nb::arg("time"), "Moves the clock; nothing that the time between would have brought happens.")
      .def(
          "glyph",
          [](PyWorld& p, int team) {
            Context c = p.context();
            return use_glyph(c, team_checked(team));
          },
          nb::arg("team"))
      .def(
          "dropped",
          [](PyWorld& p) {
            nb::dict d;
            const char* names[] = {"units",   "loadouts",   "modifiers",    "projectiles", "areas",
                                   "delayed", "stack_ends", "ground_items", "events",      "consequences"};
            static_assert(sizeof(names) / sizeof(names[0]) == ordinal(StatePool::Count));
            for (std::size_t i = 0; i < p.world().dropped.size(); ++i)
              d[names[i]] = p.world().dropped[i];
            return d;
          },
          "What did not happen because its pool was full, by pool.")
      .def(
          "events",
          [](PyWorld& p) { return events_of(p.world().last_events(), p.tables(), p.context().settings.start_s); },
          "What happened in the last timestep, in order: tuples, dota.events.Event says of what.")
      .def("projectiles", [](PyWorld& p) {
        int n = 0;
        for (const Projectile& q : p.world().projectiles)
          n += q.kind != Projectile::Kind::None;
        return n;
      });
  m.def(
      "sealed",
      [](const nb::bytes& snapshot) {
        std::vector<std::uint8_t> bytes(static_cast<const std::uint8_t*>(snapshot.data()),
                                        static_cast<const std::uint8_t*>(snapshot.data()) + snapshot.size());
        seal_snapshot(bytes.data(), bytes.size());
        return nb::bytes(bytes.data(), bytes.size());
      },
      nb::arg("snapshot"),
      "The same with the checksum its bytes should have: for tests of what a checksum cannot see.");
  bind_world_units(world);
  bind_world_heroes(world);
  const auto list_items = [&m](const char* name, auto items, const char* doc) {
    m.def(
        name,
        [items](const PyTables& t, const std::vector<std::string>& heroes) {
          std::vector<std::string> out;
          for (const std::string& hero : heroes) {
            std::array<int, kMaxHeroes> one;
            one.fill(-1);
            one[0] = hero_index(*t.tables, hero);
            for (const std::string& item : items(*t.tables, one))
              if (std::find(out.begin(), out.end(), item) == out.end()) out.push_back(item);
          }
          return out;
        },
        nb::arg("tables"), nb::arg("heroes"), doc);
  };
  list_items("items_not_bought", &items_not_bought,
             "Items of these heroes' builds that the scripted buyer skips.");
  list_items("items_without_use", &items_without_use,
             "Items of these heroes' builds that are bought for their stats but cannot be used yet.");
}

}  // namespace dota
