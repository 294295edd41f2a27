// People's orders to a hero's body: where it goes, whom it strikes, what it casts.
#include "effects/abilities.hpp"
#include "effects/attack.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"
#include "play/person_order.hpp"
#include "rules/casting.hpp"
#include "rules/orders.hpp"
#include "view/actions.hpp"
#include "world/loadout.hpp"

namespace dota {
namespace {

constexpr float kTreeReach = 300;  // a tree is meant that stands this near to the place aimed at

// The word for castable()'s no.
Refusal why_not_castable(const Context& c, const Unit& u, int slot, const AbilityDef& a, int level) {
  if (castable(c, u, slot)) return Refusal::None;
  if (u.status & (kStunned | kHexed | kTaunted)) return Refusal::Stunned;
  if ((u.status & (kRooted | kLeashed)) && a.root_disables) return Refusal::Rooted;
  if (slot < 16 && (u.status & kSilenced)) return Refusal::Silenced;
  if (slot >= 16 && (u.status & kMuted)) return Refusal::Muted;
  if (a.attack_behavior && slot < 16 && (u.status & kDisarmed)) return Refusal::Disarmed;
  const float mana = cast_number(c, u, a, CastNumber::Mana, level) * (1 - u.mana_cost_red);
  return u.mana < mana ? Refusal::Mana : Refusal::Cooldown;
}

const Unit* building_nearest(const Context& c, int team, Vec2 p) {
  const Unit* best = nullptr;
  each_building(c.world, [&](const Unit& b) {
    if (b.team != team || !b.alive || b.building == 0 || b.kind == UnitKind::Filler) return;
    if (!best || distance(b.pos, p) < distance(best->pos, p)) best = &b;
  });
  return best;
}

// Where the cast goes, into `cast`.
Refusal aim_cast(Context& c, const Unit& u, const AbilityDef& a, int level, const PersonOrder& o, Order& cast) {
  const Unit* target = o.targeted ? seen_unit(c, u.team, o.target) : nullptr;
  if (o.targeted && !target) return Refusal::Unseen;
  if (a.target_tree && !target) {
    const float reach = o.aimed ? kTreeReach : cast_reach(c, u, a, level) + kWalkMargin;
    const int tree = tree_at(c.world, *c.tables.map, o.aimed ? o.at : u.pos, reach);
    if (tree < 0) return Refusal::Target;
    cast.type = OrderType::CastPoint;
    cast.tree = static_cast<std::int16_t>(tree);
    cast.point = c.tables.map->trees[tree].pos;
    return Refusal::None;
  }
  const bool on_ground = a.at_point && o.aimed && !target;  // Lightning Bolt, Impale
  const bool on_unit = !on_ground && (a.target == TargetType::Unit || a.target_tree);
  if (a.target == TargetType::None && !on_unit) {
    cast.type = OrderType::CastNoTarget;
    return Refusal::None;
  }
  if (on_unit) {
    if (!target || !valid_cast_target(c, u, a, *target)) return Refusal::Target;
    cast.type = OrderType::CastUnit;
    cast.target = o.target;
    cast.point = target->pos;
    return Refusal::None;
  }
  if (!o.aimed && !target) return Refusal::Target;
  cast.type = OrderType::CastPoint;
  cast.point = o.aimed ? o.at : target->pos;
  if (a.target == TargetType::Teleport) {
    const bool named = target && target->team == u.team && target->building != 0;
    const Unit* building = named ? target : building_nearest(c, u.team, cast.point);
    if (!building) return Refusal::Target;
    cast.target = c.world.handle(*building);
    if (!o.aimed) cast.point = building->pos;
  }
  return may_aim_there(c, a, cast) ? Refusal::None : Refusal::Target;
}

Refusal give_cast(Context& c, Unit& u, int slot, const PersonOrder& o, bool apply) {
  int level = 0;
  const AbilityDef* a = slot_ability(c, u, slot, &level);
  if (!a || a->passive || a->hidden || !a->program.missing.empty()) return Refusal::Slot;
  if (level <= 0) return Refusal::NotLearned;
  if (const Refusal r = why_not_castable(c, u, slot, *a, level); r != Refusal::None) return r;
  Order cast;
  cast.slot = static_cast<std::int8_t>(slot);
  if (const Refusal r = aim_cast(c, u, *a, level, o, cast); r != Refusal::None) return r;
  if (apply) issue_order(c, u, cast);
  return Refusal::None;
}

Refusal give_attack(Context& c, Unit& u, const PersonOrder& o, bool apply) {
  if (!o.targeted) return Refusal::Target;
  const Unit* enemy = seen_unit(c, u.team, o.target);
  if (!enemy) return Refusal::Unseen;
  if (!can_attack(c, u, *enemy)) return (u.status & kDisarmed) ? Refusal::Disarmed : Refusal::Target;
  // The same target again goes on with the attack, whose windup a new order would begin once more.
  if (!apply || (u.order.type == OrderType::AttackUnit && u.order.target == o.target)) return Refusal::None;
  Order order;
  order.type = OrderType::AttackUnit;
  order.target = o.target;
  issue_order(c, u, order);
  return Refusal::None;
}

Refusal give_follow(Context& c, Unit& u, const PersonOrder& o, bool apply) {
  if (!o.targeted) return Refusal::Target;
  const Unit* leader = seen_unit(c, u.team, o.target);
  if (!leader) return Refusal::Unseen;
  if (leader == &u) return Refusal::Target;
  if (!apply || (u.order.type == OrderType::MoveTo && u.order.target == o.target)) return Refusal::None;
  Order order;
  order.type = OrderType::MoveTo;
  order.target = o.target;
  order.point = leader->pos;
  issue_order(c, u, order);
  return Refusal::None;
}

Refusal toggle_autocast(Context& c, HeroState& h, const PersonOrder& o, bool apply) {
  if (o.slot < 0 || o.slot >= kAbilitySlots) return Refusal::Slot;
  AbilityState& s = h.abilities[o.slot];
  if (s.id < 0 || !c.tables.abilities[s.id].autocast) return Refusal::Slot;
  if (s.level <= 0) return Refusal::NotLearned;
  if (apply) s.autocast = !s.autocast;
  return Refusal::None;
}

Refusal give_place(Context& c, Unit& u, OrderType type, const PersonOrder& o, bool apply) {
  if (!o.aimed) return Refusal::Target;
  if (!apply) return Refusal::None;
  Order order;
  order.type = type;
  order.point = o.at;
  issue_order(c, u, order);
  return Refusal::None;
}

}  // namespace

Outcome order_unit(Context& c, HeroState& h, Unit& u, const PersonOrder& o, bool apply) {
  switch (o.kind) {
    case PersonKind::Move:
      return {give_place(c, u, OrderType::MoveTo, o, apply)};
    case PersonKind::AttackMove:
      return {give_place(c, u, OrderType::AttackMove, o, apply)};
    case PersonKind::Follow:
      return {give_follow(c, u, o, apply)};
    case PersonKind::Attack:
      return {give_attack(c, u, o, apply)};
    case PersonKind::Stop:
    case PersonKind::Hold: {
      Order order;
      order.type = o.kind == PersonKind::Stop ? OrderType::Stop : OrderType::Hold;
      if (apply) issue_order(c, u, order);
      return {};
    }
    case PersonKind::Cast:
      if (o.slot < 0 || o.slot >= kAbilitySlots) return {Refusal::Slot};
      return {give_cast(c, u, o.slot, o, apply)};
    case PersonKind::Use:
      if (o.slot < 0 || (o.slot >= kInventory && o.slot != kTpSlot)) return {Refusal::Slot};
      return {give_cast(c, u, 16 + o.slot, o, apply)};
    case PersonKind::Toggle:
      return {toggle_autocast(c, h, o, apply)};
    default:
      return {Refusal::Unknown};
  }
}

}  // namespace dota
