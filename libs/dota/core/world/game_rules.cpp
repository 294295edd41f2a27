#include "world/game_rules.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>

namespace dota {
namespace {

const Node& block(const Rules& rules, const char* name) {
  const Node* inner = rules.root.find("rules");
  return (inner ? *inner : rules.root).at(name);
}

// Number i of the list at a key, which errors name.
float item_num(const Node& list, std::size_t i, const std::string& key) {
  if (i >= list.list.size() || !list.list[i].is(Node::Type::Number))
    throw std::runtime_error("key '" + key + "' lacks a number at place " + std::to_string(i) + " of a list");
  return static_cast<float>(list.list[i].number);
}

Steps steps(const Node& n, const char* key) {
  Steps s;
  for (const Node& pair : n.at(key).list)
    s.at.emplace_back(item_num(pair, 0, key), static_cast<int>(item_num(pair, 1, key)));
  return s;
}

CreepGrowth growth(const Node& upgrades, const char* name) {
  const Node* n = upgrades.find(name);
  return n ? CreepGrowth{n->num("hp", 0), n->num("dmg", 0), n->num("gold", 0)} : CreepGrowth{};
}

std::array<LanePace, 3> lane_paces(const Node& side) {
  std::array<LanePace, 3> paces{};
  static const char* const kLanes[3] = {"top", "mid", "bot"};
  for (std::size_t lane = 0; lane < 3; ++lane)
    if (const Node* pace = side.find(kLanes[lane])) paces[lane] = {pace->num("speed_pct"), pace->num("seconds")};
  return paces;
}

bool flag(const Node& node, const char* key) {
  const Node* n = node.find(key);
  return n && (n->number != 0 || n->string == "true");
}

int find(const std::unordered_map<std::string, int>& index, const std::string& name) {
  const auto it = index.find(name);
  return it == index.end() ? -1 : it->second;
}

int need(const std::unordered_map<std::string, int>& index, const std::string& name, const char* file) {
  const int i = find(index, name);
  if (i < 0) throw std::runtime_error(std::string(file) + ": '" + name + "' is missing");
  return i;
}

void read_heroes_part(GameRules& g, const Rules& r) {
  const Node& at = block(r, "attributes");
  g.hp_regen_pct_per_str = at.num("hp_regen_pct_per_str", 0);
  g.mana_regen_pct_per_int = at.num("mana_regen_pct_per_int", 0);
  g.primary_factor = at.num("primary_benefit_factor");
  g.primary_damage = at.num("primary_damage_per_point");

  const Node& xp = block(r, "experience");
  g.max_level = static_cast<int>(xp.num("max_level"));
  g.deny_denier_xp_frac = xp.num("deny_denier_share_pct") / 100;
  g.deny_denier_gold_frac = xp.num("deny_denier_gold_pct") / 100;
  if (const Node* c1 = xp.find("hero_kill_c1"); c1 && c1->is(Node::Type::List)) {
    const Node& c2 = xp.at("hero_kill_c2");
    for (std::size_t i = 0; i < 5; ++i) {  // by number of heroes
      g.hero_xp_c1.push_back(item_num(*c1, i, "hero_kill_c1"));
      g.hero_xp_c2.push_back(item_num(c2, i, "hero_kill_c2"));
    }
  } else {
    const Node& kill = xp.at("hero_kill");
    g.hero_xp_base = kill.num("base");
    g.hero_xp_frac = kill.num("share_of_victim_xp");
  }
  if (const Node* streak = xp.find("hero_kill_streak_xp"); streak && streak->is(Node::Type::Object)) {
    g.streak_xp_lo = streak->num("3");
    g.streak_xp_hi = streak->num("10");
  }

  const Node& gold = block(r, "gold");
  const Node& death = gold.at("death_loss");
  g.death_base = death.num("base");
  g.death_divisor = death.num("nw_divisor");
  const Node& kill = gold.at("hero_kill_last_hit");
  g.kill_base = kill.num("base");
  g.kill_per_level = kill.num("per_victim_level");
  for (std::size_t n = 3; n < g.streak_gold.size(); ++n)
    g.streak_gold[n] = gold.at("streak_bonus").num(std::to_string(n));
  g.first_blood = gold.num("first_blood_bonus");
  const Node& area = gold.at("hero_kill_area");
  g.area_radius = area.num("radius");
  for (std::size_t n = 0; n < 5; ++n) {
    const std::vector<Node>& by_n = area.at("by_n").list;
    if (by_n.size() <= n) throw std::runtime_error("key 'by_n' has not 5 entries");
    g.area[n] = {item_num(by_n[n], 0, "by_n"), item_num(by_n[n], 1, "by_n")};
    g.victim_rank[n] = item_num(area.at("victim_rank_factor"), n, "victim_rank_factor");
    const Node& ranks = area.at("killer_rank_factor").at(std::to_string(n + 1));
    for (std::size_t k = 0; k <= n; ++k)
      g.killer_rank[n][k] = item_num(ranks, k, "killer_rank_factor");
  }
  const Node& comeback = area.at("comeback_factor");
  g.comeback_frac = comeback.num("share_of_victim_networth");
  g.comeback_base = comeback.num("base");
  g.sell_fraction = gold.num("sell_fraction");
  g.full_refund = gold.num("full_refund_within_s");
  g.stack_bonus = gold.num("stack_bonus_pct") / 100;

  const Node& respawn = block(r, "respawn");
  g.aegis_delay = respawn.num("aegis_delay_s");
  g.buyback_extra = respawn.num("buyback_extra_next_death_s");
  const Node& buyback = block(r, "buyback");
  const Node& cost = buyback.at("cost");
  g.buyback_base = cost.num("base");
  g.buyback_divisor = cost.num("networth_divisor");
  g.buyback_cooldown = buyback.num("cooldown_s");
  for (const Node& level : block(r, "ability_points").at("levels_without_point").list)
    g.levels_without_point |= 1u << static_cast<unsigned>(level.number);
}

void read_creeps_part(GameRules& g, const Rules& r, const Tables& t) {
  const Node& creeps = block(r, "lane_creeps");
  g.wave_first = creeps.num("first_wave_s");
  g.wave_every = creeps.num("interval_s");
  g.melee_count = steps(creeps, "melee_per_wave");
  g.ranged_count = steps(creeps, "ranged_per_wave");
  g.siege_count = steps(creeps, "siege_per_wave");
  g.siege_nth = static_cast<int>(creeps.num("siege_every_nth_wave"));
  g.siege_first = creeps.num("siege_first_s");
  g.upgrade_every = creeps.num("upgrade_interval_s");
  g.max_upgrades = static_cast<int>(creeps.num("max_upgrades"));
  const Node& up = creeps.at("per_upgrade");
  g.growth = {growth(up, "melee"), growth(up, "ranged"), growth(up, "siege")};
  g.super_growth = {growth(up, "super_melee"), growth(up, "super_ranged"), CreepGrowth{}};
  g.side_lanes_peaceful = flag(creeps, "no_aggro_side_lanes_first_wave_until_meeting");
  const Node& pace = creeps.at("lane_pace");
  g.lane_pace_until = pace.num("until_s");
  g.lane_pace = {lane_paces(pace.at("radiant")), lane_paces(pace.at("dire"))};
  static const char* const kSides[kTeams] = {"goodguys", "badguys"};
  static const char* const kStages[3] = {"", "_upgraded", "_upgraded_mega"};
  for (int team = 0; team < kTeams; ++team)
    for (int stage = 0; stage < 3; ++stage) {
      const std::string side = kSides[team], suffix = kStages[stage];
      g.creep_unit[team][0][stage] =
          need(t.unit_index, "npc_dota_creep_" + side + "_melee" + suffix, "units.json");
      g.creep_unit[team][1][stage] =
          need(t.unit_index, "npc_dota_creep_" + side + "_ranged" + suffix, "units.json");
      g.creep_unit[team][2][stage] = need(t.unit_index, "npc_dota_" + side + "_siege" + suffix, "units.json");
    }
  const Node& ai = block(r, "creep_ai");
  g.aggro_radius = ai.num("aggro_radius");
  g.aggro_duration = ai.num("aggro_duration_s");
  g.aggro_cooldown = ai.num("aggro_cooldown_s");
}

void read_buildings_part(GameRules& g, const Rules& r) {
  const Node& tower = block(r, "tower_ai");
  g.tower_range = tower.num("acquire_range");
  g.deaggro_cooldown = tower.num("deaggro_cooldown_s");
  const Node& aura = tower.at("armor_aura");
  g.aura_radius = aura.num("radius");
  g.aura_tier1 = aura.num("tier1");
  g.aura_tier2 = aura.num("tier2_plus");
  g.armor_per_enemy_hero = tower.num("extra_armor_per_enemy_hero");
  const Node& b = block(r, "buildings");
  for (std::size_t tier = 1; tier < 5; ++tier)
    g.tower_team_gold[tier] = item_num(b.at("tower_team_gold_by_tier"), tier - 1, "tower_team_gold_by_tier");
  g.tower_last_hit = b.num("tower_last_hit_gold_avg");
  g.rax_team_gold[0] = b.at("barracks_team_gold").num("melee");
  g.rax_team_gold[1] = b.at("barracks_team_gold").num("ranged");
  g.filler_gold = b.num("filler_last_hit_gold");
  g.shrine_gold = b.num("shrine_gold_team");
  const Node& back = block(r, "backdoor");
  g.backdoor_reduction = back.num("damage_reduction_pct") / 100;
  g.backdoor_regen = back.num("regen_per_s");
  g.backdoor_reactivate = back.num("reactivate_s");
  g.backdoor_radius = back.num("outer_tower_creep_radius");
  const Node& glyph = block(r, "glyph");
  g.glyph_duration = glyph.num("duration_s");
  g.glyph_cooldown = glyph.num("cooldown_s");
  g.glyph_first = glyph.num("ready_first_at_s");
  g.glyph_on_tier1 = flag(glyph, "refreshed_on_tier1_loss");
  const Node& scan = block(r, "scan");
  g.scan_radius = scan.num("radius");
  g.scan_duration = scan.num("duration_s");
  g.scan_cooldown = scan.num("cooldown_s");
  g.scan_first = scan.num("ready_first_at_s");
  const Node& fountain = block(r, "fountain");
  g.fountain_radius = fountain.num("heal_radius");
  g.fountain_hp_pct = fountain.num("heal_pct_hp_per_s");
  g.fountain_mana_pct = fountain.num("heal_pct_mana_per_s");
  g.fountain_mana = fountain.num("flat_mana_per_s");
  g.fountain_linger = fountain.num("linger_s");
  const Node& shrine = block(r, "shrine");
  g.shrine_radius = shrine.num("radius");
  g.shrine_duration = shrine.num("duration_s");
  g.shrine_hp = shrine.num("hp_per_s");
  g.shrine_mana = shrine.num("mana_per_s");
  g.shrine_hp_pct = shrine.num("pct_hp_per_s");
  g.shrine_mana_pct = shrine.num("pct_mana_per_s");
  g.shrine_cooldown = shrine.num("cooldown_s");
  g.shrine_first = shrine.num("initial_cooldown_s");
}

void read_map_part(GameRules& g, const Rules& r, const Tables& t) {
  const Node& runes = block(r, "runes");
  const Node& bounty = runes.at("bounty");
  g.bounty_first = bounty.num("first_s");
  g.bounty_every = bounty.num("every_s");
  const Node& gold = bounty.at("gold_each_team_hero");
  g.bounty_base = gold.num("base");
  g.bounty_per_min = gold.num("per_minute");
  g.power_first = runes.at("power").num("first_s");
  g.power_every = runes.at("power").num("every_s");
  g.bottle_expires = runes.at("bottle").num("expires_s");
  g.bottle_charges = static_cast<int>(runes.at("bottle").num("refills_charges"));
  static const char* const kRunes[] = {"", "double_damage", "haste", "invisibility", "regeneration", "arcane"};
  std::vector<std::string> kinds;
  for (const Node& kind : runes.at("power").at("kinds").list)
    kinds.push_back(kind.string);
  if (!std::is_permutation(kinds.begin(), kinds.end(), std::begin(kRunes) + 1, std::end(kRunes)))
    throw std::runtime_error(
        "runes: key 'power.kinds' is not those that are built: double_damage, haste, "
        "invisibility, regeneration, arcane");
  for (std::size_t k = 1; k < ordinal(PickupKind::Count); ++k) {
    const Node& e = runes.at("effects").at(kRunes[k]);
    g.rune_effects[k] = {e.num("dur"),
                         e.num("base_dmg_pct", 0),
                         e.num("ms", 0),
                         e.num("fade", 0),
                         e.num("hp_pct_per_s", 0),
                         e.num("mana_pct_per_s", 0),
                         e.num("cooldown_red_pct", 0),
                         e.num("mana_cost_red_pct", 0)};
  }
  const Node& neutrals = block(r, "neutrals");
  g.neutral_first = neutrals.num("first_s");
  g.neutral_every = neutrals.num("every_s");
  g.neutral_chase = neutrals.num("leash_chase_s");
  g.neutral_acquire = neutrals.num("acquire_at_day");
  g.neutral_sleep = flag(neutrals, "sleep_at_night");
  g.neutral_not_twice = flag(neutrals, "same_set_not_twice");
  const Node& roshan = block(r, "roshan");
  g.roshan_first = roshan.num("spawn_s");
  g.roshan_min = roshan.num("respawn_min_s");
  g.roshan_max = roshan.num("respawn_max_s");
  g.roshan_hp_min = roshan.num("hp_per_min");
  g.roshan_armor_min = roshan.num("armor_per_min");
  g.roshan_dmg_min = roshan.num("dmg_per_min");
  g.roshan_xp_min = roshan.num("xp_per_min");
  g.roshan_team_gold = roshan.num("team_gold_each");
  g.roshan_as = roshan.num("attack_speed_bonus");
  g.roshan_status_res = roshan.num("status_resist_pct");
  g.aegis_expires = roshan.num("aegis_expires_s");
  for (std::size_t k = 0; k < 3; ++k)
    for (const Node& item : roshan.at("drops").at(std::to_string(k + 1)).list)
      g.roshan_drops[k].push_back(need(t.item_index, item.string, "items.json"));
  g.aegis_item = find(t.item_index, "item_aegis");
  g.roshan_unit = need(t.unit_index, "npc_dota_roshan", "units.json");
  const Node& ward = block(r, "wards").at("observer");
  const Node &ward_gold = ward.at("bounty_gold"), &ward_xp = ward.at("bounty_xp");
  g.ward_gold = ward_gold.num("base");
  g.ward_gold_min = ward_gold.num("per_minute");
  g.ward_xp = ward_xp.num("base");
  g.ward_xp_min = ward_xp.num("per_minute");
  const Node& courier = block(r, "courier");
  g.courier_flying_at = courier.num("flying_at_s");
  g.courier_respawn = courier.num("respawn_s");
  g.courier_gold = courier.num("bounty_gold_each");
  g.courier_gold_flying = courier.num("bounty_gold_each_flying");
  g.courier_unit = need(t.unit_index, "npc_dota_courier", "units.json");
  g.flying_courier_unit = need(t.unit_index, "npc_dota_flying_courier", "units.json");
  g.backpack_delay = block(r, "inventory").num("backpack_swap_delay_s");
  g.shop_radius = block(r, "inventory").at("shops").num("radius");
  const Node& teleport = block(r, "teleport");
  for (std::size_t k = 0; k < teleport.at("repeat_channel_s").list.size(); ++k)
    g.repeat_channel.push_back(item_num(teleport.at("repeat_channel_s"), k, "repeat_channel_s"));
  g.repeat_window = teleport.num("repeat_window_s");
  g.boots_delay_scroll = teleport.num("boots_adds_to_scroll_cooldown_s");
  g.cleave_pierces_armor = flag(block(r, "combat"), "cleave_pierces_armor");
  g.free_scrolls = static_cast<int>(block(r, "teleport").num("free_scrolls_at_start"));
  g.tp_item = find(t.item_index, "item_tpscroll");
  g.observer_item = find(t.item_index, "item_ward_observer");
  g.sentry_item = find(t.item_index, "item_ward_sentry");
  g.dust_item = find(t.item_index, "item_dust");
  g.tango_item = find(t.item_index, "item_tango");
  g.salve_item = find(t.item_index, "item_flask");
  g.clarity_item = find(t.item_index, "item_clarity");
  g.stock_items = {find(t.item_index, "item_gem"), find(t.item_index, "item_smoke_of_deceit"), g.observer_item,
                   find(t.item_index, "item_infused_raindrop"), find(t.item_index, "item_tome_of_knowledge")};
}

}  // namespace

std::shared_ptr<GameRules> read_game_rules(const Tables& t) {
  auto g = std::make_shared<GameRules>();
  read_heroes_part(*g, t.rules);
  read_creeps_part(*g, t.rules, t);
  read_buildings_part(*g, t.rules);
  read_map_part(*g, t.rules, t);
  return g;
}

}  // namespace dota
