// What happens to modifiers, and through them, when units attack, are hit, kill and die.
#include <algorithm>
#include <cmath>

#include "effects/modifiers.hpp"
#include "world/game_rules.hpp"
#include "world/math.hpp"

namespace dota {

namespace {

bool of_player(const World& w, const Unit& u) {
  if (u.kind == UnitKind::Hero) return true;
  const Unit* owner = w.get(u.owner);
  return owner && owner->kind == UnitKind::Hero;
}

// Whether a chance- and cooldown-gated modifier fires now; starts its cooldown when it does.
bool fires(Context& c, Modifier& m, const EffectNode& n, const Invocation& inv, const Unit& bearer) {
  if (m.ready > c.world.time + kTimeSlack) return false;
  Role r = Role::ChancePct;
  if (n.given(Role::ChanceMeleePct)) r = is_ranged(c, bearer) ? Role::ChanceRangedPct : Role::ChanceMeleePct;
  if (n.given(r) && !pseudo_random(c, number(c, inv, n, r), m.counter)) return false;
  if (n.given(Role::Icd)) m.ready = c.world.time + number(c, inv, n, Role::Icd);
  return true;
}

// Whether attacks carry effects to this unit: enemies that are neither buildings nor wards.
bool takes_attack_effects(const Unit& source, const Unit& target) {
  return source.team != target.team && target.kind != UnitKind::Ward && !is_building(target.kind);
}

void cleave(Context& c, Unit& source, const Unit& target, const Invocation& inv, const EffectNode& n,
            float damage) {
  if (is_ranged(c, source) && n.given(Role::MeleeOnly)) return;
  const float len = number(c, inv, n, Role::Len), w0 = number(c, inv, n, Role::W0),
              w1 = number(c, inv, n, Role::W1);
  const Vec2 from = source.pos;
  Vec2 along = target.pos - from;
  const float far = along.length();
  along = far > 1 ? along * (1 / far) : heading(source.facing);
  UnitList near;
  units_near(c, from, len + w1, near);
  const int struck = c.world.handle(target).index;
  for (int i = 0; i < near.n; ++i) {
    const int id = near.ids[static_cast<std::size_t>(i)];
    Unit& u = c.world.units[static_cast<std::size_t>(id)];
    if (id == struck || !u.alive || !takes_attack_effects(source, u) || !affects(c, inv, n, u)) continue;
    const Vec2 d = u.pos - from;
    const float t = d.dot(along);
    if (t < 0 || t > len || std::fabs(d.x * along.y - d.y * along.x) > w0 + (w1 - w0) * t / len) continue;
    DamageInfo hit;
    hit.source = &source;
    hit.target = &u;
    hit.amount = damage * number(c, inv, n, Role::Pct) / 100;
    if (c.tables.game->cleave_pierces_armor) hit.type = DamageType::Pure;
    deal_damage(c, hit);
  }
}

// Around what was struck: as much everywhere, or less from ring to ring.
void splash(Context& c, Unit& source, const Unit& target, const Invocation& inv, const EffectNode& n,
            float damage) {
  const bool rings = n.given(Role::RFar);
  const float inner = number(c, inv, n, Role::R), middle = number(c, inv, n, Role::RMid);
  UnitList near;
  select_around(c, inv, n, Who::Enemies, target.pos, rings ? number(c, inv, n, Role::RFar) : inner, near);
  const int struck = c.world.handle(target).index;
  const Vec2 centre = target.pos;
  for (int i = 0; i < near.n; ++i) {
    const int id = near.ids[static_cast<std::size_t>(i)];
    if (id == struck) continue;
    Unit& u = c.world.units[static_cast<std::size_t>(id)];
    const float far = distance(u.pos, centre);
    const Role share = far <= inner ? Role::Pct : far <= middle ? Role::PctMid : Role::PctFar;
    DamageInfo hit;
    hit.source = &source;
    hit.target = &u;
    hit.amount = damage * number(c, inv, n, share) / 100;
    if (rings) hit.type = n.type;
    deal_damage(c, hit);
  }
}

// An orb's effects, when it is always on, or armed, or on autocast with mana and cooldown to spare.
bool orb_ready(Context& c, Unit& source, const EffectNode& n, const Invocation& inv) {
  if (!n.given(Role::Autocast)) return true;
  const int slot = slot_of(c, source, inv.ability);
  AbilityState* s = ability_state(c.world, source, slot);
  if (!s) return source.hero < 0;  // a creep's passive: always
  if (s->toggled) {
    s->toggled = false;  // paid for when it was cast
    return true;
  }
  if (!s->autocast || !castable(c, source, slot)) return false;
  const AbilityDef& a = c.tables.abilities[static_cast<std::size_t>(inv.ability)];
  give_mana(c, source, -cast_number(c, source, a, CastNumber::Mana, inv.level) * (1 - source.mana_cost_red));
  s->ready = c.world.time + cast_number(c, source, a, CastNumber::Cooldown, inv.level) * (1 - source.cooldown_red);
  return true;
}

// Buildings take no effects of attacks but of the orbs that say so (Poison Attack with its talent).
void orbs_on_building(Context& c, Unit& source, Unit& target) {
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int) {
    Invocation inv = invocation_of(c, m);
    if (n.prim != Prim::AttackModifier || number(c, inv, n, Role::HitsBuildings) <= 0 || !target.alive) return;
    inv.target = c.world.handle(target);
    inv.point = inv.centre = target.pos;
    inv.child = true;
    if (orb_ready(c, source, n, inv)) run_range(c, inv, n.then_first, n.then_count);
  });
}

