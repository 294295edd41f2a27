// Which actions each hero of a team can take now, and which units these may be aimed at.
#include <algorithm>
#include <array>

#include "view/actions.hpp"
#include "view/team_view.hpp"

namespace dota {

namespace {

constexpr float kAnywhere = 1e9f;

// The unit slots that hold a unit, and how far each is from the hero that chooses: found once a hero.
struct Reach {
  int n = 0;
  std::array<std::int16_t, kMaxSlots> slot, unit;
  std::array<float, kMaxSlots> x, y, radius;
  std::array<float, kMaxSlots> gap;  // edge to edge
  // Among them, wherever they are: own heroes and lane creeps that live, own buildings to teleport to.
  int follow_n = 0, haven_n = 0;
  std::array<std::int16_t, kMaxSlots> follow, haven;
  // Of all units: what an enemy's body may be, and own shrines that are ready.
  int enemy_n = 0, shrine_n = 0;
  std::array<float, kMaxUnits + 5> enemy_x, enemy_y, enemy_radius;
  std::array<std::int16_t, kMaxUnits + 5> shrine;
  // Candidates within kNear, which cover most queries with few units.
  static constexpr float kNear = 2500;
  int near_n = 0;
  std::array<std::int16_t, kMaxSlots> near;

  void look_from(const SeenUnit& me) {
    const Vec2 at = me.pos;
    const float own = me.radius;
    for (int i = 0; i < n; ++i)
      gap[i] = distance(at, Vec2{x[i], y[i]}) - own - radius[i];
    near_n = 0;
    for (int i = 0; i < n; ++i) {
      near[near_n] = static_cast<std::int16_t>(i);
      near_n += gap[i] <= kNear;
    }
  }
};

// The choices of one hero.
struct Chooser {
  const TeamView& view;
  const int hero;
  const int caster;  // index into units
  std::array<std::uint16_t, kMaxAvailable>& list;
  std::array<std::array<std::uint8_t, kMaxSlots>, kMaskClasses>& mask;
  const Reach& reach;
  int count = 0;
  float enemy_gap = -1;  // to the nearest enemy body; < 0: not looked for yet

  const SeenUnit& me() const { return view.units[caster]; }
  void offer(int action) {
    if (count < kMaxAvailable) list[count++] = static_cast<std::uint16_t>(action);
  }
  std::uint8_t& bit(MaskClass c, int slot) { return mask[ordinal(c)][slot]; }
  float gap(const SeenUnit& u) const { return distance(me().pos, u.pos) - me().radius - u.radius; }

