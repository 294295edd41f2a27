#include "client/world_state_reader.hpp"

#include <cmath>

#include "client/unit_reader.hpp"

namespace dota {
namespace {

void read_player(MessageReader& r, std::string_view bytes, ClientPlayer& p) {
  constexpr const char* kName = "Player";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, p.player_id);
      case 2:
        return r.number(kName, f, p.hero_id);
      case 3:
        return r.number(kName, f, p.is_alive);
      case 4:
        return r.number(kName, f, p.respawn_time);
      case 5:
        return r.number(kName, f, p.kills);
      case 6:
        return r.number(kName, f, p.deaths);
      case 7:
        return r.number(kName, f, p.assists);
      case 8:
        return r.number(kName, f, p.team_id);
      default:
        return r.skip(f.number, {9, 10, 11});
    }
  });
}

void read_dropped_item(MessageReader& r, std::string_view bytes, ClientDroppedItem& d) {
  constexpr const char* kName = "DroppedItem";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, d.item_id);
      case 2:
        return read_vector(r, f, d.location);
      default:
        return r.skip(f.number, {});
    }
  });
}

void read_rune(MessageReader& r, std::string_view bytes, ClientRune& rune) {
  constexpr const char* kName = "RuneInfo";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, rune.type);
      case 2:
        return read_vector(r, f, rune.location);
      case 3:
        return r.number(kName, f, rune.status);
      case 4:
        return r.number(kName, f, rune.time_since_seen);
      default:
        return r.skip(f.number, {});
    }
  });
}

void read_teleport(MessageReader& r, std::string_view bytes, ClientTeleport& t) {
  constexpr const char* kName = "TeleportInfo";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, t.player_id);
      case 2:
        return read_vector(r, f, t.location);
      case 3:
        return r.number(kName, f, t.time_remaining);
      default:
        return r.skip(f.number, {});
    }
  });
}

void read_linear_projectile(MessageReader& r, std::string_view bytes, ClientLinearProjectile& p) {
  constexpr const char* kName = "LinearProjectile";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, p.handle);
      case 2:
        return r.number(kName, f, p.caster_handle);
      case 3:
        return r.number(kName, f, p.caster_player_id);
      case 5:
        return r.number(kName, f, p.ability_id);
      case 6:
        return read_vector(r, f, p.location);
      case 7:
        return read_vector(r, f, p.velocity);
      case 8:
        return r.number(kName, f, p.radius);
      default:
        return r.skip(f.number, {4, 9});
    }
  });
}

void read_zone(MessageReader& r, std::string_view bytes, ClientZone& z) {
  constexpr const char* kName = "AvoidanceZone";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return read_vector(r, f, z.location);
      case 2:
        return r.number(kName, f, z.caster_handle);
      case 3:
        return r.number(kName, f, z.caster_player_id);
      case 5:
        return r.number(kName, f, z.ability_id);
      case 6:
        return r.number(kName, f, z.radius);
      default:
        return r.skip(f.number, {4, 7});
    }
  });
}

void read_tree_event(MessageReader& r, std::string_view bytes, ClientTreeEvent& e) {
  constexpr const char* kName = "EventTree";
  r.each(kName, bytes, [&](const WireField& f) {
    switch (f.number) {
      case 1:
        return r.number(kName, f, e.tree_id);
      case 2:
        return r.number(kName, f, e.destroyed);
      case 3:
        return r.number(kName, f, e.respawned);
      case 4:
        return read_vector(r, f, e.location);
      default:
        return r.skip(f.number, {5});
    }
  });
}

constexpr const char* kRoot = "CMsgBotWorldState";

template <class T>
void append(MessageReader& r, const WireField& f, std::vector<T>& list,
            void (*read)(MessageReader&, std::string_view, T&)) {
  if (!r.is_message(kRoot, f) || !r.fits(kRoot, f, list, kMaxClientList)) return;
  read(r, f.bytes, list.emplace_back());
}

void read_root(MessageReader& r, const WireField& f, WorldState& out) {
  switch (f.number) {
    case 1:
      return r.number(kRoot, f, out.team_id);
    case 2:
      return r.number(kRoot, f, out.game_time);
    case 3:
      return r.number(kRoot, f, out.dota_time);
    case 4:
      return r.number(kRoot, f, out.game_state);
    case 6:
      return r.number(kRoot, f, out.time_of_day);
    case 7:
      return r.number(kRoot, f, out.glyph_cooldown);
    case 8:
      return r.number(kRoot, f, out.glyph_cooldown_enemy);
    case 10:
      return append(r, f, out.players, read_player);
    case 11:
      if (r.is_message(kRoot, f) && r.fits(kRoot, f, out.units, kMaxClientUnits)) read_unit(r, f.bytes, out);
      return;
    case 12:
      return append(r, f, out.dropped_items, read_dropped_item);
    case 13:
      return append(r, f, out.runes, read_rune);
    case 14:
      return append(r, f, out.teleports, read_teleport);
    case 15:
      return append(r, f, out.linear_projectiles, read_linear_projectile);
    case 16:
      return append(r, f, out.zones, read_zone);
    case 23:
      if (r.is_message(kRoot, f)) ++out.roshan_killed;
      return;
    case 24:
      return append(r, f, out.tree_events, read_tree_event);
    default:
      return r.skip(f.number, {5, 17, 20, 21, 22, 112, 113});
  }
}

}  // namespace

std::string read_world_state(std::string_view frame, WorldState& out) {
  out = WorldState{};
  if (frame.size() > kMaxClientFrame)
    return std::to_string(frame.size()) + " bytes: a frame has at most " + std::to_string(kMaxClientFrame);
  MessageReader r;
  r.each(kRoot, frame, [&](const WireField& f) { read_root(r, f, out); });
  out.unknown_fields = r.unknown();
  if (!r.ok()) return r.why();
  if (out.team_id != 2 && out.team_id != 3)
    return "team_id " + std::to_string(out.team_id) + ": a frame is of team 2 or 3";
  if (std::fabs(out.dota_time) > kMaxClientTime || std::fabs(out.game_time) > kMaxClientTime)
    return "dota_time " + std::to_string(out.dota_time) + ", game_time " + std::to_string(out.game_time) +
           ": a game lasts at most " + std::to_string(static_cast<int>(kMaxClientTime)) + " s";
  return {};
}

}  // namespace dota
