#include "data/stat_names.hpp"

#include <array>
#include <utility>

namespace dota {

namespace {

constexpr std::array<std::pair<const char*, Stat>, 49> kNames{{
    {"ms_pct", Stat::MsPct},
    {"ms_flat", Stat::MsFlat},
    {"ms_set", Stat::MsSet},
    {"ms_base", Stat::MsBase},
    {"as", Stat::As},
    {"armor", Stat::Armor},
    {"armor_pct", Stat::ArmorPct},
    {"mr_pct", Stat::MrPct},
    {"dmg", Stat::Dmg},
    {"dmg_melee", Stat::DmgMelee},
    {"dmg_ranged", Stat::DmgRanged},
    {"dmg_pct", Stat::DmgPct},
    {"base_dmg_pct", Stat::BaseDmgPct},
    {"str", Stat::Str},
    {"agi", Stat::Agi},
    {"int", Stat::Int},
    {"all", Stat::All},
    {"range", Stat::Range},
    {"range_ranged_only", Stat::RangeRangedOnly},
    {"hp_regen", Stat::HpRegen},
    {"mana_regen", Stat::ManaRegen},
    {"mana_regen_plain", Stat::ManaRegenPlain},
    {"hp_regen_pct_max", Stat::HpRegenPctMax},
    {"hp", Stat::HpFlat},
    {"mana", Stat::ManaFlat},
    {"heal_amp_pct", Stat::HealAmpPct},
    {"lifesteal_pct", Stat::LifestealPct},
    {"spell_lifesteal_pct", Stat::SpellLifestealPct},
    {"miss_pct", Stat::MissPct},
    {"evasion_pct", Stat::EvasionPct},
    {"status_res_pct", Stat::StatusResPct},
    {"max_hp_pct", Stat::MaxHpPct},
    {"attack_taken_pct", Stat::AttackTakenPct},
    {"dmg_dealt_pct", Stat::DmgDealtPct},
    {"dmg_taken_pct", Stat::DmgTakenPct},
    {"spell_amp_pct", Stat::SpellAmpPct},
    {"mana_regen_amp_pct", Stat::ManaRegenAmpPct},
    {"hp_regen_amp_pct", Stat::HpRegenAmpPct},
    {"cooldown_red_pct", Stat::CooldownRedPct},
    {"mana_cost_red_pct", Stat::ManaCostRedPct},
    {"cast_range", Stat::CastRange},
    {"gold_per_10s", Stat::GoldPer10s},
    {"xp_pct", Stat::XpPct},
    {"vision", Stat::VisionFlat},
    {"night_vision", Stat::VisionNight},
    {"respawn_red", Stat::RespawnRed},
    {"block", Stat::Block},
    {"turn_rate_set", Stat::TurnRateSet},
    {"heal_given_amp_pct", Stat::HealGivenAmpPct},
}};

}  // namespace

Stat parse_stat(const std::string& name, float* sign) {
  constexpr const char* kMinus = "_minus";
  const bool minus = name.size() > 6 && name.compare(name.size() - 6, 6, kMinus) == 0;
  if (sign) *sign = minus ? -1.0f : 1.0f;
  const std::string stem = minus ? name.substr(0, name.size() - 6) : name;
  for (const auto& [n, s] : kNames)
    if (stem == n) return s;
  return Stat::Count;
}

Stat parse_item_stat(const std::string& name) {
  return name == "ms_pct" ? Stat::BootsMsPct : name == "ms_flat" ? Stat::BootsMsFlat : parse_stat(name, nullptr);
}

}  // namespace dota
