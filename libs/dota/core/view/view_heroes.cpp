// Heroes as one team sees them: its own in full, enemies as they are or were last seen.
#include <algorithm>
#include <bit>

#include "effects/abilities.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "rules/heroes.hpp"
#include "rules/inventory.hpp"
#include "view/fill.hpp"

namespace dota {

namespace {

// Fills the fields of a visible hero. `told`: the other team's view of it in this timestep; nullptr if it has
// none.
void fill_hero_body(const Context& c, const HeroState& h, const Unit& u, bool own, const SeenHero* told,
                    SeenHero& s) {
  const World& w = c.world;
  s.mana = u.mana;
  s.max_mana = u.max_mana;
  s.mana_regen = u.mana_regen;
  s.hp_regen = u.hp_regen;
  s.magic_resistance = u.magic_resist;
  s.attributes = {u.str, u.agi, u.intellect};
  s.invisible = (u.status & kInvisible) != 0;
  const bool casting = u.act == Act::CastWindup || u.act == Act::CastBackswing || u.act == Act::Channel;
  s.using_ability = u.alive && casting;
  s.modifier_count = fill_modifiers(w, u, s.modifiers);
  s.teleporting = false;
  s.teleport_target = {};
  s.teleport_time = 0;
  if (u.alive && u.act == Act::Channel) {
    const AbilityDef* a = slot_ability(c, u, u.order.slot, nullptr);
    if (a && a->target == TargetType::Teleport) {
      s.teleporting = true;
      s.teleport_target = u.order.point;
      s.teleport_time = left(u.act_until, w.time);
    }
  }
  const bool exact = own || !c.settings.hide_unseen;  // else castability ignores hidden cooldowns and charges
  if (c.settings.hide_unseen) told = nullptr;
  for (int i = 0; i < kAbilitySlots; ++i) {
    const AbilityState& a = h.abilities[i];
    SeenAbility& o = s.abilities[i];
    o = {a.id,
         a.level,
         a.charges,
         told    ? told->abilities[i].castable
         : exact ? a.id >= 0 && u.alive && castable(c, u, i)
                 : a.level > 0,
         false,
         a.toggled,
         left(a.ready, w.time)};
    if (own && o.castable) o.reach = cast_reach(c, u, c.tables.abilities[a.id], a.level);
    o.in_use = a.toggled || (s.using_ability && u.order.slot == i);
    if (!exact) {
      o.cooldown = 0;
      o.charges = 0;
    }
  }
  for (int i = 0; i < kItemSlots; ++i) {
    SeenItem& o = s.items[i];
    o = SeenItem{};
    // Backpack and stash are shown to no one but the owner's team.
    if (!own && i >= kInventory && i != kTpSlot) continue;
    const ItemState& it = h.items[i];
    if (it.id < 0) continue;
    const bool usable = i < kInventory || i == kTpSlot;
    const bool ready = usable && (told ? told->items[i].castable : !exact || (u.alive && castable(c, u, 16 + i)));
    o = {it.id, it.charges, it.toggle, ready, left(it.ready, w.time), left(it.enabled_at, w.time)};
    if (!exact) {
      o.cooldown = o.enable_time = 0;
      o.charges = 0;
    }
  }
}

void fill_own_hero(const Context& c, const TeamView& v, const HeroState& h, const Unit& u, SeenHero& s) {
  const World& w = c.world;
  s.gold = h.gold + h.reliable;
  s.can_buyback = can_buyback(c, h);
  s.buyback_cost = buyback_cost(c, h);
  s.buyback_cooldown = left(h.buyback_ready, w.time);
  s.lanes_allowed = w.time < h.lanes_until ? h.lanes_allowed : 7;
  s.build_id = h.build_id;
  const HeroDef& def = c.tables.heroes[h.def];
  s.next_item = static_cast<std::int16_t>(next_item(c, h));
  const float order = static_cast<float>(std::max<std::size_t>(def.item_order.size(), 1));
  s.purchase = {static_cast<float>(h.keep[0]),
                static_cast<float>(h.keep[1]),
                static_cast<float>(h.keep[2]),
                static_cast<float>(h.keep[3]),
                left(h.keep_until, std::max(w.time, 0.0f)) / kLongest,
                static_cast<float>(std::popcount(h.build_skip)) / order,
                h.build_insert >= 0 ? 1.0f : 0.0f};
  s.previous = h.previous;
  s.previous_slot = v.previous_slots[&s - v.heroes.data()];
  const std::int8_t turn = v.mirrored ? -1 : 1;
  s.previous_offset = {static_cast<std::int8_t>(h.previous.dx * turn),
                       static_cast<std::int8_t>(h.previous.dy * turn)};
  s.tree_near = false;
  s.rune_near = -1;
  if (!u.alive) return;
  for (int i = 0; i < kInventory; ++i) {
    if (!s.items[i].castable) continue;
    int level = 0;
    const AbilityDef* a = slot_ability(c, u, 16 + i, &level);
    if (!a) continue;
    s.items[i].reach = cast_reach(c, u, *a, level);
    if (a->target_tree)
      s.tree_near = s.tree_near || tree_near(w, *c.tables.map, u.pos, cast_reach(c, u, *a, level) + kWalkMargin);
  }
  float nearest = kWalkMargin;
  for (int i = 0; i < kMaxPickups; ++i) {
    const SeenPickup& p = v.pickups[i];
    if (p.status != 1 || distance(p.pos, u.pos) > nearest) continue;
    nearest = distance(p.pos, u.pos);
    s.rune_near = static_cast<std::int8_t>(i);
  }
}
}  // namespace

void fill_heroes(const Context& c, TeamView& v, const TeamView* other) {
  const World& w = c.world;
  const int n = v.heroes_per_team;
  // Returns the other team's view of a hero that is its own or visible to it.
  const auto told = [&](int hero) -> const SeenHero* {
    if (!other) return nullptr;
    const SeenHero& s = other->heroes[hero < n ? hero + n : hero - n];
    return hero >= n || s.in_sight ? &s : nullptr;
  };
  for (int i = 0; i < 2 * n; ++i) {
    const bool own = i < n;
    const int team = own ? v.team : 1 - v.team;
    const HeroState& h = w.heroes[team * 5 + i % n];
    SeenHero& s = v.heroes[i];
    s.present = h.in_game;
    s.unit = -1;
    if (!h.in_game) continue;
    const Unit* u = w.get(h.unit);
    s.def = h.def;
    s.deaths = h.deaths;
    s.level = h.level;
    s.alive = u && u->alive;
    s.respawn_time = s.alive ? 0 : left(h.respawn_at, w.time);
    const int index = v.find(h.unit);
    s.in_sight = s.alive && index >= 0;
    if (own) {
      s.unit = static_cast<std::int16_t>(index);
      s.since_seen = 0;
      if (u) {
        fill_hero_body(c, h, *u, true, told(i), s);
        fill_own_hero(c, v, h, *u, s);
      }
      continue;
    }
    const std::size_t e = i - n;
    if (s.in_sight) {
      fill_hero_body(c, h, *u, false, told(i), s);
      v.remembered[e] = v.units[index];
      v.remembered_hp[e] = v.hp_histories[index];
      v.enemy_seen_at[e] = w.time;
      s.unit = static_cast<std::int16_t>(index);
      s.since_seen = 0;
      continue;
    }
    s.since_seen = std::min(w.time - v.enemy_seen_at[e], kLongest);
    s.teleporting = s.using_ability = false;
    SeenUnit& body = v.remembered[e];
    if (body.kind == UnitKind::None) {  // never seen: it began at its fountain, as everyone knows
      const UnitDef& def = c.tables.units[c.tables.heroes[h.def].unit];
      body.kind = UnitKind::Hero;
      body.side = Side::Enemy;
      body.type = static_cast<std::uint16_t>(c.tables.heroes[h.def].unit);
      body.pos = c.tables.map->hero_spawn[team];
      body.hp = body.max_hp = def.hp;
      v.remembered_hp[e].fill(def.hp);
      body.move_speed = def.move_speed;
      body.radius = def.hull_radius;
    }
    body.hero = static_cast<std::int8_t>(i);
    body.visible = body.attacking = false;
    body.attack_target = {};
    body.act = Act::Idle;
    body.velocity = {};
    body.tower_eta = body.ranged_creep_eta = 0;
    body.melee_creeps_attacking = 0;
    if (!s.alive) body.hp = 0;
    s.unit = v.unit_count;
    v.hp_histories[v.unit_count] = v.remembered_hp[e];
    v.units[v.unit_count++] = body;
  }
}

}  // namespace dota
