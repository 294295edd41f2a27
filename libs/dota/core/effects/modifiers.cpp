#include "effects/modifiers.hpp"

#include <algorithm>

#include "effects/orders.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

int allocate(World& w) {
  if (w.modifier_free >= 0) {
    const int i = w.modifier_free;
    w.modifier_free = w.modifiers[i].next;
    return i;
  }
  if (w.modifiers_end >= kMaxModifiers) {
    ++w.dropped[ordinal(StatePool::Modifiers)];
    return -1;
  }
  return w.modifiers_end++;
}

std::uint64_t bit_of(int modifier) { return 1ull << (modifier & 63); }
void watch(World& w, int modifier) { w.modifiers_watched[modifier >> 6] |= bit_of(modifier); }

// Stats that combine as independent chances or resistances.
bool multiplicative(Stat s) {
  return s == Stat::MrPct || s == Stat::EvasionPct || s == Stat::MissPct || s == Stat::StatusResPct;
}

std::uint8_t flags_of(const Context& c, const Invocation& inv, const EffectNode& n, const Unit& target) {
  std::uint8_t f = 0;
  const bool hostile = target.team != inv.team;
  if (hostile) f |= kModDebuff;
  if (inv.ability >= 0) {
    const AbilityDef& a = c.tables.abilities[inv.ability];
    const bool stays = n.prim == Prim::SpellImmune || n.prim == Prim::OncePerUnit;
    switch (stays ? Dispellable::No : n.dispellable.value_or(a.program.dispellable)) {
      case Dispellable::Yes:
        f |= kModDispellable;
        break;
      case Dispellable::Strong:
        f |= kModStrong;
        break;
      case Dispellable::No:
        break;
    }
    if (n.passive && c.world.handle(target) == inv.caster) {
      f = static_cast<std::uint8_t>((f & ~(kModDispellable | kModStrong)) | kModPassive);
      if (a.is_item < 0 && a.max_level > 0 && a.owner_unit >= 0) f |= kModBreakable;
    }
  }
  return f;
}

}  // namespace

Invocation invocation_of(const Context& c, const Modifier& m) {
  Invocation inv;
  inv.caster = m.source;
  const Unit* source = c.world.get(m.source);
  const Unit* owner = m.owner >= 0 ? &c.world.units[m.owner] : nullptr;
  inv.team =
      source  ? source->team
      : owner ? static_cast<std::uint8_t>(m.flags & kModDebuff ? 1 - std::min<int>(owner->team, 1) : owner->team)
              : static_cast<std::uint8_t>(kNeutralTeam);
  inv.ability = m.ability;
  inv.level = m.level;
  if (owner) {
    inv.target = c.world.handle(*owner);
    inv.point = inv.centre = owner->pos;
  }
  return inv;
}

void mark_dirty(const Context& c, Unit& u) {
  u.stats_dirty = true;
  refresh_status(c, u);
}

Modifier* find_modifier(World& w, const Unit& u, int name) {
  for (int i = u.modifiers; i >= 0; i = w.modifiers[i].next)
    if (w.modifiers[i].name == name) return &w.modifiers[i];
  return nullptr;
}
const Modifier* find_modifier(const World& w, const Unit& u, int name) {
  return find_modifier(const_cast<World&>(w), u, name);
}

void add_to_targets(Context& c, const Invocation& inv, const EffectNode& n, int node) {
  for (Unit& u : select_targets(c, inv, n)) {
    add_modifier(c, u, inv, n, node, duration_on(c, inv, n, u));
  }
}

bool rests(const Modifier& m, const EffectNode& n) { return m.flags & kModAura ? n.rests_on_others : n.rests; }

