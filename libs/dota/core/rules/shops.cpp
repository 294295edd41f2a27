// Shops by place: home, side and secret, and what each sells (items.json: side_shop, secret_shop, global_shop).
#include "map/map_data.hpp"
#include "rules/inventory.hpp"
#include "world/game_rules.hpp"

namespace dota {

bool within_shop(const Context& c, Vec2 p, int item) {
  const ItemDef& def = c.tables.items[item];
  for (const MapShop& shop : c.tables.map->shops) {
    const bool sells = shop.kind == MapShop::Kind::Side     ? def.side_shop
                       : shop.kind == MapShop::Kind::Secret ? def.sold_secretly
                                                            : false;
    if (sells && distance(shop.pos, p) <= c.tables.game->shop_radius) return true;
  }
  return false;
}

Vec2 nearest_secret_shop(const Context& c, Vec2 p) {
  Vec2 best = p;
  float nearest = 1e9f;
  for (const MapShop& shop : c.tables.map->shops) {
    if (shop.kind != MapShop::Kind::Secret || distance(shop.pos, p) >= nearest) continue;
    best = shop.pos;
    nearest = distance(shop.pos, p);
  }
  return best;
}

Counter counter_of(const Context& c, const HeroState& h, int item) {
  if (!c.settings.courier_scripted) return Counter::Hand;
  const Unit* u = c.world.get(h.unit);
  if (u && u->alive && within_shop(c, u->pos, item)) return Counter::Hand;
  if (c.tables.items[item].secret_shop) return Counter::Nowhere;
  return at_home(c, h) ? Counter::Hand : Counter::Stash;
}

}  // namespace dota
