// People's orders by kind; growth, and what a team has together. unit_orders.cpp has a hero's body, goods.cpp its
// goods.
#include "play/person_order.hpp"

#include <algorithm>
#include <cmath>

#include "effects/abilities.hpp"
#include "effects/experience.hpp"
#include "map/vision.hpp"
#include "rules/buildings.hpp"
#include "rules/heroes.hpp"
#include "rules/orders.hpp"
#include "rules/scan.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

const char* const kWords[] = {"",         "dead",  "alive",    "stunned",     "silenced", "muted",     "rooted",
                              "disarmed", "mana",  "cooldown", "not_learned", "unseen",   "target",    "range",
                              "gold",     "shop",  "stock",    "full",        "slot",     "item",      "points",
                              "level",    "taken", "courier",  "busy",        "not_held", "game_over", "unknown"};
static_assert(sizeof kWords / sizeof kWords[0] == ordinal(Refusal::Count));

constexpr float kEdge = 8319;  // a place outside of the map stands for the nearest one in it

Refusal learn_rank(Context& c, HeroState& h, const PersonOrder& o, bool apply) {
  if (o.slot < 0 || o.slot >= kAbilitySlots) return Refusal::Slot;
  const int entry = h.abilities[o.slot].id;
  const Refusal r = entry < 0 ? Refusal::Slot : why_not_learn(c, h, entry);
  if (apply && r == Refusal::None) learn_one(c, h, entry);
  return r;
}

Refusal learn_talent(Context& c, HeroState& h, const PersonOrder& o, bool apply) {
  if (o.slot < 0 || o.slot >= 8) return Refusal::Slot;
  const Refusal r = why_not_learn(c, h, -(o.slot + 2));
  if (apply && r == Refusal::None) learn_one(c, h, -(o.slot + 2));
  return r;
}

Refusal come_back(Context& c, HeroState& h, bool apply) {
  const Unit* u = c.world.get(h.unit);
  if (!u) return Refusal::Unknown;
  if (u->alive || h.rising) return Refusal::Alive;
  if (!c.settings.buyback) return Refusal::Unknown;
  if (!c.world.due(h.buyback_ready)) return Refusal::Cooldown;
  if (h.gold + h.reliable < buyback_cost(c, h)) return Refusal::Gold;
  if (!can_buyback(c, h)) return Refusal::Unknown;
  if (apply) buyback(c, h);
  return Refusal::None;
}

Refusal fortify(Context& c, int team, bool apply) {
  if (!c.world.due(c.world.teams[team].glyph_ready)) return Refusal::Cooldown;
  if (apply) use_glyph(c, team);
  return Refusal::None;
}

Refusal look_for_heroes(Context& c, int team, const PersonOrder& o, bool apply) {
  if (!o.aimed) return Refusal::Target;
  if (!c.world.due(c.world.teams[team].scan_ready)) return Refusal::Cooldown;
  if (apply) start_scan(c, team, o.at);
  return Refusal::None;
}

Outcome heal_at_shrine(Context& c, Unit& u, bool apply) {
  const Unit* best = nullptr;
  each_unit<UnitKind::Shrine>(c.world, [&](const Unit& s) {
    if (s.team != u.team || !s.alive || !c.world.due(s.shrine_ready)) return;
    if (!best || distance(s.pos, u.pos) < distance(best->pos, u.pos)) best = &s;
  });
  if (!best) return {Refusal::Cooldown};
  if (distance(best->pos, u.pos) <= c.tables.game->shrine_radius) {
    if (apply) use_shrine(c, u);
    return {};
  }
  if (apply) walk_to(c, u, best->pos);
  return {Refusal::None, true};
}

}  // namespace

const char* word(Refusal r) { return kWords[ordinal(r)]; }

Unit* seen_unit(Context& c, int team, Handle h) {
  if (h.index >= kMaxUnits) return nullptr;
  Unit* u = c.world.get(h);
  return u && u->alive && unit_visible(c.world, team, *u) ? u : nullptr;
}

void walk_to(Context& c, Unit& u, Vec2 goal) {
  Order o;
  o.type = OrderType::MoveTo;
  o.point = goal;
  issue_order(c, u, o);
}

bool moves_hero(PersonKind k) {
  switch (k) {
    case PersonKind::Move:
    case PersonKind::Follow:
    case PersonKind::Attack:
    case PersonKind::AttackMove:
    case PersonKind::Stop:
    case PersonKind::Hold:
    case PersonKind::Cast:
    case PersonKind::Use:
    case PersonKind::Drop:
    case PersonKind::Pickup:
    case PersonKind::Shrine:
      return true;
    default:
      return false;
  }
}

Refusal queueable(Context& c, const HeroState& h, const PersonOrder& o) {
  const Unit* u = c.world.get(h.unit);
  if (!u || !u->alive) return Refusal::Dead;
  if (o.aimed && !(std::isfinite(o.at.x) && std::isfinite(o.at.y))) return Refusal::Target;
  if (o.targeted && !seen_unit(c, u->team, o.target)) return Refusal::Unseen;
  const bool place = o.kind == PersonKind::Move || o.kind == PersonKind::AttackMove ||
                     o.kind == PersonKind::Pickup || o.kind == PersonKind::Drop;
  const bool unit = o.kind == PersonKind::Follow || o.kind == PersonKind::Attack;
  return (place && !o.aimed) || (unit && !o.targeted) ? Refusal::Target : Refusal::None;
}

Outcome carry_out(Context& c, HeroState& h, const PersonOrder& given, bool apply) {
  PersonOrder o = given;
  Unit* u = h.in_game ? c.world.get(h.unit) : nullptr;
  if (!u || o.kind >= PersonKind::Count) return {Refusal::Unknown};
  if (o.aimed && !(std::isfinite(o.at.x) && std::isfinite(o.at.y))) return {Refusal::Target};
  o.at = {std::clamp(o.at.x, -kEdge, kEdge), std::clamp(o.at.y, -kEdge, kEdge)};
  switch (o.kind) {
    case PersonKind::Level:
      return {learn_rank(c, h, o, apply)};
    case PersonKind::Talent:
      return {learn_talent(c, h, o, apply)};
    case PersonKind::Buyback:
      return {come_back(c, h, apply)};
    case PersonKind::Glyph:
      return {fortify(c, u->team, apply)};
    case PersonKind::Scan:
      return {look_for_heroes(c, u->team, o, apply)};
    case PersonKind::Buy:
    case PersonKind::Sell:
    case PersonKind::Swap:
    case PersonKind::Courier:
      return order_goods(c, h, o, apply);
    default:
      break;
  }
  if (!u->alive) return {Refusal::Dead};
  if (o.kind == PersonKind::Toggle) return order_unit(c, h, *u, o, apply);
  if (u->status & kTaunted) return {Refusal::Stunned};
  if (o.kind == PersonKind::Shrine) return heal_at_shrine(c, *u, apply);
  if (o.kind == PersonKind::Drop || o.kind == PersonKind::Pickup) return order_goods(c, h, o, apply);
  return order_unit(c, h, *u, o, apply);
}

}  // namespace dota
