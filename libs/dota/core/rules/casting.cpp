#include "rules/casting.hpp"

#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/items.hpp"
#include "effects/program_node.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"
#include "world/loadout.hpp"

namespace dota {
namespace {

bool can_cast_in(const Unit& u, int slot) {
  if (u.status & (kStunned | kHexed)) return false;
  return slot < 16 ? !(u.status & kSilenced) : !(u.status & kMuted);
}

// Each teleport of a team to a place takes longer than the one before it, for a while.
float teleport_channel(const Context& c, const Unit& u, float channel) {
  const GameRules& g = *c.tables.game;
  if (u.team >= kTeams || g.repeat_channel.empty()) return channel;
  const auto& list = c.world.teams[u.team].arrivals;
  const auto own = std::max_element(list.begin(), list.end(), [&](const Arrival& a, const Arrival& b) {
    return (a.hero == u.hero ? a.at : -1e9f) < (b.hero == u.hero ? b.at : -1e9f);
  });
  if (own->hero != u.hero) return channel;
  const auto before = std::count_if(list.begin(), list.end(), [&](const Arrival& a) {
    return &a != &*own && a.anchor == own->anchor && !c.world.due(a.at + g.repeat_window);
  });
  const auto at = std::min(static_cast<std::size_t>(before), g.repeat_channel.size() - 1);
  return std::max(channel, g.repeat_channel[at]);
}

// Boots of Travel keep the scrolls waiting.
void delay_scrolls(Context& c, const Unit& u) {
  const GameRules& g = *c.tables.game;
  if (g.boots_delay_scroll <= 0) return;
  for (int i = 16; i < 16 + item_slots(u); ++i)
    if (ItemState& s = *item_state(c.world, u, i); s.id >= 0 && s.id == g.tp_item)
      s.ready = std::max(s.ready, c.world.time) + g.boots_delay_scroll;
}

void start_cooldown(Context& c, const Unit& u, int slot, const AbilityDef& a, int level, const Unit* target) {
  World& w = c.world;
  if (a.free_on_self && (!target || target == &u)) return;
  const float ready = w.time + cast_number(c, u, a, CastNumber::Cooldown, level) * (1 - u.cooldown_red);
  if (slot < 16) {
    AbilityState& s = *ability_state(w, u, slot);
    if (charge_limit(c, u, a, level) > 0)
      s.charges = static_cast<std::int8_t>(std::max(0, s.charges - 1));
    else
      s.ready = ready;
    return;
  }
  item_state(w, u, slot)->ready = ready;
  if (a.shared_cooldown < 0) return;
  for (int i = 16; i < 16 + item_slots(u); ++i) {
    ItemState& item = *item_state(w, u, i);
    if (item.id < 0) continue;
    const int other = c.tables.items[item.id].ability;
    if (other >= 0 && c.tables.abilities[other].shared_cooldown == a.shared_cooldown)
      item.ready = std::max(item.ready, ready);
  }
}

}  // namespace

Vec2 cast_point_of(const Context& c, const Unit& u, const Order& o) {
  if (o.type == OrderType::CastNoTarget) return u.pos;
  if (o.tree >= 0) return c.tables.map->trees[o.tree].pos;
  if (o.type == OrderType::CastUnit)
    if (const Unit* t = c.world.get(o.target)) return t->pos;
  return o.point;
}

namespace {

// The cast range for this order: that on enemies may be another.
float reach_of(const Context& c, const Unit& u, const AbilityDef& a, int level, const Order& o) {
  if (a.cast_range_enemy > 0 && o.type == OrderType::CastUnit)
    if (const Unit* t = c.world.get(o.target); t && t->team != u.team) return a.cast_range_enemy + u.cast_range;
  return cast_reach(c, u, a, level);
}

}  // namespace

bool cast_in_range(const Context& c, const Unit& u, const AbilityDef& a, int level, const Order& o) {
  float reach = reach_of(c, u, a, level, o);
  if (reach <= 0 || o.type == OrderType::CastNoTarget || a.target == TargetType::Teleport) return true;
  if (o.type == OrderType::CastUnit && o.tree < 0)
    if (const Unit* t = c.world.get(o.target)) reach += u.radius + t->radius;
  return distance(u.pos, cast_point_of(c, u, o)) <= reach;
}

bool may_aim_there(const Context& c, const AbilityDef& a, const Order& o) {
  if (o.type != OrderType::CastPoint) return true;
  const Cell at = cell_of(o.point);
  const MapData& map = *c.tables.map;
  const bool no_ward = !at.inside() || map.no_ward[at.index()];
  return !no_ward || std::none_of(a.program.roots.begin(), a.program.roots.end(),
                                  [&](std::uint16_t r) { return a.program.nodes[r].prim == Prim::PlaceWard; });
}

void cast_now(Context& c, Unit& u, const Order& o) {
  World& w = c.world;
  int level = 0;
  const AbilityDef* a = slot_ability(c, u, o.slot, &level);
  if (!a) return;
  const ItemState* used = item_state(w, u, o.slot);
  const std::int16_t item = used ? used->id : std::int16_t{-1};
  const Unit* target = o.type == OrderType::CastUnit && o.tree < 0 ? w.get(o.target) : nullptr;
  if (!switched_on(c, u, o.slot)) {  // what is switched off costs nothing
    u.mana = std::max(0.0f, u.mana - cast_number(c, u, *a, CastNumber::Mana, level) * (1 - u.mana_cost_red));
    start_cooldown(c, u, o.slot, *a, level, target);
  }
  if (a->target == TargetType::Teleport && u.hero >= 0) w.heroes[u.hero].last_teleport = w.time;
  if (a->target == TargetType::Teleport && item >= 0 && item != c.tables.game->tp_item) delay_scrolls(c, u);
  record_event(c, EventKind::Cast, u, target, static_cast<int>(a - c.tables.abilities.data()),
               static_cast<float>(level));
  before_ability_cast(c, u, *a);
  cast_effect(c, u, o.slot, o);
  on_ability_cast(c, u, *a);
  if (item < 0) return;
  ItemState& held = *item_state(w, u, o.slot);
  if (held.id == item && c.tables.items[item].consumable) {
    held.charges = static_cast<std::int8_t>(held.charges - 1);
    // A channelled one stays, empty, until its channel is over: the channel still refers to its slot.
    if (held.charges <= 0 && !a->channelled) take_item(c, u, o.slot);
  }
}

void run_cast(Context& c, Unit& u) {
  World& w = c.world;
  const Order o = u.order;
  int level = 0;
  const AbilityDef* a = slot_ability(c, u, o.slot, &level);
  if (!a || !castable(c, u, o.slot) || !can_cast_in(u, o.slot) || !may_aim_there(c, *a, o)) {
    end_order(c, u);
    return;
  }
  if (o.tree >= 0 && w.tree_regrow[o.tree] != 0) {  // somebody else felled it
    end_order(c, u);
    return;
  }
  const Unit* target = o.type == OrderType::CastUnit && o.tree < 0 ? w.get(o.target) : nullptr;
  if (o.type == OrderType::CastUnit && o.tree < 0 &&
      (!target || !target->alive || !valid_cast_target(c, u, *a, *target) ||
       (target->team != u.team && u.team < kTeams && !unit_visible(w, u.team, *target)))) {
    end_order(c, u);
    return;
  }
  const Vec2 aim = cast_point_of(c, u, o);
  if (u.act != Act::CastWindup) {
    if (!cast_in_range(c, u, *a, level, o)) {
      if (u.status & kRooted) {
        u.act = Act::Idle;
        return;
      }
      u.act = Act::Walk;
      const float slack = target ? u.radius + target->radius : 0;
      move_towards(c, u, aim, std::max(kArrive, reach_of(c, u, *a, level, o) + slack - 1));
      return;
    }
    u.velocity = Vec2{};
    const bool aimed = o.type != OrderType::CastNoTarget && target != &u && distance(aim, u.pos) > 1;
    if (aimed && a->target != TargetType::Teleport && !turn_towards(c, u, aim)) return;
    u.act = Act::CastWindup;
    u.act_until = w.time + cast_number(c, u, *a, CastNumber::Point, level);
  }
  if (target && !a->cast_range_buffer.empty() && u.act == Act::CastWindup) {
    const float reach = cast_reach(c, u, *a, level) + a->at(a->cast_range_buffer, level);
    if (distance(aim, u.pos) > reach + u.radius + target->radius) {  // it went too far: after it again
      u.act = Act::Idle;
      return;
    }
  }
  if (!w.due(u.act_until)) return;
  const bool channelled = a->channelled;
  float channel = cast_number(c, u, *a, CastNumber::Channel, level);
  cast_now(c, u, o);
  if (!u.alive) return;
  if (a->target == TargetType::Teleport) channel = teleport_channel(c, u, channel);
  if (channelled && channel > 0) {
    u.act = Act::Channel;
    u.act_until = w.time + channel;
    return;
  }
  end_order(c, u);
}

void run_channel(Context& c, Unit& u) {
  World& w = c.world;
  int level = 0;
  const AbilityDef* a = slot_ability(c, u, u.order.slot, &level);
  const bool rooted_out = a && a->root_disables && (u.status & kRooted);
  if (!a || !can_cast_in(u, u.order.slot) || (u.status & kForcedMotion) || rooted_out) {
    channel_end(c, u, false);
    end_order(c, u);
    return;
  }
  if (!w.due(u.act_until)) return;
  channel_end(c, u, true);
  if (u.act == Act::Channel) end_order(c, u);
}

}  // namespace dota
