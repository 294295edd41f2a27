#include <cmath>

#include "bots/scene.hpp"
#include "map/routes.hpp"

namespace dota {
namespace {

constexpr int kStepsAhead = 8;          // cells of a way that one order takes
constexpr float kTeleportSaves = 3600;  // world units that a scroll must save

bool open_ground(const MapData& map, Vec2 p) {
  const Cell c = cell_of(p);
  return c.inside() && map.routes->open_at_start(c.index());
}

// Returns the region whose travel field leads to p, or to an open cell near p; -1 if no region's does.
int region_at(const MapData& map, Vec2 p) {
  const Cell goal = cell_of(p);
  return goal.inside() ? map.routes->goal_region[goal.index()] : -1;
}

}  // namespace

float walk(const Situation& s, Vec2 p) {
  const MapData& map = s.scene.map;
  const int region = region_at(map, p);
  const Cell at = cell_of(s.body.pos);
  if (region < 0 || !at.inside()) return s.away(p);
  const int cost = map.routes->costs_to(map, region)[at.index()];
  return cost < 0 ? s.away(p) : static_cast<float>(cost) * (kCell / kStraight);
}

Command move_to(const Situation& s, Vec2 p) {
  const float cell = s.view.constants.settings->offset_cell;
  Vec2 d = p - s.body.pos;
  const float reach = 4.0f * cell, length = d.length();
  if (length < 0.5f * cell) return with(kNoop);
  if (length > reach) d = d * (reach / length);
  Command c = with(kMove);
  c.dx = static_cast<std::int8_t>(std::clamp(std::lround(d.x / cell), -4l, 4l));
  c.dy = static_cast<std::int8_t>(std::clamp(std::lround(d.y / cell), -4l, 4l));
  return c.dx == 0 && c.dy == 0 ? with(kNoop) : c;
}

Command travel(const Situation& s, Vec2 p) {
  const float cell = s.view.constants.settings->offset_cell;
  if (s.away(p) < 5.0f * cell) return move_to(s, p);
  const MapData& map = s.scene.map;
  const Cell start = cell_of(s.body.pos);
  const int region = region_at(map, p);
  if (region < 0 || !start.inside()) return move_to(s, p);
  const FlowField& field = map.routes->field(map, region);
  // On a long way, with nobody about, nothing changes from one timestep to the next.
  if (s.memory.quiet && s.away(p) > 1500.0f)
    s.memory.next_decision = s.view.time + std::max(0.4f, s.skill.decide_every);
  Cell at = start;
  Command best = with(kNoAction);
  for (int i = 0; i < kStepsAhead; ++i) {
    const std::uint8_t step = field.at(at);
    if (step >= kAtGoal) break;
    at = {at.x + kStepX[step], at.y + kStepY[step]};
    if (i < 2) continue;
    const Vec2 d = cell_center(at) - s.body.pos;
    const long dx = std::lround(d.x / cell), dy = std::lround(d.y / cell);
    if (std::abs(dx) > 4 || std::abs(dy) > 4) break;
    const Vec2 rounded = s.body.pos + Vec2{static_cast<float>(dx), static_cast<float>(dy)} * cell;
    if ((dx == 0 && dy == 0) || !open_ground(map, rounded)) continue;
    best = with(kMove);
    best.dx = static_cast<std::int8_t>(dx);
    best.dy = static_cast<std::int8_t>(dy);
  }
  return said(best) ? best : move_to(s, p);
}

Command go_home(const Situation& s) {
  if (s.away(s.scene.home) < 500.0f) return with(kNoop);
  return travel(s, s.scene.home);
}

Command teleport_towards(const Situation& s, Vec2 p) {
  const int scroll = s.scene.book.teleport;
  if (!s.skill.teleports || !s.offered(scroll) || s.away(p) < kTeleportSaves + 1500.0f) return {};
  const SeenUnit* best = nullptr;
  float nearest = s.away(p) - kTeleportSaves;
  for (const int i : s.scene.own_buildings) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind == UnitKind::Filler) continue;
    const float left = distance(u.pos, p);
    if (left >= nearest || is_lost(s, u.pos)) continue;
    nearest = left;
    best = &u;
  }
  if (!best) return {};
  Command c = with(scroll);
  c.teleport = best->handle;
  return c;
}

}  // namespace dota
