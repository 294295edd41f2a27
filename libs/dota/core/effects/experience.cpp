#include "effects/experience.hpp"

#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/program_node.hpp"
#include "effects/running.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

int skill_entry(const HeroDef& def, const HeroState& h, int i) {
  if (i < 31 && (h.skill_swaps >> i & 1u))
    ++i;
  else if (i > 0 && (h.skill_swaps >> (i - 1) & 1u))
    --i;
  return def.skill_build[i];
}

// Takes one rank or talent; false when the hero's level does not allow it yet.
bool learn(Context& c, HeroState& h, int entry) {
  const HeroDef& def = c.tables.heroes[h.def];
  if (entry <= -2) {
    const int talent = -(entry + 2);
    if (h.level < def.talents[talent].level) return false;
    h.talents |= 1u << talent;
    record_hero_event(c, EventKind::Learned, h, nullptr, def.talents[talent].ability, 1);
    return true;
  }
  const AbilityDef& a = c.tables.abilities[entry];
  for (AbilityState& s : h.abilities) {
    if (s.id != entry) continue;
    if (s.level >= a.max_level) return true;  // nothing left to learn: the entry is spent
    if (h.level < a.required_level + s.level * a.levels_between) return false;
    ++s.level;
    record_hero_event(c, EventKind::Learned, h, nullptr, entry, s.level);
    if (const Unit* u = s.level == 1 ? c.world.get(h.unit) : nullptr)
      s.charges = static_cast<std::int8_t>(charge_limit(c, *u, a, 1));
    for (AbilityState& other : h.abilities)
      if (other.id >= 0 && other.id != entry && c.tables.abilities[other.id].linked_skill == entry)
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
  const HeroDef& def = c.tables.heroes[h.def];
  std::array<int, kAbilitySlots> ranks{};
  for (int i = 0; i < static_cast<int>(def.skill_build.size()) && h.ability_points > 0; ++i) {
    const int entry = skill_entry(def, h, i);
    if (entry == -1) continue;
    if (entry >= 0) {
      const auto held = std::find_if(h.abilities.begin(), h.abilities.end(),
                                     [&](const AbilityState& s) { return s.id == entry; });
      if (held == h.abilities.end()) continue;
      if (++ranks[held - h.abilities.begin()] <= held->level) continue;
    }
    learn_one(c, h, entry);
  }
}

}  // namespace

bool has_talent(const HeroState& h, int talent) { return h.talents >> talent & 1u; }

Refusal why_not_learn(const Context& c, const HeroState& h, int entry) {
  const HeroDef& def = c.tables.heroes[h.def];
  if (entry <= -2) {
    const std::size_t talent = -(entry + 2);
    if (talent >= def.talents.size()) return Refusal::Slot;
    for (std::size_t k = 0; k < def.talents.size(); ++k)
      if (has_talent(h, static_cast<int>(k)) && def.talents[k].level == def.talents[talent].level)
        return Refusal::Taken;
    if (h.level < def.talents[talent].level) return Refusal::Level;
    return h.ability_points == 0 ? Refusal::Points : Refusal::None;
  }
  for (const AbilityState& s : h.abilities) {
    if (entry < 0 || s.id != entry) continue;
    const AbilityDef& a = c.tables.abilities[entry];
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
  if (h.learns_by_hand()) return;
  if (h.hand & kWasByHand) return learn_what_is_lacking(c, h);
  const HeroDef& def = c.tables.heroes[h.def];
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

void forget_skills(Context& c, HeroState& h) {
  for (AbilityState& s : h.abilities) {
    if (s.id < 0 || s.level == 0 || !c.tables.abilities[s.id].learnable) continue;
    if (c.tables.abilities[s.id].linked_skill < 0) h.ability_points += s.level;
    s.level = 0;
    s.charges = 0;
  }
  for (; h.talents != 0; h.talents &= h.talents - 1)
    ++h.ability_points;
  h.skill_next = 0;
  learned_something(c, h);
}

void give_xp(Context& c, HeroState& h, float xp) {
  if (!h.in_game || xp <= 0) return;
  const GameRules& g = *c.tables.game;
  const auto& table = c.tables.rules.xp_for_level;
  Unit* u = c.world.get(h.unit);
  if (u) xp *= 1 + u->xp_bonus;
  const float cap = table[g.max_level - 1];
  const float gained = std::min(xp, cap - h.xp);
  if (gained <= 0) return;
  h.xp += gained;
  signal(h, Signal::Xp, gained);
  bool up = false;
  while (h.level < g.max_level && h.xp >= table[h.level]) {
    ++h.level;
    if (!(g.levels_without_point >> h.level & 1u)) ++h.ability_points;
    record_hero_event(c, EventKind::LevelUp, h, nullptr, -1, h.level);
    up = true;
  }
  if (!up) return;
  if (u) u->stats_dirty = true;
  learn_skills(c, h);
}

}  // namespace dota
