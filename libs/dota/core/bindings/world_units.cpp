// Units of a world: looked into, changed, ordered and hurt.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/world.hpp"
#include "effects/abilities.hpp"
#include "effects/attack.hpp"
#include "effects/damage.hpp"
#include "effects/runes.hpp"
#include "effects/running.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"
#include "map/protection.hpp"
#include "map/spatial.hpp"
#include "map/vision.hpp"
#include "rules/orders.hpp"
#include "world/loadout.hpp"

namespace nb = nanobind;

namespace dota {
namespace {

const char* const kKinds[] = {"none", "hero",   "lane_creep", "neutral",  "roshan",  "tower", "barracks",
                              "fort", "filler", "shrine",     "fountain", "courier", "ward",  "summon"};
const char* const kActs[] = {"idle",        "walk",           "attack_windup", "attack_backswing",
                             "cast_windup", "cast_backswing", "channel",       "dead"};

const std::pair<const char*, OrderType> kOrders[] = {
    {"none", OrderType::None},          {"stop", OrderType::Stop},
    {"hold", OrderType::Hold},          {"move", OrderType::MoveTo},
    {"attack", OrderType::AttackUnit},  {"attack_move", OrderType::AttackMove},
    {"cast", OrderType::CastNoTarget},  {"cast_point", OrderType::CastPoint},
    {"cast_unit", OrderType::CastUnit}, {"pickup", OrderType::Pickup}};

nb::dict unit_dict(PyWorld& p, const Unit& u) {
  const World& w = p.world();
  nb::dict d;
  d["index"] = static_cast<int>(&u - w.units.data());
  d["kind"] = kKinds[ordinal(u.kind)];
  d["type"] = p.tables().units[u.type].name;
  d["team"] = u.team;
  d["hero"] = u.hero;
  d["lane"] = u.lane;
  d["tier"] = u.tier;
  d["camp"] = u.camp;
  d["building"] = u.building ? p.tables().map->buildings[u.building - 1u].id : std::string();
  d["alive"] = u.alive;
  d["x"] = u.pos.x;
  d["y"] = u.pos.y;
  d["facing"] = u.facing;
  d["hp"] = u.hp;
  d["max_hp"] = u.max_hp;
  d["hp_regen"] = u.hp_regen;
  d["mana"] = u.mana;
  d["max_mana"] = u.max_mana;
  d["mana_regen"] = u.mana_regen;
  d["armor"] = u.armor;
  d["magic_resist"] = u.magic_resist;
  d["move_speed"] = u.move_speed;
  d["turn_rate"] = u.turn_rate;
  d["status_resist"] = u.status_resist;
  d["attack_speed"] = u.attack_speed;
  d["attack_interval"] = u.attack_interval;
  d["attack_point"] = u.attack_point;
  d["attack_range"] = u.attack_range;
  d["dmg_min"] = u.dmg_min;
  d["dmg_max"] = u.dmg_max;
  d["dmg_bonus"] = u.dmg_bonus;
  d["evasion"] = u.evasion;
  d["miss"] = u.miss;
  d["lifesteal"] = u.lifesteal;
  d["heal_amp"] = u.heal_amp;
  d["attack_taken"] = u.attack_taken;
  d["dmg_dealt"] = u.dmg_dealt;
  d["dmg_taken"] = u.dmg_taken;
  d["status_resist"] = u.status_resist;
  d["spell_amp"] = u.spell_amp;
  d["str"] = u.str;
  d["agi"] = u.agi;
  d["int"] = u.intellect;
  d["radius"] = u.radius;
  d["status"] = u.status;
  d["order"] = static_cast<int>(u.order.type);
  d["act"] = kActs[ordinal(u.act)];
  d["attack_target"] = w.get(u.attack_target) ? static_cast<int>(u.attack_target.index) : -1;
  d["last_attack"] = u.last_attack;
  return d;
}

void set_unit(PyWorld& p, int index, const nb::kwargs& what) {
  Unit& u = p.unit(index);
  Context c = p.context();
  Vec2 pos = u.pos;
  bool moved = false;
  for (auto [key, value] : what) {
    const std::string name = nb::cast<std::string>(key);
    const float v = number_checked(nb::cast<float>(value), name.c_str());
    if (name == "x" || name == "y") {
      (name == "x" ? pos.x : pos.y) = v;
      moved = true;
    } else if (name == "hp") {
      u.hp = v;
    } else if (name == "mana") {
      u.mana = v;
    } else if (name == "facing") {
      u.facing = v;
    } else if (name == "extra_armor") {
      u.extra_armor = v;
      refresh_stats(c, u);
    } else if (name == "extra_hp_regen") {
      u.extra_hp_regen = v;
      refresh_stats(c, u);
    } else if (name == "extra_mana_regen") {
      u.extra_mana_regen = v;
      refresh_stats(c, u);
    } else if (name == "extra_hp") {
      u.extra_hp = v;
      refresh_stats(c, u);
    } else if (name == "extra_as") {
      u.extra_as = v;
      refresh_stats(c, u);
    } else if (name == "attack_ready") {
      u.attack_ready = v;
    } else {
      throw nb::key_error(("a unit's '" + name + "' cannot be set").c_str());
    }
  }
  if (moved) place_unit(p.world(), u, place_checked(pos.x, pos.y));
}

}  // namespace

void bind_world_units(nb::class_<PyWorld>& world) {
  world
      .def(
          "units",
          [](PyWorld& p, const std::optional<std::string>& kind) {
            nb::list out;
            for (int i = 0; i < p.world().units_end; ++i) {
              const Unit& u = p.world().units[i];
              if (u.kind != UnitKind::None && (!kind || *kind == kKinds[ordinal(u.kind)]))
                out.append(unit_dict(p, u));
            }
            return out;
          },
          nb::arg("kind") = nb::none())
      .def(
          "unit", [](PyWorld& p, int i) { return unit_dict(p, p.unit(i)); }, nb::arg("index"))
      .def("set_unit", &set_unit, nb::arg("index"), nb::arg("what"),
           "x, y, hp, mana, facing, attack_ready, extra_armor, extra_hp, extra_hp_regen, extra_mana_regen, "
           "extra_as")
      .def(
          "order",
          [](PyWorld& p, int index, const std::string& type, int target, float x, float y, int slot, int tree) {
            Order o;
            bool known = false;
            for (const auto& [name, t] : kOrders)
              if (type == name) {
                o.type = t;
                known = true;
              }
            if (!known) throw nb::key_error(("there is no order '" + type + "'").c_str());
            if (target >= 0) o.target = p.world().handle(p.unit(target));
            o.point = place_checked(x, y);
            o.slot = static_cast<std::int8_t>(checked(slot, -1, 15 + kItemSlots, "slot"));
            o.tree = static_cast<std::int16_t>(
                checked(tree, -1, static_cast<int>(p.tables().map->trees.size()) - 1, "tree"));
            Context c = p.context();
            issue_order(c, p.unit(index), o);
          },
          nb::arg("unit"), nb::arg("type"), nb::arg("target") = -1, nb::arg("x") = 0.0f, nb::arg("y") = 0.0f,
          nb::arg("slot") = -1, nb::arg("tree") = -1)
      .def(
          "spawn",
          [](PyWorld& p, const std::string& type, int team, float x, float y, int lane) {
            const auto at = p.tables().unit_index.find(type);
            if (at == p.tables().unit_index.end())
              throw nb::key_error(("there is no unit '" + type + "'").c_str());
            Context c = p.context();
            const bool walks = checked(lane, -1, 2, "lane") >= 0;
            if (walks && team >= kTeams) throw nb::value_error("neutrals walk no lane");
            const UnitKind kind = p.tables().units[at->second].kind;
            if (is_building(kind))
              throw nb::value_error(("'" + type + "' is a building: those stand where the map has them").c_str());
            if (kind == UnitKind::Hero)
              throw nb::value_error(("'" + type + "' is a hero: those are in the line-up from the start").c_str());
            const bool of_a_side =
                kind == UnitKind::LaneCreep || kind == UnitKind::Courier || kind == UnitKind::Ward;
            if (of_a_side && team >= kTeams)
              throw nb::value_error(("'" + type + "' belongs to a side: team 0 or 1").c_str());
            Unit* u = spawn_unit(c, at->second, checked(team, 0, kNeutralTeam, "team"), place_checked(x, y), 0);
            if (u && walks) {
              u->lane = static_cast<std::int8_t>(lane);
              u->order.type = OrderType::FollowLane;
            }
            return u ? static_cast<int>(u - p.world().units.data()) : -1;
          },
          nb::arg("type"), nb::arg("team"), nb::arg("x"), nb::arg("y"), nb::arg("lane") = -1,
          "A unit; with a lane it walks it and fights as a lane creep. Returns its index.")
      .def(
          "kill",
          [](PyWorld& p, int victim, int killer) {
            Context c = p.context();
            kill(c, p.unit(victim), killer >= 0 ? &p.unit(killer) : nullptr);
          },
          nb::arg("victim"), nb::arg("killer") = -1)
      .def(
          "damage",
          [](PyWorld& p, int source, int target, float amount, const std::string& type, bool attack) {
            const DamageType kind = type == "physical"  ? DamageType::Physical
                                    : type == "magical" ? DamageType::Magical
                                    : type == "pure"    ? DamageType::Pure
                                                        : DamageType::HpLoss;
            Context c = p.context();
            number_checked(amount, "amount");
            return deal_damage(c, {.source = source >= 0 ? &p.unit(source) : nullptr,
                                   .target = &p.unit(target),
                                   .amount = amount,
                                   .type = kind,
                                   .attack = attack});
          },
          nb::arg("source"), nb::arg("target"), nb::arg("amount"), nb::arg("type") = "physical",
          nb::arg("attack") = false)
      .def(
          "can_attack", [](PyWorld& p, int a, int b) { return can_attack(p.context(), p.unit(a), p.unit(b)); },
          nb::arg("attacker"), nb::arg("target"))
      .def(
          "protected", [](PyWorld& p, int b) { return building_protected(p.context(), p.unit(b)); },
          nb::arg("building"))
      .def(
          "visible",
          [](PyWorld& p, int team, int unit) { return unit_visible(p.world(), team_checked(team), p.unit(unit)); },
          nb::arg("team"), nb::arg("unit"))
      .def(
          "modifiers",
          [](PyWorld& p, int unit) {
            const World& w = p.world();
            nb::list out;
            for (int i = p.unit(unit).modifiers; i >= 0; i = w.modifiers[i].next) {
              const Modifier& mod = w.modifiers[i];
              nb::dict d;
              d["name"] = p.tables().modifiers[mod.name];
              d["left"] = mod.until - w.time;
              d["stacks"] = mod.stacks;
              d["status"] = mod.status;
              d["flags"] = mod.flags;
              d["shield"] = mod.shield;
              d["rests"] = mod.rests;  // until its end no frame has anything to do with it
              d["source"] = static_cast<int>(mod.source.index);
              nb::dict stats;
              for (const StatChange& s : mod.stats)
                if (s.stat != Stat::Count) stats[nb::int_(static_cast<int>(s.stat))] = s.value;
              d["stats"] = stats;
              out.append(d);
            }
            return out;
          },
          nb::arg("unit"), "What sits on the unit, passives included.")
      .def(
          "unit_ability",
          [](PyWorld& p, int unit, const std::string& name) {
            const Unit& u = p.unit(unit);
            Context c = p.context();
            for (int slot = 0; slot < kAbilitySlots; ++slot) {
              const AbilityState* a = ability_state(p.world(), u, slot);
              if (!a || a->id < 0 || p.tables().abilities[a->id].name != name) continue;
              nb::dict d;
              d["slot"] = slot;
              d["level"] = a->level;
              d["ready"] = a->ready;
              d["castable"] = castable(c, u, slot);
              return d;
            }
            throw nb::key_error(("the unit cannot cast '" + name + "'").c_str());
          },
          nb::arg("unit"), nb::arg("name"), "State of an ability of any unit.")
      .def(
          "give_unit_item",
          [](PyWorld& p, int unit, const std::string& item, int charges) {
            Unit& u = p.unit(unit);
            Context c = p.context();
            for (int slot = 16; slot < 16 + item_slots(u); ++slot) {
              ItemState* s = item_state(p.world(), u, slot);
              if (s->id >= 0) continue;
              *s = ItemState{};
              s->id = static_cast<std::int16_t>(p.item_id(item));
              s->charges = static_cast<std::int8_t>(checked(charges, 0, 100, "charges"));
              apply_learned(c, u);
              return slot;
            }
            return -1;
          },
          nb::arg("unit"), nb::arg("item"), nb::arg("charges") = 0,
          "Puts an item into a unit's first free slot; gives the slot for orders, -1 when it has no room.")
      .def(
          "store_rune",
          [](PyWorld& p, int unit, int kind) {
            Context c = p.context();
            return store_rune(c, p.unit(unit), checked(kind, 0, static_cast<int>(PickupKind::Count) - 1, "rune"));
          },
          nb::arg("unit"), nb::arg("kind"), "Whether a bottle of the hero took the rune.")
      .def(
          "rune",
          [](PyWorld& p, int unit, int kind) {
            Context c = p.context();
            apply_rune(c, p.unit(unit), checked(kind, 0, static_cast<int>(PickupKind::Count) - 1, "rune"));
          },
          nb::arg("unit"), nb::arg("kind"));
}

}  // namespace dota
