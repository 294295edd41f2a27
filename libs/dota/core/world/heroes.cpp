#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/program_node.hpp"
#include "effects/running.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "world/damage.hpp"
#include "world/game_rules.hpp"
#include "world/heroes.hpp"
#include "world/inventory.hpp"
#include "world/items.hpp"
#include "world/signals.hpp"
#include "world/units.hpp"

namespace dota {
namespace {

int skill_entry(const HeroDef& def, const HeroState& h, int i) {
  if (i < 31 && (h.skill_swaps >> i & 1u))
    ++i;
  else if (i > 0 && (h.skill_swaps >> (i - 1) & 1u))
    --i;
  return def.skill_build[static_cast<std::size_t>(i)];
}

// Takes one rank or talent; false when the hero's level does not allow it yet.
bool learn(Context& c, HeroState& h, int entry) {
  const HeroDef& def = c.tables.heroes[static_cast<std::size_t>(h.def)];
  if (entry <= -2) {
    const int talent = -(entry + 2);
    if (h.level < def.talents[static_cast<std::size_t>(talent)].level) return false;
    h.talents |= 1u << talent;
    hero_event(c, EventKind::Learned, h, nullptr, def.talents[static_cast<std::size_t>(talent)].ability, 1);
    return true;
  }
  const AbilityDef& a = c.tables.abilities[static_cast<std::size_t>(entry)];
  for (AbilityState& s : h.abilities) {
    if (s.id != entry) continue;
    if (s.level >= a.max_level) return true;  // nothing left to learn: the entry is spent
    if (h.level < a.required_level + s.level * a.levels_between) return false;
    ++s.level;
    hero_event(c, EventKind::Learned, h, nullptr, entry, s.level);
    if (const Unit* u = s.level == 1 ? c.world.get(h.unit) : nullptr)
      s.charges = static_cast<std::int8_t>(charge_limit(c, *u, a, 1));
    for (AbilityState& other : h.abilities)
      if (other.id >= 0 && other.id != entry &&
          c.tables.abilities[static_cast<std::size_t>(other.id)].linked_skill == entry)
        other.level = s.level;
    return true;
  }
  return true;
}

void learned_something(Context& c, const HeroState& h) {
  Unit* u = c.world.get(h.unit);
  if (!u) return;
  u->stats_dirty = true;
  if (u->alive) apply_learned(c, *u);
}

// Goes on by the skill order where a person has chosen in between: what of it the hero lacks, first things first.
void learn_what_is_lacking(Context& c, HeroState& h) {
  const HeroDef& def = c.tables.heroes[static_cast<std::size_t>(h.def)];
  std::array<int, kAbilitySlots> ranks{};
  for (int i = 0; i < static_cast<int>(def.skill_build.size()) && h.ability_points > 0; ++i) {
    const int entry = skill_entry(def, h, i);
    if (entry == -1) continue;
    if (entry >= 0) {
      const auto held = std::find_if(h.abilities.begin(), h.abilities.end(),
                                     [&](const AbilityState& s) { return s.id == entry; });
      if (held == h.abilities.end()) continue;
      if (++ranks[static_cast<std::size_t>(held - h.abilities.begin())] <= held->level) continue;
    }
    learn_one(c, h, entry);
  }
}

void restore_charges(Context& c, HeroState& h, const Unit& u) {
  World& w = c.world;
  if (!c.tables.heroes[static_cast<std::size_t>(h.def)].has_charges) return;
  for (AbilityState& s : h.abilities) {
    if (s.id < 0 || s.level <= 0) continue;
    const AbilityDef& a = c.tables.abilities[static_cast<std::size_t>(s.id)];
    if (a.program.charges < 0) continue;
    const int most = charge_limit(c, u, a, s.level);
    if (s.charges >= most) {
      s.next_charge = 0;
    } else if (s.next_charge <= 0) {
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

bool has_talent(const HeroState& h, int talent) { return h.talents >> talent & 1u; }

Refusal why_not_learn(const Context& c, const HeroState& h, int entry) {
  const HeroDef& def = c.tables.heroes[static_cast<std::size_t>(h.def)];
  if (entry <= -2) {
    const auto talent = static_cast<std::size_t>(-(entry + 2));
    if (talent >= def.talents.size()) return Refusal::Slot;
    for (std::size_t k = 0; k < def.talents.size(); ++k)
      if (has_talent(h, static_cast<int>(k)) && def.talents[k].level == def.talents[talent].level)
        return Refusal::Taken;
    if (h.level < def.talents[talent].level) return Refusal::Level;
    return h.ability_points == 0 ? Refusal::Points : Refusal::None;
  }
  for (const AbilityState& s : h.abilities) {
    if (entry < 0 || s.id != entry) continue;
    const AbilityDef& a = c.tables.abilities[static_cast<std::size_t>(entry)];
    if (!a.learnable || a.linked_skill >= 0) return Refusal::Slot;
    if (s.level >= a.max_level) return Refusal::Taken;
    if (h.level < a.required_level + s.level * a.levels_between) return Refusal::Level;
    return h.ability_points == 0 ? Refusal::Points : Refusal::None;
  }
  return Refusal::Slot;
}

void learn_one(Context& c, HeroState& h, int entry) {
  if (why_not_learn(c, h, entry) != Refusal::None || !learn(c, h, entry)) return;
  --h.ability_points;
  learned_something(c, h);
}

void learn_skills(Context& c, HeroState& h) {
  if (h.by_hand()) return;
  if (h.hand & kWasByHand) return learn_what_is_lacking(c, h);
  const HeroDef& def = c.tables.heroes[static_cast<std::size_t>(h.def)];
  bool learned = false;
  while (h.skill_next < def.skill_build.size()) {
    const int entry = skill_entry(def, h, h.skill_next);
    if (entry == -1) {
      ++h.skill_next;
      continue;
    }
    if (h.ability_points == 0 || !learn(c, h, entry)) break;
    --h.ability_points;
    ++h.skill_next;
    learned = true;
  }
  if (learned) learned_something(c, h);
}

void give_xp(Context& c, HeroState& h, float xp) {
  if (!h.in_game || xp <= 0) return;
  const GameRules& g = *c.tables.game;
  const auto& table = c.tables.rules.xp_for_level;
  Unit* u = c.world.get(h.unit);
  if (u) xp *= 1 + u->xp_bonus;
  const float cap = table[static_cast<std::size_t>(g.max_level) - 1];
  const float gained = std::min(xp, cap - h.xp);
  if (gained <= 0) return;
  h.xp += gained;
  signal(h, Signal::Xp, gained);
  bool up = false;
  while (h.level < g.max_level && h.xp >= table[h.level]) {
    ++h.level;
    if (!(g.levels_without_point >> h.level & 1u)) ++h.ability_points;
    hero_event(c, EventKind::LevelUp, h, nullptr, -1, h.level);
    up = true;
  }
  if (!up) return;
  if (u) u->stats_dirty = true;
  learn_skills(c, h);
}

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
  hero_event(c, EventKind::Buyback, h, nullptr, -1, cost);
  return true;
}

bool reincarnate(Context& c, Unit& hero) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  HeroState& h = w.heroes[static_cast<std::size_t>(hero.hero)];
  for (int slot = 0; slot < kInventory; ++slot) {
    if (g.aegis_item < 0 || h.items[static_cast<std::size_t>(slot)].id != g.aegis_item) continue;
    take_item(c, h, slot);
    hero.alive = false;
    touch_unit(w, w.handle(hero).index);
    hero.hp = 0;
    hero.died_at = w.time;
    hero.act = Act::Dead;
    hero.order = hero.queued = Order{};
    clear_modifiers(c, hero);
    disjoint(c, hero);
    hero.status = 0;
    hero.velocity = Vec2{};
    h.rising = true;
    h.respawn_at = w.time + g.aegis_delay;
    return true;
  }
  return false;
}

void heroes_frame(Context& c) {
  World& w = c.world;
  for (int i = 0; i < kMaxHeroes; ++i) {
    HeroState& h = w.heroes[static_cast<std::size_t>(i)];
    if (!h.in_game) continue;
    Unit* u = w.get(h.unit);
    if (!u) continue;
    if (!u->alive && w.due(h.respawn_at)) {
      respawn(c, h, *u);
      happened(c, EventKind::Respawn, *u);
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
