#include "map/path.hpp"

#include <algorithm>
#include <cstdlib>

#include "map/routes.hpp"

namespace dota {

namespace {

constexpr int kSide = 2 * kPathRadius + 1;
constexpr int kWindow = kSide * kSide;
constexpr int kFieldAhead = 24;  // cells of a flow field that are looked along for a straight line

// Scratch of one search; its contents never outlive a call.
struct Search {
  std::array<std::uint16_t, kWindow> cost;
  std::array<std::uint8_t, kWindow> from;
  std::array<std::uint32_t, kWindow * 8> heap;  // estimate << 11 | window cell
  int heap_n = 0;

  static constexpr std::uint16_t kFar = 0xffff;
  void push(int estimate, int cell) {
    if (heap_n == static_cast<int>(heap.size())) return;
    heap[heap_n++] = static_cast<std::uint32_t>(estimate) << 11 | static_cast<std::uint32_t>(cell);
    std::push_heap(heap.begin(), heap.begin() + heap_n, std::greater<>());
  }
  std::uint32_t pop() {
    std::pop_heap(heap.begin(), heap.begin() + heap_n, std::greater<>());
    return heap[--heap_n];
  }
};
static_assert(kWindow <= 2048);

int octile(int dx, int dy) {
  dx = std::abs(dx);
  dy = std::abs(dy);
  return kStraight * std::max(dx, dy) + (kDiagonal - kStraight) * std::min(dx, dy);
}

Vec2 point_in_cell(Cell c, Vec2 near) {
  const Vec2 m = cell_center(c);
  constexpr float kInset = kCell / 2 - 1.0f;
  return {std::clamp(near.x, m.x - kInset, m.x + kInset), std::clamp(near.y, m.y - kInset, m.y + kInset)};
}

// The cells of a found way, start to goal, cut down to the last of them that each point sees straight.
int pull_straight(const World& w, Vec2 from, Vec2 goal, const int* way, int n, Cell corner,
                  std::array<Vec2, kPathPoints>& corners) {
  const auto place = [&](int i) {
    if (i == n - 1) return goal;
    return cell_center({corner.x + way[i] % kSide, corner.y + way[i] / kSide});
  };
  int out = 0;
  Vec2 at = from;
  for (int i = 0; i < n && out < kPathPoints;) {
    int far = i;
    while (far + 1 < n && line_open(w, at, place(far + 1)))
      ++far;
    at = place(far);
    corners[out++] = at;
    i = far + 1;
  }
  return out;
}

void set_straight(Unit& u, Vec2 end) {
  u.path = kStraightPath;
  u.path_n = 1;
  u.path_i = 0;
  u.path_points[0] = end;
}

bool set_detour(Context& c, Unit& u, Vec2 end) {
  const int n = find_detour(c.world, u.pos, end, u.path_points);
  if (n == 0) return false;
  u.path = kCornerPath;
  u.path_n = static_cast<std::uint8_t>(n);
  u.path_i = 0;
  return true;
}

// The farthest place along the flow field that can be walked to straight.
bool follow_field(Context& c, Unit& u, int goal_cell) {
  const MapData& map = *c.tables.map;
  const int region = map.routes->region[goal_cell];
  if (region < 0) return false;
  const FlowField& field = map.routes->field(map, region);
  Cell at = cell_of(u.pos);
  if (!at.inside() || field.at(at) == kNoWay) return false;
  Vec2 best = u.pos;
  bool any = false;
  for (int i = 0; i < kFieldAhead; ++i) {
    const std::uint8_t s = field.at(at);
    if (s >= kAtGoal) break;
    at = {at.x + kStepX[s], at.y + kStepY[s]};
    const Vec2 p = cell_center(at);
    if (!line_open(c.world, u.pos, p)) {
      if (any) break;
      continue;
    }
    best = p;
    any = true;
  }
  if (!any) return false;
  u.path = kFieldPath;
  u.path_n = 1;
  u.path_i = 0;
  u.path_points[0] = best;
  return true;
}

}  // namespace

int find_detour(const World& w, Vec2 from, Vec2 goal, std::array<Vec2, kPathPoints>& corners) {
  const Cell start = cell_of(from), end = cell_of(goal);
  const Cell corner{start.x - kPathRadius, start.y - kPathRadius};
  const int gx = end.x - corner.x, gy = end.y - corner.y;
  if (gx < 0 || gy < 0 || gx >= kSide || gy >= kSide || !cell_open(w, end)) return 0;
  static thread_local Search scratch;
  Search& search = scratch;  // its address is looked up once
  search.cost.fill(Search::kFar);
  search.heap_n = 0;
  const auto open = [&](int x, int y) {
    return x >= 0 && y >= 0 && x < kSide && y < kSide && cell_open(w, {corner.x + x, corner.y + y});
  };
  const int first = kPathRadius * kSide + kPathRadius, last = gy * kSide + gx;
  search.cost[first] = 0;
  search.push(octile(gx - kPathRadius, gy - kPathRadius), first);
  bool found = false;
  while (search.heap_n > 0) {
    const std::uint32_t top = search.pop();
    const int cell = static_cast<int>(top & 2047u), x = cell % kSide, y = cell / kSide;
    const int cost = search.cost[cell];
    if (static_cast<int>(top >> 11) != cost + octile(gx - x, gy - y)) continue;  // a shorter way came since
    if (cell == last) {
      found = true;
      break;
    }
    for (int s = 0; s < 8; ++s) {
      const int nx = x + kStepX[s], ny = y + kStepY[s];
      if (!open(nx, ny) || (s % 2 && (!open(nx, y) || !open(x, ny)))) continue;
      const std::size_t q = ny * kSide + nx;
      const int through = cost + (s % 2 ? kDiagonal : kStraight);
      if (through >= search.cost[q]) continue;
      search.cost[q] = static_cast<std::uint16_t>(through);
      search.from[q] = static_cast<std::uint8_t>(s);
      search.push(through + octile(gx - nx, gy - ny), static_cast<int>(q));
    }
  }
  if (!found) return 0;
  std::array<int, kWindow> way;
  int n = 0;
  for (int cell = last; cell != first;) {
    way[n++] = cell;
    const int s = search.from[cell];
    cell -= kStepY[s] * kSide + kStepX[s];
  }
  if (n == 0) way[n++] = last;
  std::reverse(way.begin(), way.begin() + n);
  return pull_straight(w, from, goal, way.data(), n, corner, corners);
}

void plan_path(Context& c, Unit& u, Vec2 goal) {
  const World& w = c.world;
  const Routes& routes = *c.tables.map->routes;
  u.path_goal = goal;
  u.path_until = w.time + kReplanSeconds;
  u.path_end = goal;
  if (!cell_open(w, cell_of(u.pos))) {  // pushed or born into something solid: out of it first
    const Cell out = nearest_open(w, u.pos, 8);
    if (out.inside()) set_straight(u, point_in_cell(out, u.pos));
    return;
  }
  Cell end = cell_of(goal);
  if (!cell_open(w, end)) {
    end = nearest_open(w, goal, 12);
    if (!end.inside()) {
      const Cell g{std::clamp(cell_of(goal).x, 0, kGrid - 1), std::clamp(cell_of(goal).y, 0, kGrid - 1)};
      end = cell_at(routes.nearest_main[g.index()]);
    }
    u.path_end = point_in_cell(end, goal);
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (line_open(w, u.pos, u.path_end)) return set_straight(u, u.path_end);
    if (set_detour(c, u, u.path_end)) return;
    const int main = routes.nearest_main[end.index()];
    if (routes.main_part(end.index()) || attempt == 1) {
      if (follow_field(c, u, main)) return;
      // Off the standing map's paths, where a tree was cut: back onto them.
      const int own = routes.nearest_main[cell_of(u.pos).index()];
      if (set_detour(c, u, cell_center(cell_at(own)))) return;
      break;
    }
    end = cell_at(main);
    u.path_end = point_in_cell(end, goal);
  }
  u.path = kNoPath;
  u.path_n = 0;
}

}  // namespace dota