  // Marks the slots within `most` whose unit passes, true when there is one.
  template <class Valid>
  bool mark(MaskClass c, float most, Valid valid) {
    bool any = false;
    const bool close = most <= Reach::kNear;
    const int n = close ? reach.near_n : reach.n;
    for (int k = 0; k < n; ++k) {
      const std::size_t i = close ? reach.near[k] : k;
      const int unit = reach.unit[i];
      if (reach.gap[i] > most || !valid(unit, view.units[unit])) continue;
      bit(c, reach.slot[i]) = 1;
      any = true;
    }
    return any;
  }
  // Marks all that can be followed but the hero itself, true when there is one.
  bool mark_others(MaskClass c) {
    bool any = false;
    for (int k = 0; k < reach.follow_n; ++k) {
      const std::size_t i = reach.follow[k];
      if (reach.unit[i] == caster) continue;
      bit(c, reach.slot[i]) = 1;
      any = true;
    }
    return any;
  }
  bool enemy_within(float most) {
    if (enemy_gap < 0) {
      enemy_gap = kAnywhere;
      const Vec2 at = me().pos;
      const float own = me().radius;
      for (int i = 0; i < reach.enemy_n; ++i) {
        const float away = distance(at, Vec2{reach.enemy_x[i], reach.enemy_y[i]}) - own - reach.enemy_radius[i];
        enemy_gap = std::min(enemy_gap, std::max(away, 0.0f));
      }
    }
    return enemy_gap <= most;
  }
  bool cast_possible(const ActionDef& def, const AbilityDef& a, float cast_range) {
    const float most = cast_range + kWalkMargin;
    switch (def.target) {
      case TargetType::None:
        if (def.tree) return view.heroes[hero].tree_near;
        return !def.hostile || enemy_within(kNoTargetReach);
      case TargetType::Point:
      case TargetType::Ward:
        return true;
      case TargetType::Unit:
        return mark(def.mask, most, [&](int unit, const SeenUnit&) { return may_target(view, a, caster, unit); });
      case TargetType::UnitOffset: {
        const bool ally = def.mask == MaskClass::Ally;
        return mark(def.mask, most, [&](int, const SeenUnit& u) {
          const bool body = u.kind != UnitKind::Ward && u.kind != UnitKind::Courier;
          return body && u.visible && u.hp > 0 && (u.side == Side::Own) == ally;
        });
      }
      case TargetType::Teleport:
        for (int k = 0; k < reach.haven_n; ++k)
          bit(def.mask, reach.haven[k]) = 1;
        return reach.haven_n > 0;
    }
    return false;
  }
};

void choose_dead(const TeamView& v, const SeenHero& h, Chooser& c) {
  if (h.can_buyback && v.constants.settings->buyback && !v.constants.actions->scripted_buyback) c.offer(kBuyback);
}

// Whether the action is an item that restores health or mana, and the hero needs neither: it has enough, or
// another item restores it already.
bool is_unneeded(const TeamView& v, const SeenHero& h, const ActionDef& def) {
  if (!def.restores_health && !def.restores_mana) return false;
  const SeenUnit& body = v.units[h.unit];
  const bool hurt = body.hp < kNeededBelow * body.max_hp, drained = h.mana < kNeededBelow * h.max_mana;
  if (!(def.restores_health && hurt) && !(def.restores_mana && drained)) return true;
  for (int m = 0; m < h.modifier_count; ++m)
    if (v.constants.actions->restoring[h.modifiers[m].name] & def.pointless_under) return true;
  return false;
}

void choose_living(const TeamView& v, const SeenHero& h, bool may_move, bool only_needed, Chooser& c) {
  const ActionVocabulary& actions = *v.constants.actions;
  const Tables& t = *v.constants.tables;
  if (may_move) c.offer(kMove);
  if (c.mark(MaskClass::Attack, c.me().attack_range + kWalkMargin,
             [&](int unit, const SeenUnit&) { return may_attack(v, c.caster, unit); }))
    c.offer(kAttack);
  const auto cast = [&](int ability, float reach) {
    if (ability < 0) return;
    const int action = actions.of_ability[ability];
    if (action == kNoAction) return;
    for (int i = 0; i < c.count; ++i)
      if (c.list[i] == action) return;  // two of the same item
    if (only_needed && is_unneeded(v, h, actions.defs[action])) return;
    if (c.count < kMaxAvailable && c.cast_possible(actions.defs[action], t.abilities[ability], reach))
      c.offer(action);
  };
  for (const SeenAbility& a : h.abilities)
    if (a.castable) cast(a.id, a.reach);
  for (const SeenItem& i : h.items)
    if (i.castable) cast(t.items[i.id].ability, i.reach);
  if (h.rune_near >= 0) c.offer(kPickup);
  if (v.glyph_cooldown[0] <= 0 && !actions.scripted_glyph && v.time >= 0) c.offer(kGlyph);
  if (!actions.scripted_shrine)
    for (int i = 0; i < c.reach.shrine_n; ++i) {
      const SeenUnit& u = v.units[c.reach.shrine[i]];
      if (c.gap(u) > kWalkMargin) continue;
      c.offer(kShrine);
      break;
    }
  if (may_move && c.mark_others(MaskClass::Ally)) c.offer(kFollow);
}

// Whether the hero's last choice is an attack or a cast that is on its way: chosen in the step before, so that it
// starts only now, or winding up, or being channelled.
bool committed(const TeamView& v, const SeenHero& h) {
  const SeenUnit& body = v.units[h.unit];
  if (body.act == Act::AttackWindup || body.act == Act::CastWindup || body.act == Act::Channel) return true;
  const std::int16_t last = h.previous.action;
  return last == kAttack || (last >= kBuiltIns && !h.using_ability);
}

Reach held_slots(const TeamView& v, const SlotTable& slots) {
  Reach reach;
  for (int s = 0; s < slots.count; ++s)
    if (slots.unit[s] >= 0) {
      const std::size_t at = reach.n++;
      reach.slot[at] = static_cast<std::int16_t>(s);
      reach.unit[at] = slots.unit[s];
      const SeenUnit& u = v.units[reach.unit[at]];
      reach.x[at] = u.pos.x;
      reach.y[at] = u.pos.y;
      reach.radius[at] = u.radius;
      if (u.side != Side::Own || u.hp <= 0) continue;
      if (u.kind == UnitKind::Hero || u.kind == UnitKind::LaneCreep)
        reach.follow[reach.follow_n++] = static_cast<std::int16_t>(at);
      if (u.building > 0 && u.kind != UnitKind::Filler)
        reach.haven[reach.haven_n++] = static_cast<std::int16_t>(s);
    }
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& u = v.units[i];
    if (u.side == Side::Own) {
      if (u.kind == UnitKind::Shrine && u.shrine_cooldown <= 0)
        reach.shrine[reach.shrine_n++] = static_cast<std::int16_t>(i);
      continue;
    }
    const bool body = u.kind == UnitKind::Hero || u.kind == UnitKind::LaneCreep || u.kind == UnitKind::Neutral ||
                      u.kind == UnitKind::Roshan || u.kind == UnitKind::Summon;
    if (!body || !u.visible || u.hp <= 0) continue;
    const std::size_t at = reach.enemy_n++;
    reach.enemy_x[at] = u.pos.x;
    reach.enemy_y[at] = u.pos.y;
    reach.enemy_radius[at] = u.radius;
  }
  return reach;
}

// Whether hero i chose to walk so short a time ago that it keeps walking.
bool keeps_walking(const TeamView& v, int i, const Commitments& commit) {
  return v.choices_since_move[i] < commit.moves;
}

// The choices of hero i; `reach` is brought up to him.
void choose(const TeamView& v, int i, int slots, const Commitments& commit, Reach& reach, Choices& out) {
  out.available[i].fill(kNoAction);
  for (auto& row : out.mask[i])
    std::fill_n(row.begin(), slots, std::uint8_t{0});
  const SeenHero& h = v.heroes[i];
  Chooser c{v, i, h.unit, out.available[i], out.mask[i], reach};
  c.offer(kNoop);
  if (!h.present) return;
  if (!h.alive || h.unit < 0) return choose_dead(v, h, c);
  if (commit.windups && committed(v, h)) return;
  reach.look_from(c.me());
  choose_living(v, h, !keeps_walking(v, i, commit), commit.consumables, c);
}

}  // namespace

void find_choices(const TeamView& v, const SlotTable& slots, const Commitments& commit, Choices& out) {
  Reach reach = held_slots(v, slots);
  for (int i = 0; i < v.heroes_per_team; ++i)
    choose(v, i, slots.count, commit, reach, out);
}

void find_free_choices(const TeamView& v, const SlotTable& slots, const Commitments& commit, const Choices& held,
                       Choices& out) {
  Reach reach = held_slots(v, slots);
  for (int i = 0; i < v.heroes_per_team; ++i) {
    const SeenHero& h = v.heroes[i];
    if (h.present && h.alive && h.unit >= 0 &&
        (commit.consumables || committed(v, h) || keeps_walking(v, i, commit))) {
      choose(v, i, slots.count, Commitments{}, reach, out);
      continue;
    }
    out.available[i] = held.available[i];
    for (std::size_t k = 0; k < kMaskClasses; ++k)
      std::copy_n(held.mask[i][k].begin(), slots.count, out.mask[i][k].begin());
  }
}

}  // namespace dota
