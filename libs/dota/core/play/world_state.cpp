#include "play/world_state.hpp"

#include <algorithm>

#include "effects/abilities.hpp"
#include "map/ground.hpp"
#include "map/map_data.hpp"
#include "map/vision.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

constexpr int kPreGame = 4, kInProgress = 5;  // DOTA_GameState
constexpr int kPicked = 1;                    // hero_pick_state in games of the real client
// Valve's numbers of runes by PickupKind.
constexpr std::array<int, ordinal(PickupKind::Count)> kRuneNumbers = {5, 0, 1, 3, 4, 6};
enum CourierNumber : std::uint8_t {
  kCourierIdle = 0,
  kCourierAtBase,
  kCourierMoving,
  kCourierDelivers,
  kCourierReturns
};

float seconds_left(const World& w, float until) { return w.due(until) ? 0 : until - w.time; }

// Share of a day since midnight; day begins at a quarter. Before the horn it is morning.
float time_of_day(const Rules& r, float time) {
  const float cycle = r.day_length_s + r.night_length_s;
  if (time < 0 || cycle <= 0) return 0.25f;
  const float t = std::fmod(time, cycle);
  const float share = t < r.day_length_s ? 0.25f + 0.5f * t / r.day_length_s
                                         : 0.75f + 0.5f * (t - r.day_length_s) / r.night_length_s;
  return share < 1 ? share : share - 1;
}

void write_clock(WireWriter& out, const BotEye& eye) {
  const World& w = eye.w();
  out.number(1, team_number(eye.team));
  out.real(2, static_cast<float>(w.frame) * kDt);
  out.real(3, w.time);
  out.number(4, w.time < 0 ? kPreGame : kInProgress);
  out.number(5, kPicked);
  out.real(6, time_of_day(eye.c.tables.rules, w.time));
  out.real(7, seconds_left(w, w.teams[eye.team].glyph_ready));
  out.number(8, static_cast<std::uint64_t>(std::ceil(seconds_left(w, w.teams[1 - eye.team].glyph_ready))));
}

void write_players(WireWriter& out, const BotEye& eye, const AbsentHeroes& absent) {
  const World& w = eye.w();
  for (int i = 0; i < kMaxHeroes; ++i) {
    const HeroState& h = w.heroes[i];
    if (!h.in_game && absent[i] == 0) continue;
    const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    const bool alive = !h.in_game || (u && u->alive);
    const int number = h.in_game ? eye.c.tables.heroes[h.def].number : absent[i];
    out.message(10, [&] {
      out.signed_number(1, i);
      out.number(2, static_cast<std::uint64_t>(number));
      out.flag(3, alive);
      out.real(4, alive ? 0 : seconds_left(w, h.respawn_at));
      out.number(5, h.kills);
      out.number(6, h.deaths);
      out.number(7, h.assists);
      out.number(8, team_number(i / 5));
    });
  }
}

void write_ground(WireWriter& out, const BotEye& eye, const TeamEvents& events) {
  const World& w = eye.w();
  for (const GroundItem& g : w.ground) {
    if (g.id < 0 || !cell_visible(w, eye.team, g.pos)) continue;
    out.message(12, [&] {
      out.number(1, static_cast<std::uint64_t>(eye.c.tables.items[g.id].number));
      write_place(out, 2, eye, g.pos);
    });
  }
  if (!eye.c.settings.runes) return;
  for (std::size_t k = 0; k < eye.view.pickups.size(); ++k) {
    const SeenPickup& p = eye.view.pickups[k];
    out.message(13, [&] {
      out.signed_number(1, p.kind < 0 ? -1 : kRuneNumbers[static_cast<std::size_t>(p.kind)]);
      write_place(out, 2, eye, p.pos);
      out.number(3, p.status);
      out.real(4, w.time - events.rune_seen[k]);
    });
  }
}

void write_teleports(WireWriter& out, const BotEye& eye) {
  const World& w = eye.w();
  each_unit<UnitKind::Hero>(w, [&](const Unit& u) {
    if (u.hero < 0 || !u.alive || u.act != Act::Channel || !eye.lists(u)) return;
    const AbilityDef* a = slot_ability(eye.c, u, u.order.slot, nullptr);
    if (!a || a->target != TargetType::Teleport) return;
    out.message(14, [&] {
      out.signed_number(1, u.hero);
      write_place(out, 2, eye, u.order.point);
      out.real(3, seconds_left(w, u.act_until));
    });
  });
}

