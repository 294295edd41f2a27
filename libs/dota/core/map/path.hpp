// Where a ground unit walks next.
#pragma once

#include "map/nav.hpp"

namespace dota {

constexpr int kPathRadius = 16;         // half side of the window that detours are searched in, cells
constexpr float kReplanSeconds = 1.0f;  // how long a path is kept at most

// Way through open cells within kPathRadius cells of `from`, shortened to the corners it turns at. Writes up to
// Unit::path_points.size() corners, the goal last when it fits; returns their number, 0 when there is no way.
int find_detour(const World& w, Vec2 from, Vec2 goal, std::array<Vec2, kPathPoints>& corners);

// Makes u.path, path_end and path_points for the goal.
void plan_path(Context& c, Unit& u, Vec2 goal);

// Unit::path
enum PathMode : std::int16_t { kNoPath = -1, kStraightPath = 0, kCornerPath = 1, kFieldPath = 2 };

}  // namespace dota
