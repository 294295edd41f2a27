#include "rules/validate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "effects/modifiers.hpp"
#include "effects/program_node.hpp"
#include "map/map_data.hpp"
#include "map/nav.hpp"
#include "rules/actions.hpp"
#include "rules/step.hpp"
#include "rules/well_formed.hpp"
#include "world/fields.hpp"
#include "world/fingerprint.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr char kMagic[] = "FIVEWRL1";
constexpr float kMostTurned = 100;       // radians: a facing is wrapped turn by turn
constexpr double kMostTicks = 10000;     // that may be due at once, one by one
constexpr int kMostFrames = 30'000'000;  // of any game: a million seconds, as for game time

// Looks at every field of a world for what its type says.
class Checker {
 public:
  bool sound = true;

  template <class... T>
  void all(const T&... list) {
    (one(list), ...);
  }

 private:
  template <class T>
  void one(const T& x) {
    if constexpr (kRestricted<T>) {
      sound = sound && well_formed(x);
    } else if constexpr (std::is_arithmetic_v<T>) {
      // Any whole number; those that are indices are looked at below.
    } else if constexpr (std::is_array_v<T>) {
      for (const auto& e : x)
        one(e);
    } else {
      fields(*this, x);
    }
  }
  template <class T, std::size_t N>
  void one(const std::array<T, N>& list) {
    for (const T& e : list)
      one(e);
  }
};

template <class... T>
bool lengths(T... list) {
  return ((std::fabs(list) <= kFarthest) && ...);
}

class State {
 public:
  State(const Context& c, const World& w) : t_(c.tables), map_(*c.tables.map), settings_(c.settings), w_(w) {}

  std::string fault() const {
    Checker checker;
    fields(checker, w_);
    if (!checker.sound) return "a value is NaN, or an enum value, position or handle is out of range";
    if (!counts()) return "a count is out of range";
    if (!events()) return "an event refers to something that does not exist";
    for (std::size_t i = 0; i < w_.units.size(); ++i)
      if (!unit(static_cast<int>(i), w_.units[i]))
        return "unit " + std::to_string(i) + " refers to something that does not exist";
    for (std::size_t i = 0; i < w_.heroes.size(); ++i)
      if (!hero(static_cast<int>(i), w_.heroes[i]))
        return "hero " + std::to_string(i) + " refers to something that does not exist";
    if (!loadouts())
      return "a set of ability and item slots has no owner, more than one, or one that cannot have it";
    if (!modifiers())
      return "a modifier is in no list, in two, ticks without end, or refers to something that does not exist";
    if (!effects())
      return "a projectile, area or delayed effect refers to something that does not exist, or ticks without end";
    if (!cells()) return "the spatial index is inconsistent";
    return {};
  }

 private:
  bool node(int ability, int n) const {
    return within(ability, t_.abilities.size()) && within(n, t_.abilities[ability].program.nodes.size());
  }
  bool of_item(int ability) const { return ability >= 0 && t_.abilities[ability].is_item >= 0; }
  // Items change their side's state: what belongs to no side has none, and no effect of one.
  bool sided(int team, int ability) const { return team < kTeams || (team == kNeutralTeam && !of_item(ability)); }
  bool abilities(const std::array<AbilityState, kAbilitySlots>& list) const {
    for (const AbilityState& a : list)
      if (!within_or_none(a.id, t_.abilities.size()) || of_item(a.id) || a.level < 0 || a.level > 25) return false;
    return true;
  }
  template <std::size_t N>
  bool items(const std::array<ItemState, N>& list) const {
    for (const ItemState& i : list)
      if (!within_or_none(i.id, t_.items.size())) return false;
    return true;
  }
  bool order(const Order& o) const {
    return (o.slot == -1 || within(o.slot, 16 + kItemSlots)) && within_or_none(o.tree, map_.trees.size());
  }
  // Returns whether a periodic effect ticks at a finite rate and does not owe an unbounded number of ticks.
  bool ticks(double next, float interval) const {
    return interval <= 0 || (interval >= kShortestInterval && (w_.time - next) / interval < kMostTicks);
  }
  bool command(const Command& c) const {
    return c.delay < kFramesPerStep && c.action >= 0 && std::abs(c.dx) <= 4 && std::abs(c.dy) <= 4 &&
           (!settings_.actions || std::cmp_less(c.action, settings_.actions->defs.size()));
  }

