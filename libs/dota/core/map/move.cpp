// Walking: turn, next corner of the path, slide around other units.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "map/ground.hpp"
#include "map/path.hpp"

namespace dota {

namespace {

constexpr float kPi = std::numbers::pi_v<float>;
constexpr float kTurnUnit = 0.03f;        // turn_rate is radians per this many seconds
constexpr float kGoalDrift = 96.0f;       // how far a moving goal may go before the path is planned again
constexpr float kStraightRecheck = 0.3f;  // seconds between checks that the straight way is still open
constexpr int kMaxNear = 24;

// Angle of a direction, to 2e-6 rad. The library's atan2 is several times slower, and every walker asks each
// frame.
float angle_of(Vec2 d) {
  const float ax = std::abs(d.x), ay = std::abs(d.y);
  const float z = std::min(ax, ay) / std::max(ax, ay), q = z * z;
  float a =
      z * (0.99997726f +
           q * (-0.33262347f + q * (0.19354346f + q * (-0.11643287f + q * (0.05265332f + q * -0.01172120f)))));
  if (ay > ax) a = kPi / 2 - a;
  if (d.x < 0) a = kPi - a;
  return d.y < 0 ? -a : a;
}

float wrapped(float angle) {
  while (angle > kPi)
    angle -= 2 * kPi;
  while (angle < -kPi)
    angle += 2 * kPi;
  return angle;
}

// Turns for one frame towards a direction; returns the angle that is left.
float turn(Unit& u, Vec2 d) {
  if (d.x == 0 && d.y == 0) return 0;
  const float off = wrapped(angle_of(d) - u.facing);
  const float most = u.turn_rate / kTurnUnit * kDt;
  const float by = std::clamp(off, -most, most);
  u.facing = wrapped(u.facing + by);
  return std::abs(off - by);
}

bool flies(const Context& c, const Unit& u) { return c.tables.units[u.type].move_cap == MoveCap::Fly; }

// The other bodies that this frame's step may touch.
struct Near {
  std::array<const Unit*, kMaxNear> units;
  int n = 0;
};

// Walkers are listed where they stand, so that the hash is read without the slack that units_near() needs.
void find_near(const Context& c, const Unit& u, float step, Near& near) {
  const World& w = c.world;
  const float reach = u.radius + kWidestBody + step;
  const int x0 = hash_coordinate(u.pos.x - reach), x1 = hash_coordinate(u.pos.x + reach);
  const int y0 = hash_coordinate(u.pos.y - reach), y1 = hash_coordinate(u.pos.y + reach);
  for (int y = y0; y <= y1; ++y)
    for (int x = x0; x <= x1; ++x)
      for (int i = w.nav.head[y * kHashCells + x]; i >= 0;) {
        const Body& body = w.nav.bodies[i];
        const Unit& v = w.units[i];
        i = body.next;
        const Vec2 d = body.pos - u.pos;
        const float apart = u.radius + body.radius + step;
        if (d.dot(d) >= apart * apart || &v == &u || !v.alive || !solid_body(v) || flies(c, v)) continue;
        if (near.n < kMaxNear) near.units[near.n++] = &v;
      }
}

// The unit that a step to p would run into; one that overlaps already may be walked away from.
const Unit* blocker(const Unit& u, const Near& near, Vec2 p) {
  for (int k = 0; k < near.n; ++k) {
    const Unit& v = *near.units[k];
    const float apart = u.radius + v.radius;
    const Vec2 to = p - v.pos, was = u.pos - v.pos;
    const float now = to.dot(to);
    if (now < apart * apart && now <= was.dot(was)) return &v;
  }
  return nullptr;
}

// Ground under a step of less than a cell: its end, and both neighbours when it crosses a corner.
bool ground_open(const World& w, Vec2 from, Vec2 to) {
  const Cell a = cell_of(from), b = cell_of(to);
  if (a == b) return true;
  if (!cell_open(w, b)) return !cell_open(w, a);  // out of something solid any way is right
  return a.x == b.x || a.y == b.y || (cell_open(w, {a.x, b.y}) && cell_open(w, {b.x, a.y}));
}

Vec2 rotated(Vec2 d, float cos, float sin) { return {d.x * cos - d.y * sin, d.x * sin + d.y * cos}; }

// Returns whether another unit occupies the goal and the unit touches it, the nearest that it can get.
bool goal_taken(const Unit& u, const Near& near, Vec2 goal) {
  constexpr float kTouch = 4.0f;
  for (int k = 0; k < near.n; ++k) {
    const Unit& v = *near.units[k];
    const float apart = u.radius + v.radius;
    if (distance(v.pos, goal) < apart && distance(v.pos, u.pos) <= apart + kTouch) return true;
  }
  return false;
}

// Tries the straight step, then ever wider ones, first on the side the unit is passing others on.
bool step_around(const World& w, Unit& u, const Near& near, Vec2 direction, float step, Vec2& to) {
  to = u.pos + direction * step;
  const Unit* ahead = blocker(u, near, to);
  if (!ahead && ground_open(w, u.pos, to)) {
    if (near.n == 0) u.path_side = 0;
    return true;
  }
  if (u.path_side == 0) {
    // Past its nearer flank; head on, everyone keeps to the right, so that two columns meet and pass.
    const Vec2 d = ahead ? ahead->pos - u.pos : direction;
    const float cross = direction.x * d.y - direction.y * d.x;
    u.path_side = cross < -1.0f ? 1 : -1;
  }
  // 30, 60, 85, 105 and 130 degrees; the last two lead out of a pocket between two bodies.
  static constexpr float kCos[] = {0.8660254f, 0.5f, 0.0871557f, -0.2588190f, -0.6427876f};
  static constexpr float kSin[] = {0.5f, 0.8660254f, 0.9961947f, 0.9659258f, 0.7660444f};
  for (const int side : {static_cast<int>(u.path_side), -static_cast<int>(u.path_side)})
    for (std::size_t k = 0; k < std::size(kCos); ++k) {
      to = u.pos + rotated(direction, kCos[k], static_cast<float>(side) * kSin[k]) * step;
      if (!blocker(u, near, to) && ground_open(w, u.pos, to)) {
        u.path_side = static_cast<std::int8_t>(side);
        return true;
      }
    }
  return false;
}

void go(Context& c, Unit& u, Vec2 to) {
  u.velocity = (to - u.pos) * (1.0f / kDt);
  u.pos = to;
  const int unit = c.world.handle(u).index;
  touch_unit(c.world, unit);
  relist_unit(c.world, unit);
}

// Brings the path up to date with the goal and returns the point to walk to now.
Vec2 next_point(Context& c, Unit& u, Vec2 goal) {
  const World& w = c.world;
  const bool drifted = distance(goal, u.path_goal) > kGoalDrift;
  if (u.path == kStraightPath && !drifted) {
    // The end may move a little from frame to frame (a chase): the line to it is looked at again when it does.
    const bool moved = !(goal.x == u.path_goal.x && goal.y == u.path_goal.y);
    if (!moved && w.time < u.path_until) return u.path_end;
    if (line_open(w, u.pos, goal)) {
      u.path_goal = u.path_end = goal;
      u.path_until = w.time + kStraightRecheck;
      return goal;
    }
  } else if (u.path == kCornerPath && !drifted && w.time < u.path_until) {
    while (u.path_i < u.path_n && distance(u.pos, u.path_points[u.path_i]) < 1.0f)
      ++u.path_i;
    if (u.path_i < u.path_n) return u.path_points[u.path_i];
  } else if (u.path == kFieldPath && !drifted && w.time < u.path_until) {
    if (distance(u.pos, u.path_points[0]) >= 1.0f) return u.path_points[0];
  } else if (u.path == kNoPath && !drifted && w.time < u.path_until && u.path_until <= w.time + kReplanSeconds) {
    return u.pos;  // a unit that never walked has a later path_until, 0, long before the horn
  }
  plan_path(c, u, goal);
  return u.path_n > 0 ? u.path_points[0] : u.pos;
}

}  // namespace

bool turn_towards(Context& c, Unit& u, Vec2 p) { return turn(u, p - u.pos) <= c.tables.rules.action_angle_rad; }

bool move_towards(Context& c, Unit& u, Vec2 goal, float arrive) {
  u.velocity = {};
  const float left = distance(u.pos, goal);
  if (left <= arrive) return true;
  if (u.move_speed <= 0 || (u.status & (kStunned | kRooted | kBanished))) return false;
  const float step = u.move_speed * kDt;
  const bool flying = flies(c, u);
  if (flying) {
    const MapData& m = *c.tables.map;
    goal = {std::clamp(goal.x, m.bounds_min.x, m.bounds_max.x),
            std::clamp(goal.y, m.bounds_min.y, m.bounds_max.y)};
  }
  const Vec2 next = flying ? goal : next_point(c, u, goal);
  const Vec2 way = next - u.pos;
  const float length = way.length();
  // Where the goal itself is solid, the place nearest to it is the end.
  const bool at_end = !flying && u.path != kNoPath &&
                      distance(u.pos, u.path_end) <= std::clamp(arrive, 1.0f, kCell / 2) &&
                      !cell_open(c.world, cell_of(goal));
  if (length < 1e-3f || at_end) return at_end;
  if (turn(u, way) > c.tables.rules.action_angle_rad) return false;
  const Vec2 direction = way * (1.0f / length);
  Vec2 to = length <= step ? next : u.pos + direction * step;
  if (flying) {
    go(c, u, to);
    return distance(u.pos, goal) <= arrive;
  }
  Near near;
  if (solid_body(u)) find_near(c, u, step, near);
  if (near.n > 0 && goal_taken(u, near, goal)) return true;
  if (!step_around(c.world, u, near, direction, std::min(step, length), to)) {
    u.path_until = std::min(u.path_until, c.world.time + kStraightRecheck);
    return false;
  }
  go(c, u, to);
  return distance(u.pos, goal) <= arrive;
}

}  // namespace dota
