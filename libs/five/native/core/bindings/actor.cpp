// A policy that acts in the host's memory, as Python makes and asks it.
#include "actor.hpp"

#include <stdexcept>
#include <string>
#include <tuple>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

namespace {

using Floats = Array<const float>;
using Ids = Array<const std::uint16_t>;

void require(bool fits, const std::string& what) {
  if (!fits) throw nb::value_error(("actor: " + what + " does not fit").c_str());
}

std::vector<float> floats(nb::handle given) {
  const auto array = nb::cast<Floats>(given);
  return {array.data(), array.data() + array.size()};
}

Numbers numbers_of(nb::handle given, std::size_t groups) {
  if (given.is_none()) return {};
  const auto [places, scale, shift] =
      nb::cast<std::tuple<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>, nb::object,
                          nb::object>>(given);
  const auto [width, lines, offset, stride, fields] = places;
  Numbers out{{width, lines, offset, stride, fields}, floats(scale), floats(shift)};
  require(out.scale.size() == groups * fields && out.shift.size() == groups * fields, "a scale");
  return out;
}

Embedded embedded_of(nb::handle given) {
  if (given.is_none()) return {};
  const auto [offset, stride, table] = nb::cast<std::tuple<std::size_t, std::size_t, Floats>>(given);
  require(table.ndim() == 2, "a table");
  return {offset, stride, table.shape(1), table.shape(0), {table.data(), table.data() + table.size()}};
}

Layer layer_of(nb::handle given, Instructions with) {
  const auto [weight, bias] = nb::cast<std::tuple<Floats, std::optional<Floats>>>(given);
  require(weight.ndim() == 2 && (!bias || bias->size() == weight.shape(0)), "a layer");
  return {weight.shape(1), weight.shape(0), weight.data(), bias ? bias->data() : nullptr, with};
}

// The rows of that kind must lie in arrays of that width, whatever slot below `slots` they are of.
void check_place(const Numbers& of, std::size_t width, std::size_t lines, std::size_t slots, const char* name) {
  const RowPlaces& at = of.at;
  require(at.fields == 0 || (at.width == width && at.lines == lines && slots > 0 &&
                             at.offset + (slots - 1) * at.stride + at.fields <= width),
          name);
}

void check_place(const Embedded& of, std::size_t width, std::size_t slots, const char* name) {
  require(of.width == 0 || (slots > 0 && of.offset + (slots - 1) * of.stride < width), name);
}

// Everything that the trunk reads and writes lies where it may, whatever is observed.
void check(const ActorNet& n) {
  const std::size_t heroes = n.heroes, units = n.units, key = n.action.width;
  require(heroes > 0 && n.towers.size() >= 2, "the number of heroes or towers");
  std::size_t set_columns = 0, tower_columns = 0, hero_sets = 0, unit_sets = 0, team_sets = 0;
  for (const SetNet& s : n.sets) {
    check_place(s.numbers, n.shared, 1, s.columns, "a set's rows");
    check_place(s.id, n.shared_ids, s.columns, "a set's ids");
    require(s.first.in() == s.numbers.at.fields + s.id.width && s.second.in() == s.first.out(), "a set's layer");
    (s.owner == SetNet::Owner::kHero   ? hero_sets
     : s.owner == SetNet::Owner::kTeam ? team_sets
                                       : unit_sets) += s.second.out();
    if (s.owner != SetNet::Owner::kTeam) {
      require(set_columns + s.columns <= n.owner_slots.size(), "the owners of a set");
      for (std::size_t i = 0; i < s.columns; ++i) {
        const std::int64_t owner = n.owner_slots[set_columns + i];
        require(owner >= 0 && static_cast<std::size_t>(owner) < units, "a set's owner");
        require((static_cast<std::size_t>(owner) < 2 * heroes) == (s.owner == SetNet::Owner::kHero),
                "a set's owner");
        require(set_columns + i < n.columns.owners.size(), "a set without owners");
      }
    } else {
      require(&s == &n.sets.back(), "a team's set before others");
    }
    set_columns += s.columns;
  }
  const std::size_t unit = n.unit.at.fields + n.unit_type.width + n.animation.width;
  const std::size_t width = n.towers[0].second.out();
  for (std::size_t t = 0; t < n.towers.size(); ++t) {
    const TowerNet& tower = n.towers[t];
    std::size_t in = unit + (t < 2 ? n.hero.at.fields + hero_sets : unit_sets);
    if (t == 0) in += n.ally.at.fields + n.build.width + n.next_item.width;
    require(tower.first.in() == in && tower.apart.out() == tower.first.out(), "a tower's first layer");
    require(tower.apart.in() == n.unit_apart.at.fields + (t < 2 ? n.hero_apart.at.fields : 0),
            "a tower's first layer");
    require(tower.second.in() == tower.first.out() && tower.second.out() == width && width >= key,
            "a tower's second layer");
    tower_columns += tower.columns;
  }
  require(n.tower_slots.size() == tower_columns, "the units' slots");
  require(n.columns.columns.size() == set_columns + tower_columns, "the number of columns");
  for (const std::int64_t column : n.columns.columns)
    require(column >= 0 && static_cast<std::size_t>(column) < n.shared_ids, "a column");
  require(n.columns.status_rows == 0 ||
              n.columns.status_offset + (n.columns.status_rows - 1) * n.columns.status_stride + 3 <= n.shared,
          "a status");
  // What hangs on a unit is there with it only, so that its pool is never looked for in vain.
  for (std::size_t i = 0; i < n.columns.owners.size(); ++i) {
    const auto owner = static_cast<std::size_t>(n.columns.owners[i]);
    require(owner >= set_columns && n.tower_slots[owner - set_columns] == n.owner_slots[i], "a set's owner");
  }
  std::vector<bool> is_tower(units, false);
  std::size_t at = 0;
  for (std::size_t t = 0; t < n.towers.size(); ++t)
    for (std::size_t i = 0; i < n.towers[t].columns; ++i, ++at) {
      const std::int64_t slot = n.tower_slots[at];
      require(slot >= 0 && static_cast<std::size_t>(slot) < units && !is_tower[static_cast<std::size_t>(slot)],
              "a unit's slot");
      is_tower[static_cast<std::size_t>(slot)] = true;
      require((static_cast<std::size_t>(slot) < 2 * heroes) == (t < 2), "a hero's slot");
      require((static_cast<std::size_t>(slot) < heroes) == (t < 1), "an ally's slot");
    }
  check_place(n.global, n.shared, 1, 1, "what is global");
  check_place(n.previous, n.apart, heroes, 1, "the last action");
  check_place(n.unit, n.shared, 1, units, "units");
  check_place(n.unit_apart, n.apart, heroes, units, "units as a hero sees them");
  check_place(n.hero, n.shared, 1, 2 * heroes, "heroes");
  check_place(n.hero_apart, n.apart, heroes, 2 * heroes, "heroes as one sees them");
  check_place(n.ally, n.shared, 1, heroes, "allies");
  check_place(n.unit_type, n.shared_ids, units, "types");
  check_place(n.animation, n.shared_ids, units, "animations");
  check_place(n.build, n.shared_ids, heroes, "builds");
  check_place(n.next_item, n.shared_ids, heroes, "purchases");
  check_place(n.last_action, n.apart_ids, 1, "the last action's id");
  require(n.join.in() == n.global.at.fields + n.maps + team_sets, "the team's half of the join");
  require(n.join_apart.in() ==
              n.maps_apart + (n.towers.size() + 1) * width + n.previous.at.fields + key + n.last_action.width,
          "the heroes' half of the join");
  require(n.last_action.width == 0 || n.last_action.width == key, "the last action");
  require(n.join.out() == n.join_apart.out() && n.pooled <= n.join.out(), "the join");
  const std::size_t lstm = n.gates.out() / 4;
  require(n.gates.in() == n.join.out() + lstm && n.gates.out() % 4 == 0, "the gates");
  std::int64_t splits = 0;
  for (const std::int64_t split : n.reads.unit_split)
    splits = std::max(splits, split);
  const std::size_t hidden = n.win.in();
  require(n.rank.in() == hidden && n.buildings.in() == hidden && n.win.out() == 1 && n.rank.out() == 5,
          "an auxiliary head");
  const std::size_t fixed = 3 * key + 4 + n.pairs * 18 + 1 + 3 * hidden;
  require(n.heads.in() == lstm && n.heads.out() >= fixed + static_cast<std::size_t>(splits) * key &&
              (n.heads.out() - fixed) % key == 0,
          "the heads");
  const std::size_t actions = n.action.rows;
  require(n.gate.size() == actions * key && n.reads.mask_class.size() == actions &&
              n.reads.offset_pair.size() == actions && n.reads.unit_split.size() == actions &&
              n.reads.unit.size() == actions && n.reads.teleport.size() == actions &&
              n.reads.offset.size() == actions && n.teleports < n.classes && n.choices > 0,
          "what actions read");
  for (std::size_t a = 0; a < actions; ++a)
    require(static_cast<std::size_t>(n.reads.mask_class[a]) < n.classes &&
                static_cast<std::size_t>(n.reads.offset_pair[a]) < n.pairs && n.reads.unit_split[a] >= 0,
            "what an action reads");
}

template <class T>
std::vector<T> list(const nb::dict& of, const char* name) {
  return nb::cast<std::vector<T>>(of[name]);
}

void make(ActorNet* self, const nb::dict& given, const std::string& instructions) {
  auto with = best_instructions();
  if (instructions == "portable") with = Instructions::kPortable;
  if (instructions == "avx2" && with != Instructions::kPortable) with = Instructions::kAvx2;
  ActorNet n;
  n.with = with;
  const auto size = [&](const char* name) { return nb::cast<std::size_t>(given[name]); };
  n.heroes = size("heroes"), n.units = size("units"), n.choices = size("choices"), n.classes = size("classes");
  n.teleports = size("teleports"), n.shared = size("shared"), n.apart = size("private");
  n.shared_ids = size("shared_ids"), n.apart_ids = size("private_ids"), n.maps = size("maps");
  n.maps_apart = size("maps_private"), n.pooled = size("pooled"), n.pairs = size("pairs");
  n.clip = nb::cast<float>(given["clip"]);
  n.columns = nb::cast<const RowColumns&>(given["columns"]);
  n.owner_slots = list<std::int64_t>(given, "owner_slots");
  n.tower_slots = list<std::int64_t>(given, "tower_slots");
  const auto towers = nb::cast<nb::list>(given["towers"]);
  const std::size_t count = nb::len(towers);
  n.global = numbers_of(given["global"], 1), n.previous = numbers_of(given["previous_action"], 1);
  n.unit = numbers_of(given["units/shared"], count), n.unit_apart = numbers_of(given["units/private"], count);
  n.hero = numbers_of(given["heroes/shared"], 2), n.hero_apart = numbers_of(given["heroes/private"], 2);
  n.ally = numbers_of(given["allied_heroes"], 1);
  n.unit_type = embedded_of(given["unit"]), n.animation = embedded_of(given["animation"]);
  n.build = embedded_of(given["build"]), n.next_item = embedded_of(given["next_item"]);
  n.last_action = embedded_of(given["last_action"]), n.action = embedded_of(given["action"]);
  for (nb::handle item : nb::cast<nb::list>(given["sets"])) {
    const auto set = nb::cast<nb::dict>(item);
    const auto owner = nb::cast<std::string>(set["owner"]);
    n.sets.push_back({owner == "hero"   ? SetNet::Owner::kHero
                      : owner == "team" ? SetNet::Owner::kTeam
                                        : SetNet::Owner::kOtherUnit,
                      nb::cast<std::size_t>(set["columns"]), numbers_of(set["numbers"], 1), embedded_of(set["id"]),
                      layer_of(set["first"], with), layer_of(set["second"], with)});
  }
  for (nb::handle item : towers) {
    const auto tower = nb::cast<nb::dict>(item);
    n.towers.push_back({nb::cast<std::size_t>(tower["columns"]), layer_of(tower["first"], with),
                        layer_of(tower["private"], with), layer_of(tower["second"], with)});
  }
  n.join = layer_of(given["join"], with), n.join_apart = layer_of(given["join_private"], with);
  n.gates = layer_of(given["gates"], with), n.heads = layer_of(given["heads"], with);
  n.win = layer_of(given["win"], with), n.rank = layer_of(given["rank"], with);
  n.buildings = layer_of(given["buildings"], with);
  n.gate = floats(given["gate"]);
  n.reads = {list<std::int64_t>(given, "mask_class"),     list<std::int64_t>(given, "offset_pair"),
             list<std::int64_t>(given, "unit_split"),     list<std::uint8_t>(given, "reads_unit"),
             list<std::uint8_t>(given, "reads_teleport"), list<std::uint8_t>(given, "reads_offset")};
  check(n);
  new (self) ActorNet(std::move(n));
}

// The array named so, of that many numbers; null where it may be left out and is.
template <class T>
T* data(const nb::dict& of, const char* name, std::size_t size, bool optional = false) {
  if (optional && !of.contains(name)) return nullptr;
  const auto array = nb::cast<Array<T>>(of[name], false);
  require(array.size() == size, std::string("array ") + name);
  return array.data();
}

void act_for(const ActorNet& n, const nb::dict& in, const nb::dict& out) {
  const auto first = nb::cast<Ids>(in["shared"], false);
  const std::size_t steps = first.ndim() == 2 ? first.shape(0) : 0, rows = steps * n.heroes;
  if (steps == 0) return;
  const std::size_t lstm = n.gates.out() / 4, key = n.action.width;
  const bool draws = in.contains("uniform_choice");
  const ActorSeen seen{steps,
                       data<const std::uint16_t>(in, "shared", steps * n.shared),
                       data<const std::uint16_t>(in, "private", rows * n.apart),
                       data<const std::uint16_t>(in, "shared_ids", steps * n.shared_ids),
                       data<const std::uint16_t>(in, "private_ids", rows * n.apart_ids),
                       data<const std::uint16_t>(in, "available", rows * n.choices),
                       data<const std::uint8_t>(in, "target_mask", rows * n.classes * n.units),
                       data<const float>(in, "maps", steps * n.maps, n.maps == 0),
                       data<const float>(in, "maps_private", rows * n.maps_apart, n.maps_apart == 0),
                       data<const float>(in, "h", rows * lstm),
                       data<const float>(in, "c", rows * lstm),
                       data<const float>(in, "target_embedding", rows * key),
                       {data<const float>(in, "uniform_choice", rows * n.choices, !draws),
                        data<const float>(in, "uniform_small", rows * 27, !draws),
                        data<const float>(in, "uniform_unit", rows * n.units, !draws)}};
  const ActorDone done{data<std::int16_t>(out, "actions", rows * 6),
                       data<float>(out, "logp", rows),
                       data<float>(out, "values", rows),
                       data<float>(out, "h", rows * lstm),
                       data<float>(out, "c", rows * lstm),
                       data<float>(out, "target_embedding", rows * key),
                       data<float>(out, "win", rows),
                       data<float>(out, "rank", rows * 5),
                       data<float>(out, "buildings", rows * n.buildings.out()),
                       data<float>(out, "choice", rows * n.choices),
                       data<float>(out, "aim", rows * n.units)};
  nb::gil_scoped_release released;
  act(n, seen, done);
}

}  // namespace

void bind_actor(nb::module_& m) {
  nb::class_<ActorNet>(m, "Actor", "A policy with its parameters, copied.")
      .def("__init__", &make, nb::arg("net"), nb::arg("instructions") = "",
           "`net`: sizes, places, layers and tables by name. `instructions`: 'portable' or 'avx2', for the test "
           "that "
           "compares them; '': the widest that the processor has.")
      .def("act", &act_for, nb::arg("seen"), nb::arg("done"),
           "Acts on the arrays of `seen` and writes those of `done`. Raises ValueError for sizes that do not fit, "
           "IndexError for an id that has no vector.");
}

}  // namespace five
