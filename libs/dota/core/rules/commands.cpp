// What a primary action does to the hero that chose it: from command to orders.
#include "base/math.hpp"
#include "effects/abilities.hpp"
#include "effects/attack.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"
#include "rules/actions.hpp"
#include "rules/buildings.hpp"
#include "rules/heroes.hpp"
#include "rules/orders.hpp"

namespace dota {

namespace {

Vec2 offset(const Context& c, const Command& cmd) {
  return Vec2{static_cast<float>(cmd.dx), static_cast<float>(cmd.dy)} * c.settings.offset_cell;
}

// The unit that was named, if it can still be seen.
Unit* seen_target(Context& c, const Unit& u, Handle h) {
  Unit* target = c.world.get(h);
  if (!target || !target->alive) return nullptr;
  return target->team == u.team || unit_visible(c.world, u.team, *target) ? target : nullptr;
}

void order_move(Context& c, Unit& u, Vec2 goal) {
  Order o;
  o.type = OrderType::MoveTo;
  o.point = goal;
  issue_order(c, u, o);
}

// Without an offset the hero stays with the unit; with one it goes to that place beside it.
void order_follow(Context& c, Unit& u, const Unit& target, const Command& cmd) {
  if (cmd.dx != 0 || cmd.dy != 0) return order_move(c, u, target.pos + offset(c, cmd));
  if (&target == &u) return;
  Order o;
  o.type = OrderType::MoveTo;
  o.target = cmd.target;
  o.point = target.pos;
  if (u.order.type == o.type && u.order.target == o.target) return;
  issue_order(c, u, o);
}

void order_stop(Context& c, Unit& u) {
  Order o;
  o.type = OrderType::Stop;
  issue_order(c, u, o);
}

void order_attack(Context& c, Unit& u, Handle target) {
  const Unit* other = seen_target(c, u, target);
  if (!other) return;
  // An order on an own creep that cannot be denied strikes nothing, but lane creeps turn away from who gives it.
  const bool sheds = c.settings.aggro_orders && other->kind == UnitKind::LaneCreep && other->team == u.team;
  if (!sheds && !can_attack(c, u, *other)) return;
  // The same target again goes on with the attack: a new order would restart its windup every timestep.
  if (u.order.type == OrderType::AttackUnit && u.order.target == target) return;
  Order o;
  o.type = OrderType::AttackUnit;
  o.target = target;
  issue_order(c, u, o);
}

// Returns the slot of the ability, or of the item (16 + i), that can be cast now; -1 if it cannot.
int cast_slot(const Context& c, const HeroState& h, const Unit& u, int ability) {
  for (int i = 0; i < kAbilitySlots; ++i)
    if (h.abilities[i].id == ability) return castable(c, u, i) ? i : -1;
  for (int i = 0; i < kItemSlots; ++i) {
    if (i >= kInventory && i != kTpSlot) continue;
    const int item = h.items[i].id;
    if (item < 0 || c.tables.items[item].ability != ability) continue;
    if (castable(c, u, 16 + i)) return 16 + i;
  }
  return -1;
}

void order_cast(Context& c, HeroState& h, Unit& u, const ActionDef& def, const Command& cmd) {
  const AbilityDef& a = c.tables.abilities[def.ability];
  const bool busy = u.act == Act::CastWindup || u.act == Act::Channel;
  if (busy && u.order.slot >= 0 && slot_ability(c, u, u.order.slot, nullptr) == &a) return;  // it is being cast
  const int slot = cast_slot(c, h, u, def.ability);
  if (slot < 0) return;
  Order o;
  o.slot = static_cast<std::int8_t>(slot);
  switch (def.target) {
    case TargetType::None:
      o.type = OrderType::CastNoTarget;
      if (def.tree) {
        o.type = OrderType::CastPoint;
        o.tree = static_cast<std::int16_t>(
            tree_at(c.world, *c.tables.map, u.pos, cast_reach(c, u, a, 1) + kWalkMargin));
        if (o.tree < 0) return;
        o.point = c.tables.map->trees[o.tree].pos;
        if (u.order.slot == o.slot && u.order.tree == o.tree && u.order.type == o.type) return;
      }
      break;
    case TargetType::Point:
    case TargetType::Ward:
      o.type = OrderType::CastPoint;
      o.point = u.pos + offset(c, cmd);
      // Without a direction the ability goes where the hero looks.
      if (cmd.dx == 0 && cmd.dy == 0 && def.target == TargetType::Point) o.point = u.pos + heading(u.facing);
      break;
    case TargetType::Unit: {
      const Unit* target = seen_target(c, u, cmd.target);
      if (!target || !valid_cast_target(c, u, a, *target)) return;
      o.type = OrderType::CastUnit;
      o.target = cmd.target;
      o.point = target->pos;
      if (u.order.type == o.type && u.order.slot == o.slot && u.order.target == o.target) return;
      break;
    }
    case TargetType::UnitOffset: {
      const Unit* target = seen_target(c, u, cmd.target);
      if (!target) return;
      o.type = OrderType::CastPoint;
      o.point = target->pos + offset(c, cmd);
      break;
    }
    case TargetType::Teleport: {
      const Unit* building = seen_target(c, u, cmd.teleport);
      if (!building || building->team != u.team || building->building == 0) return;
      o.type = OrderType::CastPoint;
      o.target = cmd.teleport;
      o.point = building->pos + offset(c, cmd);
      break;
    }
  }
  issue_order(c, u, o);
}

void order_pickup(Context& c, Unit& u) {
  Order o;
  o.type = OrderType::Pickup;
  float nearest = kWalkMargin;
  for (const Pickup& p : c.world.pickups) {
    if (!p.present || p.known[u.team] != 1 || distance(p.pos, u.pos) > nearest) continue;
    nearest = distance(p.pos, u.pos);
    o.point = p.pos;
  }
  if (nearest >= kWalkMargin) return;
  if (u.order.type == OrderType::Pickup && distance(u.order.point, o.point) < 1) return;
  issue_order(c, u, o);
}

void order_shrine(Context& c, Unit& u) {
  if (use_shrine(c, u)) return;
  const Unit* best = nullptr;
  for (int i = 0; i < c.world.units_end; ++i) {
    const Unit& s = c.world.units[i];
    if (s.kind != UnitKind::Shrine || s.team != u.team || !s.alive || s.shrine_ready > c.world.time) continue;
    if (!best || distance(s.pos, u.pos) < distance(best->pos, u.pos)) best = &s;
  }
  if (best) order_move(c, u, best->pos);
}

}  // namespace

void apply_command(Context& c, HeroState& h, const Command& cmd) {
  if (!c.settings.actions || cmd.action <= kNoop) return;
  const auto& defs = c.settings.actions->defs;
  if (cmd.action >= static_cast<int>(defs.size())) return;
  Unit* u = c.world.get(h.unit);
  if (cmd.action == kBuyback) {
    buyback(c, h);
    return;
  }
  if (!u || !u->alive) return;
  switch (cmd.action) {
    case kMove:
      if (cmd.dx == 0 && cmd.dy == 0)
        order_stop(c, *u);
      else
        order_move(c, *u, u->pos + offset(c, cmd));
      return;
    case kAttack:
      order_attack(c, *u, cmd.target);
      return;
    case kFollow:
      if (const Unit* target = seen_target(c, *u, cmd.target)) order_follow(c, *u, *target, cmd);
      return;
    case kGlyph:
      use_glyph(c, u->team);
      return;
    case kShrine:
      order_shrine(c, *u);
      return;
    case kPickup:
      order_pickup(c, *u);
      return;
    default:
      if (defs[cmd.action].ability >= 0) order_cast(c, h, *u, defs[cmd.action], cmd);
  }
}

}  // namespace dota
