// Games as Python sees them. Shapes are checked in dota.vec_game; sizes again here.
#include <stdexcept>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/data.hpp"
#include "bindings/events.hpp"
#include "bindings/vec.hpp"
#include "bindings/vec_games.hpp"
#include "map/map_data.hpp"
#include "rules/lineup.hpp"
#include "rules/validate.hpp"
#include "vec/vec_game.hpp"

namespace nb = nanobind;

namespace dota {

std::vector<std::shared_ptr<const GameSetup>> PyVecGame::setups(nb::handle layout, const nb::list& variants) {
  const LayoutTable table = layout_table(layout);
  std::vector<std::shared_ptr<const GameSetup>> out;
  for (const nb::handle variant : variants)
    out.push_back(game_setup(table, variant));
  if (out.empty()) throw std::runtime_error("games need at least one configuration");
  return out;
}

nb::bytes command_rows(const std::array<Command, kMaxHeroes>& commands) {
  std::vector<std::int16_t> out;
  for (const Command& c : commands)
    for (const int v : {static_cast<int>(c.action), static_cast<int>(c.delay), static_cast<int>(c.target.index),
                        static_cast<int>(c.target.generation), static_cast<int>(c.teleport.index),
                        static_cast<int>(c.teleport.generation), static_cast<int>(c.dx), static_cast<int>(c.dy)})
      out.push_back(static_cast<std::int16_t>(v));
  return nb::bytes(out.data(), out.size() * sizeof(std::int16_t));
}

std::array<Command, kMaxHeroes> commands_of(const std::int16_t* rows, const GameSetup& setup) {
  std::array<Command, kMaxHeroes> commands{};
  for (std::size_t h = 0; h < kMaxHeroes; ++h) {
    const std::int16_t* r = rows + h * kCommandNumbers;
    Command& c = commands[h];
    const auto handle = [](std::int16_t index, std::int16_t generation) {
      if (index < -1 || index >= kMaxUnits) throw nb::value_error("commands: no such unit");
      return Handle{index, static_cast<std::uint16_t>(generation)};
    };
    if (r[1] < 0 || r[1] >= kFramesPerStep || r[6] < -4 || r[6] > 4 || r[7] < -4 || r[7] > 4 || r[0] < 0 ||
        r[0] >= static_cast<int>(setup.vocabulary.defs.size()))
      throw nb::value_error("commands: a command is out of range");
    c.action = r[0];
    c.delay = static_cast<std::uint8_t>(r[1]);
    c.target = handle(r[2], r[3]);
    c.teleport = handle(r[4], r[5]);
    c.dx = static_cast<std::int8_t>(r[6]);
    c.dy = static_cast<std::int8_t>(r[7]);
  }
  return commands;
}

namespace {

template <class T>
T* buffer(PyVecGame& self, const nb::dict& arrays, const char* name, std::size_t size) {
  if (!arrays.contains(name)) throw nb::value_error((std::string("buffer '") + name + "' is missing").c_str());
  const nb::object array = arrays[name];
  const auto a = nb::cast<Array<T>>(array);
  if (a.size() != size)
    throw nb::value_error((std::string("buffer '") + name + "' holds " + std::to_string(a.size()) + " values, " +
                           std::to_string(size) + " are needed")
                              .c_str());
  self.kept.push_back(array);
  return a.data();
}

void bind_buffers(PyVecGame& self, const nb::dict& arrays) {
  const Layout& l = self.vec.setup(0).layout;
  const std::size_t team_steps = self.vec.size() * kTeams;
  const std::size_t heroes = team_steps * l.heroes;
  const auto width = [&](ObsArray a) -> std::size_t { return l.width(a); };
  self.kept.clear();
  VecBuffers b;
  if (arrays.contains("shared")) {
    b.shared = buffer<std::uint16_t>(self, arrays, "shared", team_steps * width(ObsArray::Shared));
    b.private_ = buffer<std::uint16_t>(self, arrays, "private", heroes * width(ObsArray::Private));
  }
  if (b.shared || arrays.contains("available")) {
    b.shared_ids = buffer<std::uint16_t>(self, arrays, "shared_ids", team_steps * width(ObsArray::SharedIds));
    b.private_ids = buffer<std::uint16_t>(self, arrays, "private_ids", heroes * width(ObsArray::PrivateIds));
    b.available = buffer<std::uint16_t>(self, arrays, "available", heroes * kMaxAvailable);
    b.target_mask = buffer<std::uint8_t>(self, arrays, "target_mask", heroes * kMaskClasses * l.units);
  }
  b.signals = buffer<float>(self, arrays, "signals", heroes * kSignals);
  b.stats = buffer<float>(self, arrays, "stats", heroes * kStatCount);
  b.game_time = buffer<float>(self, arrays, "game_time", self.vec.size());
  b.winner = buffer<std::uint8_t>(self, arrays, "winner", self.vec.size());
  b.lineups = buffer<std::int16_t>(self, arrays, "lineups", heroes);
  self.vec.bind(b);
}

// The lineup of a row of heroes as lineups outside the core name them. Throws nb::value_error for one that cannot
// be played.
Lineup lineup_of(const GameSetup& setup, const std::int16_t* row) {
  const int heroes = setup.settings.heroes_per_team;
  Lineup out;
  out.fill(-1);
  for (int t = 0; t < kTeams; ++t)
    for (int i = 0; i < heroes; ++i)
      out[t * 5 + i] = setup.hero_inside(row[t * heroes + i]);
  if (const std::string refused = check_lineup(*setup.tables, out); !refused.empty())
    throw nb::value_error(refused.c_str());
  return out;
}

}  // namespace

void bind_vec(nb::module_& m) {
  bind_layout(m);
  bind_tables_seen(m);
  m.attr("SIGNAL_COUNT") = kSignals;
  m.attr("STAT_COUNT") = kStatCount;
  nb::class_<PyVecGame> games(m, "VecGame", "Many games on a pool of threads; wrapped by dota.VecGame.");
  games
      .def(
          "__init__",
          [](PyVecGame* self, nb::handle layout, const nb::list& variants, int games, std::uint64_t seed,
             int threads) {
            if (games < 1 || threads < 1) throw nb::value_error("games and threads must be at least 1");
            try {
              new (self) PyVecGame(layout, variants, games, seed, threads);
            } catch (const std::runtime_error& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("layout"), nb::arg("variants"), nb::arg("games"), nb::arg("seed"), nb::arg("threads"))
      .def("bind", &bind_buffers, nb::arg("arrays"))
      .def(
          "reset",
          [](PyVecGame& self, const std::vector<int>& which, std::optional<Array<const std::int16_t>> lineups,
             const std::optional<std::vector<int>>& variants) {
            self.check(which);
            if (variants && variants->size() != which.size())
              throw nb::value_error("reset: variants do not fit the games named");
            std::vector<int> in;
            for (std::size_t k = 0; k < which.size(); ++k)
              in.push_back(variants ? self.check_variant((*variants)[k]) : self.vec.variant(which[k]));
            std::vector<Lineup> fixed;
            if (lineups) {
              const std::size_t row = kTeams * self.vec.setup(0).settings.heroes_per_team;
              if (lineups->size() != which.size() * row)
                throw nb::value_error("reset: lineups do not fit the games named");
              for (std::size_t k = 0; k < which.size(); ++k)
                fixed.push_back(lineup_of(self.vec.setup(in[k]), lineups->data() + k * row));
            }
            nb::gil_scoped_release release;
            self.vec.reset(which, lineups ? fixed.data() : nullptr, in.data());
          },
          nb::arg("which"), nb::arg("lineups").none(), nb::arg("variants").none())
      .def(
          "reset_as",
          [](PyVecGame& self, int i, int variant, std::uint64_t seed,
             std::optional<Array<const std::int16_t>> lineup) {
            self.check(i);
            const GameSetup& setup = self.vec.setup(self.check_variant(variant));
            const int heroes = setup.settings.heroes_per_team;
            if (lineup && std::cmp_not_equal(lineup->size(), kTeams * heroes))
              throw nb::value_error("reset: the lineup does not fit the game");
            const Lineup l = lineup ? lineup_of(setup, lineup->data()) : draw_lineup(setup, seed);
            if (const std::string refused = check_lineup(*setup.tables, l); !refused.empty())
              throw nb::value_error(refused.c_str());
            nb::gil_scoped_release release;
            self.vec.reset_as(i, variant, seed, l);
          },
          nb::arg("game"), nb::arg("variant"), nb::arg("seed"), nb::arg("lineup").none())
      .def(
          "add_variant",
          [](PyVecGame& self, nb::handle variant) {
            try {
              return self.vec.add_variant(game_setup(self.vec.setup(0).layout.table, variant));
            } catch (const std::runtime_error& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("variant"))
      .def(
          "variant", [](PyVecGame& self, int i) { return self.vec.variant(self.check(i)); }, nb::arg("game"))
      .def(
          "step",
          [](PyVecGame& self, const std::vector<int>& which, Array<const std::int16_t> actions,
             Array<const std::uint8_t> controllers) {
            self.check(which);
            const std::size_t rows = self.vec.size() * kTeams;
            if (actions.size() != rows * self.vec.setup(0).settings.heroes_per_team * kActionParts ||
                controllers.size() != rows)
              throw nb::value_error("step: actions or controllers do not fit the games");
            for (std::size_t i = 0; i < rows; ++i)
              if (controllers.data()[i] >= static_cast<std::uint8_t>(BotKind::Count))
                throw nb::value_error(
                    ("step: there is no controller " + std::to_string(controllers.data()[i])).c_str());
            nb::gil_scoped_release release;
            self.vec.step(which, actions.data(), controllers.data());
          },
          nb::arg("which"), nb::arg("actions").noconvert(), nb::arg("controllers").noconvert())
      .def(
          "packed",
          [](PyVecGame& self, int array, const std::vector<int>& which) {
            self.check(which);
            const PackedSteps* const packed = self.vec.packed();
            if (!packed || array < 0 || array >= static_cast<int>(PackedSteps::kArrays))
              throw nb::value_error("packed: the games have no such observations");
            nb::list rows;
            for (const int i : which)
              for (int team = 0; team < kTeams; ++team) {
                const auto row = packed->row(array, i, team);
                rows.append(nb::bytes(row.data(), row.size()));
              }
            return rows;
          },
          nb::arg("array"), nb::arg("which"),
          "What games bound without 'shared' (0) and 'private' (1) hold of these, packed: Radiant's, then Dire's, "
          "game after game.")
      .def(
          "commands",
          [](PyVecGame& self, int i) {
            nb::list timesteps;
            for (const auto& commands : self.vec.chosen(self.check(i)))
              timesteps.append(command_rows(commands));
            return timesteps;
          },
          nb::arg("game"), "Commands of the last step's timesteps, each int16 [10, 8] as bytes.")
      .def(
          "step_commands",
          [](PyVecGame& self, const std::vector<int>& which, Array<const std::int16_t> rows) {
            self.check(which);
            constexpr std::size_t kRow = kMaxHeroes * kCommandNumbers;
            if (rows.size() != which.size() * kRow)
              throw nb::value_error("commands: int16 [games named, 10, 8] is needed");
            std::vector<std::array<Command, kMaxHeroes>> commands;
            for (std::size_t k = 0; k < which.size(); ++k)
              commands.push_back(commands_of(rows.data() + k * kRow, self.vec.setup(0)));
            nb::gil_scoped_release release;
            self.vec.step_commands(which, commands.data());
          },
          nb::arg("which"), nb::arg("commands").noconvert())
      .def(
          "snapshot",
          [](PyVecGame& self, int i) {
            const auto bytes = self.vec.game(self.check(i)).snapshot();
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("game"))
      .def(
          "restore",
          [](PyVecGame& self, int i, nb::bytes bytes) {
            self.vec.restore(self.check(i), static_cast<const std::uint8_t*>(bytes.data()), bytes.size());
          },
          nb::arg("game"), nb::arg("bytes"))
      .def(
          "branch",
          [](PyVecGame& self, int i, std::uint64_t seed, float building_health) {
            self.vec.branch(self.check(i), seed, building_health);
          },
          nb::arg("game"), nb::arg("seed"), nb::arg("building_health"))
      .def(
          "time_parts",
          [](PyVecGame& self, int steps, int bots) {
            if (steps < 1 || bots <= static_cast<int>(BotKind::Policy) || bots >= static_cast<int>(BotKind::Count))
              throw nb::value_error("time_parts: at least one step, and bots on both sides");
            PartSeconds s;
            {
              nb::gil_scoped_release release;
              s = self.vec.time_parts(steps, static_cast<BotKind>(bots));
            }
            nb::dict out;
            out["alone"] = s.alone;
            out["engine"] = s.engine;
            out["bots"] = s.bots;
            out["views"] = s.views;
            out["encode"] = s.encode;
            return out;
          },
          nb::arg("steps"), nb::arg("bots"))
      .def(
          "hash", [](PyVecGame& self, int i) { return self.vec.game(self.check(i)).hash(); }, nb::arg("game"))
      .def(
          "derived_fault",
          [](PyVecGame& self, int i) { return derived_fault(self.vec.game(self.check(i)).context()); },
          nb::arg("game"), "As World.derived_fault(): for tests.")
      .def(
          "seed", [](PyVecGame& self, int i) { return self.vec.episode_seed(self.check(i)); }, nb::arg("game"))
      .def(
          "events",
          [](PyVecGame& self, int i) {
            const Game& g = self.vec.game(self.check(i));
            return events_of(self.vec.events(i), *g.setup().tables, g.setup().settings.start_s);
          },
          nb::arg("game"), "What happened in the last step, in order: tuples of dota.events.Event.")
      .def(
          "spectate",
          [](PyVecGame& self, int i) {
            const Game& game = self.vec.game(self.check(i));
            return spectator_frame(game.state(), *game.setup().tables);
          },
          nb::arg("game"))
      .def(
          "write_seen",
          [](PyVecGame& self, int i, const nb::dict& out) {
            write_tables_seen(self.vec.game(self.check(i)).context(), out, nullptr);
          },
          nb::arg("game"), nb::arg("out"),
          "Writes a game into the arrays that SEEN_TABLES and SEEN_BITS describe.")
      .def(
          "slot_units",
          [](PyVecGame& self, int i, int team) {
            if (team < 0 || team >= kTeams) throw nb::index_error("a team is 0 or 1");
            const SlotTable& slots = self.vec.game(self.check(i)).state().slots[team];
            std::vector<std::int16_t> out;
            for (int k = 0; k < slots.count; ++k)
              out.push_back(slots.handle[k].index);
            return nb::bytes(out.data(), out.size() * sizeof(std::int16_t));
          },
          nb::arg("game"), nb::arg("team"),
          "Return the unit in each unit slot of a team's observation, int16 as bytes; -1: none.")
      .def(
          "building_slots",
          [](PyVecGame& self) {
            const GameSetup& setup = self.vec.setup(0);
            const auto turned = [&](int team) {
              return setup.layout.table.mirror_dire && team == kDire ? 1u : 0u;
            };
            std::vector<std::array<int, 3>> out;
            const auto& buildings = setup.tables->map->buildings;
            for (std::size_t b = 0; b < buildings.size(); ++b) {
              const int team = buildings[b].team;
              const auto& ranks = setup.constants.building_slot;
              out.push_back({team, ranks[turned(team)][b], ranks[turned(1 - team)][b]});
            }
            return out;
          },
          "Of each building its team, its place among its owner's buildings and among its enemy's enemy "
          "buildings.");
  bind_game_changes(games);
  bind_play(m);
}

}  // namespace dota
