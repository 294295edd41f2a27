// What modifiers do when an attack of their bearer, or on him, lands.
#include <cmath>

#include "base/math.hpp"
#include "effects/abilities.hpp"
#include "effects/damage.hpp"
#include "effects/modifiers.hpp"
#include "effects/triggers.hpp"
#include "effects/units.hpp"
#include "map/spatial.hpp"
#include "world/game_rules.hpp"

namespace dota {

namespace {

// Whether an attack left the modifier on its bearer: the bearer's own attacks do not pass it on.
bool suffered(const Modifier& m) { return m.flags & kModDebuff; }

void cleave(Context& c, Unit& source, const Unit& target, const Invocation& inv, const EffectNode& n,
            float damage) {
  if (is_ranged(c, source) && n.given(Role::MeleeOnly)) return;
  const float len = number(c, inv, n, Role::Len), w0 = number(c, inv, n, Role::W0),
              w1 = number(c, inv, n, Role::W1);
  const Vec2 from = source.pos;
  Vec2 along = target.pos - from;
  const float far = along.length();
  along = far > 1 ? along * (1 / far) : heading(source.facing);
  for (Unit& u : units_near(c, from, len + w1)) {
    if (&u == &target || !u.alive || !takes_attack_effects(source, u) || !affects(c, inv, n, u)) continue;
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
  const float widest = rings ? number(c, inv, n, Role::RFar) : inner;
  const Vec2 centre = target.pos;
  for (Unit& u : select_around(c, inv, n, Who::Enemies, centre, widest)) {
    if (&u == &target) continue;
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
  const AbilityDef& a = c.tables.abilities[inv.ability];
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

// Procs that work on own creeps too (Headshot).
void denying_procs(Context& c, Unit& source, Unit& target) {
  if (!is_basic(target)) return;
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim != Prim::Proc || n.on != Trigger::AttackLanded || !n.given(Role::AlliedCreeps) || !target.alive)
      return;
    Invocation inv = invocation_of(c, m);
    inv.target = c.world.handle(target);
    inv.point = inv.centre = target.pos;
    inv.child = true;
    if (fires(c, m, n, inv, source)) run_range(c, inv, n.then_first, n.then_count);
  });
}

// By an attack that the bearer suffers, or makes on a hero, or with some boots on anyone.
void break_regeneration_boots(Context& c, Unit& u, bool by_any) {
  each_modifier(c, u, [&](Modifier& m, const EffectNode& n, int) {
    if (n.cond != Cond::NotBroken || !(by_any || n.any_attack_breaks)) return;
    const Invocation inv = invocation_of(c, m);
    m.ready = c.world.time + number(c, inv, n, Role::BrokenFor);
    if (fill_stats(c, inv, n, u, m)) u.stats_dirty = true;
  });
}

// Steals from a hero that was hit: both bear the stacks, each of which lasts its own time.
void steal(Context& c, Unit& source, Unit& target, const Invocation& inv, const EffectNode& n, int node) {
  const float lasts = number(c, inv, n, Role::Dur);
  for (Unit* u : {&target, &source})
    if (Modifier* m = add_modifier(c, *u, inv, n, node, lasts, true)) {
      m->flags =
          static_cast<std::uint8_t>(m->flags & ~kModBreakable);  // a broken thief keeps what he stole before
      if (m->stacks < 255) {
        ++m->stacks;
        end_stacks_later(c, *m, 1, lasts);
      }
      if (fill_stats(c, inv, n, *u, *m)) u->stats_dirty = true;
    }
}

// A bash's physical damage is part of the attack; magical damage is dealt beside it.
bool with_the_attack(const EffectNode& n) { return n.prim == Prim::Bash && n.type == DamageType::Physical; }

// Items do not bash for a hero who bashes himself (tooltip of Bash of the Deep).
bool bash_works(const Context& c, const Unit& source, const Modifier& m) {
  const HeroState* h = hero_of(c.world, source);
  return c.tables.abilities[m.ability].is_item < 0 || !h || !c.tables.heroes[h->def].bashes;
}

// What amplifies the damage that an ability of the unit adds to its attacks, as a factor.
float amplified(Context& c, Unit& source, int ability) {
  float factor = 1;
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim == Prim::AmplifyAbility && n.ability == ability)
      factor *= number(c, invocation_of(c, m), n, Role::Factor);
  });
  return factor;
}

// Leaves one more stack on the target and returns the damage of all of them. Each attack renews the stacks' time,
// which status resistance does not shorten.
float stack_up(Context& c, Unit& source, Unit& target, const Invocation& inv, const EffectNode& n, int node) {
  const bool roshan = target.kind == UnitKind::Roshan && n.given(Role::DurRoshan);
  const float lasts = number(c, inv, n, roshan ? Role::DurRoshan : Role::Dur);
  Modifier* m = add_modifier(c, target, inv, n, node, lasts);
  if (!m) return 0;
  if (m->stacks < 255) ++m->stacks;
  return static_cast<float>(m->stacks) * number(c, inv, n, Role::Damage) * amplified(c, source, inv.ability);
}

