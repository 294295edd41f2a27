#include <algorithm>
#include <array>
#include <numbers>

#include "data/loading.hpp"

namespace dota {

namespace {

template <std::size_t N>
std::array<float, N> array_of(const Node& n, const std::string& key) {
  const std::vector<float> v = numbers(n, key);
  if (v.size() != N)
    throw std::runtime_error("key '" + key + "' has " + std::to_string(v.size()) + " numbers, not " +
                             std::to_string(N));
  std::array<float, N> out{};
  std::copy(v.begin(), v.end(), out.begin());
  return out;
}

}  // namespace

void load_rules(const Node& rules, Tables& t) {
  Rules& r = t.rules;
  r.root = rules.at("rules");
  const auto block = [&](const char* name, auto&& fill) {
    reading(std::string("rules.json, ") + name, [&] { fill(r.root.at(name)); });
  };
  block("time", [&](const Node& n) {
    r.pregame_s = n.num("pregame_s");
    r.day_length_s = n.num("day_length_s");
    r.night_length_s = n.num("night_length_s");
  });
  block("attributes", [&](const Node& n) {
    r.hp_per_str = n.num("hp_per_str");
    r.hp_regen_per_str = nullable(n, "hp_regen_per_str");
    r.mr_pct_per_str = n.num("magic_resist_pct_per_str");
    r.mana_per_int = n.num("mana_per_int");
    r.mana_regen_per_int = nullable(n, "mana_regen_per_int");
    r.spell_amp_pct_per_int = n.num("spell_amp_pct_per_int");
    r.armor_per_agi = n.num("armor_per_agi");
    r.as_per_agi = n.num("attack_speed_per_agi");
    r.ms_pct_per_agi = n.num("move_speed_pct_per_agi");
  });
  block("armor", [&](const Node& n) {
    r.armor_a = n.num("a");
    r.armor_b = n.num("b");
    r.armor_c = n.num("c");
  });
  block("attack_class_table", [&](const Node& n) {
    const auto columns = strings(n, "cols");
    if (columns != std::vector<std::string>{"basic", "structure", "hero"})
      throw std::runtime_error("key 'cols' is not [basic, structure, hero]");
    const char* rows[] = {"basic", "pierce", "siege", "hero"};
    for (std::size_t i = 0; i < 4; ++i) {
      const auto row = array_of<3>(n, rows[i]);
      std::copy(row.begin(), row.end(), r.class_table[i]);
    }
  });
  block("combat", [&](const Node& n) {
    r.as_min = n.num("attack_speed_min");
    r.as_max = n.num("attack_speed_max");
    r.ms_min = n.num("move_speed_min");
    r.ms_max = n.num("move_speed_max");
    r.action_angle_rad = n.num("action_angle_deg") * std::numbers::pi_v<float> / 180.0f;
    r.uphill_miss_pct = n.num("uphill_miss_pct");
    r.deny_creep_frac = n.num("deny_creep_below_frac");
    r.deny_tower_frac = n.num("deny_tower_below_frac");
    r.deny_hero_frac = n.num("deny_hero_below_frac");
  });
  block("experience", [&](const Node& n) {
    r.xp_for_level = array_of<25>(n, "total_for_level");
    r.xp_radius = n.num("share_radius");
    r.deny_enemy_xp_frac = n.num("deny_enemy_share_pct") / 100.0f;
  });
  block("respawn", [&](const Node& n) { r.respawn_s = array_of<25>(n, "by_level"); });
  block("gold", [&](const Node& n) {
    r.start_gold = n.num("start");
    r.passive_gold = n.at("passive").num("amount");
    r.passive_every_s = n.at("passive").num("every_s");
  });
  block("trees", [&](const Node& n) { r.tree_regrow_s = n.num("regrow_s"); });
}

}  // namespace dota
