#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/gold.hpp"
#include "effects/program_node.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "rules/heroes.hpp"
#include "rules/inventory.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

void restore_charges(Context& c, HeroState& h, const Unit& u) {
  World& w = c.world;
  if (!c.tables.heroes[h.def].has_charges) return;
  for (AbilityState& s : h.abilities) {
    if (s.id < 0 || s.level <= 0) continue;
    const AbilityDef& a = c.tables.abilities[s.id];
    if (a.program.charges < 0) continue;
    const int most = charge_limit(c, u, a, s.level);
    if (s.charges >= most) {
      s.next_charge = 0;
    } else if (s.next_charge == 0) {  // before the horn a time is below 0
      s.next_charge = w.time + charge_restore(c, u, a, s.level);
    } else if (w.due(s.next_charge)) {
      ++s.charges;
      s.next_charge = s.charges < most ? w.time + charge_restore(c, u, a, s.level) : 0;
    }
  }
}

void respawn(Context& c, HeroState& h, Unit& u) {
  const Vec2 place = h.rising ? u.pos : free_place(c.world, *c.tables.map, u.spawn, u.radius);
  h.rising = false;
  u.alive = true;
  u.act = Act::Idle;
  u.order = u.queued = Order{};
  u.status = inherent_status(c, u);
  place_unit(c.world, u, place);
  apply_learned(c, u);
  refresh_stats(c, u);
  u.hp = u.max_hp;
  u.mana = u.max_mana;
  u.hp_history.fill(u.hp);
  // Coming back to full health is not a change that the hero is rewarded for.
  h.prev_hp_frac = h.prev_mana_frac = 1;
}

void passive_gold(Context& c, HeroState& h, const Unit& u) {
  World& w = c.world;
  const Rules& r = c.tables.rules;
  if (u.gold_per_10s != 0 && w.time > 0) give_gold(c, h, u.gold_per_10s * kDt / 10, false);
  if (w.time < 0) return;
  const int due = static_cast<int>(w.time / r.passive_every_s);
  if (due <= h.passive_ticks) return;
  give_gold(c, h, r.passive_gold * static_cast<float>(due - h.passive_ticks), false);
  h.passive_ticks = due;
}

}  // namespace

float buyback_cost(const Context& c, const HeroState& h) {
  return c.tables.game->buyback_base + net_worth(c, h) / c.tables.game->buyback_divisor;
}

bool can_buyback(const Context& c, const HeroState& h) {
  const Unit* u = h.in_game ? c.world.get(h.unit) : nullptr;
  return c.settings.buyback && u && !u->alive && !h.rising && c.world.due(h.buyback_ready) &&
         h.gold + h.reliable >= buyback_cost(c, h);
}

bool buyback(Context& c, HeroState& h) {
  if (!can_buyback(c, h)) return false;
  const float cost = buyback_cost(c, h);
  const float reliable = std::min(h.reliable, cost);  // a buyback takes reliable gold first
  h.reliable -= reliable;
  h.gold -= cost - reliable;
  h.buyback_ready = c.world.time + c.tables.game->buyback_cooldown;
  h.death_penalty = c.tables.game->buyback_extra;
  respawn(c, h, *c.world.get(h.unit));
  record_hero_event(c, EventKind::Buyback, h, nullptr, -1, cost);
  return true;
}

void heroes_frame(Context& c) {
  World& w = c.world;
  for (int i = 0; i < kMaxHeroes; ++i) {
    HeroState& h = w.heroes[i];
    if (!h.in_game) continue;
    Unit* u = w.get(h.unit);
    if (!u) continue;
    if (!u->alive && w.due(h.respawn_at)) {
      respawn(c, h, *u);
      record_event(c, EventKind::Respawn, *u);
    }
    passive_gold(c, h, *u);
    restore_charges(c, h, *u);
    if ((w.frame + i) % kPurchaseFrames == 0) {
      if (!h.by_hand()) purchase(c, h);
      arrange_items(c, h);
    }
  }
  if (w.frame % kPurchaseFrames != 0) return;
  restock(c);
  pick_up(c);
}

}  // namespace dota
