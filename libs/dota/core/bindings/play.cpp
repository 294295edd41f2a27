// Games that people play in; dota.play wraps them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings/events.hpp"
#include "bindings/vec_games.hpp"
#include "play/bot_handles.hpp"
#include "play/play.hpp"

namespace nb = nanobind;

namespace dota {
namespace {

struct PyPlay {
  PyVecGame& games;
  int place;
  Play play;

  PyPlay(PyVecGame& g, int i) : games(g), place(g.check(i)), play(g.vec.game(i)) {}
  Game& game() { return games.vec.game(place); }

  // Who plays each team, of arrays that fit the game.
  std::array<BotKind, kTeams> checked(const char* what, const Array<const std::int16_t>& actions,
                                      const Array<const std::uint8_t>& controllers) {
    const int heroes = game().setup().settings.heroes_per_team;
    if (std::cmp_not_equal(actions.size(), kTeams * heroes * kActionParts) || controllers.size() != kTeams)
      throw nb::value_error((std::string(what) + ": actions or controllers do not fit the game").c_str());
    std::array<BotKind, kTeams> who{};
    for (std::size_t t = 0; t < kTeams; ++t) {
      if (controllers.data()[t] >= static_cast<std::uint8_t>(BotKind::Count))
        throw nb::value_error(
            (std::string(what) + ": there is no controller " + std::to_string(controllers.data()[t])).c_str());
      who[t] = static_cast<BotKind>(controllers.data()[t]);
    }
    return who;
  }
};

std::int16_t small_number(std::int64_t v) {
  return v < -1 || v > std::numeric_limits<std::int16_t>::max() ? std::int16_t{-1} : static_cast<std::int16_t>(v);
}

// Clamps finite values; keeps infinities and NaN, which are refused as positions later.
float number_of(double v) { return static_cast<float>(std::isfinite(v) ? std::clamp(v, -1e9, 1e9) : v); }

PersonOrder order_of(const Tables& t, int kind, const std::optional<std::pair<std::int64_t, std::int64_t>>& target,
                     const std::optional<std::pair<double, double>>& at, std::int64_t slot, std::int64_t to,
                     const std::string& item, bool queue, bool once) {
  PersonOrder o;
  o.kind =
      kind < 0 || kind >= static_cast<int>(PersonKind::Count) ? PersonKind::Count : static_cast<PersonKind>(kind);
  o.queue = queue;
  o.once = once;
  if (target) {
    o.targeted = true;
    const auto [index, generation] = *target;
    if (index >= 0 && index < kMaxUnits && generation >= 0 && generation <= 0xFFFF)
      o.target = {static_cast<std::int16_t>(index), static_cast<std::uint16_t>(generation)};
  }
  if (at) {
    o.aimed = true;
    o.at = {number_of(at->first), number_of(at->second)};
  }
  o.slot = small_number(slot);
  o.to = small_number(to);
  if (o.kind == PersonKind::Courier)
    o.errand = item == "deliver"  ? Errand::Deliver
               : item == "return" ? Errand::Return
               : item == "stash"  ? Errand::Stash
                                  : Errand::None;
  const auto found = t.item_index.find(item);
  if (found != t.item_index.end()) o.item = static_cast<std::int16_t>(found->second);
  return o;
}

int team_of(int team) {
  if (team < 0 || team >= kTeams) throw nb::value_error("a team is 0 or 1");
  return team;
}

}  // namespace

void bind_play(nb::module_& m) {
  nb::list words;
  for (int k = 1; k < static_cast<int>(Refusal::Count); ++k)
    words.append(word(static_cast<Refusal>(k)));
  m.attr("REFUSALS") = words;
  m.attr("OFFERED") = Play::kOffered;
  m.attr("PERSON_KINDS") = static_cast<int>(PersonKind::Count);
  nb::class_<PyPlay>(m, "Play", "One of the games as people play in it; wrapped by dota.play.")
      .def(nb::init<PyVecGame&, int>(), nb::arg("games"), nb::arg("game"), nb::keep_alive<1, 2>())
      .def(
          "take",
          [](PyPlay& self, int hero, bool held, bool buys, bool learns) {
            try {
              self.play.take(hero, held, buys, learns);
            } catch (const std::invalid_argument& e) {
              throw nb::index_error(e.what());
            }
          },
          nb::arg("hero"), nb::arg("held"), nb::arg("buys"), nb::arg("learns"))
      .def(
          "forget_skills",
          [](PyPlay& self, int hero) {
            try {
              self.play.forget_skills(hero);
            } catch (const std::invalid_argument& e) {
              throw nb::index_error(e.what());
            } catch (const std::logic_error& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("hero"))
      .def(
          "order",
          [](PyPlay& self, int hero, int kind, std::optional<std::pair<std::int64_t, std::int64_t>> target,
             std::optional<std::pair<double, double>> at, std::int64_t slot, std::int64_t to,
             const std::string& item, bool queue, bool once) {
            const PersonOrder o =
                order_of(*self.game().setup().tables, kind, target, at, slot, to, item, queue, once);
            return std::string(word(self.play.order(hero, o)));
          },
          nb::arg("hero"), nb::arg("kind"), nb::arg("target").none(), nb::arg("at").none(), nb::arg("slot"),
          nb::arg("to"), nb::arg("item"), nb::arg("queue"), nb::arg("once"),
          "Why it is refused; '' when it will be carried out.")
      .def(
          "begin",
          [](PyPlay& self, Array<const std::int16_t> actions, Array<const std::uint8_t> controllers) {
            const std::array<BotKind, kTeams> who = self.checked("begin", actions, controllers);
            try {
              self.play.begin(actions.data(), who);
            } catch (const std::logic_error& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("actions").noconvert(), nb::arg("controllers").noconvert())
      .def(
          "choose",
          [](PyPlay& self, Array<const std::int16_t> actions, Array<const std::uint8_t> controllers, int age) {
            const std::array<BotKind, kTeams> who = self.checked("choose", actions, controllers);
            try {
              self.play.choose(actions.data(), who, age);
            } catch (const std::logic_error& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("actions").noconvert(), nb::arg("controllers").noconvert(), nb::arg("age"),
          "What policies chose from the observations that a timestep began with, `age` before the one under way.")
      .def(
          "begin_commands",
          [](PyPlay& self, Array<const std::int16_t> rows) {
            try {
              if (rows.size() != kMaxHeroes * kCommandNumbers)
                throw nb::value_error("commands: int16 [10, 8] is needed");
              self.play.begin(commands_of(rows.data(), self.game().setup()));
            } catch (const std::logic_error& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("commands").noconvert(),
          "Begins a timestep by commands that are already resolved, int16 [10, 8].")
      .def("frame",
           [](PyPlay& self) {
             nb::gil_scoped_release release;
             try {
               const bool last = self.play.frame();
               if (last) self.games.vec.finish(self.place);
               return last;
             } catch (const std::logic_error& e) {
               nb::gil_scoped_acquire acquire;
               throw nb::value_error(e.what());
             }
           })
      .def(
          "commands", [](PyPlay& self) { return command_rows(self.play.commands()); },
          "Commands of the last timestep, int16 [10, 8] as bytes.")
      .def(
          "world_state",
          [](PyPlay& self, int team, const AbsentHeroes& absent) {
            const std::string bytes = self.play.world_state(team_of(team), absent);
            return nb::bytes(bytes.data(), bytes.size());
          },
          nb::arg("team"), nb::arg("absent"),
          "What a team sees, as Dota 2's message CMsgBotWorldState. absent: Valve's numbers of the heroes of\n"
          "players without a hero in the game; 0: the player is not listed.")
      .def(
          "unit_of_bot_handle",
          [](PyPlay& self, std::uint32_t handle) -> std::optional<std::pair<int, int>> {
            const Handle h = unit_of_bot_handle(self.game().state().world, handle);
            if (h.index < 0) return std::nullopt;
            return std::pair<int, int>(h.index, h.generation);
          },
          nb::arg("handle"), "Slot and generation of the unit with that handle in world states, or None.")
      .def("engine_frame", [](PyPlay& self) { return self.game().state().world.frame; })
      .def("winner", [](PyPlay& self) { return static_cast<int>(self.game().state().world.winner); })
      .def(
          "events",
          [](PyPlay& self, std::optional<int> team) {
            const Game& g = self.game();
            const World& w = g.state().world;
            std::vector<Event> told;
            if (team)
              told = events_for(w, self.play.sight(), team_of(*team), self.play.events_from());
            else if (self.play.events_from() < w.event_count)
              told.assign(w.events.begin() + self.play.events_from(), w.events.begin() + w.event_count);
            return events_of(told, *g.setup().tables, g.setup().settings.start_s);
          },
          nb::arg("team").none(), "What happened in the last frame: tuples of dota.events.Event.")
      .def(
          "write_seen",
          [](PyPlay& self, std::optional<int> team, const nb::dict& out) {
            Game& g = self.game();
            if (!team) return write_tables_seen(g.context(), out, nullptr);
            const TeamEyes eyes{team_of(*team), g.state().views[*team], self.play.sight()};
            write_tables_seen(g.context(), out, &eyes);
          },
          nb::arg("team").none(), nb::arg("out"),
          "Writes what a team sees, or everything, into the arrays that SEEN_TABLES and SEEN_BITS describe.");
}

}  // namespace dota