// Lowers the target's armor. Corruptions do not add up (patch 7.21): the strongest of all sources lasts.
void corrupt(Context& c, Unit& target, const Invocation& inv, const EffectNode& n, int node) {
  const float armor = number(c, inv, n, Role::Armor);
  bool weaker = false;
  each_modifier(c, target, [&](Modifier& m, const EffectNode& other, int i) {
    if (other.prim != Prim::OrbCorruption || !suffered(m)) return;
    const float before = number(c, invocation_of(c, m), other, Role::Armor);
    if (before < armor)
      weaker = true;
    else if (m.source != inv.caster || m.name != n.modifier)
      remove_modifier(c, i);
  });
  if (!weaker) add_modifier(c, target, inv, n, node, duration_on(c, inv, n, target));
}

}  // namespace

// The armor is lowered before the damage of the same attack, on buildings too (Liquipedia, Desolator). What bashes
// and stacks add belongs to the attack as it lands: no critical hit multiplies it and no cleave spreads it.
float before_attack_lands(Context& c, Unit& source, Unit& target) {
  const bool enemy = source.team != target.team && target.kind != UnitKind::Ward;
  const bool creature = takes_attack_effects(source, target);
  float extra = 0;
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int i) {
    if (n.counts_landed && --m.attacks_left == 0) return remove_modifier(c, i);
    const bool adds = n.prim == Prim::AttackStacks || with_the_attack(n);
    if (!enemy || suffered(m) || (n.prim != Prim::OrbCorruption && !adds)) return;
    if (adds) m.phase = 0;
    if (adds && !creature) return;
    Invocation inv = invocation_of(c, m);
    inv.target = c.world.handle(target);
    inv.point = inv.centre = target.pos;
    inv.child = true;
    if (!affects(c, inv, n, target)) return;
    if (n.prim == Prim::OrbCorruption) {
      corrupt(c, target, inv, n, m.node);
    } else if (n.prim == Prim::AttackStacks) {
      extra += stack_up(c, source, target, inv, n, m.node);
    } else if (bash_works(c, source, m) && fires(c, m, n, inv, source)) {
      m.phase = 1;  // its stun waits for the damage
      extra += number(c, inv, n, Role::Damage);
    }
  });
  if (target.stats_dirty) refresh_stats(c, target);
  return extra;
}

namespace {

// What the target bears that an attack on it triggers.
void struck(Context& c, Unit& source, Unit& target) {
  if (!target.alive) return;
  each_modifier(c, target, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim == Prim::Proc &&
        n.on == Trigger::TargetAttacked) {  // Nullifier: an attack on its bearer triggers it
      Invocation inv = invocation_of(c, m);
      inv.child = true;
      return run_range(c, inv, n.then_first, n.then_count);
    }
    if (n.prim != Prim::Proc || n.on != Trigger::Attacked || !source.alive) return;
    Invocation inv = invocation_of(c, target, m.ability, m.level);
    inv.target = c.world.handle(source);
    inv.child = true;
    if (fires(c, m, n, inv, target)) run_range(c, inv, n.then_first, n.then_count);
  });
}

}  // namespace

void on_attack_landed(Context& c, Unit& source, Unit& target, float damage_dealt, float rolled) {
  World& w = c.world;
  break_regeneration_boots(c, source, target.kind == UnitKind::Hero);
  break_regeneration_boots(c, target, true);
  if (source.team != target.team && is_building(target.kind)) {
    orbs_on_building(c, source, target);
    return struck(c, source, target);  // Frost Armor
  }
  if (source.team == target.team) return denying_procs(c, source, target);
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
        if (n.on != Trigger::AttackLanded) break;
        if (n.given(Role::TrueStrike)) {
          if (m.stacks == 0) break;
          --m.stacks;
        } else if (!affects(c, inv, n, target) || (m.ability != c.sure_proc && !fires(c, m, n, inv, source))) {
          break;
        }
        run_range(c, inv, n.then_first, n.then_count);
        break;
      case Prim::Bash:
        if (suffered(m) || !affects(c, inv, n, target)) break;
        if (with_the_attack(n)) {
          if (m.phase == 0) break;
          m.phase = 0;
        } else {
          if (!bash_works(c, source, m) || !fires(c, m, n, inv, source)) break;
          ability_damage(c, inv, target, number(c, inv, n, Role::Damage), n.type);
        }
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
        } else if (w.due(m.ready)) {
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
  struck(c, source, target);
}

}  // namespace dota
