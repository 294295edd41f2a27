// How long a modifier lasts and which stats it gives.
#include <algorithm>
#include <array>
#include <cmath>

#include "effects/modifiers.hpp"
#include "effects/units.hpp"
#include "map/ground.hpp"

namespace dota {

namespace {

constexpr int kRiverLevel = 1;  // of MapData::elevation (SCHEMA.md, grids)

// The share of its strength that a fading modifier still has: all of it at first, and less all the time, each
// second, or in as many equal steps as it says.
float left_of(const Context& c, const Invocation& inv, const EffectNode& n, const Modifier& m) {
  if (n.decay == Decay::EachSecond)
    return std::clamp(std::ceil(m.until - c.world.time - kTimeSlack) / std::max(m.until - m.start, kDt), 0.0f,
                      1.0f);
  const float share = std::clamp((m.until - c.world.time) / std::max(m.until - m.start, kDt), 0.0f, 1.0f);
  const float steps = n.decay == Decay::StepByPurgeRate ? number(c, inv, n, Role::Rate) : 0;
  return steps > 0 ? std::ceil(share * steps - kTimeSlack) / steps : share;
}

}  // namespace

bool creep_numbers(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target) {
  if (target.kind == UnitKind::Hero) return false;
  const float level = number(c, inv, n, Role::CreepLevel, nullptr, 1e9f);
  return static_cast<float>(c.tables.units[target.type].level) <= level;
}

float duration_on(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target) {
  if (!n.given(Role::Dur)) return kForever;
  const Unit* caster = c.world.get(inv.caster);
  Role r = Role::Dur;
  if (n.given(Role::DurCreep) && creep_numbers(c, inv, n, target)) r = Role::DurCreep;
  if (n.given(Role::DurRanged) && caster && is_ranged(c, *caster)) r = Role::DurRanged;
  if (n.given(Role::DurVsRanged) && is_ranged(c, target)) r = Role::DurVsRanged;
  float d = number(c, inv, n, r, &target);
  if (target.team != inv.team && !(n.status & kForcedMotion)) d *= 1 - target.status_resist;
  return d;
}

bool fill_stats(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target, Modifier& m) {
  std::array<StatChange, 6> stats{};
  int count = 0;
  const Unit* caster = c.world.get(inv.caster);
  const bool self = caster == &target;
  const bool hero = target.kind == UnitKind::Hero;
  // An aura's ranged variant is for its bearers; elsewhere it goes by who attacks or uses the item.
  const Unit* shooter = n.prim == Prim::Aura || !caster ? &target : caster;
  const auto put = [&](Stat s, float v) {
    for (int i = 0; i < count; ++i)
      if (stats[i].stat == s) {
        stats[i].value = v;
        return;
      }
    if (count < 6) stats[count++] = {s, v};
  };
  // What gives something to others, or at its time, gives its bearer nothing by itself.
  const bool gives_later = n.prim == Prim::Aura || n.prim == Prim::OnHitStatSteal || n.prim == Prim::LowHpGuard;
  const bool carrier = gives_later && !(m.flags & kModAura);
  const bool elsewhere = n.given(Role::OnTargetOnly) && target.order.target != m.aim;
  for (const NodeStat& s : n.stats) {
    if (carrier || elsewhere || n.prim == Prim::StatDrain) break;
    bool meant = false;
    switch (s.set) {
      case StatSet::Main:
        meant = true;
        break;
      case StatSet::Self:
        meant = self;
        break;
      case StatSet::Creep:
        meant = !hero;
        break;
      case StatSet::Ranged:
        meant = is_ranged(c, *shooter);
        break;
      case StatSet::Ally:
        meant = target.team == inv.team;
        break;
      case StatSet::Enemy:
        meant = target.team != inv.team;
        break;
      case StatSet::PerStack:
        meant = true;
        break;
      case StatSet::Else:
        meant = n.cond == Cond::NotBroken && m.ready > c.world.time;
        break;
      case StatSet::LowHp:
        meant = hero && target.hp < target.max_hp * number(c, inv, n, Role::LowHpPct) / 100;
        break;
      case StatSet::PerCharge:
        meant = true;
        break;
      case StatSet::Unseen:
        meant = m.status != 0;  // it has faded in
        break;
    }
    if (s.set == StatSet::Main && n.cond == Cond::NotBroken && !c.world.due(m.ready)) meant = false;
    if (n.cond == Cond::NoDamageForCooldown && !c.world.due(m.ready)) meant = false;
    if (n.cond == Cond::NotVisibleToEnemy && !c.world.due(m.ready)) meant = false;
    if (n.cond == Cond::InRiver && elevation(*c.tables.map, target.pos) != kRiverLevel) meant = false;
    if (!meant) continue;
    float v = evaluate(c, inv, s.value, &target);
    if (s.far.base.given()) v += (evaluate(c, inv, s.far, &target) - v) * m.share;
    if (n.stacking) v *= m.stacks;
    if (s.set == StatSet::PerStack) v *= m.stacks;
    if (s.set == StatSet::PerCharge) v *= m.charges;
    if (n.decay != Decay::None && m.until < kForever) v *= left_of(c, inv, n, m);
    put(s.stat, v);
  }
  if (n.prim == Prim::OnHitStatSteal && !carrier && !self)
    put(Stat::All, -number(c, inv, n, Role::TargetLosesEachAttr) * m.stacks);
  if (n.prim == Prim::TrueSight && n.shape == Shape::None && n.given(Role::R))
    put(Stat::TrueSightR, number(c, inv, n, Role::R));
  if (n.prim == Prim::Hex) put(Stat::MsBase, number(c, inv, n, Role::MsSet));
  if (n.prim == Prim::Lifesteal) put(Stat::LifestealPct, number(c, inv, n, Role::Pct));
  // A stat drained from one unit is added to the other.
  if (n.prim == Prim::StatDrain && !n.stats.empty()) put(n.stats[0].stat, self ? m.drawn : -m.drawn);
  if (n.prim == Prim::ToggleStat) {
    constexpr Stat kCycle[] = {Stat::Str, Stat::Agi, Stat::Int};
    put(kCycle[m.phase % 3], number(c, inv, n, Role::Amount));
  }
  if (n.unlimited_range && target.order.target == m.aim) put(Stat::Range, kGlobal);
  if (n.prim == Prim::OrbCorruption && !self) put(Stat::Armor, number(c, inv, n, Role::Armor));
  if (n.prim == Prim::Ethereal) put(Stat::MrPct, number(c, inv, n, Role::MrPct));
  bool same = true;
  for (std::size_t i = 0; i < stats.size(); ++i)
    same = same && stats[i].stat == m.stats[i].stat && stats[i].value == m.stats[i].value;
  m.stats = stats;
  return !same;
}

}  // namespace dota
