#include "view/actions.hpp"

#include "view/team_view.hpp"

namespace dota {

bool may_attack(const TeamView& v, int attacker, int unit) {
  const SeenUnit& a = v.units[attacker];
  const SeenUnit& u = v.units[unit];
  if (attacker == unit || !u.visible || u.hp <= 0 || u.invulnerable) return false;
  if (a.status & (kDisarmed | kHexed | kEthereal | kBanished)) return false;
  if (u.status & (kAttackImmune | kEthereal | kBanished | kUntargetable)) return false;
  if (u.side != Side::Own) return true;
  // An order on an own creep that cannot be denied still turns lane creeps away.
  if (v.constants.settings->aggro_orders && u.kind == UnitKind::LaneCreep) return true;
  if (u.status & kUndeniable) return false;
  const Rules& r = v.constants.tables->rules;
  switch (u.kind) {
    case UnitKind::LaneCreep:
      return u.hp < r.deny_creep_frac * u.max_hp;
    case UnitKind::Tower:
      return u.hp < r.deny_tower_frac * u.max_hp;
    case UnitKind::Hero:
      return (u.status & kDeniable) && u.hp < r.deny_hero_frac * u.max_hp;
    default:
      return false;
  }
}

bool may_target(const TeamView& v, const AbilityDef& ability, int caster, int unit) {
  const SeenUnit& u = v.units[unit];
  if (!u.visible || u.hp <= 0) return false;
  if (u.status & (kBanished | kUntargetable)) return false;
  const bool friendly = u.side == Side::Own;
  if (friendly ? !ability.target_friendly : !ability.target_enemy) return false;
  if (friendly && ability.target_ally_self && unit != caster) return false;
  if (ability.blinks_to_target && unit == caster) return false;
  if (friendly && (u.status & kSpellImmune) && !ability.target_immune_allies) return false;
  if (u.invulnerable && !ability.target_invulnerable) return false;
  if (!ability.target_ancients && v.constants.tables->units[u.type].ancient) return false;
  if (!friendly && (u.status & kSpellImmune) && !ability.pierces_immunity && !ability.target_immune_enemies &&
      !(ability.pierces_immunity_scepter && (v.units[caster].status & kScepter)))
    return false;
  switch (u.kind) {
    case UnitKind::Hero:
      return ability.target_hero;
    case UnitKind::LaneCreep:
    case UnitKind::Neutral:
    case UnitKind::Roshan:
    case UnitKind::Summon:
      return ability.target_basic;
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
  const int action = available[slot];
  if (action == kNoAction) return out;
  const TargetType target = vocabulary.defs[action].target;
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
    out.target = slots.handle[unit];
    *slot_out = unit;
  }
  if (target == TargetType::Teleport) {
    out.teleport = slots.handle[teleport];
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