  bool counts() const {
    for (const std::int32_t n : {w_.frame, w_.step_index, w_.waves})
      if (n < 0 || n > kMostFrames) return false;
    if (w_.heroes_per_team > 5) return false;
    if (w_.units_end < 0 || w_.units_end > kMaxUnits || w_.modifiers_end < 0 || w_.modifiers_end > kMaxModifiers)
      return false;
    if (w_.projectiles_end < 0 || w_.projectiles_end > kMaxProjectiles) return false;
    if (w_.areas_end < 0 || w_.areas_end > kMaxAreas || w_.delayed_end < 0 || w_.delayed_end > kMaxDelayed)
      return false;
    if (w_.time < -1e6f || w_.time > 1e6f || w_.nav.trees_down < 0) return false;
    for (std::size_t i = 0; i < w_.camps.size(); ++i)
      if (w_.camps[i].last_set < -1) return false;
    for (const Pickup& p : w_.pickups)
      if (!within_or_none(p.kind, ordinal(PickupKind::Count)) || (p.present && p.kind < 0)) return false;
    for (const GroundItem& g : w_.ground)
      if (!within_or_none(g.id, t_.items.size())) return false;
    const std::size_t buildings = map_.buildings.size();
    const std::uint64_t none = buildings >= 64 ? 0 : ~0ull << buildings;
    for (std::size_t i = 0; i < w_.tree_regrow.size(); ++i) {
      const bool felled = (w_.nav.felled[i >> 6] >> (i & 63)) & 1u;
      if (felled && i >= map_.trees.size()) return false;
    }
    return !(w_.buildings_standing & none) && !(w_.nav.buildings & none);
  }

  bool events() const {
    if (w_.event_count < 0 || w_.event_count > kMaxEvents) return false;
    for (int k = 0; k < w_.event_count; ++k) {
      const Event& e = w_.events[k];
      std::uint8_t kind;
      std::memcpy(&kind, &e.kind, 1);
      const std::size_t things = e.kind == EventKind::Cast || e.kind == EventKind::Learned ? t_.abilities.size()
                                 : e.kind == EventKind::Rune ? ordinal(PickupKind::Count)
                                                             : t_.items.size();
      if (kind >= kEventKinds || !within_or_none(e.unit_type, t_.units.size()) ||
          !within_or_none(e.other_type, t_.units.size()) || !within_or_none(e.id, things))
        return false;
    }
    return true;
  }

  bool unit(int index, const Unit& u) const {
    const std::uint64_t bit = 1ull << (index & 63);
    for (int k = 1; k < kUnitKinds; ++k) {
      const bool listed = w_.of_kind[k][index >> 6] & bit;
      if (listed != (static_cast<int>(u.kind) == k)) return false;
    }
    if (u.kind == UnitKind::None) return true;
    if (index >= w_.units_end || !within(u.type, t_.units.size()) || u.team > kNeutralTeam) return false;
    if (!within_or_none(u.hero, kMaxHeroes) || (u.kind == UnitKind::Hero) != (u.hero >= 0)) return false;
    if (u.hero >= 0 && !(w_.heroes[u.hero].in_game && w_.heroes[u.hero].unit == w_.handle(u))) return false;
    if (u.hero >= 0 && (u.team != u.hero / 5 || u.loadout != -1)) return false;
    if (!within_or_none(u.lane, 3) || u.tier > 4 || u.building > map_.buildings.size()) return false;
    if (is_building(u.kind) != (u.building != 0)) return false;
    const bool of_a_side =
        u.building || u.kind == UnitKind::LaneCreep || u.kind == UnitKind::Courier || u.kind == UnitKind::Ward;
    if (of_a_side && u.team >= kTeams) return false;
    if (!within_or_none(u.stacker, kMaxHeroes) || !within_or_none(u.drawn_by, kMaxHeroes)) return false;
    if (!within_or_none(u.camp, map_.camps.size()) || !within_or_none(u.loadout, kMaxLoadouts)) return false;
    if (!within_or_none(u.modifiers, kMaxModifiers)) return false;
    if (std::fabs(u.facing) > kMostTurned || u.turn_rate < 0) return false;
    if (!lengths(u.radius, u.attack_range, u.move_speed, u.vision_day, u.vision_night, u.true_sight, u.cast_range))
      return false;
    if (u.path < -1 || u.path > 2 || u.path_n > kPathPoints || u.path_i > u.path_n) return false;
    if (u.path == 1 && u.path_i >= u.path_n) return false;
    if (u.lane >= 0 && u.team < kTeams) {
      const auto& way = map_.lanes[u.team][u.lane].waypoints;
      if (!within(u.waypoint, way.size())) return false;
    } else if (u.order.type == OrderType::FollowLane || u.queued.type == OrderType::FollowLane) {
      return false;
    }
    return order(u.order) && order(u.queued);
  }

