#include "rules/actions.hpp"

#include <stdexcept>

#include "effects/program_node.hpp"

namespace dota {
namespace {

// Whether everything the ability does when it is cast, it does to enemies.
bool only_hostile(const Program& program) {
  const auto hits = [](const EffectNode& n) { return n.to == Who::Enemies || n.to == Who::HitEnemies; };
  bool any = false;
  for (const std::uint16_t root : program.roots) {
    const EffectNode& n = program.nodes[root];
    if (n.on == Trigger::Cast && !n.passive && !hits(n)) return false;
    any = any || hits(n);
  }
  return any;
}

// An item that restores health or mana and does nothing else.
struct Consumable {
  const char* name;
  bool health, mana;
  std::uint8_t pointless_under;  // as in ActionDef
};
constexpr std::uint8_t kHealing = kByTango | kByFlask | kByBottle;
constexpr Consumable kConsumables[] = {
    {"item_tango", true, false, kHealing},  {"item_tango_single", true, false, kHealing},
    {"item_flask", true, false, kHealing},  {"item_clarity", false, true, kByClarity | kByBottle},
    {"item_bottle", true, true, kByBottle}, {"item_faerie_fire", true, false, 0},
    {"item_magic_stick", true, true, 0},    {"item_magic_wand", true, true, 0},
    {"item_cheese", true, false, 0}};

}  // namespace

ActionVocabulary::ActionVocabulary(const std::vector<ActionRow>& actions, const std::vector<std::string>& casts,
                                   const Tables& tables)
    : of_ability(tables.abilities.size(), 0) {
  if (casts.size() != actions.size())
    throw std::runtime_error("the vocabulary has " + std::to_string(actions.size()) +
                             " actions, but cast names for " + std::to_string(casts.size()));
  for (const std::string& name : tables.modifiers) {
    const auto begins = [&](const char* with) { return name.rfind(with, 0) == 0; };
    const int by = (begins("item_tango") ? kByTango : 0) | (begins("item_flask") ? kByFlask : 0) |
                   (begins("item_bottle") ? kByBottle : 0) | (begins("item_clarity") ? kByClarity : 0);
    restoring.push_back(static_cast<std::uint8_t>(by));
  }
  static constexpr const char* kNames[kBuiltIns] = {"none",  "noop",   "move",    "attack", "follow",
                                                    "glyph", "shrine", "buyback", "pickup"};
  for (std::size_t i = 0; i < actions.size(); ++i) {
    ActionDef def;
    def.name = actions[i].name;
    if (actions[i].target < 0 || actions[i].target > static_cast<int>(TargetType::Ward) || actions[i].mask < 0 ||
        actions[i].mask >= kMaskClasses)
      throw std::runtime_error("action '" + def.name + "' has no such target type or mask class");
    def.target = static_cast<TargetType>(actions[i].target);
    def.mask = static_cast<MaskClass>(actions[i].mask);
    if (i < kBuiltIns) {
      if (def.name != kNames[i])
        throw std::runtime_error("action " + std::to_string(i) + " is '" + def.name + "', the core has '" +
                                 kNames[i] + "' there");
      defs.push_back(def);
      continue;
    }
    const std::string& cast = casts[i];
    if (cast.empty()) {  // of another patch
      defs.push_back(def);
      continue;
    }
    const auto item = tables.item_index.find(cast);
    if (item != tables.item_index.end()) def.ability = tables.items[item->second].ability;
    const auto ability = tables.ability_index.find(cast);
    if (def.ability < 0 && ability != tables.ability_index.end()) def.ability = ability->second;
    if (def.ability < 0)
      throw std::runtime_error("action '" + def.name + "' casts '" + cast +
                               "', which is neither an ability nor an item of the game data");
    const AbilityDef& a = tables.abilities[def.ability];
    def.tree = a.target_tree && def.target == TargetType::None;
    def.hostile = def.target == TargetType::None && only_hostile(a.program);
    for (const Consumable& c : kConsumables) {
      if (def.name != c.name) continue;
      def.restores_health = c.health;
      def.restores_mana = c.mana;
      def.pointless_under = c.pointless_under;
    }
    of_ability[def.ability] = static_cast<std::int16_t>(i);
    defs.push_back(def);
  }
  if (defs.size() < kBuiltIns) throw std::runtime_error("the vocabulary of actions lacks built-in ones");
}

int ActionVocabulary::find(const std::string& name) const {
  for (std::size_t i = 0; i < defs.size(); ++i)
    if (defs[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace dota
