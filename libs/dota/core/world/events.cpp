// The one place where an event is noted and where the signals of single events are given, so that transcript, kill
// feed and rewards cannot differ.

#include "world/events.hpp"

namespace dota {
namespace {

Signal building_signal(const Unit& b) {
  switch (b.kind) {
    case UnitKind::Tower:
      return static_cast<Signal>(static_cast<int>(Signal::Tower1) + b.tier - 1);
    case UnitKind::Shrine:
      return Signal::Shrine;
    case UnitKind::Barracks:
      return Signal::Barracks;
    case UnitKind::Fort:
      return Signal::AncientHp;
    default:
      return Signal::Count;
  }
}

std::int8_t hero_behind(const World& w, const Unit& u) {
  if (u.hero >= 0) return u.hero;
  const Unit* owner = w.get(u.owner);
  return owner ? owner->hero : std::int8_t{-1};
}

void give_signal(Context& c, const Event& e, Unit* unit) {
  World& w = c.world;
  HeroState* h = e.hero >= 0 ? &w.heroes[e.hero] : nullptr;
  switch (e.kind) {
    case EventKind::HeroDeath:
      if (h) signal(*h, Signal::HeroDeath, 1);
      break;
    case EventKind::HeroKill:
      if (h) signal(*h, Signal::KilledHero, 1);
      break;
    case EventKind::LastHit:
      if (h) signal(*h, Signal::LastHit, 1);
      break;
    case EventKind::Deny:
      if (h) signal(*h, Signal::Deny, 1);
      break;
    case EventKind::CourierDeath:
      signal_team(w, e.team, Signal::CourierDeath, 1);
      break;
    case EventKind::BuildingDeath:
      if (unit) building_destroyed_signal(c, *unit);
      break;
    case EventKind::Aegis:
      signal_team(w, e.team, Signal::Aegis, 1);
      break;
    case EventKind::Megas:
      signal_team(w, e.team, Signal::Megas, 1);
      break;
    case EventKind::Won:
      if (e.team < kTeams) signal_team(w, e.team, Signal::Win, 1);
      break;
    default:
      break;
  }
}

void note(Context& c, const Event& e, Unit* unit) {
  World& w = c.world;
  give_signal(c, e, unit);  // also of what finds the list full
  if (w.event_count < kMaxEvents)
    w.events[w.event_count++] = e;
  else
    ++w.dropped[ordinal(StatePool::Events)];
}

}  // namespace

void signal_team(World& w, int team, Signal s, float v) {
  for (int i = team * 5; i < team * 5 + 5; ++i)
    if (w.heroes[i].in_game) signal(w.heroes[i], s, v);
}

void signal_building_health(Context& c, Unit& b, float share) {
  const Signal s = building_signal(b);
  if (s == Signal::Count || share == b.credited) return;
  const float linear = s == Signal::AncientHp ? 1.0f : 2.0f / 3;
  signal_team(c.world, 1 - b.team, s, linear * (b.credited - share));
  b.credited = share;
}

void building_destroyed_signal(Context& c, Unit& b) {
  signal_building_health(c, b, 0);
  if (const Signal s = building_signal(b); s != Signal::Count && s != Signal::AncientHp)
    signal_team(c.world, 1 - b.team, s, 1.0f / 3);
}

void record_event(Context& c, EventKind kind, Unit& unit, const Unit* other, int id, float value) {
  const World& w = c.world;
  Event e;
  e.frame = w.frame;
  e.kind = kind;
  e.team = unit.team;
  e.hero = hero_behind(w, unit);
  e.unit = w.handle(unit);
  e.unit_type = static_cast<std::int16_t>(unit.type);
  if (other) {
    e.other_hero = hero_behind(w, *other);
    e.other = w.handle(*other);
    e.other_type = static_cast<std::int16_t>(other->type);
  }
  e.id = static_cast<std::int16_t>(id);
  e.value = value;
  note(c, e, &unit);
}

void record_hero_event(Context& c, EventKind kind, const HeroState& h, const Unit* other, int id, float value) {
  if (Unit* u = h.in_game ? c.world.get(h.unit) : nullptr) record_event(c, kind, *u, other, id, value);
}

void record_team_event(Context& c, EventKind kind, int team) {
  Event e;
  e.frame = c.world.frame;
  e.kind = kind;
  e.team = static_cast<std::uint8_t>(team);
  note(c, e, nullptr);
}

}  // namespace dota
