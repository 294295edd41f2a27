// The spatial blocks: the minimap's cells and the terrain around each own hero.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "view/encoder.hpp"
#include "view/half.hpp"

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
    std::copy_n(minimap_cells_[i].begin(), 3, &f(k.cell, i));
  for (int i = 0; i < cells; ++i)
    f(k.visible, i) = v.minimap_visible[v.mirrored ? cells - 1 - i : i];
  for (int u = 0; u < v.unit_count; ++u) {
    const SeenUnit& s = v.units[u];
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

void Encoder::encode_nearby(const TeamView& v, std::uint16_t* all_private) {
  const auto& k = layout_.nearby;
  const Rows& rows = layout_.ground_rows;
  const int n = layout_.table.nearby_map, cells = n * n;
  const float half = 0.5f * static_cast<float>(n) * kNearbyCell;
  struct Creep {
    Vec2 pos;
    int enemy;
  };
  std::array<Creep, kMaxUnits + 5> creep;
  int creeps = 0;
  for (int u = 0; u < v.unit_count; ++u) {
    const SeenUnit& s = v.units[u];
    if (is_creep(s)) creep[creeps++] = {s.pos, s.side == Side::Own ? 0 : 1};
  }
  std::array<GroundRow, kMaxGridSide * kMaxGridSide> ground;
  std::array<float, kMaxGridSide * kMaxGridSide> away;                           // of cells from an effect
  std::array<std::array<std::uint16_t, 2>, kMaxGridSide * kMaxGridSide> around;  // creeps, own and other
  for (int h = 0; h < layout_.heroes; ++h) {
    std::uint16_t* const out = all_private + h * width_private_ + rows.row(0);
    prefetch_some(ahead_);
    const SeenUnit* me = v.body(h);
    if (!me) {
      std::fill_n(out, rows.stride * cells, std::uint16_t{0});
      continue;
    }
    std::fill_n(around.begin(), cells, std::array<std::uint16_t, 2>{});
    for (int u = 0; u < creeps; ++u) {
      const Creep& s = creep[u];
      const Vec2 d = (s.pos - me->pos) * turn_;
      if (std::fabs(d.x) >= half || std::fabs(d.y) >= half) continue;
      const int x = static_cast<int>((d.x + half) / kNearbyCell), y = static_cast<int>((d.y + half) / kNearbyCell);
      const std::size_t i = std::min(y, n - 1) * n + std::min(x, n - 1);
      ++around[i][s.enemy];
    }
    for (int i = 0; i < cells; ++i) {
      const int to = i, from = v.mirrored ? cells - 1 - i : i;
      ground[to] = {levels_[static_cast<std::uint8_t>(v.nearby_level[h][from])],
                    static_cast<std::uint16_t>(v.nearby_passable[h][from] * kHalfOne),
                    {counts_[around[to][0]], counts_[around[to][1]]},
                    {0, 0}};
    }
    for (int a = 0; a < v.area_count; ++a) {
      const SeenArea& s = v.areas[a];
      const Vec2 d = (s.pos - me->pos) * turn_;
      const float reach = half + s.radius;
      if (s.ability < 0 || std::fabs(d.x) >= reach || std::fabs(d.y) >= reach) continue;
      const float most = s.radius + 0.5f * kNearbyCell;
      for (int i = 0; i < cells; ++i)
        away[i] = distance({cell_x_[i], cell_y_[i]}, d);
      for (int i = 0; i < cells; ++i) {
        if (away[i] > most) continue;
        // The first two effects that cover the cell; its float is whose they are: own 1, others -1.
        for (std::size_t e = 0; e < 2; ++e) {
          std::uint16_t& effect = pid(h, k.area_effect, i, static_cast<int>(e));
          if (effect != 0) continue;
          effect = v.constants.ids->of(v.constants.ids->ability, s.ability);
          ground[i].area[e] = s.side == Side::Own ? kHalfOne : kHalfMinusOne;
          break;
        }
      }
    }
    if (rows.whole()) {
      std::memcpy(out, ground.data(), cells * sizeof(GroundRow));
      continue;
    }
    for (int i = 0; i < cells; ++i)
      for (const Rows::Piece& p : rows.pieces)
        std::copy_n(reinterpret_cast<const std::uint16_t*>(&ground[i]) + p.from, p.n,
                    out + i * rows.stride + p.at);
  }
}

}  // namespace dota
