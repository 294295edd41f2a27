// Bindings for the heroes of a world: gold, experience, items, abilities and outputs.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/world.hpp"
#include "effects/abilities.hpp"
#include "effects/experience.hpp"
#include "effects/gold.hpp"
#include "effects/items.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "rules/buildings.hpp"
#include "rules/heroes.hpp"

namespace nb = nanobind;

namespace dota {
namespace {

const char* const kSignalNames[] = {
    "win",    "hero_death",  "courier_death", "xp",     "gold",   "gold_spent", "health",
    "mana",   "killed_hero", "last_hit",      "deny",   "aegis",  "ancient_hp", "megas",
    "tower1", "tower2",      "tower3",        "tower4", "shrine", "barracks",   "lane_assign"};
static_assert(sizeof(kSignalNames) / sizeof(kSignalNames[0]) == kSignals);

nb::dict hero_dict(PyWorld& p, const HeroState& h) {
  World& w = p.world();
  const Tables& t = p.tables();
  Context c = p.context();
  nb::dict d;
  d["name"] = t.heroes[h.def].name;
  d["unit"] = static_cast<int>(h.unit.index);
  d["level"] = h.level;
  d["xp"] = h.xp;
  d["gold"] = h.gold;
  d["reliable"] = h.reliable;
  d["net_worth"] = net_worth(c, h);
  d["spent"] = h.spent;
  d["income"] = h.income;
  d["upkeep"] = h.upkeep;
  d["kills"] = h.kills;
  d["deaths"] = h.deaths;
  d["assists"] = h.assists;
  d["last_hits"] = h.last_hits;
  d["denies"] = h.denies;
  d["streak"] = h.streak;
  d["respawn_at"] = h.respawn_at;
  d["ability_points"] = h.ability_points;
  d["talents"] = h.talents;
  d["lanes_allowed"] = h.lanes_allowed;
  d["build_next"] = h.build_next;
  d["recipe"] = h.recipe < 0 ? nb::object(nb::none()) : nb::object(nb::str(t.items[h.recipe].name.c_str()));
  d["build_skip"] = h.build_skip;
  d["build_insert"] =
      h.build_insert < 0 ? nb::object(nb::none()) : nb::object(nb::str(t.items[h.build_insert].name.c_str()));
  d["keep"] = std::vector<int>(h.keep.begin(), h.keep.end());
  d["keep_until"] = h.keep_until;
  d["lanes_until"] = h.lanes_until;
  d["buyback_cost"] = buyback_cost(c, h);
  nb::dict abilities;
  for (const AbilityState& a : h.abilities)
    if (a.id >= 0) abilities[t.abilities[a.id].name.c_str()] = a.level;
  d["abilities"] = abilities;
  nb::list items;
  for (const ItemState& s : h.items)
    items.append(s.id < 0 ? nb::object(nb::none()) : nb::object(nb::make_tuple(t.items[s.id].name, s.charges)));
  d["items"] = items;
  nb::dict signals;
  for (int i = 0; i < kSignals; ++i)
    signals[kSignalNames[i]] = h.signals[i];
  d["signals"] = signals;
  (void)w;
  return d;
}

}  // namespace

void bind_world_heroes(nb::class_<PyWorld>& world) {
  world.def(
           "hero", [](PyWorld& p, int i) { return hero_dict(p, p.hero(i)); }, nb::arg("index"))
      .def(
          "give_gold",
          [](PyWorld& p, int hero, float gold, bool reliable) {
            Context c = p.context();
            give_gold(c, p.hero(hero), number_checked(gold, "gold"), reliable);
          },
          nb::arg("hero"), nb::arg("gold"), nb::arg("reliable") = false)
      .def(
          "set_gold",
          [](PyWorld& p, int hero, float gold, float reliable) {
            p.hero(hero).gold = number_checked(gold, "gold");
            p.hero(hero).reliable = number_checked(reliable, "reliable");
          },
          nb::arg("hero"), nb::arg("gold"), nb::arg("reliable") = 0.0f)
      .def(
          "give_xp",
          [](PyWorld& p, int hero, float xp) {
            Context c = p.context();
            give_xp(c, p.hero(hero), number_checked(xp, "xp"));
          },
          nb::arg("hero"), nb::arg("xp"))
      .def(
          "give_item",
          [](PyWorld& p, int hero, const std::string& item, int charges) {
            Context c = p.context();
            return place_item(c, p.hero(hero), p.item_id(item), checked(charges, 0, 100, "charges"), false);
          },
          nb::arg("hero"), nb::arg("item"), nb::arg("charges") = 0)
      .def(
          "clear_items",
          [](PyWorld& p, int hero) {
            Context c = p.context();
            for (int slot = 0; slot < kItemSlots; ++slot)
              if (p.hero(hero).items[slot].id >= 0) take_item(c, p.hero(hero), slot);
            refresh_stats(c, p.unit(p.hero(hero).unit.index));
          },
          nb::arg("hero"))
      .def(
          "set_lanes",
          [](PyWorld& p, int hero, int bits, float until) {
            p.hero(hero).lanes_allowed = static_cast<std::uint8_t>(checked(bits, 0, 7, "lanes"));
            p.hero(hero).lanes_until = until;
          },
          nb::arg("hero"), nb::arg("bits"), nb::arg("until"))
      .def("clear_signals",
           [](PyWorld& p) {
             for (HeroState& h : p.world().heroes)
               h.signals.fill(0);
           })
      .def(
          "buyback",
          [](PyWorld& p, int hero) {
            Context c = p.context();
            return buyback(c, p.hero(hero));
          },
          nb::arg("hero"))
      .def(
          "shrine",
          [](PyWorld& p, int hero) {
            Context c = p.context();
            return use_shrine(c, p.unit(p.hero(hero).unit.index));
          },
          nb::arg("hero"))
      .def(
          "teach",
          [](PyWorld& p, int hero, const std::string& ability, int level) {
            HeroState& h = p.hero(hero);
            const Tables& t = p.tables();
            checked(level, 0, 25, "level");
            bool known = false;
            for (AbilityState& a : h.abilities)
              if (a.id >= 0 && t.abilities[a.id].name == ability) {
                a.level = static_cast<std::int8_t>(level);
                known = true;
              }
            const auto& talents = t.heroes[h.def].talents;
            for (std::size_t i = 0; i < talents.size(); ++i)
              if (talents[i].name == ability) {
                h.talents = level > 0 ? h.talents | (1u << i) : h.talents & ~(1u << i);
                known = true;
              }
            if (!known) throw nb::key_error(("the hero has no ability or talent '" + ability + "'").c_str());
            Context c = p.context();
            Unit& u = p.unit(h.unit.index);
            apply_learned(c, u);
            refresh_stats(c, u);
          },
          nb::arg("hero"), nb::arg("ability"), nb::arg("level"),
          "Sets the rank of an ability, or takes (1) or drops (0) a talent, whatever the hero's level.")
      .def(
          "ability",
          [](PyWorld& p, int hero, const std::string& name) {
            HeroState& h = p.hero(hero);
            const Tables& t = p.tables();
            Context c = p.context();
            for (int slot = 0; slot < kAbilitySlots; ++slot) {
              const AbilityState& a = h.abilities[slot];
              if (a.id < 0 || t.abilities[a.id].name != name) continue;
              nb::dict d;
              d["slot"] = slot;
              d["level"] = a.level;
              d["charges"] = a.charges;
              d["stacks"] = a.stacks;
              d["toggled"] = a.toggled;
              d["ready"] = a.ready;
              d["castable"] = castable(c, p.unit(h.unit.index), slot);
              return d;
            }
            for (int slot = 0; slot < kItemSlots; ++slot) {
              const ItemState& s = h.items[slot];
              if (s.id < 0 || t.items[s.id].name != name) continue;
              nb::dict d;
              d["slot"] = 16 + slot;
              d["charges"] = s.charges;
              d["toggle"] = s.toggle;
              d["ready"] = s.ready;
              d["castable"] = castable(c, p.unit(h.unit.index), 16 + slot);
              return d;
            }
            throw nb::key_error(("the hero has no ability or item '" + name + "'").c_str());
          },
          nb::arg("hero"), nb::arg("name"), "State of an ability, or of an item it holds.")
      .def(
          "set_autocast",
          [](PyWorld& p, int hero, const std::string& name, bool on) {
            for (AbilityState& a : p.hero(hero).abilities)
              if (a.id >= 0 && p.tables().abilities[a.id].name == name) a.autocast = on;
          },
          nb::arg("hero"), nb::arg("name"), nb::arg("on"));
}

}  // namespace dota
