// World states of a Dota 2 client; dota.client_state wraps them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/vec.hpp"
#include "client/client_game.hpp"
#include "client/world_state_reader.hpp"

namespace nb = nanobind;

namespace dota {
namespace {

nb::str text(std::string_view s) {
  // Names are ASCII. Bytes that are not UTF-8 would otherwise raise another error than a refusal.
  PyObject* const out = PyUnicode_DecodeUTF8(s.data(), static_cast<Py_ssize_t>(s.size()), "replace");
  return nb::steal<nb::str>(out);
}

nb::dict abilities_of(std::span<const ClientAbility> abilities) {
  nb::dict out;
  for (const ClientAbility& a : abilities)
    out[nb::int_(a.slot)] = nb::make_tuple(a.ability_id, a.level, a.cooldown_remaining, a.charges);
  return out;
}

nb::dict unit_of(const WorldState& s, const ClientUnit& u) {
  nb::dict out;
  out["handle"] = u.handle;
  out["unit_type"] = static_cast<int>(u.unit_type);
  out["name"] = text(u.name);
  out["team_id"] = u.team_id;
  out["player_id"] = u.player_id;
  out["is_alive"] = u.is_alive;
  out["location"] = nb::make_tuple(u.location.x, u.location.y, u.location.z);
  out["health"] = u.health;
  out["attack_target_handle"] = u.attack_target_handle;
  out["abilities"] = abilities_of(s.abilities_of(u));
  out["items"] = abilities_of(s.items_of(u));
  nb::list modifiers;
  for (const ClientModifier& m : s.modifiers_of(u))
    modifiers.append(nb::make_tuple(text(m.name), m.stack_count, m.remaining_duration));
  out["modifiers"] = modifiers;
  out["projectiles"] = s.projectiles_of(u).size();
  return out;
}

nb::dict summary(const nb::bytes& frame) {
  WorldState s;
  const std::string refused = read_world_state({frame.c_str(), frame.size()}, s);
  if (!refused.empty()) throw nb::value_error(("world state: " + refused).c_str());
  nb::dict out;
  out["team_id"] = s.team_id;
  out["game_time"] = s.game_time;
  out["dota_time"] = s.dota_time;
  out["unknown_fields"] = s.unknown_fields;
  nb::list players, units;
  for (const ClientPlayer& p : s.players)
    players.append(nb::make_tuple(p.player_id, p.team_id, p.hero_id, p.is_alive, p.kills, p.deaths));
  for (const ClientUnit& u : s.units)
    units.append(unit_of(s, u));
  out["players"] = players;
  out["units"] = units;
  out["runes"] = s.runes.size();
  out["tree_events"] = s.tree_events.size();
  out["zones"] = s.zones.size();
  out["linear_projectiles"] = s.linear_projectiles.size();
  return out;
}

ClientIds ids_of(const nb::dict& described) {
  const auto map = [&](const char* space) {
    ClientIds::Map out;
    for (const auto& [id, index] : nb::cast<nb::dict>(described[space]))
      out.emplace(nb::cast<std::uint32_t>(id), nb::cast<int>(index));
    return out;
  };
  return {map("hero"), map("ability"), map("item")};
}

template <class T>
T* array_of(const nb::dict& arrays, const char* name, std::size_t size) {
  const auto a = nb::cast<Array<T>>(arrays[name]);
  if (a.size() != size) throw nb::value_error((std::string(name) + ": the array has another size").c_str());
  return a.data();
}

// Writes the observation into arrays of the layout's shapes, without the dimensions of games and teams.
void encode(ClientGame& game, const nb::dict& arrays) {
  if (!game.begun()) throw nb::value_error("no frame was taken yet: there is nothing to observe");
  const Layout& l = game.setup().layout;
  const std::size_t heroes = l.heroes;
  const auto width = [&](ObsArray a) -> std::size_t { return l.width(a); };
  TeamStepBuffers out;
  out.shared = array_of<std::uint16_t>(arrays, "shared", width(ObsArray::Shared));
  out.private_ = array_of<std::uint16_t>(arrays, "private", heroes * width(ObsArray::Private));
  out.shared_ids = array_of<std::uint16_t>(arrays, "shared_ids", width(ObsArray::SharedIds));
  out.private_ids = array_of<std::uint16_t>(arrays, "private_ids", heroes * width(ObsArray::PrivateIds));
  out.available = array_of<std::uint16_t>(arrays, "available", heroes * kMaxAvailable);
  out.target_mask = array_of<std::uint8_t>(arrays, "target_mask", heroes * kMaskClasses * l.units);
  game.encode(out);
}

nb::list choose(ClientGame& game, const Array<const std::int16_t>& actions) {
  const std::size_t heroes = game.setup().settings.heroes_per_team;
  if (!game.begun()) throw nb::value_error("no frame was taken yet: there is nothing to choose from");
  if (actions.size() != heroes * kActionParts) throw nb::value_error("actions: int16 [heroes, 6] is needed");
  nb::list out;
  for (const ClientCommand& c : game.choose(actions.data()))
    out.append(nb::make_tuple(c.action, c.delay, c.target, c.teleport, c.dx, c.dy));
  return out;
}

void remember(ClientGame& game, const nb::list& commands) {
  if (!game.begun()) throw nb::value_error("no frame was taken yet: there is nothing to remember");
  std::vector<ClientCommand> out;
  for (const nb::handle row : commands) {
    const auto part = [&](int k) { return nb::cast<std::int64_t>(row[k]); };
    out.push_back({static_cast<int>(part(0)), static_cast<int>(part(1)), static_cast<int>(part(4)),
                   static_cast<int>(part(5)), static_cast<std::uint32_t>(part(2)),
                   static_cast<std::uint32_t>(part(3))});
  }
  game.remember(out);
}

}  // namespace

void bind_client(nb::module_& m) {
  nb::class_<ClientGame>(m, "ClientGame", "A game as a client tells it; wrapped by dota.client_state.")
      .def(
          "__init__",
          [](ClientGame* self, nb::handle layout, nb::handle variant, const nb::dict& ids) {
            try {
              new (self) ClientGame(game_setup(layout_table(layout), variant), ids_of(ids));
            } catch (const std::invalid_argument& e) {
              throw nb::value_error(e.what());
            }
          },
          nb::arg("layout"), nb::arg("variant"), nb::arg("ids"))
      .def(
          "update",
          [](ClientGame& self, const nb::bytes& frame) { return self.update({frame.c_str(), frame.size()}); },
          nb::arg("frame"), "Why the frame is refused; '' when the game is brought up to it.")
      .def("encode", &encode, nb::arg("arrays"))
      .def("choose", &choose, nb::arg("actions").noconvert(),
           "Action, delay, handles of target and teleport (0: none), dx, dy of each hero.")
      .def("remember", &remember, nb::arg("commands"), "The same tuples, of choices that were made elsewhere.")
      .def("team", [](const ClientGame& self) { return self.shadow().team(); })
      .def("time", [](const ClientGame& self) { return self.shadow().game().state().world.time; })
      .def("counts",
           [](const ClientGame& self) {
             nb::dict out;
             out["frames"] = self.frames();
             out["refused"] = self.refused();
             out["unknown_fields"] = self.unknown_fields();
             out["unknown_names"] = self.shadow().names().unknown();
             return out;
           })
      .def("slot_handles", &ClientGame::slot_handles)
      .def("hero_handles", &ClientGame::hero_handles);
  m.def("read_world_state", &summary, nb::arg("frame"),
        "Decodes a world state. Raises ValueError that says why the bytes are refused.");
}

}  // namespace dota