Modifier* add_modifier(Context& c, Unit& target, const Invocation& inv, const EffectNode& n, int node,
                       float duration, bool aura) {
  World& w = c.world;
  if (!target.alive && !n.passive && !(n.prim == Prim::StackGain)) return nullptr;
  if (duration <= 0) return nullptr;
  Modifier* m = nullptr;
  for (int i = target.modifiers; i >= 0; i = w.modifiers[i].next) {
    Modifier& x = w.modifiers[i];
    // One aura gives its stats once, however many carry it.
    if (!n.separate && x.name == n.modifier && aura == ((x.flags & kModAura) != 0) &&
        (aura || x.source == inv.caster)) {
      m = &x;
      break;
    }
  }
  bool changed = !m;
  if (!m) {
    const int i = allocate(w);
    if (i < 0) return nullptr;
    m = &w.modifiers[i];
    const auto generation = static_cast<std::uint16_t>(m->generation + 1);
    *m = Modifier{};
    m->generation = generation;
    m->owner = w.handle(target).index;
    m->name = n.modifier;
    m->source = inv.caster;
    // Appended, so that what came first is first: the order in which procs are rolled.
    std::int16_t* link = &target.modifiers;
    while (*link >= 0)
      link = &w.modifiers[*link].next;
    *link = static_cast<std::int16_t>(i);
    m->flags = flags_of(c, inv, n, target);
    if (aura) m->flags = static_cast<std::uint8_t>((m->flags & ~kModPassive) | kModAura);
    if (n.given(Role::Fade)) m->ready = w.time + number(c, inv, n, Role::Fade);
  }
  // Whether a renewal keeps all fields as they were filled in; a courier may have become another type of unit.
  const bool same = !changed && n.fixed && m->ability == inv.ability && m->node == node && m->level == inv.level &&
                    target.kind != UnitKind::Courier;
  if (!changed && m->node != node && !aura) m->flags = flags_of(c, inv, n, target);  // as a talent changes it
  m->ability = inv.ability;
  m->node = static_cast<std::int16_t>(node);
  m->level = static_cast<std::uint8_t>(inv.level);
  m->start = w.time;
  m->until = duration >= kForever ? kForever : w.time + duration;
  const std::uint32_t status = n.given(Role::Fade) && !w.due(m->ready) ? 0 : n.status;
  changed = changed || m->status != status;
  m->status = status;
  m->rests = rests(*m, n);
  const int index = static_cast<int>(m - w.modifiers.data());
  w.modifiers_slow[index >> 6] &= ~bit_of(index);
  if (m->until < kForever || !m->rests) watch(w, index);
  m->damage_type = static_cast<std::uint8_t>(n.type);
  if ((!same && fill_stats(c, inv, n, target, *m)) || changed) mark_dirty(c, target);
  return m;
}

namespace {

// Takes away what the caster has because of this target (Program::per_target).
void remove_per_target(Context& c, Handle caster, int ability, Handle target) {
  const Unit* u = c.world.get(caster);
  if (!u) return;
  for (int i = u->modifiers; i >= 0; i = c.world.modifiers[i].next) {
    const Modifier& m = c.world.modifiers[i];
    if (m.ability == ability && m.node == program_of(c, ability).per_target && m.aim == target)
      return remove_modifier(c, i);
  }
}

// Forced orders end with what forced them.
void free_of_orders(Context& c, Unit& u, const EffectNode& n) {
  if ((n.prim == Prim::Fear || n.prim == Prim::Taunt) && u.alive && !(u.status & kTaunted))
    take_order(c, u, Order{});
}

}  // namespace

Modifier* add_per_target(Context& c, Unit& caster, const Invocation& inv, const EffectNode& n, int node,
                         float duration) {
  remove_per_target(c, inv.caster, inv.ability, inv.target);
  Modifier* m = add_modifier(c, caster, inv, n, node, duration);
  if (m) m->aim = inv.target;
  return m;
}

void remove_modifier(Context& c, int index) {
  World& w = c.world;
  Modifier& m = w.modifiers[index];
  if (m.owner < 0) return;
  Unit& u = w.units[m.owner];
  const int ability = m.ability, node = m.node;
  const bool debuff = m.flags & kModDebuff;
  const Handle source = m.source;
  std::int16_t* link = &u.modifiers;
  while (*link >= 0 && *link != index)
    link = &w.modifiers[*link].next;
  if (*link == index) *link = m.next;
  const std::uint16_t generation = m.generation;
  m = Modifier{};
  m.generation = generation;
  m.next = w.modifier_free;
  w.modifier_free = static_cast<std::int16_t>(index);
  w.modifiers_watched[index >> 6] &= ~bit_of(index);
  w.modifiers_slow[index >> 6] &= ~bit_of(index);
  mark_dirty(c, u);
  if (node < 0) return;
  free_of_orders(c, u, node_of(c, ability, node));
  if (debuff && program_of(c, ability).per_target >= 0) remove_per_target(c, source, ability, w.handle(u));
}

void end_stacks_later(Context& c, const Modifier& m, int count, float seconds) {
  World& w = c.world;
  if (w.stack_ends_count == kMaxStackEnds) {  // they end with the last
    ++w.dropped[ordinal(StatePool::StackEnds)];
    return;
  }
  w.stack_ends[w.stack_ends_count++] = {w.time + seconds, static_cast<std::int16_t>(&m - w.modifiers.data()),
                                        m.generation, static_cast<std::uint8_t>(count)};
}

