// What keeps a hero going and the map lit: potions, shrines, runes, wards, dust.
#include <cmath>

#include "bots/scene.hpp"
#include "view/actions.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr float kTreeWalk = 900;  // world units that the hero steps back at most to eat a tango
// A shrine is gone to when the way is at most this share of the way home, and no enemy is seen this near to it.
constexpr float kShrineWay = 0.65f, kShrineDanger = 1500.0f;

// `restoring`: bits of Restoring.
bool under(const Situation& s, int restoring) {
  for (int m = 0; m < s.hero.modifier_count; ++m)
    if (s.view.constants.actions->restoring[s.hero.modifiers[m].name] & restoring) return true;
  return false;
}

// Places worth seeing, of both sides alike: the power runes, the bounty runes, Roshan's pit and the middle of the
// side lanes.
constexpr int kWardSpots = 9;
Vec2 ward_spot(const Scene& s, int which) {
  const MapData& m = s.map;
  if (which < 2) return m.power_runes[which];
  if (which < 6) return m.bounty_runes[which - 2];
  if (which == 6) return {m.roshan_max.x + 400.0f, 0.5f * (m.roshan_min.y + m.roshan_max.y)};
  return lane_point(s.lane(which == 7 ? 0 : 2),
                    0.5f * static_cast<float>(s.lane(which == 7 ? 0 : 2).waypoints.size()), 0.0f);
}

// Where a ward of the hero can stand within reach of it, as an offset in cells; false: nowhere.
bool ward_offset(const Situation& s, Vec2 spot, Command& c) {
  const MapData& map = s.scene.map;
  const float cell = s.view.constants.settings->offset_cell;
  float nearest = 450.0f;
  for (int y = -3; y <= 3; ++y)
    for (int x = -3; x <= 3; ++x) {
      const Vec2 p = s.body.pos + Vec2{static_cast<float>(x), static_cast<float>(y)} * cell;
      const Cell at = cell_of(p);
      if (!at.inside() || map.no_ward[at.index()] || map.blocked_at_start[at.index()] ||
          distance(p, spot) >= nearest)
        continue;
      nearest = distance(p, spot);
      c.dx = static_cast<std::int8_t>(x);
      c.dy = static_cast<std::int8_t>(y);
    }
  return nearest < 450.0f;
}

bool own_ward_near(const Scene& s, Vec2 p, float radius) {
  for (const int i : s.wards) {
    const SeenUnit& u = s.unit(i);
    if (u.side == Side::Own && distance(u.pos, p) < radius) return true;
  }
  return false;
}

// Within which a tree must stand to be offered for a tango that the hero holds; 0: it holds none.
float tango_reach(const Situation& s) {
  const ViewConstants& k = s.view.constants;
  for (const SeenItem& item : s.hero.items) {
    if (item.id < 0 || !item.castable) continue;
    const int ability = k.tables->items[item.id].ability;
    const int action = ability < 0 ? int{kNoAction} : k.actions->of_ability[ability];
    if (action != kNoAction && (action == s.scene.book.tango || action == s.scene.book.tango_single))
      return item.reach + kWalkMargin;
  }
  return 0;
}

// Back to where a tango can be eaten: the trees of the two sides do not stand equally near to a lane's middle. A
// tree within reach that is not offered has been felled.
Command to_tree(const Situation& s) {
  const float reach = tango_reach(s);
  if (reach <= 0) return {};
  const MapTree* best = nullptr;
  float nearest = reach + kTreeWalk;
  for (const MapTree& tree : s.scene.map.trees) {
    const Vec2 d = tree.pos - s.body.pos;
    if (std::fabs(d.x) >= nearest || std::fabs(d.y) >= nearest) continue;
    const float away = d.length();
    if (away <= reach || away >= nearest ||
        distance(tree.pos, s.scene.enemy_home) <= distance(s.body.pos, s.scene.enemy_home))
      continue;
    nearest = away;
    best = &tree;
  }
  return best ? travel(s, best->pos) : Command{};
}

}  // namespace

