#include "effects/gold.hpp"
#include "world/events.hpp"

namespace dota {

void give_gold(Context& c, HeroState& h, float gold, bool reliable) {
  (void)c;
  if (!h.in_game || gold <= 0) return;
  (reliable ? h.reliable : h.gold) += gold;
  h.income += gold;
  signal(h, Signal::Gold, gold);
}

void team_gold(Context& c, int team, float gold) {
  for (int i = team * 5; i < team * 5 + 5; ++i)
    if (c.world.heroes[i].in_game) give_gold(c, c.world.heroes[i], gold, true);
}

void split_gold(Context& c, int team, float gold) {
  int n = 0;
  for (int i = team * 5; i < team * 5 + 5; ++i)
    n += c.world.heroes[i].in_game;
  if (n > 0) team_gold(c, team, gold / static_cast<float>(n));
}

float item_value(const Context& c, const ItemState& s) {
  if (s.id < 0) return 0;
  const ItemDef& def = c.tables.items[s.id];
  const float cost = static_cast<float>(def.cost);
  if (!def.consumable || def.initial_charges <= 0) return cost;
  return cost * static_cast<float>(s.charges) / static_cast<float>(def.initial_charges);
}

float net_worth(const Context& c, const HeroState& h) {
  float sum = h.gold + h.reliable;
  for (const ItemState& s : h.items)
    sum += item_value(c, s);
  if (h.recipe >= 0) sum += static_cast<float>(c.tables.items[h.recipe].recipe_cost);
  return sum;
}

}  // namespace dota
