// What modifiers, abilities and items do when their bearer kills or dies.
#include <algorithm>
#include <vector>

#include "base/math.hpp"
#include "effects/modifiers.hpp"
#include "effects/triggers.hpp"

namespace dota {

namespace {

// A hero who dies while agility is stolen from him loses some of it for good to a thief who kills him or is near.
void keep_stolen(Context& c, Unit& victim, const Unit* killer, const Modifier& m, const EffectNode& n) {
  Unit* thief = c.world.get(m.source);
  const Invocation inv = invocation_of(c, m);
  const float kept = number(c, inv, n, Role::AgiKeptOnDeath);
  if (!thief || kept <= 0) return;
  const bool near = thief->alive && distance(thief->pos, victim.pos) <= number(c, inv, n, Role::KeptWithin);
  if (killer != thief && !near) return;
  thief->extra_attr[ordinal(Attribute::Agi)] += kept;
  victim.extra_attr[ordinal(Attribute::Agi)] -= kept;
  thief->stats_dirty = victim.stats_dirty = true;
}

// Changes the charges of a hero's item that counts deaths near him.
void count_death(Context& c, Unit& u, ItemState& item, int ability, const EffectNode& n, const Unit& victim) {
  const Invocation inv = invocation_of(c, u, ability, 1);
  int change = 0;
  if (&u == &victim)
    change = n.given(Role::LostFracKept)
                 ? static_cast<int>(static_cast<float>(item.charges) * number(c, inv, n, Role::LostFracKept)) -
                       item.charges
                 : -static_cast<int>(number(c, inv, n, Role::LoseOnDeath));
  else if (u.alive && u.team != victim.team && distance(u.pos, victim.pos) <= number(c, inv, n, Role::R))
    change = static_cast<int>(number(c, inv, n, item.charges == 0 ? Role::First : Role::Count));
  item.charges = static_cast<std::int8_t>(std::clamp(item.charges + change, 0, 120));
}

// Of each kind of item of which only the closest gains a charge (Urn of Shadows, Spirit Vessel), the one to gain
// it.
struct Closest {
  int ability = -1;
  float far = 0;
  Unit* bearer = nullptr;
  ItemState* item = nullptr;
  const EffectNode* node = nullptr;
};

}  // namespace

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
    if (n.prim == Prim::OnHitStatSteal && (m.flags & kModDebuff)) keep_stolen(c, victim, killer, m, n);
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
  std::vector<Closest> closest;
  for (HeroState& h : w.heroes) {
    Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (!u) continue;
    for (int slot = 0; slot < kInventory; ++slot) {
      ItemState& item = h.items[slot];
      const int ability = item.id < 0 ? -1 : c.tables.items[item.id].ability;
      if (ability < 0) continue;
      const Program& p = program_of(c, ability);
      for (const std::uint16_t r : p.roots) {
        const EffectNode& n = p.nodes[r];
        if (n.prim != Prim::ChargeOnNearbyDeath) continue;
        if (!n.given(Role::ClosestOnly)) {
          count_death(c, *u, item, ability, n, victim);
          continue;
        }
        if (!u->alive || u->team == victim.team) continue;
        const Closest found{ability, distance(u->pos, victim.pos), u, &item, &n};
        const auto same = std::find_if(closest.begin(), closest.end(),
                                       [&](const Closest& other) { return other.ability == ability; });
        if (same == closest.end())
          closest.push_back(found);
        else if (found.far < same->far)
          *same = found;
      }
    }
  }
  for (const Closest& found : closest)
    count_death(c, *found.bearer, *found.item, found.ability, *found.node, victim);
}

}  // namespace dota
