// The numbers of rules.json that the world's systems read, with the map's derived tables, compiled once at load.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "world/world.hpp"

namespace dota {

// Growth of a lane creep per upgrade.
struct CreepGrowth {
  float hp = 0, dmg = 0, gold = 0;
};

// How much faster or slower a lane's creeps walk in their first seconds.
struct LanePace {
  float speed_pct = 0, seconds = 0;
};

// A value that steps up with game time: pairs of (from second, value), ascending.
struct Steps {
  std::vector<std::pair<float, int>> at;
  int value(float time) const {
    int v = at.empty() ? 0 : at.front().second;
    for (const auto& [from, n] : at)
      if (time >= from) v = n;
    return v;
  }
};

enum class CreepKind : std::uint8_t { Melee, Ranged, Siege, Count };

struct RuneEffect {
  float duration = 0, base_dmg_pct = 0, move_speed = 0, fade = 0, hp_pct_per_s = 0, mana_pct_per_s = 0,
        cooldown_red_pct = 0, mana_cost_red_pct = 0;
};

struct Polyline {
  std::vector<Vec2> points;
};

struct GameRules {
  // attributes: patch 7.21 gives flat regeneration per point, 7.19 a percentage; the absent one is 0.
  float hp_regen_pct_per_str = 0, mana_regen_pct_per_int = 0, primary_factor = 1, primary_damage = 1;
  float attack_range_buffer = 250;

  // experience
  int max_level = 25;
  float hero_xp_base = 0, hero_xp_frac = 0, streak_xp_lo = 0, streak_xp_hi = 0;
  int streak_lo = 3, streak_hi = 10;
  std::vector<float> hero_xp_c1, hero_xp_c2;  // 7.19's formula; empty otherwise
  float deny_denier_xp_frac = 0, deny_denier_gold_frac = 0;

  // gold
  float death_base = 0, death_divisor = 1, kill_base = 0, kill_per_level = 0, first_blood = 0, area_radius = 0;
  std::array<float, 11> streak_gold{};
  std::array<std::array<float, 2>, 5> area{};  // by number of heroes: base, per level
  float comeback_frac = 0, comeback_base = 0, sell_fraction = 0.5f, full_refund = 0;  // seconds after a purchase
  float stack_bonus = 0;  // share of a stacked creep's bounty that its stacker gets besides
  std::array<float, 5> victim_rank{};
  std::array<std::array<float, 5>, 5> killer_rank{};  // by number of heroes, then rank

  // respawn and buyback
  float aegis_delay = 0, aegis_expires = 0, buyback_extra = 0, buyback_base = 0, buyback_divisor = 1,
        buyback_cooldown = 0;

  // lane creeps
  float wave_first = 0, wave_every = 30, siege_first = 300, upgrade_every = 450;
  int siege_nth = 10, max_upgrades = 30;
  Steps melee_count, ranged_count, siege_count;
  std::array<CreepGrowth, 3> growth{}, super_growth{};
  bool side_lanes_peaceful = false;
  // Side lanes are of unequal length: for the first seconds their creeps walk faster or slower, early in the game.
  std::array<std::array<LanePace, 3>, kTeams> lane_pace{};
  float lane_pace_until = 0;          // waves that spawn later walk at their own speed
  int creep_unit[kTeams][3][3] = {};  // team, CreepKind, normal/super/mega -> Tables::units
  float aggro_radius = 0, aggro_duration = 0, aggro_cooldown = 0;

  // towers and buildings
  float tower_range = 0, deaggro_cooldown = 0, aura_radius = 0, aura_tier1 = 0, aura_tier2 = 0,
        armor_per_enemy_hero = 0;
  std::array<float, 5> tower_team_gold{};
  float tower_last_hit = 0, rax_team_gold[2] = {}, filler_gold = 0, shrine_gold = 0;
  float backdoor_reduction = 0, backdoor_regen = 0, backdoor_reactivate = 0, backdoor_radius = 0;
  float glyph_duration = 0, glyph_cooldown = 0, glyph_first = 0;
  bool glyph_on_tier1 = false;
  float scan_radius = 0, scan_duration = 0, scan_cooldown = 0, scan_first = 0;
  float fountain_radius = 0, fountain_hp_pct = 0, fountain_mana_pct = 0, fountain_mana = 0, fountain_linger = 0;
  float shrine_radius = 0, shrine_duration = 0, shrine_hp = 0, shrine_mana = 0, shrine_hp_pct = 0,
        shrine_mana_pct = 0, shrine_cooldown = 0, shrine_first = 0;

  // runes, neutrals, Roshan, wards, courier, inventory
  float bounty_first = 0, bounty_every = 0, bounty_base = 0, bounty_per_min = 0, power_first = 0, power_every = 0;
  std::array<RuneEffect, ordinal(PickupKind::Count)> rune_effects{};
  float bottle_expires = 0;
  int bottle_charges = 0;
  float neutral_first = 0, neutral_every = 0, neutral_chase = 0, neutral_acquire = 0;
  bool neutral_sleep = true, neutral_not_twice = true;
  float roshan_first = 0, roshan_min = 0, roshan_max = 0, roshan_hp_min = 0, roshan_armor_min = 0,
        roshan_dmg_min = 0, roshan_xp_min = 0, roshan_team_gold = 0, roshan_as = 0, roshan_status_res = 0;
  std::array<std::vector<int>, 3> roshan_drops;  // items by first, second, later kill
  int aegis_item = -1, roshan_unit = -1;
  float ward_gold = 0, ward_gold_min = 0, ward_xp = 0, ward_xp_min = 0;
  float courier_flying_at = 0, courier_respawn = 0, courier_gold = 0, courier_gold_flying = 0;
  int courier_unit = -1, flying_courier_unit = -1;
  float backpack_delay = 0, shop_radius = 0;
  std::vector<float> repeat_channel;  // of teleports to one place: the first, the second, ...
  float repeat_window = 0, boots_delay_scroll = 0;
  bool cleave_pierces_armor = false;  // 7.19
  int free_scrolls = 0;
  int tp_item = -1, observer_item = -1, sentry_item = -1, dust_item = -1, tango_item = -1, salve_item = -1,
      clarity_item = -1;
  std::array<int, kStocked> stock_items{};  // gem, smoke, observer, infused raindrop, Tome of Knowledge
  std::uint32_t levels_without_point = 0;

  // Derived from the map's list of buildings: which of them (bits) must have fallen before this one can be hurt.
  std::array<std::uint64_t, 64> needs_all{};  // every one of them must have fallen
  std::array<std::uint64_t, 64> needs_any{};  // one of them must have fallen (0: no such rule)
  float base_radius[kTeams] = {};             // of the fort's surroundings that the third towers bound
  Polyline lane[kTeams][3];
};

// Throws std::runtime_error naming the key that is missing.
std::shared_ptr<GameRules> read_game_rules(const Tables& t);

}  // namespace dota
