// What can be cast, on whom, and what a cast does.
#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/items.hpp"
#include "effects/modifiers.hpp"
#include "effects/running.hpp"
#include "effects/triggers.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"

namespace dota {

namespace {

constexpr float kManaSlack = 1e-3f;  // mana is a sum of many small shares

bool usable_item_slot(int i) { return (i >= 0 && i < kInventory) || i == kTpSlot; }

// Items whose uses are counted in charges, consumed or not.
bool spends_charge(const Program& p) {
  return std::any_of(p.roots.begin(), p.roots.end(), [&](std::uint16_t r) {
    return p.nodes[r].given(Role::UsesCharge) || p.nodes[r].prim == Prim::RuneStore;
  });
}
bool spends_all_charges(const Program& p) {
  return std::any_of(p.roots.begin(), p.roots.end(),
                     [&](std::uint16_t r) { return p.nodes[r].given(Role::PerCharge); });
}

void end_invisibility(Context& c, Unit& u) {
  each_modifier(c, u, [&](Modifier& m, const EffectNode& n, int i) {
    if (n.prim != Prim::Invis) return;
    if (n.reappears)
      reappear(c, u, m, n);
    else if (!(m.flags & kModPassive))
      remove_modifier(c, i);
  });
}

// Linken's Sphere and the like take the spell; true when it was blocked.
bool blocked(Context& c, const Invocation& inv) {
  Unit* target = c.world.get(inv.target);
  if (!target || target->team == inv.team) return false;
  bool taken = false;
  each_modifier(c, *target, [&](Modifier& m, const EffectNode& n, int i) {
    if (taken || n.prim != Prim::SpellBlock || !c.world.due(m.ready)) return;
    taken = true;
    const float ready = c.world.time + number(c, invocation_of(c, m), n, Role::Icd);
    m.ready = ready;
    // The block's item goes on cooldown, also when another unit holds it.
    Unit* giver = c.world.get(m.source);
    const int slot = giver && c.tables.abilities[m.ability].is_item >= 0 ? slot_of(c, *giver, m.ability) : -1;
    if (ItemState* item = slot >= 0 ? item_state(c.world, *giver, slot) : nullptr) item->ready = ready;
    if (giver && giver != target) {
      each_modifier(c, *giver, [&](Modifier& own, const EffectNode& o, int) {
        if (o.prim == Prim::SpellBlock && own.ability == m.ability) own.ready = std::max(own.ready, ready);
      });
      remove_modifier(c, i);
    }
  });
  return taken;
}

// Whether Aghanim's Scepter made the spell one of the ground (Gush, Assassinate): no single unit can block it.
bool strikes_the_ground(const Context& c, const Unit& caster, const Program& p) {
  return std::any_of(p.roots.begin(), p.roots.end(), [&](std::uint16_t r) {
    const EffectNode& n = p.nodes[r];
    const bool area = n.prim == Prim::LinearWave || (n.prim == Prim::Projectile && n.shape != Shape::None);
    return area && n.scepter == 1 && upgraded(c, &caster, n);
  });
}

// Lotus Orb: the spell is cast on its caster as well, by the one it was aimed at.
void reflect(Context& c, const Invocation& inv, const AbilityDef& a) {
  Unit* target = c.world.get(inv.target);
  Unit* caster = c.world.get(inv.caster);
  if (!target || !caster || target->team == inv.team || a.is_item >= 0) return;
  bool reflects = false;
  each_modifier(c, *target,
                [&](Modifier&, const EffectNode& n, int) { reflects |= n.prim == Prim::SpellReflect; });
  if (!reflects) return;
  Invocation back = inv;
  back.caster = inv.target;
  back.target = inv.caster;
  back.team = target->team;
  back.slot = -1;
  back.point = back.centre = caster->pos;
  for (const std::uint16_t r : a.program.roots) {
    const EffectNode& n = a.program.nodes[r];
    if (!n.passive && n.on == Trigger::Cast) run_node(c, back, r);
  }
}

void end_toggled(Context& c, Unit& u, int ability) {
  each_modifier(c, u, [&](Modifier& m, const EffectNode& n, int i) {
    if (m.ability == ability && n.on == Trigger::Toggle) remove_modifier(c, i);
  });
}

// Switches an ability or item on or off; its "toggle" nodes last while it is on.
void toggle(Context& c, Unit& u, Invocation& inv, int slot) {
  AbilityState* a = ability_state(c.world, u, slot);
  ItemState* item = item_state(c.world, u, slot);
  const bool on = a ? !a->toggled : item && item->toggle == 0;
  if (a) a->toggled = on;
  if (item) item->toggle = on ? 1 : 0;
  if (on) return run_trigger(c, inv, Trigger::Toggle);
  end_toggled(c, u, inv.ability);
}

// Lends the block that an item gives its bearer to an ally, for as long as the bearer is without it.
void lend_spell_block(Context& c, Unit& bearer, const Invocation& inv, const AbilityDef& a) {
  Unit* ally = c.world.get(inv.target);
  if (!ally || ally == &bearer || ally->team != bearer.team) return;
  for (const std::uint16_t r : a.program.roots) {
    const EffectNode& n = a.program.nodes[r];
    if (n.prim != Prim::SpellBlock || !n.transferable) continue;
    const float lasts = number(c, inv, n, Role::Icd);
    if (Modifier* lent = add_modifier(c, *ally, inv, n, r, lasts))
      lent->flags = static_cast<std::uint8_t>(lent->flags & ~(kModDispellable | kModStrong));
    each_modifier(c, bearer, [&](Modifier& own, const EffectNode& o, int) {
      if (o.prim == Prim::SpellBlock && own.ability == a.id) own.ready = c.world.time + lasts;
    });
  }
}

void after_item_use(Context& c, Unit& u, const AbilityDef& a, int slot) {
  ItemState* item = item_state(c.world, u, slot);
  if (!item || item->id != a.is_item) return;
  const Program& p = a.program;
  if (spends_all_charges(p))
    item->charges = 0;
  else if (spends_charge(p) && item->charges > 0)
    --item->charges;
  if (std::any_of(p.roots.begin(), p.roots.end(),
                  [&](std::uint16_t r) { return p.nodes[r].prim == Prim::PlantTree; }))
    return take_item(c, u, slot);
  if (p.levels_with_use && item->toggle < 120) ++item->toggle;
  for (const std::uint16_t r : p.roots)
    if (p.nodes[r].prim == Prim::ToggleStat) {
      item->toggle = static_cast<std::int8_t>((item->toggle + 1) % 3);
      apply_learned(c, u);
    }
}

// Whether the caster's link of that ability is on the target already.
bool linked(const World& w, const Unit& caster, const AbilityDef& a, const Unit& target) {
  const Handle from = w.handle(caster), to = w.handle(target);
  return std::any_of(w.areas_in_use().begin(), w.areas_in_use().end(), [&](const Area& link) {
    return link.active && link.owner == from && link.follow == to && link.ability == a.id &&
           link.node == a.program.single_link;
  });
}

// Whether neither stuns nor taunts keep the unit from it; silences do, and what silences too (hexes, fear).
bool casts_while_disabled(const Context& c, const Unit& u, const AbilityDef& a) {
  return a.program.while_disabled >= 0 && upgraded(c, &u, a.program.nodes[a.program.while_disabled]);
}

}  // namespace

const AbilityDef* slot_ability(const Context& c, const Unit& u, int slot, int* level) {
  if (const AbilityState* s = ability_state(c.world, u, slot)) {
    if (s->id < 0) return nullptr;
    if (level) *level = s->level;
    return &c.tables.abilities[s->id];
  }
  const ItemState* held = item_state(c.world, u, slot);
  if (!held || held->id < 0) return nullptr;
  const ItemState& s = *held;
  const int ability = c.tables.items[s.id].ability;
  if (ability < 0) return nullptr;
  const AbilityDef& a = c.tables.abilities[ability];
  if (level) *level = a.program.levels_with_use ? 1 + s.toggle : a.program.fixed_level;
  return &a;
}

bool switched_on(const Context& c, const Unit& u, int slot) {
  const AbilityState* s = ability_state(c.world, u, slot);
  return s && s->id >= 0 && s->toggled && c.tables.abilities[s->id].toggle;
}

bool castable(const Context& c, const Unit& u, int slot) {
  // Check the unit's own state first: most abilities that cannot be cast are not learned or not ready.
  if (const AbilityState* s = ability_state(c.world, u, slot)) {
    if (s->level <= 0 || !c.world.due(s->ready)) return false;
  } else if (const ItemState* held = item_state(c.world, u, slot)) {
    if (!c.world.due(held->ready) || !c.world.due(held->enabled_at) || held->on_courier) return false;
  }
  int level = 0;
  const AbilityDef* a = slot_ability(c, u, slot, &level);
  if (!a || !u.alive || level <= 0 || a->passive || a->hidden || !a->program.missing.empty()) return false;
  if (u.status & (casts_while_disabled(c, u, *a) ? kHexed : kStunned | kHexed | kTaunted)) return false;
  if ((u.status & (kRooted | kLeashed)) && a->root_disables) return false;
  if (!switched_on(c, u, slot) &&
      u.mana + kManaSlack < cast_number(c, u, *a, CastNumber::Mana, level) * (1 - u.mana_cost_red))
    return false;
  const Program& p = a->program;
  if (slot < 16) {
    const AbilityState& s = *ability_state(c.world, u, slot);
    if (u.status & kSilenced) return false;
    if (p.charges >= 0 && s.charges <= 0 && charge_limit(c, u, *a, level) > 0) return false;
    // An attack ability that is armed already waits for its attack.
    if (a->attack_behavior && (s.toggled || (u.status & kDisarmed))) return false;
    return true;
  }
  if (!usable_item_slot(slot - 16) || (u.status & kMuted)) return false;
  const ItemState& s = *item_state(c.world, u, slot);
  const ItemDef& item = c.tables.items[s.id];
  const bool counted = item.requires_charges || (item.consumable && item.initial_charges > 0) ||
                       spends_charge(p) || spends_all_charges(p);
  const bool stored = s.toggle > 0 && std::any_of(p.roots.begin(), p.roots.end(), [&](std::uint16_t r) {
                        return p.nodes[r].prim == Prim::RuneStore;
                      });
  if (counted && s.charges <= 0 && !stored) return false;
  for (const std::uint16_t r : p.roots) {
    const Value* v = p.nodes[r].value(Role::DisabledAfterDamageByPlayer);
    if (v && !c.world.due(u.last_damaged_by_player + v->base.at(level))) return false;
  }
  return true;
}

bool valid_cast_target(const Context& c, const Unit& caster, const AbilityDef& a, const Unit& target) {
  if (!target.alive || target.kind == UnitKind::None || target.kind == UnitKind::Ward ||
      target.kind == UnitKind::Courier)
    return false;
  const bool ally = target.team == caster.team;
  // A tango is eaten from a tree, or handed to an allied hero.
  if (a.target_tree)
    return ally && target.hero >= 0 &&
           std::any_of(a.program.roots.begin(), a.program.roots.end(),
                       [&](std::uint16_t r) { return a.program.nodes[r].prim == Prim::ItemTransferCharge; });
  if (ally ? !a.target_friendly : !a.target_enemy) return false;
  if (ally && a.target_ally_self && &target != &caster) return false;
  if (a.blinks_to_target && &target == &caster) return false;
  const bool hero = target.kind == UnitKind::Hero;
  if (is_building(target.kind) ? !a.target_building : hero ? !a.target_hero : !a.target_basic) return false;
  if (!a.target_ancients && c.tables.units[target.type].ancient) return false;
  if (target.status & (kBanished | kUntargetable)) return false;
  if ((target.status & kInvulnerable) && !a.target_invulnerable) return false;
  if (ally) return a.target_immune_allies || !(target.status & kSpellImmune);
  if ((target.status & kSpellImmune) && !a.pierces_immunity && !a.target_immune_enemies &&
      !a.program.pierces_immunity && !(a.pierces_immunity_scepter && (caster.status & kScepter)))
    return false;
  if (a.program.single_link >= 0 && linked(c.world, caster, a, target)) return false;
  return caster.team >= kTeams || unit_visible(c.world, caster.team, target);
}

void cast_effect(Context& c, Unit& caster, int slot, const Order& o) {
  int level = 0;
  const AbilityDef* a = slot_ability(c, caster, slot, &level);
  if (!a || level <= 0) return;
  const Handle self = c.world.handle(caster);
  Invocation inv = invocation_of(c, caster, a->id, level);
  inv.slot = static_cast<std::int8_t>(slot);
  inv.tree = o.tree;
  const Unit* target = o.type == OrderType::CastNoTarget ? nullptr : c.world.get(o.target);
  if (target) inv.target = o.target;
  if (o.type == OrderType::CastPoint) inv.point = o.point;
  if (o.type == OrderType::CastUnit && target) inv.point = target->pos;
  if (o.tree >= 0) inv.point = c.tables.map->trees[o.tree].pos;

  if (!a->toggle) end_invisibility(c, caster);
  if (a->attack_behavior && a->program.orb >= 0) {
    // The next attack carries it; the attack itself is ordered here.
    if (AbilityState* s = ability_state(c.world, caster, slot)) s->toggled = true;
    caster.queued = Order{};
    caster.queued.type = OrderType::AttackUnit;
    caster.queued.target = inv.target;
    return;
  }
  if (a->toggle) return toggle(c, caster, inv, slot);
  if (use_stored_rune(c, caster, slot)) return;
  if (o.type == OrderType::CastUnit && !strikes_the_ground(c, caster, a->program)) {
    if (blocked(c, inv)) return;
    reflect(c, inv, *a);
  }
  // A tango on an ally hands one over instead of being eaten.
  for (const std::uint16_t r : a->program.roots)
    if (a->program.nodes[r].prim == Prim::ItemTransferCharge && target && target->hero >= 0 && target != &caster)
      return run_node(c, inv, r);
  for (const std::uint16_t r : a->program.roots) {
    const EffectNode& n = a->program.nodes[r];
    const bool now = n.on == Trigger::Cast || n.prim == Prim::Proc;  // a proc's trigger is what sets it off later
    if (!n.passive && now && n.prim != Prim::ItemTransferCharge) run_node(c, inv, r);
  }
  if (a->channelled) run_trigger(c, inv, Trigger::Channel);
  Unit* after = c.world.get(self);
  if (after && slot >= 16) {
    lend_spell_block(c, *after, inv, *a);
    after_item_use(c, *after, *a, slot);
  }
}

void channel_end(Context& c, Unit& caster, bool finished) {
  World& w = c.world;
  const Handle self = w.handle(caster);
  Area* destination = nullptr;
  for (Area& a : w.areas_in_use()) {
    if (!a.active || !(a.owner == self)) continue;
    const EffectNode& n = node_of(c, a.ability, a.node);
    if (n.prim == Prim::Teleport) {
      if (!destination) destination = &a;
      a.active = false;
    } else if (n.on == Trigger::Channel) {
      if (!finished || run_ticks(c, a)) end_area(c, a);  // the last tick falls on the end of the channel
    }
  }
  for (int i = 0; i < w.modifiers_end; ++i) {
    const Modifier& m = w.modifiers[i];
    if (m.owner >= 0 && m.node >= 0 && m.source == self && !(m.flags & kModAura) &&
        node_of(c, m.ability, m.node).on == Trigger::Channel) {
      Unit& bearer = w.units[m.owner];
      const bool moved = m.motion.x != 0 || m.motion.y != 0;
      remove_modifier(c, i);
      if (moved && bearer.alive) settle(c, bearer);
    }
  }
  if (!finished) return;
  if (destination) finish_teleport(c, caster, destination->pos);
  int level = 0;
  const AbilityDef* a = slot_ability(c, caster, caster.order.slot, &level);
  if (!a || level <= 0) return;
  Invocation inv = invocation_of(c, caster, a->id, level);
  inv.slot = caster.order.slot;
  inv.point = caster.order.point;
  inv.target = caster.order.target;
  run_trigger(c, inv, Trigger::ChannelEnd);
}

void switch_off(Context& c, Unit& u, int ability) {
  const int slot = slot_of(c, u, ability);
  if (AbilityState* a = ability_state(c.world, u, slot)) a->toggled = false;
  if (ItemState* item = item_state(c.world, u, slot)) item->toggle = 0;
  end_toggled(c, u, ability);
}

void reappear(Context& c, Unit& u, Modifier& m, const EffectNode& n) {
  m.status = 0;
  const Invocation inv = invocation_of(c, m);
  m.ready = c.world.time + number(c, inv, n, Role::Fade);
  if (fill_stats(c, inv, n, u, m)) u.stats_dirty = true;
  refresh_status(c, u);
}

void break_channel(Context& c, Unit& caster) {
  channel_end(c, caster, false);
  caster.act = Act::Idle;
  caster.order = caster.queued;
  caster.queued = Order{};
}

}  // namespace dota
