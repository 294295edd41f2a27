// Test hooks of the effect interpreter: programs as the compiler made them, and what sits on units.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/data.hpp"
#include "bindings/world.hpp"
#include "effects/abilities.hpp"
#include "effects/compile/programs.hpp"
#include "effects/modifiers.hpp"
#include "effects/program_node.hpp"

namespace nb = nanobind;

namespace dota {

namespace {

std::vector<std::string> primitive_names() {
  std::vector<std::string> out;
  for (int i = 0; i < kPrims; ++i)
    out.push_back(primitive_name(static_cast<Prim>(i)));
  return out;
}

std::vector<std::string> built_primitives() {
  std::vector<std::string> out;
  for (int i = 0; i < kPrims; ++i)
    if (primitive_spec(static_cast<Prim>(i))) out.push_back(primitive_name(static_cast<Prim>(i)));
  return out;
}

nb::dict describe(const Tables& t, const EffectNode& n) {
  nb::dict d;
  d["primitive"] = primitive_name(n.prim);
  d["passive"] = n.passive;
  d["modifier"] = n.modifier < 0 ? nb::object(nb::none()) : nb::object(nb::str(t.modifiers[n.modifier].c_str()));
  nb::dict numbers;
  for (int r = 0; r < kRoles; ++r) {
    const Value* v = n.value(static_cast<Role>(r));
    if (!v) continue;
    nb::list ranks;
    for (int i = 0; i < v->base.n; ++i)
      ranks.append(v->base.v[i]);
    numbers[role_name(static_cast<Role>(r))] = ranks;
  }
  d["numbers"] = numbers;
  nb::list children;
  for (int i = 0; i < n.then_count; ++i)
    children.append(n.then_first + i);
  d["then"] = children;
  d["stats"] = static_cast<int>(n.stats.size());
  d["status"] = n.status;
  return d;
}

nb::dict program_dict(const Tables& t, const Program& p) {
  nb::dict d;
  nb::list nodes;
  for (const EffectNode& n : p.nodes)
    nodes.append(describe(t, n));
  d["nodes"] = nodes;
  nb::list roots;
  for (const std::uint16_t r : p.roots)
    roots.append(static_cast<int>(r));
  d["roots"] = roots;
  nb::list missing;
  for (const std::string& m : p.missing)
    missing.append(m);
  d["missing"] = missing;
  d["inert"] = p.inert;
  return d;
}

// Compiles an ability given as parsed JSON, against no other tables. Raises RuntimeError naming the ability.
nb::dict compile_alone(nb::dict ability, const std::string& name) {
  Tables t;
  const Program p = compile_program(node_from_python(ability), name, t);
  return program_dict(t, p);
}

nb::dict program_of_ability(const PyTables& tables, const std::string& name) {
  const Tables& t = *tables.tables;
  const auto it = t.ability_index.find(name);
  if (it == t.ability_index.end()) throw nb::key_error(("ability '" + name + "' is not in the tables").c_str());
  return program_dict(t, t.abilities[it->second].program);
}

// What a number is at a rank, before a counter of the game (stacks, minutes) multiplies or divides it.
float plain(const Context& c, const Invocation& inv, Value v) {
  v.factor = Factor::One;
  return evaluate(c, inv, v, nullptr);
}

nb::dict numbers_now(PyWorld& p, int hero, const std::string& name, int level) {
  const Tables& t = p.tables();
  const auto it = t.ability_index.find(name);
  if (it == t.ability_index.end()) throw nb::key_error(("ability '" + name + "' is not in the tables").c_str());
  const AbilityDef& a = t.abilities[it->second];
  const Context c = p.context();
  const Unit& u = p.unit(p.hero(hero).unit.index);
  const Invocation inv = invocation_of(c, u, a.id, level);
  nb::list nodes;
  for (const EffectNode& n : a.program.nodes) {
    nb::dict numbers;
    for (int r = 0; r < kRoles; ++r)
      if (const Value* v = n.value(static_cast<Role>(r)))
        numbers[role_name(static_cast<Role>(r))] = plain(c, inv, *v);
    nb::list stats;
    for (const NodeStat& s : n.stats) {
      stats.append(plain(c, inv, s.value));
      if (s.far.base.given()) stats.append(plain(c, inv, s.far));
    }
    nb::dict node;
    node["there"] = upgraded(c, &u, n);
    node["numbers"] = numbers;
    node["stats"] = stats;
    nodes.append(node);
  }
  nb::dict d;
  d["nodes"] = nodes;
  d["cast_range"] = cast_number(c, u, a, CastNumber::Range, level);
  d["cast_point"] = cast_number(c, u, a, CastNumber::Point, level);
  d["channel_time"] = cast_number(c, u, a, CastNumber::Channel, level);
  d["cooldown"] = cast_number(c, u, a, CastNumber::Cooldown, level);
  d["mana_cost"] = cast_number(c, u, a, CastNumber::Mana, level);
  return d;
}

}  // namespace

void bind_effects(nb::module_& m) {
  m.def("primitive_names", &primitive_names, "Names of the closed set of effect primitives.");
  m.def("built_primitives", &built_primitives, "Names of the primitives that the core implements.");
  m.def("compile_effects", &compile_alone, nb::arg("ability"), nb::arg("name"),
        "The compiled program of an ability given as parsed JSON: nodes, roots, missing. Raises RuntimeError.");
  m.def("ability_program", &program_of_ability, nb::arg("tables"), nb::arg("name"),
        "The compiled program of a loaded ability, item (by item name), talent or rune.");
  m.def(
      "ability_numbers", &numbers_now, nb::arg("world"), nb::arg("hero"), nb::arg("ability"), nb::arg("level"),
      "What an ability's numbers are at a rank for a hero of a world, with the talents and the scepter it has: "
      "of each node of the program whether it is there, its numbers by name and its stats in order, counters left "
      "out; and the numbers of the cast. Raises KeyError.");
}

}  // namespace dota