void break_regeneration_boots(Context& c, Unit& u) {
  each_modifier(c, u, [&](Modifier& m, const EffectNode& n, int) {
    if (n.cond != Cond::NotBroken) return;
    const Invocation inv = invocation_of(c, m);
    m.ready = c.world.time + number(c, inv, n, Role::BrokenFor);
    if (fill_stats(c, inv, n, u, m)) u.stats_dirty = true;
  });
}

void strike_back(Context& c, Unit& bearer, Unit& attacker, const Invocation& inv, const EffectNode& n) {
  // The attacker first, then others near, up to the number of strikes.
  int left = static_cast<int>(number(c, inv, n, Role::Strikes));
  UnitList near;
  select_around(c, inv, n, Who::Enemies, bearer.pos, number(c, inv, n, Role::R), near);
  Invocation hit = inv;
  const Handle first = c.world.handle(attacker);
  if (affects(c, inv, n, attacker)) {
    ability_damage(c, hit, attacker, number(c, inv, n, Role::Amount), n.type);
    --left;
  }
  for (int i = 0; i < near.n && left > 0; ++i) {
    Unit& u = c.world.units[static_cast<std::size_t>(near.ids[static_cast<std::size_t>(i)])];
    if (!u.alive || c.world.handle(u) == first) continue;
    ability_damage(c, hit, u, number(c, inv, n, Role::Amount), n.type);
    --left;
  }
}

// Attacks on everyone around, beside the one that is made: as strong, and without what attacks carry.
void shoot_all(Context& c, Unit& source, const Unit& target, const Invocation& inv, const EffectNode& n, int node,
               float damage) {
  UnitList near;
  select_around(c, inv, n, Who::Enemies, source.pos, number(c, inv, n, Role::R), near);
  const int struck = c.world.handle(target).index;
  for (int i = 0; i < near.n; ++i) {
    const int id = near.ids[static_cast<std::size_t>(i)];
    const Unit& u = c.world.units[static_cast<std::size_t>(id)];
    if (id == struck || (source.team < kTeams && !unit_visible(c.world, source.team, u))) continue;
    Invocation shot = inv;
    shot.target = c.world.handle(u);
    if (Projectile* p = new_projectile(c, shot, node, Projectile::Kind::Homing, source.pos)) {
      p->speed = number(c, inv, n, Role::ProjSpeed);
      p->goal = u.pos;
      p->damage = damage;
    }
  }
}

// Steals from a hero that was hit: both bear the stacks, each hit adds one and renews the time of all.
void steal(Context& c, Unit& source, Unit& target, const Invocation& inv, const EffectNode& n, int node) {
  for (Unit* u : {&target, &source})
    if (Modifier* m = add_modifier(c, *u, inv, n, node, number(c, inv, n, Role::Dur), true)) {
      if (m->stacks < 255) ++m->stacks;
      if (fill_stats(c, inv, n, *u, *m)) u->stats_dirty = true;
    }
}

// Aeon Disk: below its threshold, and alive, its bearer is cleansed and out of the fight for a moment.
void guard(Context& c, Unit& u, Modifier& m, const EffectNode& n) {
  const Invocation inv = invocation_of(c, m);
  if ((m.flags & kModAura) || m.ready > c.world.time ||
      u.hp >= u.max_hp * number(c, inv, n, Role::ThresholdPct) / 100 || u.hp < 1e-3f)
    return;
  m.ready = c.world.time + number(c, inv, n, Role::Icd);
  const int node = m.node;
  dispel(c, u, true, n.strong);
  if (Modifier* shield = add_modifier(c, u, inv, n, node, number(c, inv, n, Role::Dur), true)) {
    shield->status |= kGuarded;
    mark_dirty(c, u);
  }
}

}  // namespace

