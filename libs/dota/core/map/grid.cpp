#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numbers>

#include "base/math.hpp"
#include "map/ground.hpp"
#include "map/nav.hpp"
#include "map/spatial.hpp"

namespace dota {

namespace {

bool tree_stands(const World& w, int tree) { return w.tree_regrow[tree] == 0; }

void set_felled(World& w, std::size_t tree, bool down) {
  const std::uint64_t bit = 1ull << (tree & 63);
  std::uint64_t& word = w.nav.felled[tree >> 6];
  word = down ? word | bit : word & ~bit;
  ++w.nav.tree_changes;
}

bool tree_on(const World& w, const MapData& map, int cell) {
  for (int k = map.tree_first[cell]; k < map.tree_first[cell + 1]; ++k)
    if (tree_stands(w, map.tree_ids[k])) return true;
  return false;
}

void set_blocked(World& w, int cell, bool blocked) {
  std::uint64_t& word = w.nav.blocked[cell >> 6];
  const std::uint64_t bit = 1ull << (cell & 63);
  word = blocked ? word | bit : word & ~bit;
}

// Cells that an area's line (a wall; a point is a tree's two by two cells) covers.
template <class F>
void cells_of_line(const Area& a, F&& f) {
  const float len = a.along.length();
  const int steps = static_cast<int>(len / (kCell / 2));
  int last = -1;
  for (int i = 0; i <= steps; ++i) {
    const Vec2 p = a.pos + a.along * (steps > 0 ? static_cast<float>(i) / static_cast<float>(steps) : 0);
    const Cell c = cell_of(p - Vec2{kCell / 2, kCell / 2});
    for (const Cell q : {c, Cell{c.x + 1, c.y}, Cell{c.x, c.y + 1}, Cell{c.x + 1, c.y + 1}})
      if (q.inside() && q.index() != last) f(last = q.index());
  }
}

bool under_a_block(const World& w, int cell) {
  bool under = false;
  if (w.nav.blocks > 0)
    for (const Area& a : w.areas_in_use())
      if (a.active && a.blocks) cells_of_line(a, [&](int covered) { under |= covered == cell; });
  return under;
}

void renew_cell(World& w, const MapData& map, int cell) {
  const int building = map.building_cell[cell];
  const bool standing = building && ((w.nav.buildings >> (building - 1)) & 1u);
  set_blocked(w, cell, map.terrain_blocked[cell] || standing || tree_on(w, map, cell) || under_a_block(w, cell));
}

// A tree does not come back on top of a unit.
bool occupied(const Context& c, Vec2 p) {
  for (const Unit& u : units_near(c, p, kCell * 1.5f)) {
    const Vec2 d = u.pos - p;
    if (std::abs(d.x) <= kCell && std::abs(d.y) <= kCell) return true;
  }
  return false;
}

void regrow(Context& c, const MapData& map) {
  World& w = c.world;
  w.nav.next_regrow = std::numeric_limits<float>::max();
  for (std::size_t t = 0; t < map.trees.size(); ++t) {
    if (w.tree_regrow[t] == 0) continue;
    if (w.due(w.tree_regrow[t]) && !occupied(c, map.trees[t].pos)) {
      w.tree_regrow[t] = 0;
      --w.nav.trees_down;
      set_felled(w, t, false);
      flip_tree_cells(w, map, static_cast<int>(t));
    } else {
      w.nav.next_regrow = std::min(w.nav.next_regrow, std::max(w.tree_regrow[t], w.time + 1.0f));
    }
  }
}

}  // namespace

void flip_tree_cells(World& w, const MapData& map, int tree) {
  const Cell c = cell_of(map.trees[tree].pos);
  for (const Cell q : {Cell{c.x - 1, c.y - 1}, Cell{c.x, c.y - 1}, Cell{c.x - 1, c.y}, c})
    if (q.inside()) renew_cell(w, map, q.index());
}

void block_line(Context& c, Area& a) {
  World& w = c.world;
  a.blocks = true;
  ++w.nav.blocks;
  cells_of_line(a, [&](int cell) { set_blocked(w, cell, true); });
  for (Unit& u : units_near(c, a.pos + a.along * 0.5f, a.along.length() / 2 + 2 * kCell)) {
    if (!u.alive || !solid_body(u) || !nav_blocked(w, cell_of(u.pos).index())) continue;
    unlist_unit(w, u);  // the unit must not block itself
    place_unit(w, u, free_place(w, *c.tables.map, u.pos, u.radius));
  }
}

void unblock_line(World& w, const MapData& map, Area& a) {
  if (!a.blocks) return;
  a.blocks = false;
  --w.nav.blocks;
  cells_of_line(a, [&](int cell) { renew_cell(w, map, cell); });
}

void refresh_nav(Context& c) {
  World& w = c.world;
  const MapData& map = *c.tables.map;
  if (!w.nav.ready) {
    w.nav.head.fill(-1);
    w.nav.cell.fill(-1);
    w.nav.buildings = w.buildings_standing;
    w.nav.trees_down = static_cast<std::int16_t>(
        std::count_if(w.tree_regrow.begin(), w.tree_regrow.end(), [](float t) { return t != 0; }));
    for (std::size_t t = 0; t < w.tree_regrow.size(); ++t)
      set_felled(w, t, w.tree_regrow[t] != 0);
    w.nav.next_regrow = w.time;
    for (int i = 0; i < kGrid * kGrid; ++i)
      renew_cell(w, map, i);
    w.nav.ready = true;
  }
  if (const std::uint64_t changed = w.nav.buildings ^ w.buildings_standing) {
    w.nav.buildings = w.buildings_standing;
    for (int i = 0; i < kGrid * kGrid; ++i) {
      const int b = map.building_cell[i];
      if (b && ((changed >> (b - 1)) & 1u)) renew_cell(w, map, i);
    }
  }
  if (w.nav.trees_down > 0 && w.due(w.nav.next_regrow)) regrow(c, map);
}

bool walkable(const World& w, const MapData& map, Vec2 p) {
  const Cell c = cell_of(p);
  if (!c.inside()) return false;
  if (w.nav.ready) return !nav_blocked(w, c.index());
  return !map.blocked_at_start[c.index()];
}

int elevation(const MapData& map, Vec2 p) {
  const Cell c = cell_of(p);
  return c.inside() ? map.elevation[c.index()] : -9;
}

namespace {

// True: no cell near the line is blocked, so that line_open() is true. Reads a row of cells at a time. Both ends
// are two cells away from the grid's border.
bool surely_open(const World& w, Vec2 a, Vec2 b) {
  constexpr float kMargin = 1.0f / 32;  // cells; more than what rounding adds up to
  constexpr int kWidest = 57;           // cells that eight bytes hold from any bit of the first on
  const auto cells = [](Vec2 p) { return Vec2{(p.x - kMapMin) / kCell, (p.y - kMapMin) / kCell}; };
  const Vec2 p = cells(a.y < b.y ? a : b), q = cells(a.y < b.y ? b : a);
  const float low = std::min(p.x, q.x), high = std::max(p.x, q.x);
  if (q.y - p.y < 1 && high - low < 1) return false;  // as fast cell by cell, which may go past the end
  const bool flat = high - low > 256 * (q.y - p.y);   // every row has all columns
  const float slope = flat ? 0 : (q.x - p.x) / std::max(q.y - p.y, 1e-6f);
  const int last = static_cast<int>(q.y + kMargin);
  const auto* const bytes = reinterpret_cast<const std::byte*>(w.nav.blocked.data());
  float x = p.x;
  for (int y = static_cast<int>(p.y - kMargin); y <= last; ++y) {
    const float before = x;
    x = std::clamp(p.x + (static_cast<float>(y + 1) - p.y) * slope, low, high);
    const float from = flat ? low : std::min(before, x), to = flat ? high : std::max(before, x);
    const int first = static_cast<int>(from - kMargin), n = static_cast<int>(to + kMargin) - first + 1;
    if (n > kWidest) return false;
    const int at = y * kGrid + first;
    std::uint64_t row;
    std::memcpy(&row, bytes + (at >> 3), sizeof row);
    if ((row >> (at & 7) & ~(~0ull << n)) != 0) return false;
  }
  return true;
}

}  // namespace

bool line_open(const World& w, Vec2 a, Vec2 b) {
  Cell c = cell_of(a);
  const Cell end = cell_of(b);
  if (!cell_open(w, end)) return false;
  // Rounding may lead one cell past the end, never two.
  const auto away_from_border = [](Cell q) { return q.x >= 2 && q.y >= 2 && q.x < kGrid - 2 && q.y < kGrid - 2; };
  const bool inner = away_from_border(c) && away_from_border(end);
  if (inner && surely_open(w, a, b)) return true;
  const Vec2 d = b - a;
  const int step_x = d.x > 0 ? 1 : -1, step_y = d.y > 0 ? 1 : -1;
  constexpr float kNever = std::numeric_limits<float>::max();
  const auto first = [](float from, float delta, int cell) {
    if (delta == 0) return kNever;
    const float edge = kMapMin + static_cast<float>(delta > 0 ? cell + 1 : cell) * kCell;
    return (edge - from) / delta;
  };
  float tx = first(a.x, d.x, c.x), ty = first(a.y, d.y, c.y);
  const float dx = d.x == 0 ? kNever : kCell / std::abs(d.x), dy = d.y == 0 ? kNever : kCell / std::abs(d.y);
  if (inner) {
    const int right = step_x, up = step_y * kGrid, last = end.index();
    int at = c.index();
    for (int guard = 0; at != last && guard < 2 * kGrid; ++guard) {
      if (tx == ty && (nav_blocked(w, at + right) || nav_blocked(w, at + up))) return false;
      // Without branches: which border comes next is as good as chance.
      const bool x_next = tx <= ty, y_next = ty <= tx;
      at += (x_next ? right : 0) + (y_next ? up : 0);
      tx += x_next ? dx : 0.0f;
      ty += y_next ? dy : 0.0f;
      if (nav_blocked(w, at)) return false;
      if (std::min(tx, ty) > 1.0f + 1e-4f) break;
    }
    return true;
  }
  for (int guard = 0; !(c == end) && guard < 2 * kGrid; ++guard) {
    if (tx == ty) {  // through a corner: both neighbours must be open
      if (!cell_open(w, {c.x + step_x, c.y}) || !cell_open(w, {c.x, c.y + step_y})) return false;
      c = {c.x + step_x, c.y + step_y};
      tx += dx;
      ty += dy;
    } else if (tx < ty) {
      c.x += step_x;
      tx += dx;
    } else {
      c.y += step_y;
      ty += dy;
    }
    if (!cell_open(w, c)) return false;
    if (std::min(tx, ty) > 1.0f + 1e-4f) break;  // past b: rounding put the last border on the other side
  }
  return true;
}

Cell nearest_open(const World& w, Vec2 p, int reach) {
  const Cell own = cell_of(p);
  if (cell_open(w, own)) return own;
  Cell best{-1, -1};
  float best_d = std::numeric_limits<float>::max();
  for (int ring = 1; ring <= reach; ++ring) {
    // A cell of this ring is at least ring - 1 cells away, so that a nearer one found is final.
    if (best.inside() && best_d <= static_cast<float>(ring - 1) * kCell) break;
    for (int y = -ring; y <= ring; ++y)
      for (int x = -ring; x <= ring; x += (y == -ring || y == ring) ? 1 : 2 * ring) {
        const Cell q{own.x + x, own.y + y};
        if (!cell_open(w, q)) continue;
        const float d = distance(cell_center(q), p);
        if (d < best_d) {
          best_d = d;
          best = q;
        }
      }
  }
  return best;
}

Vec2 free_place(const World& w, const MapData& map, Vec2 p, float radius) {
  const auto fits = [&](Vec2 q) {
    if (!walkable(w, map, q)) return false;
    if (!w.nav.ready) return true;
    for (const Unit& u : units_near(w, q, radius + kWidestBody))
      if (solid_body(u) && distance(u.pos, q) < radius + u.radius) return false;
    return true;
  };
  if (fits(p)) return p;
  // Rings of growing radius, points about half a cell apart.
  constexpr float kStep = kCell / 2;
  for (int ring = 1; ring <= 48; ++ring) {
    const int points = 6 * ring;
    for (int i = 0; i < points; ++i) {
      const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(i) / static_cast<float>(points);
      const float r = kStep * static_cast<float>(ring);
      const Vec2 q = p + heading(angle) * r;
      if (fits(q)) return q;
    }
  }
  return p;
}

namespace {

// Columns and rows of cells that hold a place of every tree within the radius of p; empty outside of the map.
struct TreeCells {
  int left, right, bottom, top;
};
TreeCells tree_cells(Vec2 p, float radius) {
  const Cell lo = cell_of({p.x - radius - kCell, p.y - radius - kCell});
  const Cell hi = cell_of({p.x + radius + kCell, p.y + radius + kCell});
  return {std::max(lo.x, 0), std::min(hi.x, kGrid - 1), std::max(lo.y, 0), std::min(hi.y, kGrid - 1)};
}

// Runs f(tree, distance) on the standing trees within the radius of p that cover these cells of row y, until it
// returns true: then it returns so. A tree that covers several cells comes several times. The lists of a row's
// cells lie one after another.
template <class F>
bool trees_of_row(const World& w, const MapData& map, Vec2 p, float radius, const TreeCells& cells, int y, F&& f) {
  if (cells.left > cells.right) return false;
  const int row = y * kGrid;
  const int end = map.tree_first[row + cells.right + 1];
  for (int k = map.tree_first[row + cells.left]; k < end; ++k) {
    const int t = map.tree_ids[k];
    const float d = distance(map.trees[t].pos, p);
    if (d <= radius && tree_stands(w, t) && f(t, d)) return true;
  }
  return false;
}

}  // namespace

int tree_at(const World& w, const MapData& map, Vec2 p, float radius) {
  int best = -1;
  float best_d = radius;
  const TreeCells cells = tree_cells(p, radius);
  for (int y = cells.bottom; y <= cells.top; ++y)
    trees_of_row(w, map, p, radius, cells, y, [&](int t, float d) {
      if (d < best_d || (d == best_d && (best < 0 || t < best))) {
        best_d = d;
        best = t;
      }
      return false;
    });
  return best;
}

bool tree_near(const World& w, const MapData& map, Vec2 p, float radius) {
  const TreeCells cells = tree_cells(p, radius);
  const auto any = [&](int y) {
    return y >= cells.bottom && y <= cells.top &&
           trees_of_row(w, map, p, radius, cells, y, [](int, float) { return true; });
  };
  // From the middle outwards: where one stands near, few rows are looked through.
  const int middle = (cells.bottom + cells.top) / 2;
  for (int k = 0; middle - k >= cells.bottom || middle + k <= cells.top; ++k)
    if (any(middle + k) || (k > 0 && any(middle - k))) return true;
  return false;
}

void cut_tree(World& w, const Tables& t, int tree) {
  if (tree < 0 || tree >= std::ssize(t.map->trees) || !tree_stands(w, tree)) return;
  // 0 stands for a standing tree, also when game time makes the sum 0.
  const float at = w.time + t.rules.tree_regrow_s;
  w.tree_regrow[tree] = at == 0 ? 1e-3f : at;
  if (!w.nav.ready) return;
  w.nav.next_regrow = w.nav.trees_down == 0 ? at : std::min(w.nav.next_regrow, at);
  ++w.nav.trees_down;
  set_felled(w, tree, true);
  flip_tree_cells(w, *t.map, tree);
}

void cut_trees(World& w, const Tables& t, Vec2 p, float radius) {
  for (int tree = tree_at(w, *t.map, p, radius); tree >= 0; tree = tree_at(w, *t.map, p, radius))
    cut_tree(w, t, tree);
}

}  // namespace dota
