#include "map/map_data.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "data/loading.hpp"
#include "map/routes.hpp"
#include "map/sight.hpp"

namespace dota {

namespace {

constexpr std::size_t kCells = kGrid * kGrid;

int team_of(const std::string& s) {
  if (s == "radiant") return kRadiant;
  if (s == "dire") return kDire;
  throw std::runtime_error("team '" + s + "' is not radiant or dire");
}

Lane lane_of(const std::string& s) {
  if (s == "top") return Lane::Top;
  if (s == "mid") return Lane::Mid;
  if (s == "bot") return Lane::Bot;
  return Lane::None;
}

UnitKind building_kind(const std::string& s) {
  if (s == "tower") return UnitKind::Tower;
  if (s == "barracks") return UnitKind::Barracks;
  if (s == "fort") return UnitKind::Fort;
  if (s == "filler") return UnitKind::Filler;
  if (s == "shrine") return UnitKind::Shrine;
  if (s == "fountain") return UnitKind::Fountain;
  throw std::runtime_error("building kind '" + s + "' is not known");
}

// Every place that the file names comes through here.
Vec2 on_map(Vec2 p, const char* key) {
  if (!cell_of(p).inside())
    throw std::runtime_error("key '" + std::string(key) + "': (" + std::to_string(p.x) + ", " +
                             std::to_string(p.y) + ") is outside the map");
  return p;
}
Vec2 point(const Node& n, const char* key) {
  if (!n.is(Node::Type::List) || n.list.size() < 2 || !n.list[0].is(Node::Type::Number) ||
      !n.list[1].is(Node::Type::Number))
    throw std::runtime_error("key '" + std::string(key) + "': a point is not a list of two numbers");
  return on_map({static_cast<float>(n.list[0].number), static_cast<float>(n.list[1].number)}, key);
}
Vec2 xy(const Node& n) { return on_map({n.num("x"), n.num("y")}, "x, y"); }
// Two corners, the lower left first.
std::array<Vec2, 2> corners(const Node& n, const char* key) {
  const std::vector<float> box = numbers(n, key);
  if (box.size() != 4) throw std::runtime_error("key '" + std::string(key) + "' has not 4 numbers");
  return {on_map({box[0], box[1]}, key), on_map({box[2], box[3]}, key)};
}

template <class T>
std::vector<T> grid(const Node& grids, const char* name) {
  const std::vector<int> v = decode_runs(grids.at(name), kCells, name);
  return {v.begin(), v.end()};
}

void read_grids(const Node& map, MapData& m) {
  const Node& world = map.at("world");
  if (world.num("w") != kGrid || world.num("h") != kGrid || world.num("cell") != kCell ||
      world.num("min_x") != kMapMin || world.num("min_y") != kMapMin)
    throw std::runtime_error("key 'world' does not describe 260 x 260 cells of 64 units from (-8320, -8320)");
  const std::vector<float> b = numbers(world, "playable_bounds");
  if (b.size() != 4) throw std::runtime_error("key 'playable_bounds' has not 4 numbers");
  m.bounds_min = {b[0], b[1]};
  m.bounds_max = {b[2], b[3]};
  const Node& grids = map.at("grids");
  m.elevation = grid<std::int8_t>(grids, "elevation");
  m.terrain_blocked = grid<std::uint8_t>(grids, "terrain_blocked");
  m.fow_blocker = grid<std::uint8_t>(grids, "fow_blocker");
  m.no_ward = grid<std::uint8_t>(grids, "no_ward");
  m.tree_count = grid<std::uint8_t>(grids, "tree_count");
  m.blocked_at_start = grid<std::uint8_t>(grids, "blocked_at_start");
}

// The 2 x 2 cells that meet at a tree's point.
template <class F>
void tree_cells(const MapTree& tree, F&& f) {
  const Cell c = cell_of(tree.pos);
  for (const Cell q : {Cell{c.x - 1, c.y - 1}, Cell{c.x, c.y - 1}, Cell{c.x - 1, c.y}, c})
    if (q.inside()) f(q);
}

void read_trees(const Node& map, MapData& m) {
  for (const Node& n : map.at("trees").list) {
    const Vec2 at = point(n, "trees");
    if (n.list.size() != 3) throw std::runtime_error("key 'trees': a tree is not a list of x, y and ground level");
    m.trees.push_back({at, static_cast<std::int8_t>(n.list[2].number)});
  }
  if (m.trees.size() > kMaxTrees) throw std::runtime_error("key 'trees' has more entries than a world holds");
  std::vector<std::uint16_t> count(kCells, 0);
  for (const MapTree& t : m.trees)
    tree_cells(t, [&](Cell c) { ++count[c.index()]; });
  m.tree_first.assign(kCells + 1, 0);
  for (std::size_t i = 0; i < kCells; ++i) {
    if (count[i] != m.tree_count[i]) throw std::runtime_error("key 'tree_count' does not agree with 'trees'");
    m.tree_first[i + 1] = static_cast<std::uint16_t>(m.tree_first[i] + count[i]);
  }
  m.tree_ids.resize(m.tree_first[kCells]);
  std::vector<std::uint16_t> next(m.tree_first.begin(), m.tree_first.end() - 1);
  for (std::size_t t = 0; t < m.trees.size(); ++t)
    tree_cells(m.trees[t], [&](Cell c) { m.tree_ids[next[c.index()]++] = static_cast<std::uint16_t>(t); });
}

void read_buildings(const Node& map, MapData& m, const Tables& t) {
  for (const Node& n : map.at("buildings").list)
    reading(n.str("id", "a building"), [&] {
      MapBuilding b;
      b.id = n.str("id");
      b.kind = building_kind(n.str("kind"));
      b.team = team_of(n.str("team"));
      b.tier = whole(n, "tier", 0);
      b.lane = lane_of(n.str("lane"));
      b.melee = n.str("sub") == "melee";
      b.unit = index_of(t.unit_index, n.str("unit"), "unit");
      b.pos = xy(n);
      b.bounds = n.num("bounds");
      if (b.kind == UnitKind::Tower && (b.tier < 1 || b.tier > 4))
        throw std::runtime_error("key 'tier' is " + std::to_string(b.tier) + ", towers have 1 to 4");
      if (b.kind == UnitKind::Barracks && b.lane == Lane::None)
        throw std::runtime_error("key 'lane' is not top, mid or bot");
      m.buildings.push_back(std::move(b));
    });
  if (m.buildings.size() > 64) throw std::runtime_error("key 'buildings' has more than 64 entries");
  // The footprint's cells belong to the nearest building whose bounds hold the cell's centre.
  const std::vector<int> blocked = decode_runs(map.at("grids").at("building_blocked"), kCells, "building_blocked");
  m.building_cell.assign(kCells, 0);
  for (std::size_t i = 0; i < kCells; ++i) {
    if (!blocked[i]) continue;
    const Vec2 p = cell_center(cell_at(static_cast<int>(i)));
    float best = 1e9f;
    for (std::size_t b = 0; b < m.buildings.size(); ++b) {
      const float d = distance(p, m.buildings[b].pos) - m.buildings[b].bounds;
      if (d < best) {
        best = d;
        m.building_cell[i] = static_cast<std::uint8_t>(b + 1);
      }
    }
  }
}

std::vector<LanePieces> pieces_of(const std::vector<Vec2>& waypoints) {
  constexpr float kFar = 1e9f;
  constexpr std::size_t kPieces = LanePieces::kPieces;
  const std::size_t count = waypoints.size() - 1;
  std::vector<LanePieces> out((count + kPieces - 1) / kPieces);
  for (LanePieces& block : out) {
    block.x.fill(kFar);
    block.y.fill(kFar);
  }
  for (std::size_t i = 0; i < count; ++i) {
    LanePieces& block = out[i / kPieces];
    const std::size_t k = i % kPieces;
    const Vec2 from = waypoints[i], d = waypoints[i + 1] - from;
    block.x[k] = from.x;
    block.y[k] = from.y;
    block.dx[k] = d.x;
    block.dy[k] = d.y;
    block.length2[k] = d.dot(d);
  }
  return out;
}

void read_lanes(const Node& map, MapData& m) {
  for (const char* team : {"radiant", "dire"})
    for (const char* lane : {"top", "mid", "bot"})
      reading(std::string("lanes, ") + team + " " + lane, [&] {
        const Node& n = map.at("lanes").at(team).at(lane);
        MapLane& l = m.lanes[team_of(team)][ordinal(lane_of(lane))];
        l.spawn = point(n.at("spawn"), "spawn");
        for (const Node& p : n.at("waypoints").list)
          l.waypoints.push_back(point(p, "waypoints"));
        if (l.waypoints.empty()) throw std::runtime_error("no waypoints");
        l.pieces = pieces_of(l.waypoints);
      });
}

MapShop read_shop(const Node& n) {
  MapShop s;
  const std::string kind = n.str("kind");
  if (kind != "home" && kind != "side" && kind != "secret")
    throw std::runtime_error("kind '" + kind + "' is not home, side or secret");
  s.kind = kind == "home" ? MapShop::Kind::Home : kind == "side" ? MapShop::Kind::Side : MapShop::Kind::Secret;
  if (s.kind == MapShop::Kind::Home) s.team = team_of(n.str("team"));
  s.pos = xy(n);
  return s;
}

void read_spots(const Node& map, MapData& m) {
  const std::vector<std::string> tiers{"small", "medium", "large", "ancient"};
  for (const Node& n : map.at("camps").list)
    reading(n.str("id", "a camp"), [&] {
      const auto tier = std::find(tiers.begin(), tiers.end(), n.str("tier"));
      if (tier == tiers.end()) throw std::runtime_error("tier '" + n.str("tier") + "' is not known");
      const auto [low, high] = corners(n, "box");
      m.camps.push_back(
          {n.str("id"), team_of(n.str("side")), static_cast<int>(tier - tiers.begin()), xy(n), low, high});
    });
  if (m.camps.size() > kMaxCamps) throw std::runtime_error("key 'camps' is too long");
  reading("runes", [&] {
    for (const Node& p : map.at("runes").at("bounty").list)
      m.bounty_runes.push_back(point(p, "bounty"));
    for (const Node& p : map.at("runes").at("power").list)
      m.power_runes.push_back(point(p, "power"));
    if (m.bounty_runes.size() != kBountySpots || m.power_runes.size() != kPowerSpots)
      throw std::runtime_error("there are not " + std::to_string(kBountySpots) + " places of bounty runes and " +
                               std::to_string(kPowerSpots) + " of the others");
  });
  for (const Node& n : map.at("shops").list)
    reading("shops, " + n.str("kind"), [&] { m.shops.push_back(read_shop(n)); });
  reading("roshan", [&] {
    const Node& r = map.at("roshan");
    m.roshan = xy(r);
    const auto [low, high] = corners(r, "pit_box");
    m.roshan_min = low;
    m.roshan_max = high;
  });
  for (const char* team : {"radiant", "dire"})
    m.hero_spawn[team_of(team)] = point(map.at("hero_spawn").at(team), "hero_spawn");
}

}  // namespace

MapData::MapData() = default;
MapData::~MapData() = default;

std::vector<int> decode_runs(const Node& runs, std::size_t cells, const std::string& name) {
  std::vector<int> out;
  out.reserve(cells);
  if (runs.list.size() % 2) throw std::runtime_error("grid '" + name + "' has a value without a count");
  for (std::size_t i = 0; i < runs.list.size(); i += 2) {
    const double value = runs.list[i].number, count = runs.list[i + 1].number;
    // Written so that NaN is refused.
    if (!(value >= -128 && value <= 255))
      throw std::runtime_error("grid '" + name + "' has a value that is not from -128 to 255");
    if (!(count >= 0 && static_cast<double>(out.size()) + count <= static_cast<double>(cells)))
      throw std::runtime_error("grid '" + name + "' has more cells than the map");
    out.insert(out.end(), static_cast<std::size_t>(count), static_cast<int>(value));
  }
  if (out.size() != cells) throw std::runtime_error("grid '" + name + "' has fewer cells than the map");
  return out;
}

std::shared_ptr<const MapData> read_map(const Node& map, const Tables& tables) {
  auto m = std::make_shared<MapData>();
  read_grids(map, *m);
  read_trees(map, *m);
  read_buildings(map, *m, tables);
  read_lanes(map, *m);
  read_spots(map, *m);
  m->routes = make_routes(*m);
  m->sight = make_sight(*m);
  return m;
}

}  // namespace dota