float backstab(Context& c, Unit& source, const Unit& target, bool from_anywhere) {
  float extra = 0;
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim != Prim::Backstab) return;
    const Invocation inv = invocation_of(c, m);
    const Vec2 d = source.pos - target.pos;
    const Vec2 back = heading(target.facing) * -1;
    const float within = sin_cos(number(c, inv, n, Role::AngleDeg) * 3.14159265f / 180).cos;
    if (from_anywhere || d.dot(back) >= within * d.length())
      extra += number(c, inv, n, Role::AgiFactor) * source.agi;
  });
  return extra;
}

void on_spell_damage(Context& c, Unit& source, const Unit& target, float amount) {
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim != Prim::SpellLifesteal || is_building(target.kind)) return;
    const Role r = target.kind == UnitKind::Hero ? Role::HeroPct : Role::CreepPct;
    heal(c, source, amount * number(c, invocation_of(c, m), n, r) / 100);
  });
}

void on_attack_start(Context& c, Unit& source, Unit& target, AttackRoll& roll) {
  const bool creature = takes_attack_effects(source, target);
  float best_crit = 100, bonus = 0;
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int i) {
    const Invocation inv = invocation_of(c, m);
    switch (n.prim) {
      case Prim::Crit:
        if (creature && fires(c, m, n, inv, source))
          best_crit = std::max(best_crit, number(c, inv, n, Role::MultPct));
        break;
      case Prim::Quelling:
        // Against creeps, own ones that are denied included.
        if (is_basic(target) && target.kind != UnitKind::Roshan)
          bonus += number(c, inv, n, is_ranged(c, source) ? Role::Ranged : Role::Melee);
        break;
      case Prim::TrueStrikeProc:
        if (creature && fires(c, m, n, inv, source)) {
          roll.true_strike = true;
          if (m.stacks < 255) ++m.stacks;  // its damage waits for the attack to land
        }
        break;
      case Prim::Smoke:
        remove_modifier(c, i);
        break;
      case Prim::MultiAttack:
        if (!creature) break;
        shoot_all(c, source, target, inv, n, m.node, roll.damage);
        if (m.attacks_left > 0 && --m.attacks_left == 0) remove_modifier(c, i);
        break;
      case Prim::Invis: {
        if (n.reappears) {
          reappear(c, source, m, n);
          break;
        }
        if (m.flags & kModPassive) break;
        bonus += number(c, inv, n, Role::BreakBonusDamage);
        Invocation broken = inv;
        broken.target = c.world.handle(target);
        broken.point = broken.centre = target.pos;
        const bool open = m.status != 0;
        remove_modifier(c, i);
        if (open && creature) run_trigger(c, broken, Trigger::InvisBreakAttack);
        break;
      }
      case Prim::NextAttackMod:
        remove_modifier(c, i);
        break;
      case Prim::Mod:
        if (n.given(Role::Attacks) && (!n.unlimited_range || m.aim == c.world.handle(target)) &&
            --m.attacks_left == 0)
          remove_modifier(c, i);
        break;
      default:
        break;
    }
  });
  if (creature)
    each_modifier(c, target, [&](Modifier& m, const EffectNode& n, int) {
      const Invocation inv = invocation_of(c, m);
      if (n.given(Role::AttackersCritPct))
        best_crit = std::max(best_crit, number(c, inv, n, Role::AttackersCritPct));
      if (n.given(Role::AttackersCritPct) && n.given(Role::TrueStrike)) roll.true_strike = true;
    });
  roll.damage = (roll.damage + bonus) * best_crit / 100;
  if (creature) roll.damage += backstab(c, source, target, false);
  roll.crit = roll.crit || best_crit > 100;
}

