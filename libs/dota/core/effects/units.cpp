#include <algorithm>

#include "effects/modifiers.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/spatial.hpp"
#include "world/game_rules.hpp"
#include "world/loadout.hpp"

namespace dota {
namespace {

// Sums of one unit's items, in the order of Stat.
struct StatTotals {
  std::array<float, kStats> v{};
  float evasion_pass = 1, resist_pass = 1, status_pass = 1;  // shares that get through, multiplied over sources
  float& operator[](Stat s) { return v[ordinal(s)]; }
};

// Whether an earlier slot has an item of the same kind that works.
bool held_before(const Context& c, const HeroState& h, int slot) {
  for (int i = 0; i < slot; ++i)
    if (h.items[i].id == h.items[slot].id && c.world.due(h.items[i].enabled_at)) return true;
  return false;
}

void add_items(const Context& c, const HeroState& h, StatTotals& t) {
  for (int slot = 0; slot < kInventory; ++slot) {
    const ItemState& item = h.items[slot];
    if (item.id < 0 || !c.world.due(item.enabled_at)) continue;
    if (c.tables.items[item.id].counts_once && held_before(c, h, slot)) continue;
    for (const auto& [stat, value] : c.tables.items[item.id].stats) {
      switch (stat) {
        case Stat::BootsMsPct:
        case Stat::BootsMsFlat:
          t[stat] = std::max(t[stat], value);
          break;
        case Stat::EvasionPct:
          t.evasion_pass *= 1 - value / 100;
          break;
        case Stat::MrPct:
          t.resist_pass *= 1 - value / 100;
          break;
        case Stat::StatusResPct:
          t.status_pass *= 1 - value / 100;
          break;
        default:
          t[stat] += value;
          break;
      }
    }
  }
}

// Adds the stats of all modifiers in one pass, each combined as stat_sum() does.
void add_modifiers(const World& w, const Unit& u, StatTotals& t) {
  std::array<float, kStats> sum{};
  float evasion = 1, miss = 1, resist = 1, status = 1;
  for (int i = u.modifiers; i >= 0; i = w.modifiers[i].next) {
    const Modifier& m = w.modifiers[i];
    if (!active(u, m)) continue;
    for (const StatChange& x : m.stats)
      switch (x.stat) {
        case Stat::Count:
          break;
        case Stat::MsSet:
        case Stat::MsBase:
        case Stat::BootsMsPct:
        case Stat::BootsMsFlat:
        case Stat::TurnRateSet:
        case Stat::TrueSightR:
          sum[ordinal(x.stat)] = std::max(sum[ordinal(x.stat)], x.value);
          break;
        case Stat::EvasionPct:
          evasion *= 1 - x.value / 100;
          break;
        case Stat::MissPct:
          miss *= 1 - x.value / 100;
          break;
        case Stat::MrPct:
          resist *= 1 - x.value / 100;
          break;
        case Stat::StatusResPct:
          status *= 1 - x.value / 100;
          break;
        default:
          sum[ordinal(x.stat)] += x.value;
          break;
      }
  }
  sum[ordinal(Stat::MissPct)] = 100 * (1 - miss);
  for (const Stat s :
       {Stat::BootsMsPct, Stat::BootsMsFlat, Stat::MsSet, Stat::MsBase, Stat::TurnRateSet, Stat::TrueSightR}) {
    float& value = sum[ordinal(s)];
    t[s] = std::max(t[s], value);
    value = 0;
  }
  for (std::size_t i = 0; i < sum.size(); ++i)
    t.v[i] += sum[i];
  // Uses percentages, the unit of items' values.
  const auto pass = [](float& through, float rest) {
    if (rest != 1) through *= 1 - 100 * (1 - rest) / 100;
  };
  pass(t.evasion_pass, evasion);
  pass(t.resist_pass, resist);
  pass(t.status_pass, status);
}

// A change of the maximum keeps the share that is filled.
void rescale(float& current, float& maximum, float now) {
  if (maximum > 0 && now != maximum) current = current * now / maximum;
  maximum = now;
}

}  // namespace

bool is_enemy(const Unit& a, const Unit& b) { return a.team != b.team; }

std::uint32_t inherent_status(const Context& c, const Unit& u) {
  switch (u.kind) {
    case UnitKind::Ward:
      return kInvisible;
    case UnitKind::Courier:
      return c.tables.units[u.type].move_cap == MoveCap::Fly ? kFlyingVision | kPhased : 0;
    case UnitKind::Fountain:
      return kInvulnerable;
    default:
      return 0;
  }
}

Unit* spawn_unit(Context& c, int unit_type, int team, Vec2 pos, float facing) {
  World& w = c.world;
  int slot = 0;
  const auto taken = [&](int i) {
    return w.units[i].kind != UnitKind::None || (w.freed[i >> 6] >> (i & 63) & 1u);
  };
  while (slot < kMaxUnits && taken(slot))
    ++slot;
  if (slot == kMaxUnits) {
    ++w.dropped[ordinal(StatePool::Units)];
    return nullptr;
  }
  Unit& u = w.units[slot];
  const std::uint16_t generation = static_cast<std::uint16_t>(u.generation + 1);
  u = Unit{};
  const UnitDef& def = c.tables.units[unit_type];
  u.generation = generation;
  set_kind(w, u, def.kind);
  u.team = static_cast<std::uint8_t>(team);
  u.type = static_cast<std::uint16_t>(unit_type);
  u.alive = true;
  u.pos = u.spawn = pos;
  u.facing = facing;
  u.hits_left = static_cast<std::int8_t>(def.hits_to_kill);
  u.status = inherent_status(c, u);
  w.units_end = static_cast<std::int16_t>(std::max<int>(w.units_end, slot + 1));
  if (u.kind != UnitKind::Hero) {
    give_loadout(w, c.tables, u);
    if (u.kind == UnitKind::Neutral || u.kind == UnitKind::Roshan || u.kind == UnitKind::Summon)
      apply_learned(c, u);
  }
  refresh_stats(c, u);
  u.hp = u.max_hp;
  u.mana = u.max_mana;
  u.hp_history.fill(u.hp);
  place_unit(w, u, pos);
  return &u;
}

void remove_unit(Context& c, Unit& u) {
  clear_modifiers(c, u);
  disjoint(c, u);
  World& w = c.world;
  unlist_unit(w, u);
  drop_loadout(w, u);
  u.alive = false;
  set_kind(w, u, UnitKind::None);
  const std::size_t slot = w.handle(u).index;
  w.freed[slot >> 6] |= 1ull << (slot & 63);
  // Rings and waves under way have not struck what is born here next.
  for (int i = 0; i < w.projectiles_end; ++i)
    w.projectiles[i].hit[slot >> 6] &= ~(1ull << (slot & 63));
  while (w.units_end > 0 && w.units[w.units_end - 1].kind == UnitKind::None)
    --w.units_end;
}

void refresh_stats(Context& c, Unit& u) {
  const Rules& r = c.tables.rules;
  const GameRules& g = *c.tables.game;
  const UnitDef& def = c.tables.units[u.type];
  u.stats_dirty = false;

  StatTotals t;
  const HeroState* h = u.hero >= 0 ? &c.world.heroes[u.hero] : nullptr;
  if (h) add_items(c, *h, t);
  if (u.modifiers >= 0) add_modifiers(c.world, u, t);

  float hp = def.hp + u.extra_hp + t[Stat::HpFlat], mana = def.mana + t[Stat::ManaFlat];
  float regen = def.hp_regen + u.extra_hp_regen + t[Stat::HpRegen];
  float mana_regen = def.mana_regen + u.extra_mana_regen + t[Stat::ManaRegen];
  float armor = def.armor + u.extra_armor + u.aura_armor + t[Stat::Armor];
  float base_min = def.dmg_min, base_max = def.dmg_max;
  float speed_bonus = t[Stat::As] + u.extra_as, move_pct = t[Stat::MsPct] + t[Stat::BootsMsPct];
  float resist_pass = (1 - def.magic_resist_pct / 100) * (1 - u.extra_mr / 100) * t.resist_pass;
  float spell_amp = t[Stat::SpellAmpPct];

  if (h) {
    const HeroDef& hero = c.tables.heroes[h->def];
    const float per[3] = {t[Stat::Str], t[Stat::Agi], t[Stat::Int]};
    float total[3];
    for (std::size_t i = 0; i < 3; ++i)
      total[i] = std::max(1.0f, hero.base[i] + hero.gain[i] * static_cast<float>(h->level - 1) + u.extra_attr[i] +
                                    t[Stat::All] + per[i]);
    u.str = total[0];
    u.agi = total[1];
    u.intellect = total[2];
    const float str = hero.primary == Attribute::Str ? u.str * g.primary_factor : u.str;
    const float agi = hero.primary == Attribute::Agi ? u.agi * g.primary_factor : u.agi;
    const float mind = hero.primary == Attribute::Int ? u.intellect * g.primary_factor : u.intellect;
    hp += str * r.hp_per_str;
    mana += mind * r.mana_per_int;
    regen = (regen + str * r.hp_regen_per_str) * (1 + str * g.hp_regen_pct_per_str / 100);
    mana_regen = (mana_regen + mind * r.mana_regen_per_int) * (1 + mind * g.mana_regen_pct_per_int / 100);
    armor += agi * r.armor_per_agi;
    speed_bonus += agi * r.as_per_agi;
    move_pct += agi * r.ms_pct_per_agi;
    resist_pass *= 1 - str * r.mr_pct_per_str / 100;
    spell_amp += mind * r.spell_amp_pct_per_int;
    const float primary = total[ordinal(hero.primary)] * g.primary_damage;
    base_min += primary;
    base_max += primary;
  }

  hp *= 1 + t[Stat::MaxHpPct] / 100;
  rescale(u.hp, u.max_hp, std::max(1.0f, hp));
  rescale(u.mana, u.max_mana, std::max(0.0f, mana));
  u.hp_regen = (regen + u.max_hp * t[Stat::HpRegenPctMax] / 100) * (1 + t[Stat::HpRegenAmpPct] / 100);
  u.mana_regen = mana_regen * (1 + t[Stat::ManaRegenAmpPct] / 100) + t[Stat::ManaRegenPlain];
  u.armor = armor * (1 + t[Stat::ArmorPct] / 100);
  u.magic_resist = 1 - resist_pass;
  if (u.kind == UnitKind::Roshan) t.status_pass *= 1 - g.roshan_status_res / 100;
  u.status_resist = 1 - t.status_pass;
  u.evasion = std::max(0.0f, 1 - t.evasion_pass);
  u.miss = t[Stat::MissPct] / 100;
  u.attack_speed = std::clamp(100 + speed_bonus, r.as_min, r.as_max);
  u.attack_interval = def.attack_time / (u.attack_speed / 100);
  u.attack_point = def.attack_point / (u.attack_speed / 100);
  u.attack_range = def.attack_range + t[Stat::Range] + (def.projectile_speed > 0 ? t[Stat::RangeRangedOnly] : 0);
  const float base_factor = (1 + t[Stat::BaseDmgPct] / 100) * (1 + t[Stat::DmgPct] / 100);
  u.dmg_min = (base_min + u.extra_dmg) * base_factor;
  u.dmg_max = (base_max + u.extra_dmg) * base_factor;
  u.dmg_bonus = (t[Stat::Dmg] + t[def.projectile_speed > 0 ? Stat::DmgRanged : Stat::DmgMelee]) *
                (1 + t[Stat::DmgPct] / 100);
  u.turn_rate = std::max(def.turn_rate, t[Stat::TurnRateSet]);
  u.radius = def.hull_radius;
  u.vision_day = def.vision_day + t[Stat::VisionFlat];
  u.vision_night = def.vision_night + t[Stat::VisionFlat] + t[Stat::VisionNight];
  u.true_sight = std::max(def.true_sight, t[Stat::TrueSightR]);
  u.lifesteal = t[Stat::LifestealPct] / 100;
  u.spell_lifesteal = t[Stat::SpellLifestealPct] / 100;
  u.spell_amp = spell_amp / 100;
  u.heal_amp = 1 + t[Stat::HealAmpPct] / 100;
  u.attack_taken = 1 + t[Stat::AttackTakenPct] / 100;
  u.dmg_dealt = 1 + t[Stat::DmgDealtPct] / 100;
  u.dmg_taken = std::max(0.0f, 1 + t[Stat::DmgTakenPct] / 100);
  u.cooldown_red = t[Stat::CooldownRedPct] / 100;
  u.mana_cost_red = t[Stat::ManaCostRedPct] / 100;
  u.cast_range = t[Stat::CastRange];
  u.gold_per_10s = t[Stat::GoldPer10s];
  u.xp_bonus = t[Stat::XpPct] / 100;
  // A hex replaces the base speed only: bonuses and slows still count (tooltip of Hex).
  const float base_speed = t[Stat::MsBase] > 0 ? t[Stat::MsBase] : def.move_speed + u.extra_ms;
  if (def.move_speed <= 0)
    u.move_speed = 0;
  else if (t[Stat::MsSet] > 0)
    u.move_speed = t[Stat::MsSet];
  else
    u.move_speed = std::clamp((base_speed + t[Stat::MsFlat] + t[Stat::BootsMsFlat]) * (1 + move_pct / 100),
                              r.ms_min, r.ms_max);
}

}  // namespace dota
