// What modifiers do when their bearer attacks.
#include <algorithm>

#include "base/math.hpp"
#include "effects/abilities.hpp"
#include "effects/modifiers.hpp"
#include "effects/triggers.hpp"
#include "effects/units.hpp"
#include "map/vision.hpp"

namespace dota {

// Whether attacks carry effects to this unit: enemies that are neither buildings nor wards.
bool takes_attack_effects(const Unit& source, const Unit& target) {
  return source.team != target.team && target.kind != UnitKind::Ward && !is_building(target.kind);
}

namespace {

// Attacks on everyone around, beside the one that is made: as strong, and without what attacks carry.
void shoot_all(Context& c, Unit& source, const Unit& target, const Invocation& inv, const EffectNode& n, int node,
               float damage) {
  for (const Unit& u : select_around(c, inv, n, Who::Enemies, source.pos, number(c, inv, n, Role::R))) {
    if (&u == &target || (source.team < kTeams && !unit_visible(c.world, source.team, u))) continue;
    Invocation shot = inv;
    shot.target = c.world.handle(u);
    if (Projectile* p = new_projectile(c, shot, node, Projectile::Kind::Homing, source.pos)) {
      p->speed = number(c, inv, n, Role::ProjSpeed);
      p->goal = u.pos;
      p->damage = damage;
    }
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

void on_attack_start(Context& c, Unit& source, Unit& target, AttackRoll& roll) {
  const bool creature = takes_attack_effects(source, target);
  // unseen: out of invisibility, which no crit multiplies
  float best_crit = roll.crit_pct, bonus = 0, unseen = 0;
  each_modifier(c, source, [&](Modifier& m, const EffectNode& n, int i) {
    const bool rolls =
        n.prim == Prim::Crit || n.prim == Prim::Quelling || n.prim == Prim::TrueStrikeProc || n.prim == Prim::Proc;
    if (roll.instant && !rolls) return;
    const Invocation inv = invocation_of(c, m);
    switch (n.prim) {
      case Prim::Crit:
        if (creature && fires(c, m, n, inv, source))
          best_crit = std::max(best_crit, number(c, inv, n, Role::MultPct));
        break;
      case Prim::Quelling:
        // Against creeps, own ones that are denied included.
        if (is_basic(target) && target.kind != UnitKind::Roshan) {
          const bool ranged = is_ranged(c, source);
          bonus += number(c, inv, n, ranged ? Role::Ranged : Role::Melee);
          bonus +=
              roll.base * (number(c, inv, n, ranged ? Role::RangedPct : Role::MeleePct, nullptr, 100) / 100 - 1);
        }
        break;
      case Prim::TrueStrikeProc:
        if (creature && fires(c, m, n, inv, source)) {
          roll.true_strike = true;
          if (m.stacks < 255) ++m.stacks;  // its damage waits for the attack to land
        }
        break;
      case Prim::Proc:  // one that cannot be evaded is rolled here, and waits for the attack to land
        if (n.on == Trigger::AttackLanded && n.given(Role::TrueStrike) && creature && affects(c, inv, n, target) &&
            (m.ability == c.sure_proc || fires(c, m, n, inv, source))) {
          roll.true_strike = true;
          if (m.stacks < 255) ++m.stacks;
        }
        break;
      case Prim::Smoke:
        remove_modifier(c, i);
        break;
      case Prim::MultiAttack:
        shoot_all(c, source, target, inv, n, m.node, roll.damage);
        if (m.attacks_left > 0 && --m.attacks_left == 0) remove_modifier(c, i);
        break;
      case Prim::Invis: {
        if (n.reappears) {
          reappear(c, source, m, n);
          break;
        }
        if (m.flags & kModPassive) break;
        if (creature) unseen += number(c, inv, n, Role::BreakBonusDamage);
        Invocation broken = inv;
        broken.target = c.world.handle(target);
        broken.point = broken.centre = target.pos;
        const bool open = m.status != 0;
        remove_modifier(c, i);
        if (open && creature) run_trigger(c, broken, Trigger::InvisBreakAttack);
        break;
      }
      case Prim::NextAttackMod:
        roll.true_strike = roll.true_strike || n.given(Role::TrueStrike);
        remove_modifier(c, i);
        break;
      case Prim::Mod:
        if (n.given(Role::Attacks) && !n.counts_landed && (!is_aimed(n) || m.aim == c.world.handle(target)) &&
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
  roll.damage = ((roll.damage + bonus) * roll.share + roll.plus) * best_crit / 100 + unseen;
  // Backstab cannot be evaded (tooltip of Cloak and Dagger).
  if (creature) roll.damage += roll.sure = backstab(c, source, target, roll.from_anywhere);
  roll.crit = roll.crit || best_crit > 100;
}

}  // namespace dota
