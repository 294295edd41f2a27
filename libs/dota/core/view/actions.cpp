#include "view/actions.hpp"

#include <stdexcept>

#include "effects/program_node.hpp"
#include "view/team_view.hpp"

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

}  // namespace

ActionVocabulary::ActionVocabulary(const std::vector<LayoutTable::Action>& actions,
                                   const std::vector<std::string>& casts, const Tables& tables)
    : of_ability(tables.abilities.size(), 0) {
  if (casts.size() != actions.size())
    throw std::runtime_error("the vocabulary has " + std::to_string(actions.size()) +
                             " actions, what is cast is told of " + std::to_string(casts.size()));
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
    if (item != tables.item_index.end())
      def.ability = tables.items[static_cast<std::size_t>(item->second)].ability;
    const auto ability = tables.ability_index.find(cast);
    if (def.ability < 0 && ability != tables.ability_index.end()) def.ability = ability->second;
    if (def.ability < 0)
      throw std::runtime_error("action '" + def.name + "' casts '" + cast +
                               "', which is no ability or item of the game data");
    const AbilityDef& a = tables.abilities[static_cast<std::size_t>(def.ability)];
    def.tree = a.target_tree && def.target == TargetType::None;
    def.hostile = def.target == TargetType::None && only_hostile(a.program);
    of_ability[static_cast<std::size_t>(def.ability)] = static_cast<std::int16_t>(i);
    defs.push_back(def);
  }
  if (defs.size() < kBuiltIns) throw std::runtime_error("the vocabulary of actions lacks built-in ones");
}

int ActionVocabulary::find(const std::string& name) const {
  for (std::size_t i = 0; i < defs.size(); ++i)
    if (defs[i].name == name) return static_cast<int>(i);
  return -1;
}

bool may_attack(const TeamView& v, int attacker, int unit) {
  const SeenUnit& a = v.units[static_cast<std::size_t>(attacker)];
  const SeenUnit& u = v.units[static_cast<std::size_t>(unit)];
  if (attacker == unit || !u.visible || u.hp <= 0 || u.invulnerable) return false;
  if (a.status & (kDisarmed | kHexed | kEthereal | kBanished)) return false;
  if (u.status & (kAttackImmune | kEthereal | kBanished | kUntargetable)) return false;
  if (u.side != Side::Own) return true;
  // Denying (patch 7.21d: creeps below half of their health, towers below a tenth).
  const Rules& r = v.constants.tables->rules;
  switch (u.kind) {
    case UnitKind::LaneCreep:
    case UnitKind::Summon:
      return u.hp < r.deny_creep_frac * u.max_hp;
    case UnitKind::Tower:
      return u.hp < r.deny_tower_frac * u.max_hp;
    default:
      return false;
  }
}

bool may_target(const TeamView& v, const AbilityDef& ability, int caster, int unit) {
  const SeenUnit& u = v.units[static_cast<std::size_t>(unit)];
  if (!u.visible || u.hp <= 0) return false;
  if (u.status & (kBanished | kUntargetable)) return false;
  const bool friendly = u.side == Side::Own;
  if (friendly ? !(ability.target_friendly || ability.target_custom)
               : !(ability.target_enemy || ability.target_custom))
    return false;
  if (friendly && ability.target_ally_self && unit != caster) return false;
  if (friendly && (u.status & kSpellImmune) && !ability.target_immune_allies) return false;
  if (u.invulnerable && !ability.target_invulnerable) return false;
  if (!friendly && (u.status & kSpellImmune) && !ability.pierces_immunity && !ability.target_immune_enemies)
    return false;
  switch (u.kind) {
    case UnitKind::Hero:
      return ability.target_hero || ability.target_custom;
    case UnitKind::LaneCreep:
    case UnitKind::Neutral:
    case UnitKind::Roshan:
    case UnitKind::Summon:
      return ability.target_basic || ability.target_custom;
    case UnitKind::Courier:
    case UnitKind::Ward:
      return false;
    default:
      return ability.target_building;
  }
}

Command decode_action(const std::int16_t* row, const ActionVocabulary& vocabulary,
                      const std::array<std::uint16_t, kMaxAvailable>& available, const SlotTable& slots,
                      bool mirrored, int* slot_out) {
  const int slot = row[0], delay = row[1], unit = row[2], teleport = row[3], x = row[4], y = row[5];
  Command out;
  out.action = kNoop;
  *slot_out = -1;
  if (slot < 0 || slot >= kMaxAvailable) return out;
  const int action = available[static_cast<std::size_t>(slot)];
  if (action == kNoAction) return out;
  const TargetType target = vocabulary.defs[static_cast<std::size_t>(action)].target;
  const auto in_slots = [&](int s) { return s >= 0 && s < slots.count; };
  const bool takes_unit = target == TargetType::Unit || target == TargetType::UnitOffset;
  const bool takes_offset = target != TargetType::None && target != TargetType::Unit;
  if (delay < 0 || delay >= kFramesPerStep) return out;
  if (takes_unit && !in_slots(unit)) return out;
  if (target == TargetType::Teleport && !in_slots(teleport)) return out;
  if (takes_offset && (x < 0 || x >= kOffsets || y < 0 || y >= kOffsets)) return out;
  out.action = static_cast<std::int16_t>(action);
  out.delay = static_cast<std::uint8_t>(delay);
  if (takes_unit) {
    out.target = slots.handle[static_cast<std::size_t>(unit)];
    *slot_out = unit;
  }
  if (target == TargetType::Teleport) {
    out.teleport = slots.handle[static_cast<std::size_t>(teleport)];
    *slot_out = teleport;
  }
  if (takes_offset) {
    const int turn = mirrored ? -1 : 1;
    out.dx = static_cast<std::int8_t>((x - kOffsets / 2) * turn);
    out.dy = static_cast<std::int8_t>((y - kOffsets / 2) * turn);
  }
  return out;
}

}  // namespace dota
