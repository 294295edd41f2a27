// The parts of load_tables(), one per file of the data folder.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "data/node.hpp"
#include "data/tables.hpp"

namespace dota {

// Runs f and prefixes its errors with the location ("heroes.json, npc_dota_hero_axe: ...").
template <class F>
void reading(const std::string& place, F&& f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    throw std::runtime_error(place + ": " + e.what());
  }
}

// Runs f(name, node) for each entry of an object, in file order, and prefixes errors with `file` and the entry's
// name. The two are parameters because clang 14 lets no lambda capture a structured binding.
template <class F>
void reading_each(const Node& entries, F&& f, const std::string& file = "") {
  for (const auto& entry : entries.object)
    reading(file + entry.first, [&] { f(entry.first, entry.second); });
}

// A number that a patch may not have: null gives 0, an absent key or another type is an error.
float nullable(const Node& n, const std::string& key);
// A list of numbers, or one number as a list of one; absent gives an empty list.
std::vector<float> numbers(const Node& n, const std::string& key);
std::vector<std::string> strings(const Node& n, const std::string& key);  // absent gives an empty list
int whole(const Node& n, const std::string& key, int otherwise);
int index_of(const std::unordered_map<std::string, int>& index, const std::string& name, const char* what);

// Throw std::runtime_error with entry and key when a number is out of its range, or a minimum above its maximum.
// Bodies are units or heroes; casts are abilities or items.
void check_bodies(const Node& bodies);
void check_casts(const Node& list);
void check_rules(const Node& rules);

void load_units(const Node& units, Tables& t);
void load_hero_bodies(const Node& heroes, Tables& t);  // before abilities: they name their owners
void load_abilities(const Node& abilities, Tables& t);
// What each unit has, by its own list: several have an ability that names one of them as its owner.
void load_unit_abilities(const Node& units, Tables& t);
void load_items(const Node& items, Tables& t);
void load_heroes(const Node& heroes, Tables& t);  // after abilities and items: it names them
// What heroes.json says of talents (affects) and what abilities.json does are the same; runtime_error when not.
void check_affects(const Node& abilities, const Tables& t);
void load_camp_sets(const Node& units, Tables& t);
void load_rules(const Node& rules, Tables& t);
// An item's node with its rank-dependent lists cut to the rank it is sold at, so that its program needs no rank.
Node at_base_level(const Node& item, int level);

}  // namespace dota