  bool hero(int index, const HeroState& h) const {
    if (!command(h.pending) || !command(h.previous)) return false;
    if (!h.in_game) return true;
    if (!within(h.def, t_.heroes.size()) || h.level < 1 || h.level > t_.game->max_level) return false;
    const Unit* u = w_.get(h.unit);
    if (!u || u->hero != index) return false;
    // A swap changes an entry of the skill order and the next one.
    const std::size_t swaps = std::max<std::size_t>(t_.heroes[h.def].skill_build.size(), 1) - 1;
    if (swaps < 32 && h.skill_swaps >> swaps) return false;
    if (!within_or_none(h.recipe, t_.items.size()) || (h.recipe >= 0 && t_.items[h.recipe].recipes.empty()))
      return false;
    return h.build_next >= 0 && h.passive_ticks >= 0 && within_or_none(h.build_insert, t_.items.size()) &&
           within_or_none(h.secret_wish, t_.items.size()) && abilities(h.abilities) && items(h.items);
  }

  bool loadouts() const {
    std::array<int, kMaxLoadouts> owners{};
    for (const Unit& u : w_.units)
      if (u.kind != UnitKind::None && u.loadout >= 0) {
        ++owners[u.loadout];
        for (const ItemState& i : w_.loadouts[u.loadout].items)
          if (u.team >= kTeams && i.id >= 0) return false;
      }
    for (std::size_t k = 0; k < owners.size(); ++k)
      if (owners[k] != (w_.loadouts[k].used ? 1 : 0) || !abilities(w_.loadouts[k].abilities) ||
          !items(w_.loadouts[k].items))
        return false;
    return true;
  }

  bool modifiers() const {
    std::array<bool, kMaxModifiers> listed{};
    for (std::size_t i = 0; i < w_.units.size(); ++i) {
      const Unit& u = w_.units[i];
      if (u.kind == UnitKind::None) continue;
      for (int k = u.modifiers; k != -1; k = w_.modifiers[k].next) {
        if (!within(k, kMaxModifiers) || listed[k]) return false;
        listed[k] = true;
        const Modifier& m = w_.modifiers[k];
        if (k >= w_.modifiers_end || m.owner != static_cast<int>(i)) return false;
        if (!within(m.name, t_.modifiers.size()) || m.damage_type > 3) return false;
        if (!node(m.ability, m.node) || !ticks(m.next_tick, m.interval)) return false;
      }
    }
    for (int k = w_.modifier_free; k != -1; k = w_.modifiers[k].next) {
      if (!within(k, w_.modifiers_end) || listed[k]) return false;
      listed[k] = true;
      if (w_.modifiers[k].owner != -1) return false;
    }
    for (int k = 0; k < w_.modifiers_end; ++k)
      if (!listed[k]) return false;
    return true;
  }

  bool effects() const {
    for (std::size_t i = 0; i < w_.projectiles.size(); ++i) {
      const Projectile& p = w_.projectiles[i];
      if (p.kind == Projectile::Kind::None) continue;
      if (static_cast<int>(i) >= w_.projectiles_end) return false;
      if (!lengths(p.speed, p.travelled, p.length, p.w0, p.w1)) return false;
      if (p.kind == Projectile::Kind::Attack ? p.ability != -1 : !node(p.ability, p.node)) return false;
      if (!sided(p.team, p.ability)) return false;
    }
    for (std::size_t i = w_.areas_end; i < w_.areas.size(); ++i)
      if (w_.areas[i].active) return false;
    for (std::size_t i = w_.delayed_end; i < w_.delayed.size(); ++i)
      if (w_.delayed[i].active) return false;
    for (const Area& a : w_.areas)
      if (a.active && (!node(a.ability, a.node) || !sided(a.team, a.ability) || !lengths(a.radius) ||
                       !ticks(a.next_tick, a.interval)))
        return false;
    if (!within(w_.stack_ends_count, kMaxStackEnds + 1)) return false;
    for (int i = 0; i < w_.stack_ends_count; ++i)
      if (!within(w_.stack_ends[i].modifier, kMaxModifiers)) return false;
    for (const Delayed& d : w_.delayed)
      if (d.active && (!node(d.ability, d.node) || !sided(d.team, d.ability))) return false;
    return true;
  }

