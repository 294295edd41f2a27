// Power runes: taken, or kept in a bottle. ItemState::toggle of a bottle is the PickupKind it holds, 0 for none.
#include "effects/runes.hpp"
#include "effects/modifiers.hpp"
#include "world/game_rules.hpp"

namespace dota {

namespace {

bool stores_runes(const Context& c, const ItemState& s) {
  const int ability = s.id < 0 ? -1 : c.tables.items[s.id].ability;
  if (ability < 0) return false;
  const Program& p = program_of(c, ability);
  for (const std::uint16_t r : p.roots)
    if (p.nodes[r].prim == Prim::RuneStore) return true;
  return false;
}

}  // namespace

void apply_rune(Context& c, Unit& u, int kind) {
  const int i = kind - static_cast<int>(PickupKind::DoubleDamage);
  if (i < 0 || i >= static_cast<int>(c.tables.rune_abilities.size())) return;
  const int ability = c.tables.rune_abilities[i];
  if (ability < 0) return;
  Invocation inv = invocation_of(c, u, ability, 1);
  run_trigger(c, inv, Trigger::Cast);
}

bool store_rune(Context& c, Unit& hero, int kind) {
  HeroState* h = hero_of(c.world, hero);
  if (!h || kind < static_cast<int>(PickupKind::DoubleDamage)) return false;
  for (int slot = 0; slot < kInventory; ++slot) {
    ItemState& s = h->items[slot];
    if (s.toggle != 0 || !c.world.due(s.enabled_at) || !stores_runes(c, s)) continue;
    s.toggle = static_cast<std::int8_t>(kind);
    s.stored_until = c.world.time + c.tables.game->bottle_expires;
    s.charges = static_cast<std::int8_t>(c.tables.game->bottle_charges);
    return true;
  }
  return false;
}

void refill_bottle(Context& c, Unit& hero) {
  HeroState* h = hero_of(c.world, hero);
  if (!h) return;
  for (int slot = 0; slot < kInventory; ++slot) {
    ItemState& s = h->items[slot];
    if (!c.world.due(s.enabled_at) || !stores_runes(c, s)) continue;
    s.charges = static_cast<std::int8_t>(c.tables.game->bottle_charges);
    return;
  }
}

bool use_stored_rune(Context& c, Unit& hero, int slot) {
  ItemState* s = item_state(c.world, hero, slot);
  if (!s || s->toggle <= 0 || !stores_runes(c, *s)) return false;
  const int kind = s->toggle;
  s->toggle = 0;
  apply_rune(c, hero, kind);
  return true;
}

void bottles_frame(Context& c, Unit& hero) {
  HeroState* h = hero_of(c.world, hero);
  if (!h) return;
  for (int slot = 0; slot < kInventory; ++slot) {
    ItemState& s = h->items[slot];
    if (!stores_runes(c, s)) continue;
    if (s.toggle > 0 && c.world.due(s.stored_until)) use_stored_rune(c, hero, 16 + slot);
    // rules.json fountain.refills_bottle
    if (!c.world.due(h->fountain_until)) s.charges = static_cast<std::int8_t>(c.tables.game->bottle_charges);
  }
}

}  // namespace dota
