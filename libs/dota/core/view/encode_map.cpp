// The spatial blocks: the minimap's cells and the terrain around each own hero.
#include <algorithm>
#include <cmath>

#include "view/encoder.hpp"

namespace dota {

namespace {
constexpr float kHalfWorld = 8320.0f;

bool is_creep(const SeenUnit& s) {
  return s.kind == UnitKind::LaneCreep || s.kind == UnitKind::Neutral || s.kind == UnitKind::Summon ||
         s.kind == UnitKind::Roshan;
}
}  // namespace

void Encoder::encode_minimap(const TeamView& v) {
  const auto& k = layout_.minimap;
  const int n = layout_.table.minimap, cells = n * n;
  for (int i = 0; i < cells; ++i)
    std::copy_n(minimap_cells_[static_cast<std::size_t>(i)].begin(), 3, &f(k.cell, i));
  for (int i = 0; i < cells; ++i)
    f(k.visible, i) = v.minimap_visible[static_cast<std::size_t>(v.mirrored ? cells - 1 - i : i)];
  for (int u = 0; u < v.unit_count; ++u) {
    const SeenUnit& s = v.units[static_cast<std::size_t>(u)];
    const int enemy = s.side == Side::Own ? 0 : 1;
    const bool creep = is_creep(s) && s.side != Side::Neutral, ward = s.kind == UnitKind::Ward;
    const bool enemy_hero = s.kind == UnitKind::Hero && enemy && s.visible;
    if (!creep && !ward && !enemy_hero) continue;
    const float size = 2 * kHalfWorld / static_cast<float>(n);
    const int x = std::clamp(static_cast<int>((s.pos.x * turn_ + kHalfWorld) / size), 0, n - 1);
    const int y = std::clamp(static_cast<int>((s.pos.y * turn_ + kHalfWorld) / size), 0, n - 1);
    const int i = y * n + x;
    if (creep) f(k.creeps, i, enemy) += scale::kCount;
    if (ward) f(k.wards, i, enemy) += scale::kCount;
    if (enemy_hero) f(k.enemy_heroes, i) += scale::kCount;
  }
}

void Encoder::encode_nearby(const TeamView& v) {
  const auto& k = layout_.nearby;
  const int n = layout_.table.nearby_map, cells = n * n;
  const float half = 0.5f * static_cast<float>(n) * kNearbyCell;
  struct Creep {
    Vec2 pos;
    int enemy;
  };
  std::array<Creep, kMaxUnits + 5> creep;
  int creeps = 0;
  for (int u = 0; u < v.unit_count; ++u) {
    const SeenUnit& s = v.units[static_cast<std::size_t>(u)];
    if (is_creep(s)) creep[static_cast<std::size_t>(creeps++)] = {s.pos, s.side == Side::Own ? 0 : 1};
  }
  for (int h = 0; h < layout_.heroes; ++h) {
    const SeenUnit* me = v.body(h);
    if (!me) continue;
    const auto at = static_cast<std::size_t>(h);
    for (int i = 0; i < cells; ++i) {
      const auto from = static_cast<std::size_t>(v.mirrored ? cells - 1 - i : i);
      p(h, k.elevation, i) = static_cast<float>(v.nearby_level[at][from]) * scale::kLevelZ;
      p(h, k.passable, i) = static_cast<float>(v.nearby_passable[at][from]);
    }
    for (int u = 0; u < creeps; ++u) {
      const Creep& s = creep[static_cast<std::size_t>(u)];
      const Vec2 d = (s.pos - me->pos) * turn_;
      if (std::fabs(d.x) >= half || std::fabs(d.y) >= half) continue;
      const int x = static_cast<int>((d.x + half) / kNearbyCell), y = static_cast<int>((d.y + half) / kNearbyCell);
      p(h, k.creeps, std::min(y, n - 1) * n + std::min(x, n - 1), s.enemy) += scale::kCount;
    }
    for (int a = 0; a < v.area_count; ++a) {
      const SeenArea& s = v.areas[static_cast<std::size_t>(a)];
      const Vec2 d = (s.pos - me->pos) * turn_;
      const float reach = half + s.radius;
      if (s.ability < 0 || std::fabs(d.x) >= reach || std::fabs(d.y) >= reach) continue;
      for (int i = 0; i < cells; ++i) {
        const Vec2 cell{(static_cast<float>(i % n) + 0.5f) * kNearbyCell - half,
                        (static_cast<float>(i / n) + 0.5f) * kNearbyCell - half};
        if (distance(cell, d) > s.radius + 0.5f * kNearbyCell) continue;
        // The first two effects that cover the cell; its float is whose they are: own 1, others -1.
        for (int e = 0; e < 2; ++e) {
          std::uint16_t& effect = pid(h, k.area_effect, i, e);
          if (effect != 0) continue;
          effect = v.constants.ids->of(v.constants.ids->ability, s.ability);
          p(h, k.area, i, e) = s.side == Side::Own ? 1.0f : -1.0f;
          break;
        }
      }
    }
  }
}

}  // namespace dota