void on_attack_landed(Context& c, Unit& source, Unit& target, float damage_dealt, float rolled) {
  World& w = c.world;
  if (target.kind == UnitKind::Hero) break_regeneration_boots(c, source);
  break_regeneration_boots(c, target);
  if (source.team != target.team && is_building(target.kind)) orbs_on_building(c, source, target);
  if (!takes_attack_effects(source, target)) return;
  const float damage = rolled >= 0 ? rolled : damage_dealt;
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int) {
    Invocation inv = invocation_of(c, m);
    inv.target = w.handle(target);
    inv.point = inv.centre = target.pos;
    inv.child = true;
    switch (n.prim) {
      case Prim::Cleave:
        if (!is_ranged(c, source)) cleave(c, source, target, inv, n, damage);
        break;
      case Prim::Splash:
        splash(c, source, target, inv, n, damage);
        break;
      default:
        break;
    }
    if (!target.alive) return;
    switch (n.prim) {
      case Prim::Proc:
        if (n.on == Trigger::AttackLanded && affects(c, inv, n, target) && fires(c, m, n, inv, source))
          run_range(c, inv, n.then_first, n.then_count);
        break;
      case Prim::Bash:
        if (!affects(c, inv, n, target) || !fires(c, m, n, inv, source)) break;
        ability_damage(c, inv, target, number(c, inv, n, Role::Damage), n.type);
        if (Modifier* stun =
                target.alive ? add_modifier(c, target, inv, n, m.node, duration_on(c, inv, n, target)) : nullptr) {
          stun->status |= kStunned;
          refresh_status(c, target);
        }
        break;
      case Prim::TrueStrikeProc:
        if (m.stacks == 0) break;
        --m.stacks;
        ability_damage(c, inv, target, number(c, inv, n, Role::Damage), n.type);
        break;
      case Prim::OnHitStatSteal:
        if (!(m.flags & kModAura) && target.kind == UnitKind::Hero) steal(c, source, target, inv, n, m.node);
        break;
      case Prim::OrbCorruption:
        if (affects(c, inv, n, target)) add_modifier(c, target, inv, n, m.node, duration_on(c, inv, n, target));
        break;
      case Prim::AttackModifier:
        if (n.then_count > 0 && affects(c, inv, n, target) && orb_ready(c, source, n, inv))
          run_range(c, inv, n.then_first, n.then_count);
        break;
      case Prim::DoubleAttack:
        // Two attacks in a row: the second follows at once, and both slow.
        if (is_ranged(c, source)) break;
        if (m.phase > 0) {
          m.phase = 0;
          run_range(c, inv, n.then_first, n.then_count);
        } else if (m.ready <= w.time + kTimeSlack) {
          m.ready = w.time + number(c, inv, n, Role::Icd);
          m.phase = 1;
          source.attack_ready = w.time;
          run_range(c, inv, n.then_first, n.then_count);
        }
        break;
      default:
        break;
    }
  });
  if (!target.alive) return;
  each_modifier(c, target, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim == Prim::Proc &&
        n.on == Trigger::TargetAttacked) {  // Nullifier: whoever strikes its bearer sets it off
      Invocation inv = invocation_of(c, m);
      inv.child = true;
      return run_range(c, inv, n.then_first, n.then_count);
    }
    if (n.prim != Prim::Proc || n.on != Trigger::Attacked || !source.alive) return;
    Invocation inv = invocation_of(c, target, m.ability, m.level);
    inv.target = w.handle(source);
    inv.child = true;
    if (fires(c, m, n, inv, target)) run_range(c, inv, n.then_first, n.then_count);
  });
}

