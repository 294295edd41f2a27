// Python binding of the CPU actor.
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

void require(bool matches, const std::string& what) {
  if (!matches) throw nb::value_error(("actor: wrong size of " + what).c_str());
}

std::vector<float> floats(nb::handle given) {
  const auto array = nb::cast<Floats>(given);
  return {array.data(), array.data() + array.size()};
}

NumericInput numeric_input(nb::handle given, std::size_t groups) {
  if (given.is_none()) return {};
  const auto [layout, scale, shift] =
      nb::cast<std::tuple<std::tuple<std::size_t, std::size_t, std::size_t, std::size_t, std::size_t>, nb::object,
                          nb::object>>(given);
  const auto [width, lines, offset, stride, fields] = layout;
  NumericInput out{{width, lines, offset, stride, fields}, floats(scale), floats(shift)};
  require(out.scale.size() == groups * fields && out.shift.size() == groups * fields, "scale");
  return out;
}

EmbeddingInput embedding_input(nb::handle given) {
  if (given.is_none()) return {};
  const auto [offset, stride, table] = nb::cast<std::tuple<std::size_t, std::size_t, Floats>>(given);
  require(table.ndim() == 2, "table");
  return {offset, stride, table.shape(1), table.shape(0), {table.data(), table.data() + table.size()}};
}

LinearLayer linear_layer(nb::handle given, InstructionSet instructions) {
  const auto [weight, bias] = nb::cast<std::tuple<Floats, std::optional<Floats>>>(given);
  require(weight.ndim() == 2 && (!bias || bias->size() == weight.shape(0)), "layer");
  return {weight.shape(1), weight.shape(0), weight.data(), bias ? bias->data() : nullptr, instructions};
}

Convolution convolution(nb::handle given, InstructionSet instructions) {
  if (given.is_none()) return {};
  const auto [top, bottom] = nb::cast<std::tuple<nb::object, nb::object>>(given);
  return {linear_layer(top, instructions), linear_layer(bottom, instructions)};
}

MapEncoder map_encoder(nb::handle given, InstructionSet instructions) {
  if (given.is_none()) return {};
  const auto map = nb::cast<nb::dict>(given);
  MapEncoder out;
  out.side = nb::cast<std::size_t>(map["side"]);
  out.pools = nb::cast<bool>(map["pools"]);
  out.numbers = numeric_input(map["numbers"], 1);
  out.first = convolution(map["first"], instructions), out.second = convolution(map["second"], instructions);
  if (map["ids"].is_none()) return out;
  const auto [offset, products] = nb::cast<std::tuple<std::size_t, Floats>>(map["ids"]);
  require(products.ndim() == 5 && products.shape(2) == 2 && products.shape(3) == 2 &&
              products.shape(4) == out.first.top.out(),
          "a map's ids");
  out.ids_offset = offset, out.id_fields = products.shape(0), out.vocabulary = products.shape(1);
  out.products = {products.data(), products.data() + products.size()};
  return out;
}

// Checks that rows of every slot below `slots` are inside an array of that width.
void check_offsets(const NumericInput& of, std::size_t width, std::size_t lines, std::size_t slots,
                   const char* name) {
  const RowLayout& rows = of.rows;
  require(rows.fields == 0 || (rows.width == width && rows.lines == lines && slots > 0 &&
                               rows.offset + (slots - 1) * rows.stride + rows.fields <= width),
          name);
}

void check_offsets(const EmbeddingInput& of, std::size_t width, std::size_t slots, const char* name) {
  require(of.width == 0 || (slots > 0 && of.offset + (slots - 1) * of.stride < width), name);
}

bool matches(const Convolution& layer, std::size_t in, std::size_t filters) {
  return layer.top.in() == 2 * in && layer.bottom.in() == 2 * in && layer.top.out() == filters &&
         layer.bottom.out() == filters;
}

void check_map(const MapEncoder& map, std::size_t width, std::size_t lines, std::size_t ids_width) {
  if (map.side == 0) return;
  const std::size_t cells = map.side * map.side, filters = map.first.top.out();
  check_offsets(map.numbers, width, lines, 1, "a map");
  require(map.side >= (map.pools ? 3 : 2) && map.numbers.rows.fields % cells == 0 &&
              matches(map.first, map.numbers.rows.fields / cells, filters),
          "a map's first layer");
  require(map.id_fields == 0 || map.ids_offset + cells * map.id_fields <= ids_width, "a map's ids");
  require(map.second.top.out() == 0 || (matches(map.second, filters, filters) && map.last_side() > 0),
          "a map's second layer");
}

