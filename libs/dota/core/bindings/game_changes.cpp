// Changes of running games, for tests.
#include <string>

#include <nanobind/nanobind.h>

#include "bindings/vec_games.hpp"
#include "effects/experience.hpp"
#include "effects/gold.hpp"
#include "effects/running.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"

namespace nb = nanobind;

namespace dota {
namespace {

Unit& unit_at(PyVecGame& self, int game, int slot) {
  World& w = self.vec.game(self.check(game)).world();
  if (slot < 0 || slot >= w.units_end || w.units[slot].kind == UnitKind::None)
    throw nb::index_error(("unit slot " + std::to_string(slot) + " is empty").c_str());
  return w.units[slot];
}

}  // namespace

void bind_game_changes(nb::class_<PyVecGame>& games) {
  games
      .def(
          "place",
          [](PyVecGame& self, int i, int slot, float x, float y) {
            Unit& u = unit_at(self, i, slot);
            place_unit(self.vec.game(i).world(), u, {x, y});
          },
          nb::arg("game"), nb::arg("slot"), nb::arg("x"), nb::arg("y"), "Moves a unit there at once: for tests.")
      .def(
          "set_hp", [](PyVecGame& self, int i, int slot, float hp) { unit_at(self, i, slot).hp = hp; },
          nb::arg("game"), nb::arg("slot"), nb::arg("hp"), "For tests.")
      .def(
          "give_xp",
          [](PyVecGame& self, int i, int hero, float xp) {
            if (hero < 0 || hero >= kMaxHeroes) throw nb::index_error("a hero is 0 to 9");
            Context c = self.vec.game(self.check(i)).context();
            HeroState& h = c.world.heroes[hero];
            if (!h.in_game) throw nb::index_error(("no hero " + std::to_string(hero) + " plays").c_str());
            give_xp(c, h, xp);
          },
          nb::arg("game"), nb::arg("hero"), nb::arg("xp"), "Experience for team * 5 + place: for tests.")
      .def(
          "give_gold",
          [](PyVecGame& self, int i, int hero, float gold) {
            if (hero < 0 || hero >= kMaxHeroes) throw nb::index_error("a hero is 0 to 9");
            Context c = self.vec.game(self.check(i)).context();
            give_gold(c, c.world.heroes[hero], gold, false);
          },
          nb::arg("game"), nb::arg("hero"), nb::arg("gold"), "For tests.")
      .def(
          "observe",
          [](PyVecGame& self, int i) {
            Game& g = self.vec.game(self.check(i));
            Context c = g.context();
            build_spatial(c);
            update_vision(c);
            reveal_effects(c);
            g.observe();
            self.vec.write(i);
          },
          nb::arg("game"), "Looks again after a test moved units.");
}

}  // namespace dota