void on_damaged(Context& c, Unit& target, Unit* source, float amount, const DamageInfo& blow) {
  World& w = c.world;
  const bool enemy = source && source->team != target.team;
  const bool player = enemy && of_player(w, *source);
  const bool roshan = source && source->kind == UnitKind::Roshan;
  each_modifier(c, target, [&](Modifier& m, const EffectNode& n, int i) {
    if ((player || roshan) && (n.ends_on == EndsOn::DamageByPlayerOrRoshan || n.ends_on == EndsOn::DamageOrFull))
      return remove_modifier(c, i);
    if (player && n.cond == Cond::NoDamageForCooldown) {
      const AbilityDef& a = c.tables.abilities[static_cast<std::size_t>(m.ability)];
      m.ready = w.time + a.at(a.cooldown, m.level);
    }
    if (n.cond == Cond::NotVisibleToEnemy && source && source->team == kNeutralTeam)
      m.ready = std::max(m.ready, w.time + number(c, invocation_of(c, m), n, Role::DisabledByNeutralDamage));
    if (n.prim == Prim::LowHpGuard && player) return guard(c, target, m, n);
    if (n.prim == Prim::DamageReturn && player && source->alive && !blow.no_reflect &&
        blow.type != DamageType::HpLoss) {
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
    if (n.prim == Prim::Proc && n.on == Trigger::DamagedByEnemy && !is_building(source->kind)) {
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

void on_kill(Context& c, Unit& killer, Unit& victim) {
  const bool hero = victim.kind == UnitKind::Hero;
  const bool soul = hero || victim.kind == UnitKind::LaneCreep || victim.kind == UnitKind::Neutral ||
                    victim.kind == UnitKind::Roshan || victim.kind == UnitKind::Summon;
  each_modifier(c, killer, [&](Modifier& m, const EffectNode& n, int i) {
    if (n.ends_on == EndsOn::TargetKillsUnit) return remove_modifier(c, i);
    if (n.prim != Prim::StackGain || n.on != Trigger::KillUnit || !soul || !(m.flags & kModPassive)) return;
    const Invocation inv = invocation_of(c, m);
    float amount = number(c, inv, n, hero && n.given(Role::AmountHero) ? Role::AmountHero : Role::Amount);
    if (hero) amount += number(c, inv, n, Role::AmountHeroExtra);
    gain_stack(c, killer, inv, n, m.node, static_cast<int>(amount));
  });
}

void on_death(Context& c, Unit& victim, Unit* killer) {
  World& w = c.world;
  // What a creature's abilities do when it dies.
  if (victim.hero < 0)
    for (const int ability : c.tables.units[victim.type].abilities) {
      if (!program_of(c, ability).missing.empty()) continue;
      Invocation inv = invocation_of(c, victim, ability, 1);
      if (killer) inv.target = w.handle(*killer);
      run_trigger(c, inv, Trigger::Death);
    }
  // What the dead leave behind while they still have it all.
  if (const HeroState* h = hero_of(w, victim))
    for (const AbilityState& s : h->abilities) {
      if (s.id < 0 || s.level <= 0) continue;
      const Program& p = program_of(c, s.id);
      for (const std::uint16_t r : p.roots) {
        const EffectNode& n = p.nodes[r];
        if (n.prim != Prim::RadialLines || !n.given(Role::OnDeathSoulsFrac)) continue;
        Invocation inv = invocation_of(c, victim, s.id, s.level);
        inv.step =
            static_cast<std::uint8_t>(number(c, inv, n, Role::Count) * number(c, inv, n, Role::OnDeathSoulsFrac));
        if (inv.step > 0) run_node(c, inv, r);
      }
    }
  each_modifier(c, victim, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim != Prim::StackGain) return;
    if (n.on == Trigger::KillHeroWithin3s && !(m.source == w.handle(victim))) {
      if (Unit* killer = w.get(m.source)) {
        const Invocation inv = invocation_of(c, *killer, m.ability, m.level);
        gain_stack(c, *killer, inv, n, m.node, static_cast<int>(number(c, inv, n, Role::Amount)));
      }
      return;
    }
    if (!n.given(Role::LostOnDeathFrac)) return;
    const Invocation inv = invocation_of(c, m);
    const int lost = static_cast<int>(static_cast<float>(m.stacks) * number(c, inv, n, Role::LostOnDeathFrac));
    gain_stack(c, victim, inv, n, m.node, -lost);
  });
  if (victim.kind != UnitKind::Hero) return;
  for (HeroState& h : w.heroes) {
    Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u) continue;
    for (int slot = 0; slot < kInventory; ++slot) {
      ItemState& item = h.items[static_cast<std::size_t>(slot)];
      const int ability = item.id < 0 ? -1 : c.tables.items[static_cast<std::size_t>(item.id)].ability;
      if (ability < 0) continue;
      const Program& p = program_of(c, ability);
      for (const std::uint16_t r : p.roots) {
        const EffectNode& n = p.nodes[r];
        if (n.prim != Prim::ChargeOnNearbyDeath) continue;
        const Invocation inv = invocation_of(c, *u, ability, 1);
        int change = 0;
        if (u == &victim)
          change = n.given(Role::LostFracKept) ? static_cast<int>(static_cast<float>(item.charges) *
                                                                  (number(c, inv, n, Role::LostFracKept) - 1))
                                               : -static_cast<int>(number(c, inv, n, Role::LoseOnDeath));
        else if (u->alive && u->team != victim.team && distance(u->pos, victim.pos) <= number(c, inv, n, Role::R))
          change = static_cast<int>(number(c, inv, n, item.charges == 0 ? Role::First : Role::Count));
        item.charges = static_cast<std::int8_t>(std::clamp(item.charges + change, 0, 120));
      }
    }
  }
}

}  // namespace dota
