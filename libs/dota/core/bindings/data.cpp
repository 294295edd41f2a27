// The game's tables as Python sees them: parsed JSON in, an opaque handle and lists of names out.
#include "bindings/data.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nanobind/nanobind.h>

#include "rules/load_tables.hpp"

namespace nb = nanobind;

namespace dota {

Node node_from_python(nb::handle h) {
  Node n;
  if (h.is_none()) return n;
  if (nb::isinstance<nb::bool_>(h)) {
    n.type = Node::Type::Number;
    n.number = nb::cast<bool>(h) ? 1 : 0;
  } else if (nb::isinstance<nb::int_>(h) || nb::isinstance<nb::float_>(h)) {
    n.type = Node::Type::Number;
    n.number = nb::cast<double>(h);
  } else if (nb::isinstance<nb::str>(h)) {
    n.type = Node::Type::String;
    n.string = nb::cast<std::string>(h);
  } else if (nb::isinstance<nb::list>(h) || nb::isinstance<nb::tuple>(h)) {
    n.type = Node::Type::List;
    n.list.reserve(nb::len(h));
    for (nb::handle e : h)
      n.list.push_back(node_from_python(e));
  } else if (nb::isinstance<nb::dict>(h)) {
    n.type = Node::Type::Object;
    n.object.reserve(nb::len(h));
    for (auto [k, v] : nb::borrow<nb::dict>(h)) {
      if (!nb::isinstance<nb::str>(k)) throw nb::type_error("game data: an object's key is not text");
      n.object.emplace_back(nb::cast<std::string>(k), node_from_python(v));
    }
  } else {
    throw nb::type_error("game data: only what JSON holds can be read (dict, list, str, int, float, bool, None)");
  }
  return n;
}

namespace {

template <class T>
std::vector<std::string> names(const std::vector<T>& list) {
  std::vector<std::string> out;
  out.reserve(list.size());
  for (const T& e : list)
    out.push_back(e.name);
  return out;
}

template <class T>
const T& named(const std::vector<T>& list, const std::unordered_map<std::string, int>& index,
               const std::string& name, const char* what) {
  const auto at = index.find(name);
  if (at == index.end()) throw nb::key_error((std::string(what) + " '" + name + "' is not in the tables").c_str());
  return list[at->second];
}

const char* target_name(TargetType t) {
  switch (t) {
    case TargetType::None:
      return "none";
    case TargetType::Point:
      return "point";
    case TargetType::Unit:
      return "unit";
    case TargetType::UnitOffset:
      return "unit_offset";
    case TargetType::Teleport:
      return "teleport";
    case TargetType::Ward:
      return "ward";
  }
  return "none";
}

// Primitives that a hero's own programs need and the core does not have; a hero with any cannot be played.
std::vector<std::string> missing_primitives(const Tables& t, const std::string& hero) {
  const HeroDef& h = named(t.heroes, t.hero_index, hero, "hero");
  std::vector<std::string> out;
  const auto add = [&](int ability) {
    for (const std::string& p : t.abilities[ability].program.missing)
      if (std::find(out.begin(), out.end(), p) == out.end()) out.push_back(p);
  };
  for (int a : h.abilities)
    add(a);
  for (const TalentDef& d : h.talents)
    add(d.ability);
  return out;
}

nb::dict unit_fields(const Tables& t, const std::string& name) {
  const UnitDef& u = named(t.units, t.unit_index, name, "unit");
  nb::dict d;
  d["kind"] = static_cast<int>(u.kind);
  d["level"] = u.level;
  d["hp"] = u.hp;
  d["hp_regen"] = u.hp_regen;
  d["mana"] = u.mana;
  d["armor"] = u.armor;
  d["magic_resist"] = u.magic_resist_pct;
  d["dmg_min"] = u.dmg_min;
  d["dmg_max"] = u.dmg_max;
  d["attack_time"] = u.attack_time;
  d["attack_point"] = u.attack_point;
  d["attack_range"] = u.attack_range;
  d["acquisition_range"] = u.acquisition_range;
  d["projectile_speed"] = u.projectile_speed;
  d["move_speed"] = u.move_speed;
  d["turn_rate"] = u.turn_rate;
  d["gold_min"] = u.gold_min;
  d["gold_max"] = u.gold_max;
  d["xp"] = u.xp;
  d["vision_day"] = u.vision_day;
  d["vision_night"] = u.vision_night;
  d["hull_radius"] = u.hull_radius;
  d["true_sight"] = u.true_sight;
  d["can_attack"] = u.can_attack;
  d["ancient"] = u.ancient;
  d["siege"] = u.siege;
  return d;
}

nb::dict ability_fields(const Tables& t, const std::string& name) {
  const AbilityDef& a = named(t.abilities, t.ability_index, name, "ability");
  nb::dict d;
  d["target"] = target_name(a.target);
  d["passive"] = a.passive;
  d["ultimate"] = a.ultimate;
  d["learnable"] = a.learnable;
  d["channelled"] = a.channelled;
  d["max_level"] = a.max_level;
  d["required_level"] = a.required_level;
  d["levels_between"] = a.levels_between;
  d["cast_range"] = a.cast_range;
  d["cast_point"] = a.cast_point;
  d["channel_time"] = a.channel_time;
  d["cooldown"] = a.cooldown;
  d["mana_cost"] = a.mana_cost;
  d["copies_rank_of"] =
      a.linked_skill < 0 ? nb::object(nb::none()) : nb::object(nb::cast(t.abilities[a.linked_skill].name));
  d["cooldown_group"] =
      a.shared_cooldown < 0 ? nb::object(nb::none()) : nb::object(nb::cast(t.cooldown_groups[a.shared_cooldown]));
  d["missing"] = a.program.missing;
  return d;
}

nb::dict item_fields(const Tables& t, const std::string& name) {
  const ItemDef& i = named(t.items, t.item_index, name, "item");
  nb::dict d;
  d["cost"] = i.cost;
  d["recipe_cost"] = i.recipe_cost;
  nb::list recipes;
  for (const auto& r : i.recipes) {
    nb::list parts;
    for (int p : r)
      parts.append(t.items[p].name);
    recipes.append(parts);
  }
  d["recipes"] = recipes;
  nb::list stats;
  for (const auto& [s, v] : i.stats)
    stats.append(nb::make_tuple(static_cast<int>(s), v));
  d["stats"] = stats;
  d["initial_charges"] = i.initial_charges;
  d["stock_max"] = i.stock_max;
  d["stackable"] = i.stackable;
  d["consumable"] = i.consumable;
  d["purchasable"] = i.purchasable;
  d["excluded"] = i.excluded;
  d["side_shop"] = i.side_shop;
  d["secret_only"] = i.secret_shop;
  d["usable"] = i.ability >= 0 && !t.abilities[i.ability].passive;
  return d;
}

nb::dict hero_fields(const Tables& t, const std::string& name) {
  const HeroDef& h = named(t.heroes, t.hero_index, name, "hero");
  nb::dict d;
  const auto ability = [&](int a) { return t.abilities[a].name; };
  const auto items = [&](const std::vector<int>& ids) {
    nb::list out;
    for (int i : ids)
      out.append(t.items[i].name);
    return out;
  };
  d["primary"] = static_cast<int>(h.primary);
  d["base"] = nb::make_tuple(h.base[0], h.base[1], h.base[2]);
  d["gain"] = nb::make_tuple(h.gain[0], h.gain[1], h.gain[2]);
  nb::list abilities, talents, build;
  for (int a : h.abilities)
    abilities.append(ability(a));
  for (const TalentDef& talent : h.talents)
    talents.append(talent.name);
  for (int s : h.skill_build) {
    if (s == -1)
      build.append(nb::none());
    else
      build.append(s >= 0 ? ability(s) : h.talents[-s - 2].name);
  }
  d["abilities"] = abilities;
  d["talents"] = talents;
  d["skill_build"] = build;
  d["item_start"] = items(h.item_start);
  d["item_order"] = items(h.item_order);
  d["item_pool"] = items(h.item_pool);
  d["role_position"] = h.role_position;
  return d;
}

}  // namespace

void bind_data(nb::module_& m) {
  nb::class_<PyTables>(m, "Tables", "The constants of one patch, read-only; made by load_tables().")
      .def_prop_ro("version", [](const PyTables& t) { return t->version; })
      .def_prop_ro(
          "fingerprint", [](const PyTables& t) { return t->fingerprint; }, "Of the six files it was made from.")
      .def_prop_ro("heroes", [](const PyTables& t) { return names(t->heroes); })
      .def_prop_ro(
          "abilities", [](const PyTables& t) { return names(t->abilities); },
          "Abilities, then items that do something, then talents: the vocabulary of ability ids.")
      .def_prop_ro("items", [](const PyTables& t) { return names(t->items); })
      .def_prop_ro("units", [](const PyTables& t) { return names(t->units); })
      .def_prop_ro("modifiers", [](const PyTables& t) { return t->modifiers; })
      .def_prop_ro("pool_finals",
                   [](const PyTables& t) {
                     std::vector<std::string> out;
                     for (int h : t->pool_finals)
                       out.push_back(t->heroes[h].name);
                     return out;
                   })
      .def_prop_ro("pool_ti8",
                   [](const PyTables& t) {
                     std::vector<std::string> out;
                     for (int h : t->pool_ti8)
                       out.push_back(t->heroes[h].name);
                     return out;
                   })
      .def(
          "missing_primitives",
          [](const PyTables& t, const std::string& hero) { return missing_primitives(*t.tables, hero); },
          nb::arg("hero"), "Names of the primitives that the hero's programs need and the core lacks.")
      .def(
          "unit", [](const PyTables& t, const std::string& n) { return unit_fields(*t.tables, n); },
          nb::arg("name"))
      .def(
          "ability", [](const PyTables& t, const std::string& n) { return ability_fields(*t.tables, n); },
          nb::arg("name"))
      .def(
          "item", [](const PyTables& t, const std::string& n) { return item_fields(*t.tables, n); },
          nb::arg("name"))
      .def(
          "hero", [](const PyTables& t, const std::string& n) { return hero_fields(*t.tables, n); },
          nb::arg("name"))
      .def_prop_ro("camp_sets", [](const PyTables& t) {
        nb::list tiers;
        for (const auto& tier : t->camp_sets) {
          nb::list sets;
          for (const auto& set : tier) {
            nb::list units;
            for (int u : set)
              units.append(t->units[u].name);
            sets.append(units);
          }
          tiers.append(sets);
        }
        return tiers;
      });
  m.def(
      "load_tables",
      [](nb::handle heroes, nb::handle abilities, nb::handle items, nb::handle units, nb::handle rules,
         nb::handle map) {
        const Node files[] = {node_from_python(heroes), node_from_python(abilities), node_from_python(items),
                              node_from_python(units),  node_from_python(rules),     node_from_python(map)};
        try {
          return PyTables{load_tables(files[0], files[1], files[2], files[3], files[4], files[5])};
        } catch (const std::runtime_error& e) {
          throw nb::value_error(e.what());
        }
      },
      nb::arg("heroes"), nb::arg("abilities"), nb::arg("items"), nb::arg("units"), nb::arg("rules"),
      nb::arg("map"),
      "Builds the tables from the six parsed JSON files. Raises ValueError naming the file and key that is "
      "wrong.");
}

}  // namespace dota
