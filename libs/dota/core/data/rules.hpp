// The numbers of rules.json, filled by name at load. A number that a patch does not have (null there) is 0 here; one
// that the file lacks altogether is an error at load. Seconds, world units, gold, fractions unless said.
#pragma once

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "data/node.hpp"

namespace dota {

// A formula such as "110 + 8*victim_level": its constant and the factor of each name.
struct Linear {
  float constant = 0;
  std::vector<std::pair<std::string, float>> factors;
  float of(const std::string& name) const {
    for (const auto& [n, f] : factors)
      if (n == name) return f;
    return 0;
  }
};
// Reads sums of c, c*name, name/c and name; a whole sum may stand in brackets and be divided by a name, which is left
// to the caller. Throws std::runtime_error on anything else.
Linear parse_linear(const std::string& formula);

// Value of a [[from_second, value], ...] schedule at a time.
struct Schedule {
  std::vector<std::pair<float, float>> steps;
  float at(float time) const {
    float v = 0;
    for (const auto& [from, value] : steps)
      if (time >= from) v = value;
    return v;
  }
};

struct CreepUpgrade {
  float hp = 0, dmg = 0, gold = 0;
};

struct Rules {
  Node root;  // the whole tree, for code that runs at load only

  // time, attributes, armor, attack_class_table, combat
  float pregame_s = 0, day_length_s = 0, night_length_s = 0;
  float hp_per_str = 0, hp_regen_per_str = 0, mr_pct_per_str = 0, mana_per_int = 0, mana_regen_per_int = 0,
        spell_amp_pct_per_int = 0, armor_per_agi = 0, as_per_agi = 0, ms_pct_per_agi = 0;
  float hp_regen_pct_per_str = 0, mana_regen_pct_per_int = 0;  // percent of the base regeneration, 7.19 only
  float primary_damage_per_point = 0, primary_benefit_factor = 1;
  float armor_a = 0, armor_b = 0, armor_c = 0;
  float class_table[4][3] = {};  // AttackClass x DefendClass
  float as_min = 0, as_max = 0, ms_min = 0, ms_max = 0, action_angle_rad = 0, uphill_miss_pct = 0;
  float deny_creep_frac = 0, deny_tower_frac = 0, deny_hero_frac = 0;

  // experience: shares and the sum that a hero's death gives, divided among the heroes near
  std::array<float, 25> xp_for_level{}, respawn_s{};
  float xp_radius = 0, deny_enemy_xp_frac = 0, deny_denier_xp_frac = 0, deny_gold_frac = 0;
  struct {
    float constant = 0, per_victim_xp = 0;
    float streak_from = 0, streak_to = 0, streak_from_xp = 0, streak_to_xp = 0;  // linear between the two streaks
    std::vector<float> c1, c2;  // 7.19: per number of heroes near; empty in 7.21d
  } kill_xp;

  // gold
  float start_gold = 0, passive_gold = 0, passive_every_s = 0, passive_from_s = 0;
  struct {
    float death_constant = 0, death_networth_factor = 0;  // unreliable gold lost: constant + networth * factor
    float kill_constant = 0, kill_per_level = 0, first_blood = 0;
    std::array<float, 11> streak{};  // by streak; entries below 3 are 0, the last holds for longer ones
    float area_radius = 0;
    std::array<std::array<float, 2>, 5> area{};  // by heroes near: base, per victim level
    float comeback_networth_factor = 0, comeback_constant = 0;
    std::array<float, 5> victim_rank{};
    std::array<std::array<float, 5>, 5> killer_rank{};  // [heroes near - 1][rank]
    float sell_fraction = 0, full_refund_within_s = 0, stack_bonus_frac = 0;
  } gold;
  float aegis_delay_s = 0;
  struct {
    float constant = 0, networth_factor = 0, cooldown_s = 0, extra_next_death_s = 0;
  } buyback;