// Checks that no observation can make the trunk read or write out of bounds.
void check(const PolicyNet& n) {
  const std::size_t heroes = n.heroes, units = n.units, key = n.action.width;
  require(heroes > 0 && n.unit_groups.size() >= 2, "heroes or unit groups");
  std::size_t set_columns = 0, group_columns = 0, hero_sets = 0, unit_sets = 0, team_sets = 0;
  for (const SetEncoder& s : n.sets) {
    check_offsets(s.numbers, n.shared_width, 1, s.columns, "a set's rows");
    check_offsets(s.id, n.shared_ids_width, s.columns, "a set's ids");
    require(s.first.in() == s.numbers.rows.fields + s.id.width && s.second.in() == s.first.out(), "set's layer");
    (s.owner == SetEncoder::Owner::kHero   ? hero_sets
     : s.owner == SetEncoder::Owner::kTeam ? team_sets
                                           : unit_sets) += s.second.out();
    if (s.owner != SetEncoder::Owner::kTeam) {
      require(set_columns + s.columns <= n.owner_slots.size(), "owners of a set");
      for (std::size_t i = 0; i < s.columns; ++i) {
        const std::int64_t owner = n.owner_slots[set_columns + i];
        require(owner >= 0 && static_cast<std::size_t>(owner) < units, "set's owner");
        require((static_cast<std::size_t>(owner) < 2 * heroes) == (s.owner == SetEncoder::Owner::kHero),
                "a set's owner");
        require(set_columns + i < n.columns.owners.size(), "set without owners");
      }
    } else {
      require(&s == &n.sets.back(), "team's set before others");
    }
    set_columns += s.columns;
  }
  const std::size_t unit = n.unit.rows.fields + n.unit_type.width + n.animation.width;
  const std::size_t width = n.unit_groups[0].second.out();
  for (std::size_t t = 0; t < n.unit_groups.size(); ++t) {
    const UnitEncoder& group = n.unit_groups[t];
    std::size_t in = unit + (t < 2 ? n.hero.rows.fields + hero_sets : unit_sets);
    if (t == 0) in += n.ally.rows.fields + n.build.width + n.next_item.width;
    require(group.first.in() == in && group.first_private.out() == group.first.out(), "group's first layer");
    require(group.first_private.in() == n.unit_private.rows.fields + (t < 2 ? n.hero_private.rows.fields : 0),
            "a group's first layer");
    require(group.second.in() == group.first.out() && group.second.out() == width && width >= key,
            "a group's second layer");
    group_columns += group.columns;
  }
  require(n.group_slots.size() == group_columns, "units' slots");
  require(n.columns.columns.size() == set_columns + group_columns, "number of columns");
  for (const std::int64_t column : n.columns.columns)
    require(column >= 0 && static_cast<std::size_t>(column) < n.shared_ids_width, "column");
  require(
      n.columns.status_rows == 0 ||
          n.columns.status_offset + (n.columns.status_rows - 1) * n.columns.status_stride + 3 <= n.shared_width,
      "a status");
  // A row with an owner is present only with its owner, so every row has a pool.
  for (std::size_t i = 0; i < n.columns.owners.size(); ++i) {
    const auto owner = static_cast<std::size_t>(n.columns.owners[i]);
    require(owner >= set_columns && n.group_slots[owner - set_columns] == n.owner_slots[i], "set's owner");
  }
  std::vector<bool> is_grouped(units, false);
  std::size_t at = 0;
  for (std::size_t t = 0; t < n.unit_groups.size(); ++t)
    for (std::size_t i = 0; i < n.unit_groups[t].columns; ++i, ++at) {
      const std::int64_t slot = n.group_slots[at];
      require(slot >= 0 && static_cast<std::size_t>(slot) < units && !is_grouped[static_cast<std::size_t>(slot)],
              "a unit's slot");
      is_grouped[static_cast<std::size_t>(slot)] = true;
      require((static_cast<std::size_t>(slot) < 2 * heroes) == (t < 2), "hero's slot");
      require((static_cast<std::size_t>(slot) < heroes) == (t < 1), "ally's slot");
    }
  check_offsets(n.global, n.shared_width, 1, 1, "what is global");
  check_map(n.minimap, n.shared_width, 1, n.shared_ids_width);
  check_map(n.nearby_map, n.private_width, heroes, n.private_ids_width);
  check_offsets(n.previous, n.private_width, heroes, 1, "the last action");
  check_offsets(n.unit, n.shared_width, 1, units, "units");
  check_offsets(n.unit_private, n.private_width, heroes, units, "units as a hero sees them");
  check_offsets(n.hero, n.shared_width, 1, 2 * heroes, "heroes");
  check_offsets(n.hero_private, n.private_width, heroes, 2 * heroes, "heroes as one sees them");
  check_offsets(n.ally, n.shared_width, 1, heroes, "allies");
  check_offsets(n.unit_type, n.shared_ids_width, units, "types");
  check_offsets(n.animation, n.shared_ids_width, units, "animations");
  check_offsets(n.build, n.shared_ids_width, heroes, "builds");
  check_offsets(n.next_item, n.shared_ids_width, heroes, "purchases");
  check_offsets(n.last_action, n.private_ids_width, 1, "the last action's id");
  require(n.join.in() == n.global.rows.fields + n.minimap.width() + team_sets, "team's half of the join");
  require(n.join_private.in() == n.nearby_map.width() + (n.unit_groups.size() + 1) * width +
                                     n.previous.rows.fields + key + n.last_action.width,
          "the heroes' half of the join");
  require(n.last_action.width == 0 || n.last_action.width == key, "last action");
  require(n.join.out() == n.join_private.out() && n.cross_hero_pooled <= n.join.out(), "join");
  const std::size_t lstm = n.gates.out() / 4;
  require(n.gates.in() == n.join.out() + lstm && n.gates.out() % 4 == 0, "gates");
  std::int64_t splits = 0;
  for (const std::int64_t split : n.actions.unit_split)
    splits = std::max(splits, split);
  const std::size_t hidden = n.win.in();
  require(n.rank.in() == hidden && n.buildings.in() == hidden && n.win.out() == 1 && n.rank.out() == 5,
          "an auxiliary head");
  const std::size_t fixed = 3 * key + 4 + n.offset_pairs * 18 + 1 + 3 * hidden;
  require(n.heads.in() == lstm && n.heads.out() >= fixed + static_cast<std::size_t>(splits) * key &&
              (n.heads.out() - fixed) % key == 0,
          "the heads");
  const std::size_t actions = n.action.vocabulary;
  require(n.gate.size() == actions * key && n.actions.mask_class.size() == actions &&
              n.actions.offset_pair.size() == actions && n.actions.unit_split.size() == actions &&
              n.actions.reads_unit.size() == actions && n.actions.reads_teleport.size() == actions &&
              n.actions.reads_offset.size() == actions && n.teleport_class < n.mask_classes && n.available > 0,
          "what actions read");
  for (std::size_t a = 0; a < actions; ++a)
    require(static_cast<std::size_t>(n.actions.mask_class[a]) < n.mask_classes &&
                static_cast<std::size_t>(n.actions.offset_pair[a]) < n.offset_pairs &&
                n.actions.unit_split[a] >= 0,
            "what an action reads");
}

