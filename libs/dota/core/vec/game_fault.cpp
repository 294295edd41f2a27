#include "vec/game_fault.hpp"

#include <cstdlib>

#include "map/map_data.hpp"
#include "rules/well_formed.hpp"

namespace dota {

template <>
inline constexpr int kLastValue<Side> = static_cast<int>(Side::Neutral);
template <>
inline constexpr int kLastValue<Plan> = static_cast<int>(Plan::Roshan);

namespace {

// Whether a value, or all of an array, are what their type allows.
template <class T>
bool proper(const T& x) {
  if constexpr (kRestricted<T>) {
    return well_formed(x);
  } else {
    for (const auto& e : x)
      if (!proper(e)) return false;
    return true;
  }
}
template <class... T>
bool all_proper(const T&... list) {
  return (proper(list) && ...);
}

class Checker {
 public:
  Checker(const GameSetup& setup, const GameState& s) : setup_(setup), t_(*setup.tables), s_(s) {}

  std::string fault() const {
    for (const int hero : s_.lineup)
      if (!within_or_none(hero, t_.heroes.size())) return "its lineup names a hero that does not exist";
    for (int team = 0; team < kTeams; ++team) {
      const std::string what = " of team " + std::to_string(team) +
                               " holds an impossible value or refers to something that does not exist";
      if (!view(team, s_.views[team])) return "the view" + what;
      if (!slots(s_.views[team], s_.slots[team])) return "a unit slot" + what;
      if (!choices(s_.choices[team])) return "a choice" + what;
      if (!memory(s_.memory[team])) return "the bots' memory" + what;
    }
    return {};
  }

 private:
  bool unit(const SeenUnit& u) const {
    return all_proper(u.kind, u.side, u.visible, u.attacking, u.invulnerable, u.melee, u.act, u.pos, u.velocity,
                      u.handle) &&
           within_or_none(u.hero, 2 * setup_.layout.heroes) && within_or_none(u.lane, 3) &&
           u.building <= t_.map->buildings.size() && within(u.type, t_.units.size()) &&
           u.modifier_count <= kUnitModifiers;
  }

  bool hero(const TeamView& v, const SeenHero& h) const {
    if (!all_proper(h.present, h.alive, h.in_sight, h.teleporting, h.invisible, h.using_ability, h.can_buyback,
                    h.tree_near, h.teleport_target))
      return false;
    if (!within_or_none(h.unit, v.unit_count) || (h.present && !within(h.def, t_.heroes.size()))) return false;
    if (h.modifier_count > kHeroModifiers || !command(h.previous)) return false;
    for (int m = 0; m < h.modifier_count; ++m)
      if (!within(h.modifiers[m].name, t_.modifiers.size())) return false;
    for (const SeenAbility& a : h.abilities)
      if (!all_proper(a.castable, a.in_use, a.toggled) || !within_or_none(a.id, t_.abilities.size())) return false;
    for (const SeenItem& i : h.items)
      if (!proper(i.castable) || !within_or_none(i.id, t_.items.size()) || (i.castable && i.id < 0)) return false;
    return std::abs(h.previous_offset[0]) <= 4 && std::abs(h.previous_offset[1]) <= 4;
  }

  bool view(int team, const TeamView& v) const {
    if (v.team != team || v.heroes_per_team != setup_.layout.heroes) return false;
    if (!all_proper(v.mirrored, v.time, v.day, v.roshan_alive, v.roshan_dead, v.roshan_cheese, v.roshan_refresher))
      return false;
    if (v.mirrored != (setup_.layout.table.mirror_dire && team == kDire)) return false;
    if (!within(v.unit_count, v.units.size() + 1) || !within(v.projectile_count, kViewProjectiles + 1) ||
        !within(v.area_count, kViewAreas + 1))
      return false;
    for (int i = 0; i < v.unit_count; ++i)
      if (!unit(v.units[i])) return false;
    for (const SeenUnit& u : v.remembered)
      if (!unit(u)) return false;
    for (const int i : v.index_of)
      if (!within_or_none(i, v.unit_count)) return false;
    for (const SeenHero& h : v.heroes)
      if (!hero(v, h)) return false;
    for (int i = 0; i < v.projectile_count; ++i) {
      const SeenProjectile& p = v.projectiles[i];
      if (!all_proper(p.kind, p.side, p.source_tower, p.source_ranged_creep, p.pos)) return false;
    }
    for (int i = 0; i < v.area_count; ++i)
      if (!all_proper(v.areas[i].side, v.areas[i].pos, v.areas[i].radius)) return false;
    for (const SeenPickup& p : v.pickups)
      if (!all_proper(p.seen_empty, p.outdated, p.pos)) return false;
    return true;
  }

  bool slots(const TeamView& v, const SlotTable& slots) const {
    if (slots.count != setup_.layout.units) return false;
    for (int i = 0; i < slots.count; ++i)
      if (!within_or_none(slots.unit[i], v.unit_count) || !proper(slots.handle[i])) return false;
    return true;
  }

  bool choices(const Choices& c) const {
    for (const auto& row : c.available)
      for (const std::uint16_t action : row)
        if (!action_exists(action)) return false;
    for (const auto& hero : c.mask)
      for (const auto& row : hero)
        for (const std::uint8_t valid : row)
          if (valid > 1) return false;
    return true;
  }

  bool memory(const BotMemory& m) const {
    for (const BotMemory::Hero& h : m.heroes)
      if (!all_proper(h.retreating, h.fighting, h.quiet, h.leave_until, h.next_decision, h.next_harass,
                      h.next_cast, h.next_ward, h.shrine_until, h.next_pull, h.lead_until, h.pull_ordered) ||
          !within_or_none(h.lane, 3) || !within_or_none(h.camp, t_.map->camps.size()) ||
          !within_or_none(h.ward_spot, m.warded_until.size()) || !command(h.last))
        return false;
    return all_proper(m.assigned, m.plan, m.plan_place, m.plan_until, m.next_plan, m.next_push, m.next_front,
                      m.next_smoke, m.next_roshan, m.focus_until, m.own_front, m.enemy_front, m.own_tower,
                      m.camp_empty_until, m.warded_until) &&
           within(m.plan_lane, 3);
  }

  bool action_exists(int action) const { return within(action, setup_.vocabulary.defs.size()); }
  bool command(const Command& c) const {
    return action_exists(c.action) && c.delay < kFramesPerStep && std::abs(c.dx) <= 4 && std::abs(c.dy) <= 4;
  }

  const GameSetup& setup_;
  const Tables& t_;
  const GameState& s_;
};

}  // namespace

std::string game_fault(const GameSetup& setup, const GameState& state) { return Checker(setup, state).fault(); }

}  // namespace dota