Command to_shrine(const Situation& s) {
  if (s.view.time < s.memory.shrine_until) return with(kNoop);  // it heals on
  const SeenUnit* best = nullptr;
  float nearest = kShrineWay * walk(s, s.scene.home);
  for (const int i : s.scene.own_buildings) {
    const SeenUnit& u = s.scene.unit(i);
    if (u.kind != UnitKind::Shrine) continue;
    const float way = walk(s, u.pos);
    if (way >= nearest || u.shrine_cooldown * s.body.move_speed > way) continue;
    bool watched = false;
    for (int k = 0; k < s.view.heroes_per_team; ++k)
      if (const SeenUnit* e = s.scene.enemy(k)) watched |= distance(e->pos, u.pos) < kShrineDanger;
    if (watched) continue;
    nearest = way;
    best = &u;
  }
  return best ? travel(s, best->pos) : Command{};
}

Command tread(const Situation& s) {
  const BotBook& k = s.scene.book;
  // A use shows a timestep after it was asked for: at once again would turn them past what is wanted.
  if (!s.offered(k.treads) || s.memory.last.action == k.treads) return {};
  const auto& def = s.view.constants.tables->heroes[s.hero.def];
  for (const SeenItem& item : s.hero.items)
    if (item.id == s.view.constants.treads && item.castable && item.toggle != static_cast<int>(def.primary))
      return with(k.treads);
  return {};
}

Command eat(const Situation& s) {
  if (s.health() >= 0.75f || under(s, kByTango | kByFlask | kByBottle)) return {};
  for (const int action : {s.scene.book.tango, s.scene.book.tango_single})
    if (s.offered(action)) return with(action, s.body.handle);
  return s.skill.disciplined && !s.hero.tree_near ? to_tree(s) : Command{};
}

Command recover(const Situation& s, const Balance& b) {
  const BotBook& k = s.scene.book;
  const bool quiet = b.enemies == 0 || s.away(b.nearest->pos) > 900.0f;
  if (s.health() < 0.35f)
    for (const int action : {k.faerie, k.wand, k.stick})
      if (s.offered(action)) return with(action, s.body.handle);
  if (s.health() < 0.3f)  // what heals a whole bar at once
    if (s.offered(k.cheese)) return with(k.cheese);
  if (s.health() < 0.75f && !under(s, kByTango | kByFlask | kByBottle)) {
    if (quiet && s.offered(k.bottle)) return with(k.bottle, s.body.handle);
    if (quiet && s.health() < 0.6f && s.offered(k.flask)) return with(k.flask, s.body.handle);
    if (b.enemies == 0 || !s.skill.disciplined)
      if (const Command c = eat(s); said(c)) return c;
    if (s.health() < 0.45f && s.offered(k.flask)) return with(k.flask, s.body.handle);
  }
  if (s.mana() < 0.4f && quiet && !under(s, kByClarity) && s.offered(k.clarity))
    return with(k.clarity, s.body.handle);
  if (s.health() < 0.55f && quiet && s.offered(kShrine)) {
    s.memory.shrine_until = s.view.time + s.view.constants.tables->game->shrine_duration;
    return with(kShrine);
  }
  if (s.skill.defends && s.offered(kGlyph))
    for (const int i : s.scene.own_buildings) {
      const SeenUnit& u = s.scene.unit(i);
      if (u.kind != UnitKind::Tower || u.hp > 0.4f * u.max_hp || s.view.hp_history(u)[8] <= u.hp) continue;
      return with(kGlyph);
    }
  return {};
}

Command reveal(const Situation& s) {
  if (!s.offered(s.scene.book.dust)) return {};
  for (int i = 0; i < s.view.heroes_per_team; ++i) {
    const SeenHero& e = s.view.heroes[s.view.heroes_per_team + i];
    if (!e.present || !e.alive || e.unit < 0) continue;
    if (e.in_sight ? !e.invisible : e.since_seen > 3.0f) continue;
    if (e.in_sight && s.view.units[e.unit].status & kTrueSighted) continue;
    bool hides = false;
    for (const SeenAbility& a : e.abilities)
      hides |= a.id >= 0 && a.level > 0 && s.scene.book.abilities[a.id].uses & kHides;
    for (const SeenItem& it : e.items) {
      const int ability = it.id < 0 ? -1 : s.view.constants.tables->items[it.id].ability;
      hides |= ability >= 0 && s.scene.book.abilities[ability].uses & kHides;
    }
    if (hides && s.away(s.view.units[e.unit].pos) < 900.0f) return with(s.scene.book.dust);
  }
  return {};
}