  bool cells() const {
    if (!w_.nav.ready) return false;
    std::array<bool, kMaxUnits> listed{};
    for (std::size_t cell = 0; cell < w_.nav.head.size(); ++cell) {
      int before = -1;
      for (int i = w_.nav.head[cell]; i != -1; i = w_.nav.next[i]) {
        if (!within(i, kMaxUnits) || listed[i]) return false;
        if (w_.nav.cell[i] != static_cast<int>(cell) || w_.nav.prev[i] != before) return false;
        listed[i] = true;
        before = i;
      }
    }
    for (std::size_t i = 0; i < listed.size(); ++i)
      if (listed[i] != (w_.nav.cell[i] != -1)) return false;
    return true;
  }

  const Tables& t_;
  const MapData& map_;
  const GameSettings& settings_;
  const World& w_;
};

}  // namespace

std::string world_fault(const Context& c, const World& w) { return State(c, w).fault(); }

std::string derived_fault(const Context& c) {
  const World& w = c.world;
  for (std::size_t i = 0; i < w.units.size(); ++i) {
    const Unit& u = w.units[i];
    const bool listed = w.nav.cell[i] >= 0, stale = w.nav.stale[i >> 6] >> (i & 63) & 1u;
    if (listed != (u.kind != UnitKind::None && u.alive) && !stale)
      return "unit " + std::to_string(i) + " is listed, and is not there, or the other way round";
    if (!listed) continue;
    const Body& b = w.nav.bodies[i];
    if (w.nav.cell[i] != hash_coordinate(u.pos.y) * kHashCells + hash_coordinate(u.pos.x))
      return "unit " + std::to_string(i) + " is listed where it does not stand";
    if (b.pos.x != u.pos.x || b.pos.y != u.pos.y || b.radius != u.radius || b.next != w.nav.next[i])
      return "the body of unit " + std::to_string(i) + " is not the unit's";
  }
  for (std::size_t i = 0; i < w.modifiers.size(); ++i) {
    const Modifier& m = w.modifiers[i];
    const bool watched = w.modifiers_watched[i >> 6] >> (i & 63) & 1u;
    if (w.modifiers_slow[i >> 6] >> (i & 63) & 1u && !(watched && m.until >= kForever && m.interval <= 0))
      return "modifier " + std::to_string(i) + " ticks or ends, and is looked at once a timestep";
    if (m.owner < 0 || m.node < 0) {
      if (watched) return "modifier " + std::to_string(i) + " is watched, but does not exist";
      continue;
    }
    if (m.rests != rests(m, node_of(c, m.ability, m.node)))
      return "modifier " + std::to_string(i) + " rests, and should not, or the other way round";
    if (!watched && (m.until < kForever || !m.rests)) return "modifier " + std::to_string(i) + " is not watched";
  }
  return {};
}

std::vector<std::uint8_t> world_snapshot(const Context& c) {
  std::vector<std::uint8_t> out(sizeof(SnapshotHead) + sizeof(World));
  std::memcpy(out.data() + sizeof(SnapshotHead), &c.world, sizeof(World));
  const SnapshotHead head = snapshot_head(kMagic, c.tables.fingerprint, settings_fingerprint(c.settings),
                                          out.data() + sizeof(SnapshotHead), sizeof(World));
  std::memcpy(out.data(), &head, sizeof head);
  return out;
}

void restore_world(Context& c, const void* bytes, std::size_t size) {
  const SnapshotHead head = read_snapshot_head(kMagic, bytes, size, sizeof(World));
  if (head.data != c.tables.fingerprint)
    throw std::invalid_argument(
        "snapshot: it was taken of a game with other data (another patch, or data that were "
        "corrected since)");
  if (head.settings != settings_fingerprint(c.settings))
    throw std::invalid_argument("snapshot: it was taken of a game with other settings");
  auto w = std::make_unique<World>();
  std::memcpy(static_cast<void*>(w.get()), static_cast<const std::uint8_t*>(bytes) + sizeof head, sizeof(World));
  if (const std::string fault = world_fault(c, *w); !fault.empty())
    throw std::invalid_argument("snapshot: " + fault);
  std::memcpy(static_cast<void*>(&c.world), w.get(), sizeof(World));
  renew_derived(c);
}

}  // namespace dota
