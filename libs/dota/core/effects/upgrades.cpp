// What talents and Aghanim's Scepter change in abilities, besides the numbers of their programs (evaluate()).
#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/experience.hpp"
#include "effects/modifiers.hpp"

namespace dota {

namespace {

bool has_talent(const Context& c, const Unit* caster, int index) {
  const HeroState* h = caster ? hero_of(c.world, *caster) : nullptr;
  return h && index >= 0 && ((h->talents >> index) & 1u);
}

}  // namespace

bool upgraded(const Context& c, const Unit* caster, const EffectNode& n) {
  if (!n.talent.empty() && has_talent(c, caster, n.talent_index) == n.unless_talent) return false;
  return n.scepter < 0 || (caster && (caster->status & kScepter) != 0) == (n.scepter == 1);
}

float cast_number(const Context& c, const Unit& u, const AbilityDef& a, CastNumber what, int level) {
  const std::vector<float>* base = nullptr;
  switch (what) {
    case CastNumber::Range:
      base = &a.cast_range;
      break;
    case CastNumber::Point:
      base = &a.cast_point;
      break;
    case CastNumber::Channel:
      base = &a.channel_time;
      break;
    case CastNumber::Cooldown:
      base = &a.cooldown;
      break;
    case CastNumber::Mana:
      base = &a.mana_cost;
      break;
  }
  float x = a.at(*base, level);
  for (const CastChange& change : a.changes) {
    if (change.what != what) continue;
    const bool has = change.talent.empty() ? (u.status & kScepter) != 0 : has_talent(c, &u, change.index);
    if (!has) continue;
    if (change.unlimited) return kGlobal;
    x = change.talent.empty() ? a.at(change.instead, level) : x + change.add;
  }
  return std::max(0.0f, x);
}

float cast_reach(const Context& c, const Unit& u, const AbilityDef& a, int level) {
  const float range = cast_number(c, u, a, CastNumber::Range, level);
  return range > 0 ? range + u.cast_range : 0;
}

int charge_limit(const Context& c, const Unit& u, const AbilityDef& a, int level) {
  if (a.program.charges < 0) return 0;
  const EffectNode& n = a.program.nodes[a.program.charges];
  return static_cast<int>(number(c, invocation_of(c, u, a.id, level), n, Role::Max));
}

float charge_restore(const Context& c, const Unit& u, const AbilityDef& a, int level) {
  const EffectNode& n = a.program.nodes[a.program.charges];
  return number(c, invocation_of(c, u, a.id, level), n, Role::Restore);
}

}  // namespace dota
