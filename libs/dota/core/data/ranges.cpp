// Allowed ranges of the numbers in the data on which a loop, a division or an array index of the core depends.
// They are wider than any patch of the game: a value outside of its range is a mistake, or would make the core
// hang.
#include <cstdio>

#include "data/loading.hpp"

namespace dota {

namespace {

struct Range {
  const char* key;  // in the entry; dotted for what lies deeper: "passive.every_s"
  double least, most;
};

constexpr double kFarthest = 100'000;  // world units
constexpr double kLongest = 100'000;   // seconds: a day
constexpr double kSoonest = 0.01;      // seconds: the shortest period
constexpr double kMost = 1'000'000;    // hit points, gold, experience

// Units and heroes: heroes.json has other names for some of them.
constexpr Range kBodies[] = {{"hp", 1, kMost},
                             {"base_hp", 1, kMost},
                             {"mana", 0, kMost},
                             {"base_mana", 0, kMost},
                             {"hp_regen", 0, kMost},
                             {"base_hp_regen", 0, kMost},
                             {"mana_regen", 0, kMost},
                             {"base_mana_regen", 0, kMost},
                             {"armor", -1000, 1000},
                             {"base_armor", -1000, 1000},
                             {"magic_resist", -1000, 100},
                             {"base_magic_resist", -1000, 100},
                             {"level", 0, 30},
                             {"dmg_min", 0, kMost},
                             {"dmg_max", 0, kMost},
                             {"base_dmg_min", 0, kMost},
                             {"base_dmg_max", 0, kMost},
                             {"attack_time", 0, kLongest},
                             {"base_attack_time", 0.1, kLongest},
                             {"attack_point", 0, kLongest},
                             {"attack_range", 0, kFarthest},
                             {"acquisition_range", 0, kFarthest},
                             {"projectile_speed", 0, kFarthest},
                             {"move_speed", 0, kFarthest},
                             {"turn_rate", 0, 10},
                             {"gold_min", 0, kMost},
                             {"gold_max", 0, kMost},
                             {"xp", 0, kMost},
                             {"vision_day", 0, kFarthest},
                             {"vision_night", 0, kFarthest},
                             {"true_sight", 0, kFarthest},
                             {"hull_radius", 1, 1000},
                             {"hits_to_kill", 1, 1000},
                             {"accuracy_pct", 0, 100},
                             {"role_position", 1, 5}};

// Abilities and items.
constexpr Range kCasts[] = {{"cast_range", 0, kFarthest},
                            {"cast_point", 0, kLongest},
                            {"channel_time", 0, kLongest},
                            {"cooldown", 0, kLongest},
                            {"mana_cost", 0, kMost},
                            {"max_level", 0, 7},
                            {"required_level", 0, 30},
                            {"levels_between", 0, 30},
                            {"slot", 0, 15},
                            {"cost", 0, kMost},
                            {"recipe.cost", 0, kMost},
                            {"initial_charges", 0, 100},
                            {"stock_max", 0, 100},
                            {"stock_initial", 0, 100},
                            {"stock_time", 0, kLongest},
                            {"stock_first_time", 0, kLongest},
                            {"base_level", 1, 7}};

constexpr Range kRules[] = {{"time.day_length_s", kSoonest, kLongest},
                            {"time.night_length_s", kSoonest, kLongest},
                            {"time.pregame_s", 0, kLongest},
                            {"combat.attack_speed_min", 1, 10'000},
                            {"combat.attack_speed_max", 1, 10'000},
                            {"combat.move_speed_min", 0, kFarthest},
                            {"combat.move_speed_max", 0, kFarthest},
                            {"experience.max_level", 1, 25},
                            {"experience.total_for_level", 0, kMost},
                            {"gold.passive.every_s", kSoonest, kLongest},
                            {"gold.death_loss.nw_divisor", 1, kMost},
                            {"buyback.cost.networth_divisor", 1, kMost},
                            {"respawn.by_level", 0, kLongest},
                            {"ability_points.levels_without_point", 0, 30},
                            {"lane_creeps.interval_s", 1, kLongest},
                            {"lane_creeps.upgrade_interval_s", 1, kLongest},
                            {"lane_creeps.siege_every_nth_wave", 1, kMost},
                            {"lane_creeps.max_upgrades", 0, 1000},
                            {"lane_creeps.melee_per_wave", 0, 10'000},  // pairs: from which second, how many
                            {"lane_creeps.ranged_per_wave", 0, 10'000},
                            {"lane_creeps.siege_per_wave", 0, 10'000},
                            {"runes.bounty.every_s", 1, kLongest},
                            {"runes.power.every_s", 1, kLongest},
                            {"runes.bottle.refills_charges", 0, 100},
                            {"neutrals.every_s", 1, kLongest},
                            {"roshan.respawn_min_s", 0, kLongest},
                            {"roshan.respawn_max_s", 0, kLongest},
                            {"teleport.free_scrolls_at_start", 0, 100},
                            {"trees.regrow_s", 0, kLongest}};

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

// The node at a dotted path, or null: whether a key is required is decided where it is read.
const Node* at_path(const Node& n, const std::string& path) {
  const std::size_t dot = path.find('.');
  const Node* child = n.find(path.substr(0, dot));
  return child && dot != std::string::npos ? at_path(*child, path.substr(dot + 1)) : child;
}

void check(const Node& n, const Range& range) {
  for (const Node& each : n.list)
    check(each, range);
  // Written so that NaN is refused.
  if (n.is(Node::Type::Number) && !(n.number >= range.least && n.number <= range.most))
    throw std::runtime_error("key '" + std::string(range.key) + "' is " + text_of(n.number) + ", not from " +
                             text_of(range.least) + " to " + text_of(range.most));
}

template <std::size_t N>
void check_each(const Node& n, const Range (&ranges)[N]) {
  for (const Range& range : ranges)
    if (const Node* found = at_path(n, range.key)) check(*found, range);
}

void check_order(const Node& n, const char* low, const char* high) {
  const Node *least = at_path(n, low), *most = at_path(n, high);
  if (least && most && least->number > most->number)
    throw std::runtime_error("key '" + std::string(low) + "' is " + text_of(least->number) + ", more than '" +
                             high + "', " + text_of(most->number));
}

}  // namespace

void check_bodies(const Node& bodies) {
  reading_each(bodies, [](const std::string&, const Node& n) {
    check_each(n, kBodies);
    check_order(n, "dmg_min", "dmg_max");
    check_order(n, "base_dmg_min", "base_dmg_max");
    check_order(n, "gold_min", "gold_max");
  });
}

void check_casts(const Node& list) {
  reading_each(list, [](const std::string&, const Node& n) { check_each(n, kCasts); });
}

void check_rules(const Node& rules) {
  check_each(rules, kRules);
  check_order(rules, "combat.attack_speed_min", "combat.attack_speed_max");
  check_order(rules, "combat.move_speed_min", "combat.move_speed_max");
  check_order(rules, "roshan.respawn_min_s", "roshan.respawn_max_s");
}

}  // namespace dota