Command take_runes(const Situation& s) {
  if (!s.skill.runes || !s.view.constants.settings->runes) return {};
  const bool fresh_bounty = s.view.time > 0 && s.view.time_to_bounty > 270.0f;
  const bool soon_bounty = s.view.time_to_bounty < (s.view.time < 0 ? 40.0f : 12.0f);
  const bool soon_power = s.view.time > 60.0f && s.view.time_to_runes < 10.0f;
  const bool fresh_power = s.view.time > 240.0f && s.view.time_to_runes > 100.0f;
  float nearest = 2000.0f;
  const SeenPickup* best = nullptr;
  const auto bounties = s.scene.map.bounty_runes.size();
  const std::size_t all = std::min<std::size_t>(bounties + s.scene.map.power_runes.size(), kMaxPickups);
  for (std::size_t i = 0; i < all; ++i) {
    const SeenPickup& p = s.view.pickups[i];
    const bool bounty = i < bounties;
    const bool hoped =
        bounty ? soon_bounty || (fresh_bounty && p.status != 2) : soon_power || (fresh_power && p.status != 2);
    if (p.status != 1 && !hoped) continue;
    const float away = s.away(p.pos);
    // While lanes are played those who farm do not leave them for a rune far away; the middle player looks for
    // power.
    const bool leaves = bounty ? s.role() >= 4 : s.role() == 2 || s.role() == 4;
    if (s.view.time > 30.0f && s.view.time < s.skill.group_from && !leaves && away > 700.0f) continue;
    if (away >= (p.status == 1 ? nearest : 0.8f * nearest)) continue;
    bool mate_nearer = false;
    for (int k = 0; k < s.view.heroes_per_team; ++k) {
      const SeenUnit* mate = k == s.index ? nullptr : s.scene.ally(k);
      mate_nearer |= mate && distance(mate->pos, p.pos) < away;
    }
    if (mate_nearer) continue;
    nearest = away;
    best = &p;
  }
  if (!best) return {};
  if (best->status == 1 && s.offered(kPickup) && s.away(best->pos) < 550.0f) return with(kPickup);
  if (s.away(best->pos) < 150.0f) return with(kNoop);
  return travel(s, best->pos);
}

Command place_wards(const Situation& s) {
  const BotBook& k = s.scene.book;
  if (!s.skill.wards || s.view.time < s.memory.next_ward) return {};
  const bool observer = s.offered(k.observer), sentry = !observer && s.offered(k.sentry);
  if (!observer && !sentry) return {};
  BotMemory& m = s.scene.memory;
  if (s.memory.ward_spot < 0) {
    float best = 1e9f;
    for (int w = 0; w < kWardSpots; ++w) {
      const Vec2 p = ward_spot(s.scene, w);
      // Sentries go where wards are: one's own, which the enemy knows to be good places too.
      if (s.view.time < m.warded_until[w] && observer) continue;
      if (observer && own_ward_near(s.scene, p, 1100.0f)) continue;
      const float risk = distance(p, s.scene.home) * 0.5f;
      if (s.away(p) + risk >= best || s.away(p) > 4500.0f) continue;
      best = s.away(p) + risk;
      s.memory.ward_spot = static_cast<std::int8_t>(w);
    }
    if (s.memory.ward_spot < 0) {
      s.memory.next_ward = s.view.time + 20.0f;
      return {};
    }
  }
  const Vec2 spot = ward_spot(s.scene, s.memory.ward_spot);
  if (s.away(spot) > 350.0f) return travel(s, spot);
  Command c = with(observer ? k.observer : k.sentry);
  m.warded_until[s.memory.ward_spot] = s.view.time + 180.0f;
  s.memory.ward_spot = -1;
  s.memory.next_ward = s.view.time + 12.0f;
  return ward_offset(s, spot, c) ? c : Command{};
}

}  // namespace dota
