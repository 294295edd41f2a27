// A client's names and numbers of heroes, abilities, items, units and modifiers, as indices of the game's tables.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "client/world_state.hpp"
#include "data/tables.hpp"

namespace dota {

// Valve's numbers of heroes, abilities and items, each with its index in Tables.
struct ClientIds {
  using Map = std::unordered_map<std::uint32_t, int>;
  Map hero, ability, item;
};

class ClientNames {
 public:
  ClientNames(const Tables& tables, ClientIds ids) : tables_(tables), ids_(std::move(ids)) {
    // A table's name is that of an ability and the effect's number in it; a client names the ability alone.
    for (std::size_t i = 0; i < tables.modifiers.size(); ++i) {
      const std::string& name = tables.modifiers[i];
      modifiers_.emplace(name, static_cast<int>(i));
      modifiers_.emplace("modifier_" + name.substr(0, name.find('#')), static_cast<int>(i));
    }
  }
  // Index in the tables, or -1 for a name or number that this patch lacks, which is counted.
  int hero(std::uint32_t id) { return number("hero", ids_.hero, id); }
  int ability(std::uint32_t id) { return number("ability", ids_.ability, id); }
  int item(std::uint32_t id) { return number("item", ids_.item, id); }
  int modifier(std::string_view name);
  int unit(std::string_view name);
  // Kind of a unit by its name or, where that is unknown, by its type in the message.
  UnitKind kind_of(const ClientUnit& u, int type) const;
  // A unit of the tables that represents units of a kind with unknown names; -1: the tables lack the kind.
  int stand_in(UnitKind kind, int team) const;

  // How often each unknown name or number was met: "unit npc_dota_x", "item 9999".
  const std::map<std::string, std::uint64_t>& unknown() const { return unknown_; }

 private:
  int number(const char* space, const ClientIds::Map& map, std::uint32_t id);
  int count(const char* space, std::string_view name);

  const Tables& tables_;
  ClientIds ids_;
  std::unordered_map<std::string, int> modifiers_;
  std::map<std::string, std::uint64_t> unknown_;
};

}  // namespace dota
