#include <algorithm>

#include "rules/lineup.hpp"

namespace dota {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names)
    out += (out.empty() ? "" : ", ") + n;
  return out;
}

}  // namespace

bool item_supported(const Tables& t, int item) {
  const ItemDef& def = t.items[item];
  if (def.excluded || (!def.purchasable && def.recipes.empty())) return false;
  if (def.ability >= 0) {
    // An item whose use alone is not built is still worth its stats; it cannot be used.
    const Program& p = t.abilities[def.ability].program;
    if (!p.missing.empty() && (p.passive_missing || def.stats.empty())) return false;
  }
  return std::all_of(def.recipes.begin(), def.recipes.end(), [&](const std::vector<int>& recipe) {
    return std::all_of(recipe.begin(), recipe.end(), [&](int part) { return item_supported(t, part); });
  });
}

std::string check_lineup(const Tables& t, const std::array<int, kMaxHeroes>& lineup) {
  for (const int index : lineup) {
    if (index < 0) continue;
    if (index >= static_cast<int>(t.heroes.size()))
      return "hero index " + std::to_string(index) + " is not in the data";
    const HeroDef& hero = t.heroes[index];
    for (const int ability : hero.abilities) {
      const AbilityDef& a = t.abilities[ability];
      if (!a.program.missing.empty())
        return hero.name + " cannot be played: ability " + a.name + " needs effects that are not built yet (" +
               joined(a.program.missing) + ")";
    }
  }
  return "";
}

namespace {

// Names of the line-up's items, each once, that `wanted` holds for; components of its builds too.
template <class Wanted>
std::vector<std::string> items_where(const Tables& t, const std::array<int, kMaxHeroes>& lineup, Wanted wanted) {
  std::vector<std::string> names;
  const auto look = [&](auto&& self, int item) -> void {
    const ItemDef& def = t.items[item];
    if (wanted(item) && std::find(names.begin(), names.end(), def.name) == names.end()) names.push_back(def.name);
    for (const auto& recipe : def.recipes)
      for (const int part : recipe)
        self(self, part);
  };
  for (const int index : lineup) {
    if (index < 0) continue;
    const HeroDef& hero = t.heroes[index];
    for (const auto* list : {&hero.item_start, &hero.item_order})
      for (const int item : *list)
        look(look, item);
  }
  return names;
}

}  // namespace

std::vector<std::string> items_not_bought(const Tables& t, const std::array<int, kMaxHeroes>& lineup) {
  return items_where(t, lineup, [&](int item) { return !item_supported(t, item); });
}

std::vector<std::string> items_without_use(const Tables& t, const std::array<int, kMaxHeroes>& lineup) {
  return items_where(t, lineup, [&](int item) {
    const int ability = t.items[item].ability;
    return item_supported(t, item) && ability >= 0 && !t.abilities[ability].program.missing.empty();
  });
}

}  // namespace dota
