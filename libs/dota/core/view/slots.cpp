// Assignment of units to observation slots.
#include <algorithm>
#include <tuple>
#include <vector>

#include "map/map_data.hpp"
#include "view/team_view.hpp"

namespace dota {

ViewConstants make_constants(const Tables& tables, const GameSettings& settings, const ActionVocabulary& actions,
                             const RegistryIds& ids) {
  ViewConstants out{&tables, &settings, &actions, &ids, {}, -1, nullptr};
  const auto treads = tables.item_index.find("item_power_treads");
  if (treads != tables.item_index.end()) out.treads = treads->second;
  for (std::size_t turned = 0; turned < 2; ++turned)
    for (int team = 0; team < kTeams; ++team) {
      std::vector<std::tuple<int, int, int, std::size_t>> order;  // importance, tier, lane, building
      for (std::size_t b = 0; b < tables.map->buildings.size() && b < 64; ++b) {
        const MapBuilding& building = tables.map->buildings[b];
        if (building.team != team) continue;
        const int lane = static_cast<int>(building.lane);
        const bool played = lane < 0 || settings.lane_enabled[lane];
        int importance = 7;
        switch (building.kind) {
          case UnitKind::Tower:
            importance = lane < 0 ? 1 : (played ? 0 : 6);
            break;
          case UnitKind::Fort:
            importance = 2;
            break;
          case UnitKind::Barracks:
            importance = played ? 3 : 6;
            break;
          case UnitKind::Shrine:
            importance = 4;
            break;
          case UnitKind::Fountain:
            importance = 5;
            break;
          default:
            break;
        }
        order.emplace_back(importance, building.tier, turned && lane >= 0 ? 2 - lane : lane, b);
      }
      std::sort(order.begin(), order.end());
      for (std::size_t rank = 0; rank < order.size(); ++rank)
        out.building_slot[turned][std::get<3>(order[rank])] = static_cast<std::int8_t>(rank);
    }
  return out;
}
namespace {

struct Candidate {
  float distance2;
  std::int16_t index, unit;  // world slot, index into units
  bool operator<(const Candidate& o) const {
    return distance2 != o.distance2 ? distance2 < o.distance2 : index < o.index;
  }
};

Group group_of(const SeenUnit& s) {
  const bool own = s.side == Side::Own;
  switch (s.kind) {
    case UnitKind::Neutral:
    case UnitKind::Roshan:
      return s.side == Side::Neutral ? Group::NeutralCreeps : (own ? Group::AlliedCreeps : Group::EnemyCreeps);
    case UnitKind::LaneCreep:
    case UnitKind::Summon:
      return s.side == Side::Neutral ? Group::NeutralCreeps : (own ? Group::AlliedCreeps : Group::EnemyCreeps);
    case UnitKind::Courier:
      return own ? Group::AlliedCourier : Group::EnemyCourier;
    case UnitKind::Ward:
      return own ? Group::AlliedWards : Group::EnemyWards;
    case UnitKind::Hero:
    case UnitKind::None:
      return Group::Count;
    default:
      return own ? Group::AlliedBuildings : Group::EnemyBuildings;
  }
}

}  // namespace

void assign_slots(const Layout& layout, const TeamView& v, SlotTable& out) {
  out.count = static_cast<std::int16_t>(layout.units);
  for (int i = 0; i < layout.units; ++i) {
    out.unit[i] = -1;
    out.handle[i] = {};
  }
  const auto put = [&](int slot, int unit) {
    out.unit[slot] = static_cast<std::int16_t>(unit);
    out.handle[slot] = v.units[unit].handle;
  };
  const int n = v.heroes_per_team;
  std::array<Vec2, 5> own{};
  int own_count = 0;
  for (int i = 0; i < 2 * n; ++i) {
    const int unit = v.heroes[i].unit;
    if (unit < 0) continue;
    put(i < n ? layout.group(Group::AlliedHeroes).start + i : layout.group(Group::EnemyHeroes).start + i - n,
        unit);
    if (i < n) own[own_count++] = v.units[unit].pos;
  }
  std::array<std::array<Candidate, kMaxUnits>, kGroups> lists;
  std::array<int, kGroups> counts{};
  for (int i = 0; i < v.unit_count; ++i) {
    const SeenUnit& s = v.units[i];
    const Group g = group_of(s);
    if (g == Group::Count) continue;
    if (s.building > 0) {
      const int rank = v.constants.building_slot[v.mirrored ? 1 : 0][s.building - 1];
      if (rank < layout.group(g).count) put(layout.group(g).start + rank, i);
      continue;
    }
    float nearest = 1e18f;
    for (int h = 0; h < own_count; ++h) {
      const Vec2 d = s.pos - own[h];
      nearest = std::min(nearest, d.dot(d));
    }
    const std::size_t group = ordinal(g);
    lists[group][counts[group]++] = {nearest, s.handle.index, static_cast<std::int16_t>(i)};
  }
  for (std::size_t g = 0; g < kGroups; ++g) {
    const auto begin = lists[g].begin(), end = begin + counts[g];
    const int take = std::min(counts[g], layout.groups[g].count);
    if (take == counts[g])
      std::sort(begin, end);
    else
      std::partial_sort(begin, begin + take, end);
    for (int i = 0; i < take; ++i)
      put(layout.groups[g].start + i, lists[g][i].unit);
  }
}

}  // namespace dota