  struct {
    float first_wave_s = 0, interval_s = 0, upgrade_interval_s = 0, siege_first_s = 0;
    int max_upgrades = 0, siege_every_nth_wave = 0;
    Schedule melee, ranged, siege;  // units a wave
    CreepUpgrade up_melee, up_ranged, up_siege, up_super_melee, up_super_ranged;
  } lane_creeps;
  struct {
    float aggro_radius = 0, aggro_duration_s = 0, aggro_cooldown_s = 0;
  } creep_ai;
  struct {
    float acquire_range = 0, deaggro_cooldown_s = 0, true_sight = 0, aura_armor_tier1 = 0, aura_armor_tier2_plus = 0,
          aura_radius = 0, extra_armor_per_enemy_hero = 0;
  } tower_ai;
  struct {
    std::array<float, 4> tower_team_gold{};  // by tier
    float tower_last_hit_gold = 0, barracks_gold_melee = 0, barracks_gold_ranged = 0, filler_last_hit_gold = 0,
          shrine_gold_team = 0;
  } buildings;
  struct {
    float damage_reduction = 0, regen_per_s = 0, reactivate_s = 0, creep_radius = 0;
  } backdoor;
  struct {
    float duration_s = 0, cooldown_s = 0, ready_first_at_s = 0;
  } glyph;
  struct {
    float radius = 0, hp_frac_per_s = 0, mana_frac_per_s = 0, flat_mana_per_s = 0, linger_s = 0;
  } fountain;
  struct {
    float radius = 0, duration_s = 0, hp_per_s = 0, mana_per_s = 0, hp_frac_per_s = 0, mana_frac_per_s = 0,
          cooldown_s = 0, initial_cooldown_s = 0;
  } shrine;
  struct {
    float bounty_first_s = 0, bounty_every_s = 0, power_first_s = 0, power_every_s = 0;
    float bounty_gold = 0, bounty_gold_per_minute = 0;  // to each hero of the team
    std::vector<std::string> kinds;                     // power runes, in file order
    float dd_s = 0, dd_base_dmg_pct = 0, haste_s = 0, haste_ms = 0, invis_s = 0, invis_fade_s = 0, regen_s = 0,
          regen_hp_frac_per_s = 0, regen_mana_frac_per_s = 0, arcane_s = 0, arcane_cooldown_pct = 0,
          arcane_mana_cost_pct = 0;
    float bottle_expires_s = 0;
    int bottle_charges = 0;
  } runes;
  struct {
    float first_s = 0, every_s = 0, leash_chase_s = 0, acquire = 0;
  } neutrals;
  struct {
    float spawn_s = 0, respawn_min_s = 0, respawn_max_s = 0, hp_per_min = 0, armor_per_min = 0, dmg_per_min = 0,
          xp_per_min = 0, status_resist = 0, attack_speed_bonus = 0, team_gold_each = 0, aegis_expires_s = 0,
          slam_dmg = 0, slam_dmg_per_min = 0;
    std::array<std::vector<int>, 3> drops;  // item indices by number of the death
  } roshan;
  struct {
    float observer_life_s = 0, observer_vision = 0, observer_bounty_gold = 0, observer_bounty_gold_per_minute = 0,
          observer_bounty_xp = 0, observer_bounty_xp_per_minute = 0, sentry_life_s = 0, sentry_true_sight = 0;
    int hits_to_kill = 0;
  } wards;
  float tree_regrow_s = 0;
  struct {
    float boots_cooldown_s = 0, boots_adds_to_scroll_s = 0, repeat_window_s = 0, arrival_max_dist = 0;
    std::array<float, 5> repeat_channel_s{};  // by teleports to the place within the window
    int free_scrolls_at_start = 0;
    bool interrupted_by_root = false;
  } teleport;
  float backpack_swap_delay_s = 0;
  float shop_range = 0;  // side and secret shops
  struct {
    float cost = 0, hp = 0, ms_ground = 0, flying_at_s = 0, ms_flying = 0, respawn_s = 0, shield_cd_s = 0,
          shield_dur_s = 0, bounty_gold_each = 0, bounty_gold_each_flying = 0;
  } courier;
  std::array<bool, 26> level_gives_point{};  // by hero level 1-25
};

}  // namespace dota
