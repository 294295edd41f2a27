#include <algorithm>

#include "effects/damage.hpp"
#include "effects/neutrals.hpp"
#include "effects/running.hpp"
#include "effects/triggers.hpp"
#include "map/protection.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// Share of physical damage that gets through; the formula passes 100 % reduction at very high armor.
float armor_factor(const Rules& r, float armor) {
  return std::max(0.0f, 1 - r.armor_a * armor / (r.armor_b + r.armor_c * std::fabs(armor)));
}

// Creeps and buildings of a team whose glyph is up take nothing (rules.json glyph.protects).
bool glyph_protects(const World& w, const Unit& u) {
  return u.team < kTeams && !w.due(w.teams[u.team].glyph_until) &&
         (is_building(u.kind) || u.kind == UnitKind::LaneCreep);
}

void remember_attacker(Context& c, Unit& target, Unit& source) {
  World& w = c.world;
  target.last_attacker = w.handle(source);
  if (target.kind == UnitKind::Neutral || target.kind == UnitKind::Roshan) neutral_hurt(c, target, source);
  const Unit* owner = source.hero >= 0 ? &source : w.get(source.owner);
  if (!owner || owner->hero < 0) return;
  if (target.hero >= 0 && owner->team != target.team) w.heroes[target.hero].hurt_by[owner->hero] = w.time;
}

void log_damage(Context& c, const Unit& target, const DamageInfo& d, float lost) {
  DamageEvent e;
  e.victim = target.hero;
  e.victim_unit = c.world.handle(target);
  e.ability = d.ability;
  e.amount = lost;
  if (d.source) {
    const Unit* owner = d.source->hero >= 0 ? d.source : c.world.get(d.source->owner);
    e.attacker = owner ? owner->hero : std::int8_t{-1};
    e.attacker_unit = c.world.handle(*d.source);
  }
  c.damage_log->push_back(e);
}

}  // namespace

float deal_damage(Context& c, const DamageInfo& d) {
  Unit* const target = d.target;
  if (!target || !target->alive || d.amount <= 0) return 0;
  const RecursionGuard blow(c);
  if (!blow) return 0;
  World& w = c.world;
  const Rules& r = c.tables.rules;
  if (target->status & (kInvulnerable | kBanished | kGuarded)) return 0;
  if (d.source && (d.source->status & kGuarded)) return 0;
  if (building_protected(c, *target) || glyph_protects(w, *target)) return 0;

  // Wards and the like lose one hit to a hero's attack and nothing to anything else (wards.hits_to_kill_note).
  if (target->hits_left > 0) {
    if (!d.attack || !d.source) return 0;
    const int hits = d.source->hero >= 0                 ? target->hits_hero
                     : d.source->kind == UnitKind::Tower ? target->hits_tower
                     : target->kind == UnitKind::Summon  ? std::min(1, c.tables.units[target->type].hits_to_kill)
                                                         : 0;
    if (hits == 0) return 0;
    remember_attacker(c, *target, *d.source);
    target->hits_left = static_cast<std::int8_t>(std::max(0, target->hits_left - hits));
    if (target->hits_left == 0) {
      kill(c, *target, d.source);
      return 1;
    }
    target->hp = target->max_hp * static_cast<float>(target->hits_left) /
                 static_cast<float>(std::max(1, c.tables.units[target->type].hits_to_kill));
    return 1;
  }

  float amount = d.amount;
  if (d.attack && d.source) {
    const std::size_t row = ordinal(c.tables.units[d.source->type].attack_class);
    const std::size_t column = ordinal(c.tables.units[target->type].defend_class);
    amount *= r.class_table[row][column];
  }
  switch (d.type) {
    case DamageType::Physical:
      if (target->status & (kEthereal | kPhysicalImmune)) return 0;
      if (d.attack) {
        if (target->status & kAttackImmune) return 0;
        amount = std::max(0.0f, amount - blocked_damage(c, *target)) * target->attack_taken;
      }
      amount *= armor_factor(r, target->armor);
      break;
    case DamageType::Magical:
      if (target->status & kSpellImmune) return 0;
      if (d.source && d.ability >= 0) amount *= 1 + d.source->spell_amp;
      if (d.source) amount *= d.source->dmg_dealt;
      // A barrier takes the damage before the resistance lowers it (public wikis, Pipe of Insight).
      amount = absorb_damage(c, *target, amount, d.type, d.attack) * (1 - target->magic_resist);
      break;
    case DamageType::Pure:
    case DamageType::HpLoss:
      break;
  }
  const bool outgoing = d.source && (d.type == DamageType::Physical || d.type == DamageType::Pure);
  if (outgoing && d.ability >= 0) amount *= 1 + d.source->spell_amp;
  if (outgoing) amount *= d.source->dmg_dealt;
  if (d.type != DamageType::HpLoss) amount *= target->dmg_taken;
  if (is_building(target->kind) && w.due(target->backdoor_until) && target->team < kTeams && d.source &&
      d.source->team != target->team &&
      (c.tables.game->needs_all[target->building - 1u] | c.tables.game->needs_any[target->building - 1u]) != 0)
    amount *= 1 - c.tables.game->backdoor_reduction;
  if (d.type != DamageType::HpLoss && d.type != DamageType::Magical)
    amount = absorb_damage(c, *target, amount, d.type, d.attack);
  if (amount <= 0 || !target->alive) return 0;

  const float lost = std::min(amount, d.nonlethal ? std::max(target->hp - 1, 0.0f) : target->hp);
  target->hp -= lost;
  if (c.damage_log && target->hero >= 0) log_damage(c, *target, d, lost);
  if (d.source) {
    remember_attacker(c, *target, *d.source);
    const Unit* owner = d.source->hero >= 0 ? d.source : w.get(d.source->owner);
    if (owner && owner->hero >= 0 && target->hero >= 0 && owner->team != target->team)
      w.heroes[owner->hero].damage_dealt += lost;
    const bool steals = !d.attack && !d.hp_removal && d.ability >= 0 && d.type != DamageType::HpLoss;
    if (d.source->spell_lifesteal > 0 && steals && !is_building(target->kind))
      heal(c, *d.source, amount * d.source->spell_lifesteal);
  }
  // Lost health does not count as damage (patch 7.22b on Heartstopper Aura).
  if (d.type != DamageType::HpLoss) {
    if (d.source && !d.attack && !d.hp_removal && d.ability >= 0) on_spell_damage(c, *d.source, *target, amount);
    on_damaged(c, *target, d.source, lost, d);
  }
  // 1e-3: regeneration and rounding must not leave a unit standing with less than a thousandth of a point.
  if (target->alive && target->hp < 1e-3f) kill(c, *target, d.source);
  return amount;
}

void heal(Context& c, Unit& target, float amount) {
  (void)c;
  if (!target.alive || amount <= 0) return;
  target.hp = std::min(target.max_hp, target.hp + amount * target.heal_amp);
}

float take_mana(Unit& target, float amount) {
  const float lost = std::min(target.mana, amount * (1 - target.mana_cost_red));
  target.mana -= lost;
  return lost;
}

void heal_by(Context& c, Handle healer, Unit& target, float amount) {
  const Unit* by = c.world.get(healer);
  heal(c, target, by ? amount * (1 + stat_sum(c.world, *by, Stat::HealGivenAmpPct) / 100) : amount);
}

void give_mana(Context& c, Unit& target, float amount) {
  (void)c;
  if (!target.alive) return;
  target.mana = std::clamp(target.mana + amount, 0.0f, target.max_mana);
}

}  // namespace dota
