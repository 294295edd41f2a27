// What modifiers do when their bearer takes or deals damage: shields, blocks, blows returned, dispels.
#include <algorithm>

#include "base/math.hpp"
#include "effects/damage.hpp"
#include "effects/items.hpp"
#include "effects/modifiers.hpp"
#include "effects/triggers.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

bool of_player(const World& w, const Unit& u) {
  if (u.kind == UnitKind::Hero) return true;
  const Unit* owner = w.get(u.owner);
  return owner && owner->kind == UnitKind::Hero;
}

void strike_back(Context& c, Unit& bearer, Unit& attacker, const Invocation& inv, const EffectNode& n) {
  // The attacker first, then others near, up to the number of strikes.
  int left = static_cast<int>(number(c, inv, n, Role::Strikes));
  const UnitList near = select_around(c, inv, n, Who::Enemies, bearer.pos, number(c, inv, n, Role::R));
  Invocation hit = inv;
  const Handle first = c.world.handle(attacker);
  if (affects(c, inv, n, attacker)) {
    ability_damage(c, hit, attacker, number(c, inv, n, Role::Amount), n.type);
    --left;
  }
  for (Unit& u : near) {
    if (left <= 0) break;
    if (!u.alive || c.world.handle(u) == first) continue;
    ability_damage(c, hit, u, number(c, inv, n, Role::Amount), n.type);
    --left;
  }
}

// Aeon Disk: below its threshold its bearer is cleansed and out of the fight for a moment. The blow that set it
// off takes no more health than down to the threshold (patch 7.07c).
void guard(Context& c, Unit& u, Modifier& m, const EffectNode& n, float before) {
  const Invocation inv = invocation_of(c, m);
  const float least = u.max_hp * number(c, inv, n, Role::ThresholdPct) / 100;
  if ((m.flags & kModAura) || !c.world.due(m.ready) || u.hp >= least) return;
  u.hp = std::max(u.hp, std::min(before, least));
  m.ready = c.world.time + number(c, inv, n, Role::Icd);
  const int node = m.node;
  dispel(c, u, true, n.strong);
  if (Modifier* shield = add_modifier(c, u, inv, n, node, number(c, inv, n, Role::Dur), true)) {
    shield->status |= kGuarded;
    mark_dirty(c, u);
  }
}

}  // namespace

void on_spell_damage(Context& c, Unit& source, const Unit& target, float amount) {
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim != Prim::SpellLifesteal || is_building(target.kind)) return;
    const Role r = target.kind == UnitKind::Hero ? Role::HeroPct : Role::CreepPct;
    heal(c, source, amount * number(c, invocation_of(c, m), n, r) / 100);
  });
}