template <class T>
std::vector<T> list(const nb::dict& of, const char* name) {
  return nb::cast<std::vector<T>>(of[name]);
}

void construct(PolicyNet* self, const nb::dict& given, const std::string& name) {
  auto instructions = best_instruction_set();
  if (name == "portable") instructions = InstructionSet::kPortable;
  if (name == "avx2" && instructions != InstructionSet::kPortable) instructions = InstructionSet::kAvx2;
  PolicyNet n;
  n.instructions = instructions;
  const auto size = [&](const char* key) { return nb::cast<std::size_t>(given[key]); };
  n.heroes = size("heroes"), n.units = size("units"), n.available = size("available"),
  n.mask_classes = size("mask_classes");
  n.teleport_class = size("teleport_class"), n.shared_width = size("shared"), n.private_width = size("private");
  n.shared_ids_width = size("shared_ids"), n.private_ids_width = size("private_ids");
  n.cross_hero_pooled = size("cross_hero_pooled"), n.offset_pairs = size("offset_pairs");
  n.clip = nb::cast<float>(given["clip"]);
  n.fixed_delay = nb::cast<bool>(given["fixed_delay"]);
  n.columns = nb::cast<const RowColumns&>(given["columns"]);
  n.owner_slots = list<std::int64_t>(given, "owner_slots");
  n.group_slots = list<std::int64_t>(given, "group_slots");
  const auto groups = nb::cast<nb::list>(given["unit_groups"]);
  const std::size_t count = nb::len(groups);
  n.global = numeric_input(given["global"], 1), n.previous = numeric_input(given["previous_action"], 1);
  n.unit = numeric_input(given["units/shared"], count),
  n.unit_private = numeric_input(given["units/private"], count);
  n.hero = numeric_input(given["heroes/shared"], 2), n.hero_private = numeric_input(given["heroes/private"], 2);
  n.ally = numeric_input(given["allied_heroes"], 1);
  n.unit_type = embedding_input(given["unit"]), n.animation = embedding_input(given["animation"]);
  n.build = embedding_input(given["build"]), n.next_item = embedding_input(given["next_item"]);
  n.last_action = embedding_input(given["last_action"]), n.action = embedding_input(given["action"]);
  n.minimap = map_encoder(given["minimap"], instructions);
  n.nearby_map = map_encoder(given["nearby_map"], instructions);
  for (nb::handle item : nb::cast<nb::list>(given["sets"])) {
    const auto encoder = nb::cast<nb::dict>(item);
    const auto owner = nb::cast<std::string>(encoder["owner"]);
    n.sets.push_back({owner == "hero"   ? SetEncoder::Owner::kHero
                      : owner == "team" ? SetEncoder::Owner::kTeam
                                        : SetEncoder::Owner::kOtherUnit,
                      nb::cast<std::size_t>(encoder["columns"]), numeric_input(encoder["numbers"], 1),
                      embedding_input(encoder["id"]), linear_layer(encoder["first"], instructions),
                      linear_layer(encoder["second"], instructions)});
  }
  for (nb::handle item : groups) {
    const auto group = nb::cast<nb::dict>(item);
    n.unit_groups.push_back({nb::cast<std::size_t>(group["columns"]), linear_layer(group["first"], instructions),
                             linear_layer(group["private"], instructions),
                             linear_layer(group["second"], instructions)});
  }
  n.join = linear_layer(given["join"], instructions),
  n.join_private = linear_layer(given["join_private"], instructions);
  n.gates = linear_layer(given["gates"], instructions), n.heads = linear_layer(given["heads"], instructions);
  n.win = linear_layer(given["win"], instructions), n.rank = linear_layer(given["rank"], instructions);
  n.buildings = linear_layer(given["buildings"], instructions);
  n.gate = floats(given["gate"]);
  n.actions = {list<std::int64_t>(given, "mask_class"),     list<std::int64_t>(given, "offset_pair"),
               list<std::int64_t>(given, "unit_split"),     list<std::uint8_t>(given, "reads_unit"),
               list<std::uint8_t>(given, "reads_teleport"), list<std::uint8_t>(given, "reads_offset")};
  check(n);
  new (self) PolicyNet(std::move(n));
}