void write_couriers(WireWriter& out, const BotEye& eye) {
  const World& w = eye.w();
  const TeamState& t = w.teams[eye.team];
  const Unit* u = w.get(t.courier);
  if (!u || !u->alive) return;
  const bool home = distance(u->pos, u->spawn) < 2 * u->radius + kCell;
  static constexpr int kStates[] = {kCourierIdle, kCourierDelivers, kCourierReturns, kCourierMoving};
  const int state = t.courier_state < std::size(kStates) ? kStates[t.courier_state] : kCourierIdle;
  out.message(17, [&] {
    out.number(1, bot_handle(t.courier));
    out.signed_number(2, state == kCourierIdle && home ? kCourierAtBase : state);
    out.signed_number(3, -1);
  });
}

void write_events(WireWriter& out, const BotEye& eye, const TeamEvents& events) {
  const Tables& t = eye.c.tables;
  for (const BotCast& e : events.casts)
    out.message(20, [&] {
      out.number(1, ability_number(t, e.ability));
      out.signed_number(2, e.hero);
      if (e.unit.index >= 0) out.number(3, bot_handle(e.unit));
      if (e.placed) write_place(out, 4, eye, e.at);
      out.flag(5, t.abilities[e.ability].channelled);
    });
  for (const DamageEvent& e : events.damage)
    out.message(21, [&] {
      out.whole(1, e.amount);
      out.signed_number(2, e.victim);
      out.number(3, bot_handle(e.victim_unit));
      out.signed_number(4, e.attacker);
      if (e.attacker_unit.index >= 0) out.number(5, bot_handle(e.attacker_unit));
      if (const std::uint64_t ability = ability_number(t, e.ability)) out.number(6, ability);
    });
  for (const EventKind kind : {EventKind::CourierDeath, EventKind::RoshanDeath}) {
    const bool courier = kind == EventKind::CourierDeath;
    for (const BotKill& e : events.kills) {
      if (e.kind != kind) continue;
      out.message(courier ? 22 : 23, [&] {
        if (courier) out.number(1, team_number(e.team));
        if (courier && e.unit.index >= 0) out.number(2, bot_handle(e.unit));
        out.signed_number(courier ? 3 : 1, e.killer_hero);
        if (e.killer.index >= 0) out.number(courier ? 4 : 2, bot_handle(e.killer));
      });
    }
  }
  for (const BotTree& e : events.trees)
    out.message(24, [&] {
      out.number(1, static_cast<std::uint64_t>(e.tree));
      out.flag(e.felled ? 2 : 3, true);
      write_place(out, 4, eye, t.map->trees[static_cast<std::size_t>(e.tree)].pos);
      if (e.delayed) out.flag(5, true);
    });
}

}  // namespace

bool BotEye::lists(const Unit& u) const {
  if (u.kind == UnitKind::None) return false;
  if (own(u)) return u.alive || u.hero >= 0;
  return u.alive && unit_visible(c.world, team, u);
}

const Unit* BotEye::listed(Handle h) const {
  const Unit* u = c.world.get(h);
  return u && lists(*u) ? u : nullptr;
}

std::uint32_t BotEye::handle(Handle h) const { return listed(h) ? bot_handle(h) : 0; }

void write_place(WireWriter& out, std::uint32_t field, const BotEye& eye, Vec2 at) {
  out.message(field, [&] {
    out.real(1, at.x);
    out.real(2, at.y);
    out.real(3, static_cast<float>(elevation(*eye.c.tables.map, at)) * 128);
  });
}

std::uint64_t ability_number(const Tables& t, int ability) {
  if (ability < 0) return 0;
  const AbilityDef& a = t.abilities[ability];
  return static_cast<std::uint64_t>(a.is_item >= 0 ? t.items[a.is_item].number : a.number);
}

int player_of(const World& w, const Unit& u) {
  if (u.hero >= 0) return u.hero;
  const Unit* owner = u.kind == UnitKind::Summon ? w.get(u.owner) : nullptr;
  return owner ? owner->hero : -1;
}

std::string write_world_state(const BotEye& eye, const TeamEvents& events, const AbsentHeroes& absent) {
  const World& w = eye.w();
  WireWriter out;
  out.reserve(std::size_t{1} << 16);
  write_clock(out, eye);
  write_players(out, eye, absent);
  for (int i = 0; i < w.units_end; ++i)
    if (eye.lists(w.units[i])) out.message(11, [&] { write_unit(out, eye, w.units[i]); });
  write_ground(out, eye, events);
  write_teleports(out, eye);
  write_linear_projectiles(out, eye);
  write_avoidance_zones(out, eye);
  write_couriers(out, eye);
  write_events(out, eye, events);
  return out.take();
}

}  // namespace dota
