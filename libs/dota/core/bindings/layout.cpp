// The observation layout and the packing of observations as Python sees them.
#include "bindings/vec.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/data.hpp"
#include "view/changes.hpp"
#include "view/half.hpp"
#include "view/pack.hpp"

namespace nb = nanobind;

namespace dota {

LayoutTable layout_table(nb::handle described) {
  static constexpr const char* kArrays[kObsArrays] = {"shared", "private", "shared_ids", "private_ids", "model"};
  const Node n = node_from_python(described);
  LayoutTable t;
  t.heroes = integer(n, "heroes");
  t.units = integer(n, "units");
  t.mirror_dire = integer(n, "mirror_dire") != 0;
  t.hero_modifiers = integer(n, "hero_modifiers");
  t.unit_modifiers = integer(n, "unit_modifiers");
  t.minimap = integer(n, "minimap");
  t.nearby_map = integer(n, "nearby_map");
  t.passability = integer(n, "passability");
  if (t.minimap > kMaxMinimapSide || t.nearby_map > kMaxGridSide || t.passability > kMaxGridSide)
    throw std::runtime_error("observation layout: a grid is larger than the core holds");
  if (t.hero_modifiers > kHeroModifiers || t.unit_modifiers > kUnitModifiers)
    throw std::runtime_error("observation layout: more modifier slots than the core holds");
  const auto array_of = [&](const std::string& name) {
    for (int a = 0; a < kObsArrays; ++a)
      if (name == kArrays[a]) return static_cast<ObsArray>(a);
    throw std::runtime_error("observation layout: no array is called '" + name + "'");
  };
  for (int a = 0; a < kObsArrays; ++a)
    t.widths[a] = static_cast<int>(n.at("widths").num(kArrays[a], 0));
  for (const Node& b : n.at("blocks").list) {
    LayoutTable::Block block;
    block.name = b.str("name");
    block.instances = integer(b, "instances");
    for (int a = 0; a < kObsArrays; ++a) {
      block.offset[a] = static_cast<int>(b.at("offset").num(kArrays[a], 0));
      block.stride[a] = static_cast<int>(b.at("stride").num(kArrays[a], 0));
    }
    for (const Node& f : b.at("fields").list)
      block.fields.push_back({f.str("name"), integer(f, "count"), array_of(f.str("array")), integer(f, "offset")});
    t.blocks.push_back(std::move(block));
  }
  for (const Node& g : n.at("groups").list)
    t.groups.push_back({g.str("name"), integer(g, "start"), integer(g, "count")});
  for (const Node& a : n.at("actions").list)
    t.actions.push_back({a.str("name"), integer(a, "target"), integer(a, "mask")});
  for (const Node& o : n.at("omitted").list)
    t.omitted.push_back(o.string);
  return t;
}
namespace {

// A thread's own, which keeps its memory.
ChangesPacker& changes_packer() {
  static thread_local ChangesPacker packer;
  return packer;
}

void bind_packing(nb::module_& m) {
  m.def(
      "pack16",
      [](Array<const std::uint16_t> values, int way) {
        if (way < 0 || way >= static_cast<int>(PackWay::Count))
          throw nb::value_error("there is no such way to pack");
        // Kept from call to call: to ask the system for so much memory and clear it costs more than to pack.
        static thread_local std::vector<std::uint8_t> out;
        if (out.size() < pack_bound(values.size())) out.resize(pack_bound(values.size()));
        std::size_t size = 0;
        {
          nb::gil_scoped_release release;
          size = pack16(values.data(), values.size(), out.data(), static_cast<PackWay>(way));
        }
        return nb::bytes(out.data(), size);
      },
      nb::arg("values").noconvert(), nb::arg("way") = 0, "Packs; `way` as PackWay counts them.");
  m.def(
      "join16",
      [](const std::vector<nb::bytes>& rows, std::size_t values) {
        std::vector<std::span<const std::uint8_t>> parts;
        std::size_t size = (rows.size() * values + 7) / 8;
        const std::size_t head = (values + 7) / 8;
        for (const nb::bytes& row : rows) {
          parts.emplace_back(static_cast<const std::uint8_t*>(row.data()), row.size());
          size += row.size() - std::min(row.size(), head);
        }
        nb::bytes out(nullptr, size);
        if (!join16(parts, values, static_cast<std::uint8_t*>(const_cast<void*>(out.data()))))
          throw nb::value_error(
              ("join16: a row is not a packed array of " + std::to_string(values) + " values").c_str());
        return out;
      },
      nb::arg("rows"), nb::arg("values"),
      "The packed form of rows one after another, each that of so many values.");
  m.def(
      "split16",
      [](Array<const std::uint8_t> packed, std::size_t rows, std::size_t values) {
        std::vector<nb::bytes> out;
        const auto room = [&out](std::size_t size) {
          const nb::bytes& row = out.emplace_back(nullptr, size);
          return static_cast<std::uint8_t*>(const_cast<void*>(row.data()));
        };
        if (!split16({packed.data(), packed.size()}, rows, values, room))
          throw nb::value_error(("split16: " + std::to_string(packed.size()) + " bytes are no packed form of " +
                                 std::to_string(rows) + " rows of " + std::to_string(values) + " values")
                                    .c_str());
        return out;
      },
      nb::arg("packed").noconvert(), nb::arg("rows"), nb::arg("values"),
      "The rows, each packed by itself, of the packed form of rows one after another.");
  m.def(
      "pack_changes",
      [](Array<const std::uint16_t> values, std::size_t rows, std::size_t period) {
        if (rows == 0 || period == 0 || values.size() % rows != 0)
          throw nb::value_error("pack_changes: the array is not a whole number of values a row");
        std::vector<std::uint8_t> out;
        {
          nb::gil_scoped_release release;
          out = changes_packer().pack(reinterpret_cast<const std::uint8_t*>(values.data()), rows,
                                      values.size() / rows, period);
        }
        return nb::bytes(out.data(), out.size());
      },
      nb::arg("values").noconvert(), nb::arg("rows"), nb::arg("period"),
      "The packed form of rows, each but every `period`-th as its exclusive or with the row before.");
  m.def(
      "join_changes",
      [](const std::vector<nb::bytes>& rows, std::size_t values, std::size_t period) {
        if (period == 0) throw nb::value_error("join_changes: the period is at least 1");
        std::vector<std::span<const std::uint8_t>> parts;
        for (const nb::bytes& row : rows)
          parts.emplace_back(static_cast<const std::uint8_t*>(row.data()), row.size());
        std::vector<std::uint8_t> out;
        bool fits = false;
        {
          nb::gil_scoped_release release;
          fits = changes_packer().join(parts, values, period, out);
        }
        if (!fits)
          throw nb::value_error(
              ("join_changes: a row is not a packed array of " + std::to_string(values) + " values").c_str());
        return nb::bytes(out.data(), out.size());
      },
      nb::arg("rows"), nb::arg("values"), nb::arg("period"),
      "The same of rows that are packed each by itself, each that of so many values.");
  m.def(
      "unpack16",
      [](Array<const std::uint8_t> packed, Array<std::uint16_t> out, int way) {
        if (way < 0 || way >= static_cast<int>(PackWay::Count))
          throw nb::value_error("there is no such way to unpack");
        bool fits = false;
        {
          nb::gil_scoped_release release;
          fits = unpack16(packed.data(), packed.size(), out.data(), out.size(), static_cast<PackWay>(way));
        }
        return fits;
      },
      nb::arg("packed").noconvert(), nb::arg("out").noconvert(), nb::arg("way") = 0,
      "Whether the bytes were those of as many values, which are unpacked then; `way` as of pack16.");
  m.def(
      "to_half",
      [](Array<const float> in, Array<std::uint16_t> out, bool portable) {
        if (in.size() != out.size()) throw nb::value_error("to_half: arrays of different sizes");
        (portable ? to_half_portable : static_cast<void (*)(const float*, std::uint16_t*, std::size_t)>(to_half))(
            in.data(), out.data(), in.size());
      },
      nb::arg("values").noconvert(), nb::arg("out").noconvert(), nb::arg("portable") = false);
  m.def(
      "take_half",
      [](Array<float> in, Array<std::uint16_t> out) {
        if (in.size() != out.size()) throw nb::value_error("take_half: arrays of different sizes");
        take_half(in.data(), out.data(), in.size());
      },
      nb::arg("values").noconvert(), nb::arg("out").noconvert());
}
}  // namespace

void bind_layout(nb::module_& m) {
  const auto names = [](const auto& list) { return std::vector<std::string>(list.begin(), list.end()); };
  m.attr("ANIMATIONS") = names(kAnimationNames);
  m.attr("PICKUPS") = names(kPickupNames);
  nb::class_<Layout>(m, "Layout", "The observation layout as the core resolved it from dota.spaces.Layout.")
      .def(
          "__init__",
          [](Layout* self, nb::handle described) {
            try {
              new (self) Layout(layout_table(described));
            } catch (const std::runtime_error& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("described"))
      .def_prop_ro("unwritten_fields", &Layout::unwritten_fields)
      .def(
          "trace",
          [](const Layout& l, int array) {
            if (array < 0 || array >= kObsArrays) throw nb::value_error("there is no such array");
            std::vector<int> field, row;
            l.trace(static_cast<ObsArray>(array), field, row);
            return std::make_pair(field, row);
          },
          nb::arg("array"), "Per cell of an array: index of the field written there plus one, and its row.");
  bind_packing(m);
}

}  // namespace dota