// Returns the data of the named array of `size` numbers; null where an optional array is missing.
template <class T>
T* data(const nb::dict& of, const char* name, std::size_t size, bool optional = false) {
  if (optional && !of.contains(name)) return nullptr;
  const auto array = nb::cast<Array<T>>(of[name], false);
  require(array.size() == size, std::string("array ") + name);
  return array.data();
}

void act_on(const PolicyNet& n, const nb::dict& in, const nb::dict& out) {
  const auto first = nb::cast<Ids>(in["shared"], false);
  const std::size_t steps = first.ndim() == 2 ? first.shape(0) : 0, rows = steps * n.heroes;
  if (steps == 0) return;
  const std::size_t lstm = n.gates.out() / 4, key = n.action.width;
  const bool samples = in.contains("uniform_primary");
  const ActorInput input{steps,
                         data<const std::uint16_t>(in, "shared", steps * n.shared_width),
                         data<const std::uint16_t>(in, "private", rows * n.private_width),
                         data<const std::uint16_t>(in, "shared_ids", steps * n.shared_ids_width),
                         data<const std::uint16_t>(in, "private_ids", rows * n.private_ids_width),
                         data<const std::uint16_t>(in, "available", rows * n.available),
                         data<const std::uint8_t>(in, "target_mask", rows * n.mask_classes * n.units),
                         data<const float>(in, "h", rows * lstm),
                         data<const float>(in, "c", rows * lstm),
                         data<const float>(in, "target_embedding", rows * key),
                         {data<const float>(in, "uniform_primary", rows * n.available, !samples),
                          data<const float>(in, "uniform_small", rows * 27, !samples),
                          data<const float>(in, "uniform_unit", rows * n.units, !samples)}};
  const ActorOutput output{data<std::int16_t>(out, "actions", rows * 6),
                           data<float>(out, "logp", rows),
                           data<float>(out, "values", rows),
                           data<float>(out, "h", rows * lstm),
                           data<float>(out, "c", rows * lstm),
                           data<float>(out, "target_embedding", rows * key),
                           data<float>(out, "win", rows),
                           data<float>(out, "rank", rows * 5),
                           data<float>(out, "buildings", rows * n.buildings.out()),
                           data<float>(out, "primary", rows * n.available),
                           data<float>(out, "unit", rows * n.units)};
  nb::gil_scoped_release released;
  act(n, input, output);
}

}  // namespace

void bind_actor(nb::module_& m) {
  nb::class_<PolicyNet>(m, "Actor", "A policy's network with a copy of its parameters.")
      .def("__init__", &construct, nb::arg("net"), nb::arg("instructions") = "",
           "`net`: sizes, offsets, layers and tables by name. `instructions`: 'portable' or 'avx2'; '' is the "
           "widest "
           "instruction set that the CPU has.")
      .def("act", &act_on, nb::arg("inputs"), nb::arg("outputs"),
           "Reads the arrays of `inputs` and writes those of `outputs`. Raises ValueError for wrong sizes, "
           "IndexError "
           "for an id without an embedding.");
}

}  // namespace five