void on_damaged(Context& c, Unit& target, Unit* source, float amount, const DamageInfo& blow) {
  World& w = c.world;
  const bool enemy = source && source->team != target.team;
  const bool player = enemy && of_player(w, *source);
  const bool roshan = source && source->kind == UnitKind::Roshan;
  // What disables Blink Dagger and Heart of Tarrasque (tooltips of both).
  const bool disables = !blow.hp_removal && (player || roshan || (source && source->kind == UnitKind::Fountain));
  if (disables) target.last_damaged_by_player = w.time;
  each_modifier(c, target, [&](Modifier& m, const EffectNode& n, int i) {
    if ((player || roshan) && !blow.hp_removal &&
        (n.ends_on == EndsOn::DamageByPlayerOrRoshan || n.ends_on == EndsOn::DamageOrFull))
      return remove_modifier(c, i);
    if (disables && n.cond == Cond::NoDamageForCooldown)
      m.ready = w.time + number(c, invocation_of(c, m), n, is_ranged(c, target) ? Role::Ranged : Role::Melee);
    if (n.cond == Cond::NotVisibleToEnemy && source && source->team == kNeutralTeam)
      m.ready = std::max(m.ready, w.time + number(c, invocation_of(c, m), n, Role::DisabledByNeutralDamage));
    if (n.prim == Prim::LowHpGuard && player) return guard(c, target, m, n, target.hp + amount);
    if (n.prim == Prim::DamageReturn && enemy && source->alive && !blow.no_reflect) {
      DamageInfo back;
      back.source = &target;
      back.target = source;
      back.amount = blow.amount * number(c, invocation_of(c, m), n, Role::Pct) / 100;
      back.type = blow.type;
      back.no_reflect = true;
      deal_damage(c, back);
      return;
    }
    if (n.prim == Prim::DispelOnDamage && player) {
      const Invocation inv = invocation_of(c, m);
      if (w.time > m.ready + number(c, inv, n, Role::ResetAfter)) m.gathered = 0;
      m.ready = w.time;
      m.gathered += amount;
      if (m.gathered >= number(c, inv, n, Role::Threshold)) {
        m.gathered = 0;
        return dispel(c, target, true, n.strong);
      }
    }
    if (n.prim == Prim::Silence && n.given(Role::EndDamagePctOfTaken)) m.gathered += amount;
    if (!enemy || !source->alive || !target.alive) return;
    const bool hurt = blow.type != DamageType::HpLoss;  // by damage, not by a loss of health
    if (n.prim == Prim::Proc && n.on == Trigger::DamagedByEnemy && hurt && !is_building(source->kind)) {
      Invocation inv = invocation_of(c, target, m.ability, m.level);
      inv.target = w.handle(*source);
      inv.child = true;
      const float reach = number(c, inv, n, Role::MaxRange, nullptr, kGlobal);
      if (distance(source->pos, target.pos) <= reach && affects(c, inv, n, *source) && fires(c, m, n, inv, target))
        run_range(c, inv, n.then_first, n.then_count);
    }
    if (n.prim == Prim::Mod && n.given(Role::Strikes)) {
      const Invocation inv = invocation_of(c, m);
      if (fires(c, m, n, inv, target)) strike_back(c, target, *source, inv, n);
    }
  });
}

float blocked_damage(Context& c, Unit& target) {
  float block = 0;
  each_modifier(c, target, [&](Modifier& m, const EffectNode& n, int) {
    for (const StatChange& s : m.stats)
      if (s.stat == Stat::Block) block = std::max(block, s.value);
    if (n.prim != Prim::DamageBlock) return;
    const Invocation inv = invocation_of(c, m);
    if (!fires(c, m, n, inv, target)) return;
    const Role r = n.given(Role::Amount) ? Role::Amount : is_ranged(c, target) ? Role::Ranged : Role::Melee;
    block = std::max(block, number(c, inv, n, r));
  });
  return block;
}

float absorb_damage(Context& c, Unit& target, float amount, DamageType type, bool attack) {
  each_modifier(c, target, [&](Modifier& m, const EffectNode& n, int i) {
    if (n.prim != Prim::ReductionShield || amount <= 0) return;
    const bool meant = n.against == Against::Attack ? attack : type == DamageType::Magical;
    if (!meant) return;
    if (n.on == Trigger::Auto) {  // a few uses, each against one blow
      const Invocation inv = invocation_of(c, m);
      ItemState* item = item_state(c.world, target, slot_of(c, target, m.ability));
      if (!item || item->charges <= 0 || amount < number(c, inv, n, Role::MinDamage) ||
          !fires(c, m, n, inv, target))
        return;
      amount = std::max(0.0f, amount - number(c, inv, n, Role::PerInstance));
      if (--item->charges <= 0) take_item(c, target, slot_of(c, target, m.ability));
      return;
    }
    const float taken = std::min(amount, m.shield);
    amount -= taken;
    m.shield -= taken;
    if (m.shield > 0) return;
    const std::int16_t ability = m.ability;
    const Handle source = m.source;
    remove_modifier(c, i);
    each_modifier(c, target, [&](Modifier& other, const EffectNode& o, int k) {
      if (o.ends_on == EndsOn::ShieldConsumed && other.ability == ability && other.source == source)
        remove_modifier(c, k);
    });
  });
  return std::max(0.0f, amount);
}

}  // namespace dota