void stack_ends_frame(Context& c) {
  World& w = c.world;
  for (int i = 0; i < w.stack_ends_count;) {
    const StackEnd end = w.stack_ends[i];
    Modifier& m = w.modifiers[end.modifier];
    const bool gone = m.owner < 0 || m.generation != end.generation;
    if (!gone && !w.due(end.at)) {
      ++i;
      continue;
    }
    w.stack_ends[i] = w.stack_ends[--w.stack_ends_count];
    w.stack_ends[w.stack_ends_count] = StackEnd{};
    if (gone) continue;
    if (m.stacks <= end.count) {
      remove_modifier(c, end.modifier);
      continue;
    }
    m.stacks = static_cast<std::uint8_t>(m.stacks - end.count);
    Unit& u = w.units[m.owner];
    if (fill_stats(c, invocation_of(c, m), node_of(c, m.ability, m.node), u, m)) u.stats_dirty = true;
  }
}

void watch_modifiers(Context& c) {
  World& w = c.world;
  w.modifiers_watched = w.modifiers_slow = {};
  for (int i = 0; i < w.modifiers_end; ++i) {
    Modifier& m = w.modifiers[i];
    if (m.owner < 0 || m.node < 0) continue;
    m.rests = rests(m, node_of(c, m.ability, m.node));
    if (m.until < kForever || !m.rests) watch(w, i);
  }
}

void clear_modifiers(Context& c, Unit& u) {
  const bool stays = u.kind == UnitKind::Hero;  // its passives wait for it to rise again
  for (int i = u.modifiers; i >= 0;) {
    const Modifier& m = c.world.modifiers[i];
    const int next = m.next;
    if (!stays || !(m.flags & (kModPassive | kModKept))) remove_modifier(c, i);
    i = next;
  }
  if (HeroState* h = hero_of(c.world, u))
    for (AbilityState& s : h->abilities)
      s.toggled = false;
}

void dispel(Context& c, Unit& u, bool of_debuffs, bool strong) {
  for (int i = u.modifiers; i >= 0;) {
    const Modifier& m = c.world.modifiers[i];
    const int next = m.next;
    const bool can = (m.flags & kModDispellable) || (strong && (m.flags & kModStrong));
    if (can && !(m.flags & kModAura) && ((m.flags & kModDebuff) != 0) == of_debuffs) remove_modifier(c, i);
    i = next;
  }
}

bool active(const Unit& u, const Modifier& m) { return !((m.flags & kModBreakable) && (u.status & kBroken)); }

void refresh_status(const Context& c, Unit& u) {
  std::uint32_t bits = inherent_status(c, u), breakable = 0;
  for (int i = u.modifiers; i >= 0; i = c.world.modifiers[i].next) {
    const Modifier& m = c.world.modifiers[i];
    (m.flags & kModBreakable ? breakable : bits) |= m.status;
  }
  if (!(bits & kBroken)) bits |= breakable;
  u.status = u.alive ? bits : 0;
}

float stat_sum(const World& w, const Unit& u, Stat s) {
  float sum = 0, rest = 1;
  const bool product = multiplicative(s);
  const bool greatest = s == Stat::MsSet || s == Stat::MsBase || s == Stat::BootsMsPct || s == Stat::BootsMsFlat ||
                        s == Stat::TurnRateSet || s == Stat::TrueSightR;
  for (int i = u.modifiers; i >= 0; i = w.modifiers[i].next) {
    const Modifier& m = w.modifiers[i];
    if (!active(u, m)) continue;
    for (const StatChange& x : m.stats) {
      if (x.stat != s) continue;
      if (greatest)
        sum = std::max(sum, x.value);
      else if (product)
        rest *= 1 - x.value / 100;
      else
        sum += x.value;
    }
  }
  return product ? 100 * (1 - rest) : sum;
}

bool fires(Context& c, Modifier& m, const EffectNode& n, const Invocation& inv, const Unit& bearer) {
  if (!c.world.due(m.ready)) return false;
  if (n.given(Role::After) && m.stacks < number(c, inv, n, Role::After)) {
    ++m.stacks;
    return false;
  }
  Role r = Role::ChancePct;
  if (n.given(Role::ChanceMeleePct)) r = is_ranged(c, bearer) ? Role::ChanceRangedPct : Role::ChanceMeleePct;
  if (n.given(r) && !pseudo_random(c, number(c, inv, n, r), m.counter)) return false;
  if (n.given(Role::After)) m.stacks = 0;
  if (!n.given(Role::Icd)) return true;
  m.ready = c.world.time + number(c, inv, n, Role::Icd);
  // Triggers of one ability share its cooldown (Counter Helix with its talent).
  for (int i = bearer.modifiers; i >= 0; i = c.world.modifiers[i].next) {
    Modifier& other = c.world.modifiers[i];
    if (other.ability == m.ability && other.node >= 0 && node_of(c, other.ability, other.node).prim == n.prim)
      other.ready = m.ready;
  }
  return true;
}

}  // namespace dota
