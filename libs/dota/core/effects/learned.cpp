// Passives: what a unit carries for as long as it has learned an ability or holds an item.
#include <algorithm>

#include "effects/modifiers.hpp"
#include "effects/running.hpp"

namespace dota {

namespace {

bool works(const Context& c, const ItemState& s) {
  return s.id >= 0 && c.world.due(s.enabled_at) && !s.on_courier;
}

// Rank at which the unit has the ability, item or talent now; 0: it does not have it.
int rank_of(const Context& c, const Unit& u, int ability) {
  const HeroState* h = hero_of(c.world, u);
  const AbilityDef& a = c.tables.abilities[ability];
  for (int slot = 0; a.is_item >= 0 && slot < kInventory; ++slot)
    if (const ItemState* s = item_state(c.world, u, 16 + slot); s && s->id == a.is_item && works(c, *s))
      return a.program.fixed_level;
  if (!h) {
    const auto& own = c.tables.units[u.type].abilities;
    return std::find(own.begin(), own.end(), ability) != own.end() ? 1 : 0;
  }
  for (const AbilityState& s : h->abilities)
    if (s.id == ability) return s.level;
  const auto& talents = c.tables.heroes[h->def].talents;
  for (std::size_t i = 0; i < talents.size(); ++i)
    if (talents[i].ability == ability && ((h->talents >> i) & 1u)) return 1;
  return 0;
}

void add_passives(Context& c, Unit& u, int ability, int level, int toggle) {
  if (ability < 0 || level <= 0) return;
  const Program& p = program_of(c, ability);
  if (u.hero < 0 && !p.missing.empty()) return;  // a creep's ability works whole or not at all
  const Invocation inv = invocation_of(c, u, ability, level);
  for (const std::uint16_t root : p.roots) {
    const EffectNode& n = p.nodes[root];
    if (!n.passive || n.modifier < 0 || level < n.from_rank || !upgraded(c, &u, n)) continue;
    Modifier* m = add_modifier(c, u, inv, n, root, kForever);
    if (!m) continue;
    if (n.prim == Prim::StackGain) m->flags |= kModKept;
    if (n.prim == Prim::ToggleStat) m->phase = static_cast<std::uint8_t>(std::max(toggle, 0));
    if (fill_stats(c, inv, n, u, *m)) u.stats_dirty = true;
  }
}

// Removes passives that were forgotten or given away, and those that a talent or the scepter replaces.
void drop_passives(Context& c, Unit& u) {
  for (int i = u.modifiers; i >= 0;) {
    const Modifier& m = c.world.modifiers[i];
    const int next = m.next;
    if ((m.flags & kModPassive) &&
        (rank_of(c, u, m.ability) <= 0 || (m.node >= 0 && !upgraded(c, &u, node_of(c, m.ability, m.node)))))
      remove_modifier(c, i);
    i = next;
  }
}

void add_all_passives(Context& c, Unit& u) {
  const HeroState* h = hero_of(c.world, u);
  if (h)
    for (const AbilityState& s : h->abilities)
      add_passives(c, u, s.id, s.level, 0);
  else
    for (const int ability : c.tables.units[u.type].abilities)
      add_passives(c, u, ability, 1, 0);
  for (int slot = 0; slot < kInventory; ++slot) {
    const ItemState* s = item_state(c.world, u, 16 + slot);
    if (!s || !works(c, *s)) continue;
    const int ability = c.tables.items[s->id].ability;
    if (ability >= 0) add_passives(c, u, ability, program_of(c, ability).fixed_level, s->toggle);
  }
  if (!h) return;
  const auto& talents = c.tables.heroes[h->def].talents;
  for (std::size_t i = 0; i < talents.size(); ++i)
    if ((h->talents >> i) & 1u) add_passives(c, u, talents[i].ability, 1, 0);
}

void grant_by_scepter(Context& c, Unit& u) {
  HeroState* h = hero_of(c.world, u);
  if (!h) return;
  for (AbilityState& s : h->abilities)
    if (s.id >= 0 && c.tables.abilities[s.id].granted_by_scepter) s.level = u.status & kScepter ? 1 : 0;
}

}  // namespace

void apply_learned(Context& c, Unit& u) {
  refresh_status(c, u);  // one that has just risen has its passives, not yet what they put it under
  const std::uint32_t before = u.status & kScepter;
  drop_passives(c, u);
  add_all_passives(c, u);
  if ((u.status & kScepter) != before) {  // known only now that its items are on it
    grant_by_scepter(c, u);
    drop_passives(c, u);
    add_all_passives(c, u);
  }
  if (u.hero < 0) return;
  // Talents change what other modifiers of the hero give.
  for (int i = u.modifiers; i >= 0; i = c.world.modifiers[i].next) {
    Modifier& m = c.world.modifiers[i];
    if (m.node >= 0 && !(m.flags & kModDebuff) &&
        fill_stats(c, invocation_of(c, m), node_of(c, m.ability, m.node), u, m))
      u.stats_dirty = true;
  }
}

}  // namespace dota
