// One world for tests and inspection: it is stepped, looked into and changed by hand. Games are played through
// Game.
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/data.hpp"
#include "map/map_data.hpp"
#include "world/game_rules.hpp"
#include "world/inventory.hpp"

namespace nb = nanobind;

namespace dota {
namespace {

const char* const kKinds[] = {"none", "hero",   "lane_creep", "neutral",  "roshan",  "tower", "barracks",
                              "fort", "filler", "shrine",     "fountain", "courier", "ward",  "summon"};
const char* const kActs[] = {"idle",        "walk",           "attack_windup", "attack_backswing",
                             "cast_windup", "cast_backswing", "channel",       "dead"};
const char* const kSignalNames[] = {
    "win",    "hero_death",  "courier_death", "xp",     "gold",   "gold_spent", "health",
    "mana",   "killed_hero", "last_hit",      "deny",   "aegis",  "ancient_hp", "megas",
    "tower1", "tower2",      "tower3",        "tower4", "shrine", "barracks",   "lane_assign"};
static_assert(sizeof(kSignalNames) / sizeof(kSignalNames[0]) == kSignals);
const std::pair<const char*, OrderType> kOrders[] = {
    {"none", OrderType::None},          {"stop", OrderType::Stop},
    {"hold", OrderType::Hold},          {"move", OrderType::MoveTo},
    {"attack", OrderType::AttackUnit},  {"attack_move", OrderType::AttackMove},
    {"cast", OrderType::CastNoTarget},  {"cast_point", OrderType::CastPoint},
    {"cast_unit", OrderType::CastUnit}, {"pickup", OrderType::Pickup}};

using Setter = void (*)(GameSettings&, nb::handle);

template <auto Field>
void set_field(GameSettings& s, nb::handle v) {
  s.*Field = nb::cast<std::remove_reference_t<decltype(s.*Field)>>(v);
}

const std::pair<const char*, Setter> kSettings[] = {
    {"heroes_per_team", set_field<&GameSettings::heroes_per_team>},
    {"kills_to_win", set_field<&GameSettings::kills_to_win>},
    {"tower_wins", set_field<&GameSettings::tower_wins>},
    {"neutrals", set_field<&GameSettings::neutrals>},
    {"roshan", set_field<&GameSettings::roshan>},
    {"runes", set_field<&GameSettings::runes>},
    {"courier_scripted", set_field<&GameSettings::courier_scripted>},
    {"max_game_s", set_field<&GameSettings::max_game_s>},
    {"start_s", set_field<&GameSettings::start_s>},
    {"offset_cell", set_field<&GameSettings::offset_cell>},
    {"buyback", set_field<&GameSettings::buyback>},
    {"keep_tango", set_field<&GameSettings::keep_tango>},
    {"keep_salve", set_field<&GameSettings::keep_salve>},
    {"keep_clarity", set_field<&GameSettings::keep_clarity>},
    {"keep_teleport", set_field<&GameSettings::keep_teleport>},
    {"consumables_until_s", set_field<&GameSettings::consumables_until_s>},
    {"random_stats", set_field<&GameSettings::random_stats>},
    {"random_gold", set_field<&GameSettings::random_gold>},
    {"random_xp", set_field<&GameSettings::random_xp>},
    {"random_item_drop", set_field<&GameSettings::random_item_drop>},
    {"random_item_insert", set_field<&GameSettings::random_item_insert>},
    {"random_skill", set_field<&GameSettings::random_skill>},
    {"random_lane", set_field<&GameSettings::random_lane>},
    {"random_roshan", set_field<&GameSettings::random_roshan>},
};

GameSettings settings_from(const nb::dict& d) {
  GameSettings s;
  for (auto [key, value] : d) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "mode_1v1_mid") {
      s.mode_1v1_mid = nb::cast<bool>(value);
      if (s.mode_1v1_mid) {
        s.lane_enabled[0] = s.lane_enabled[2] = false;
        s.tower_wins = true;
      }
      continue;
    }
    if (name == "lanes") {
      const auto on = nb::cast<std::vector<bool>>(value);
      if (on.size() != 3) throw nb::value_error("settings: 'lanes' takes three booleans: top, mid, bot");
      for (std::size_t k = 0; k < 3; ++k)
        s.lane_enabled[k] = on[k];
      continue;
    }
    bool known = false;
    for (const auto& [n, set] : kSettings)
      if (name == n) {
        set(s, value);
        known = true;
      }
    if (!known) throw nb::key_error(("settings: there is no '" + name + "'").c_str());
  }
  return s;
}

int hero_index(const Tables& t, const std::string& name) {
  auto at = t.hero_index.find(name);
  if (at == t.hero_index.end()) at = t.hero_index.find("npc_dota_hero_" + name);
  if (at == t.hero_index.end()) throw nb::key_error(("there is no hero '" + name + "'").c_str());
  return at->second;
}

class PyWorld {
 public:
  PyWorld(const PyTables& tables, const nb::dict& settings, const std::vector<std::string>& radiant,
          const std::vector<std::string>& dire, std::uint64_t seed)
      : tables_(tables.tables), settings_(settings_from(settings)), world_(std::make_unique<World>()) {
    std::array<int, kMaxHeroes> lineup;
    lineup.fill(-1);
    const std::vector<std::string>* teams[kTeams] = {&radiant, &dire};
    for (std::size_t t = 0; t < kTeams; ++t) {
      if (teams[t]->size() > 5) throw nb::value_error("a team has five heroes at most");
      for (std::size_t i = 0; i < teams[t]->size(); ++i)
        lineup[t * 5 + i] = hero_index(*tables_, (*teams[t])[i]);
    }
    settings_.heroes_per_team = static_cast<int>(std::max<std::size_t>(1, std::max(radiant.size(), dire.size())));
    if (const std::string why = check_lineup(*tables_, lineup); !why.empty()) throw nb::value_error(why.c_str());
    Context c = context();
    start_game(c, seed, lineup);
  }

  Context context() { return {*world_, *tables_, settings_}; }
  World& world() { return *world_; }
  const Tables& tables() const { return *tables_; }

  int item_id(const std::string& name) const {
    auto at = tables_->item_index.find(name);
    if (at == tables_->item_index.end()) at = tables_->item_index.find("item_" + name);
    if (at == tables_->item_index.end()) throw nb::key_error(("there is no item '" + name + "'").c_str());
    return at->second;
  }
  Unit& unit(int index) {
    if (index < 0 || index >= kMaxUnits || world_->units[static_cast<std::size_t>(index)].kind == UnitKind::None)
      throw nb::index_error("there is no unit at this index");
    return world_->units[static_cast<std::size_t>(index)];
  }
  HeroState& hero(int index) {
    if (index < 0 || index >= kMaxHeroes || !world_->heroes[static_cast<std::size_t>(index)].in_game)
      throw nb::index_error("there is no hero at this index (team * 5 + place)");
    return world_->heroes[static_cast<std::size_t>(index)];
  }

  void step(int steps) {
    Context c = context();
    nb::gil_scoped_release release;
    for (int i = 0; i < steps; ++i)
      step_game(c, {});
  }

 private:
  std::shared_ptr<const Tables> tables_;
  GameSettings settings_;
  std::unique_ptr<World> world_;
};

nb::dict unit_dict(PyWorld& p, const Unit& u) {
  const World& w = p.world();
  nb::dict d;
  d["index"] = static_cast<int>(&u - w.units.data());
  d["kind"] = kKinds[static_cast<std::size_t>(u.kind)];
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
  d["attack_speed"] = u.attack_speed;
  d["attack_interval"] = u.attack_interval;
  d["attack_point"] = u.attack_point;
  d["attack_range"] = u.attack_range;
  d["dmg_min"] = u.dmg_min;
  d["dmg_max"] = u.dmg_max;
  d["dmg_bonus"] = u.dmg_bonus;
  d["evasion"] = u.evasion;
  d["spell_amp"] = u.spell_amp;
  d["str"] = u.str;
  d["agi"] = u.agi;
  d["int"] = u.intellect;
  d["radius"] = u.radius;
  d["status"] = u.status;
  d["order"] = static_cast<int>(u.order.type);
  d["act"] = kActs[static_cast<std::size_t>(u.act)];
  d["attack_target"] = w.get(u.attack_target) ? static_cast<int>(u.attack_target.index) : -1;
  d["last_attack"] = u.last_attack;
  return d;
}

nb::dict hero_dict(PyWorld& p, const HeroState& h) {
  World& w = p.world();
  const Tables& t = p.tables();
  Context c = p.context();
  nb::dict d;
  d["name"] = t.heroes[static_cast<std::size_t>(h.def)].name;
  d["unit"] = static_cast<int>(h.unit.index);
  d["level"] = h.level;
  d["xp"] = h.xp;
  d["gold"] = h.gold;
  d["reliable"] = h.reliable;
  d["net_worth"] = net_worth(c, h);
  d["spent"] = h.spent;
  d["kills"] = h.kills;
  d["deaths"] = h.deaths;
  d["assists"] = h.assists;
  d["last_hits"] = h.last_hits;
  d["denies"] = h.denies;
  d["streak"] = h.streak;
  d["respawn_at"] = h.respawn_at;
  d["ability_points"] = h.ability_points;
  d["talents"] = h.talents;
  d["lanes_allowed"] = h.lanes_allowed;
  d["build_next"] = h.build_next;
  d["build_skip"] = h.build_skip;
  d["buyback_cost"] = buyback_cost(c, h);
  nb::dict abilities;
  for (const AbilityState& a : h.abilities)
    if (a.id >= 0) abilities[t.abilities[static_cast<std::size_t>(a.id)].name.c_str()] = a.level;
  d["abilities"] = abilities;
  nb::list items;
  for (const ItemState& s : h.items)
    items.append(s.id < 0 ? nb::object(nb::none())
                          : nb::object(nb::make_tuple(t.items[static_cast<std::size_t>(s.id)].name, s.charges)));
  d["items"] = items;
  nb::dict signals;
  for (int i = 0; i < kSignals; ++i)
    signals[kSignalNames[i]] = h.signals[static_cast<std::size_t>(i)];
  d["signals"] = signals;
  (void)w;
  return d;
}

void set_unit(PyWorld& p, int index, const nb::kwargs& what) {
  Unit& u = p.unit(index);
  Context c = p.context();
  Vec2 pos = u.pos;
  bool moved = false;
  for (auto [key, value] : what) {
    const std::string name = nb::cast<std::string>(key);
    const float v = nb::cast<float>(value);
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
    } else if (name == "attack_ready") {
      u.attack_ready = v;
    } else {
      throw nb::key_error(("a unit's '" + name + "' cannot be set").c_str());
    }
  }
  if (moved) place_unit(p.world(), u, pos);
}

}  // namespace

void bind_world(nb::module_& m) {
  nb::class_<PyWorld>(m, "World", "One world, for tests and inspection.")
      .def(nb::init<const PyTables&, const nb::dict&, const std::vector<std::string>&,
                    const std::vector<std::string>&, std::uint64_t>(),
           nb::arg("tables"), nb::arg("settings"), nb::arg("radiant"), nb::arg("dire"), nb::arg("seed"),
           "Starts a game. Raises ValueError for a lineup that cannot be played, KeyError for unknown names.")
      .def("step", &PyWorld::step, nb::arg("steps") = 1, "Timesteps of four frames without commands.")
      .def_prop_ro("time", [](PyWorld& p) { return p.world().time; })
      .def_prop_ro("frame", [](PyWorld& p) { return p.world().frame; })
      .def_prop_ro("waves", [](PyWorld& p) { return p.world().waves; })
      .def_prop_ro("is_day", [](PyWorld& p) { return p.world().is_day; })
      .def_prop_ro(
          "winner", [](PyWorld& p) { return static_cast<int>(p.world().winner); },
          "0 none, 1 Radiant, 2 Dire, 3 draw")
      .def(
          "units",
          [](PyWorld& p, const std::optional<std::string>& kind) {
            nb::list out;
            for (int i = 0; i < p.world().units_end; ++i) {
              const Unit& u = p.world().units[static_cast<std::size_t>(i)];
              if (u.kind != UnitKind::None && (!kind || *kind == kKinds[static_cast<std::size_t>(u.kind)]))
                out.append(unit_dict(p, u));
            }
            return out;
          },
          nb::arg("kind") = nb::none())
      .def(
          "unit", [](PyWorld& p, int i) { return unit_dict(p, p.unit(i)); }, nb::arg("index"))
      .def(
          "hero", [](PyWorld& p, int i) { return hero_dict(p, p.hero(i)); }, nb::arg("index"))
      .def(
          "team",
          [](PyWorld& p, int team) {
            const TeamState& t = p.world().teams[static_cast<std::size_t>(team & 1)];
            nb::dict d;
            d["kills"] = t.kills;
            d["towers_lost"] = t.towers_lost;
            d["super_melee"] = t.super_melee;
            d["super_ranged"] = t.super_ranged;
            d["megas"] = t.megas;
            d["glyph_ready"] = t.glyph_ready;
            d["glyph_until"] = t.glyph_until;
            d["courier"] = p.world().get(t.courier) ? static_cast<int>(t.courier.index) : -1;
            d["courier_respawn"] = t.courier_respawn;
            d["stock"] = std::vector<int>(t.stock.begin(), t.stock.end());
            return d;
          },
          nb::arg("team"))
      .def("pickups",
           [](PyWorld& p) {
             nb::list out;
             for (const Pickup& k : p.world().pickups)
               out.append(nb::make_tuple(k.present, static_cast<int>(k.kind), k.pos.x, k.pos.y));
             return out;
           })
      .def("hash", [](PyWorld& p) { return hash_world(p.world()); })
      .def("snapshot",
           [](PyWorld& p) { return nb::bytes(reinterpret_cast<const char*>(&p.world()), sizeof(World)); })
      .def("restore",
           [](PyWorld& p, const nb::bytes& b) {
             if (b.size() != sizeof(World)) throw nb::value_error("these bytes are no snapshot of this build");
             std::memcpy(static_cast<void*>(&p.world()), b.c_str(), sizeof(World));
           })
      .def("set_unit", &set_unit, nb::arg("index"), nb::arg("what"),
           "x, y, hp, mana, facing, attack_ready, extra_armor, extra_hp, extra_hp_regen, extra_mana_regen")
      .def(
          "set_time",
          [](PyWorld& p, float time) {
            World& w = p.world();
            Context c = p.context();
            w.frame = static_cast<std::int32_t>(std::lround((time - c.settings.start_s) * 30.0f));
            w.time = time;
            const float every = c.tables.game->wave_every;
            w.waves = static_cast<int>(std::ceil(std::max(0.0f, time) / every));
            w.next_wave = static_cast<float>(w.waves) * every;
            for (HeroState& h : w.heroes)
              h.passive_ticks = static_cast<int>(std::max(0.0f, time) / c.tables.rules.passive_every_s);
          },
          nb::arg("time"), "Moves the clock; nothing that the time between would have brought happens.")
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
            o.point = {x, y};
            o.slot = static_cast<std::int8_t>(slot);
            o.tree = static_cast<std::int16_t>(tree);
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
            Unit* u = spawn_unit(c, at->second, team, {x, y}, 0);
            if (u && lane >= 0) {
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
          "give_gold",
          [](PyWorld& p, int hero, float gold, bool reliable) {
            Context c = p.context();
            give_gold(c, p.hero(hero), gold, reliable);
          },
          nb::arg("hero"), nb::arg("gold"), nb::arg("reliable") = false)
      .def(
          "set_gold",
          [](PyWorld& p, int hero, float gold, float reliable) {
            p.hero(hero).gold = gold;
            p.hero(hero).reliable = reliable;
          },
          nb::arg("hero"), nb::arg("gold"), nb::arg("reliable") = 0.0f)
      .def(
          "give_xp",
          [](PyWorld& p, int hero, float xp) {
            Context c = p.context();
            give_xp(c, p.hero(hero), xp);
          },
          nb::arg("hero"), nb::arg("xp"))
      .def(
          "give_item",
          [](PyWorld& p, int hero, const std::string& item, int charges) {
            Context c = p.context();
            return give_item(c, p.hero(hero), p.item_id(item), charges);
          },
          nb::arg("hero"), nb::arg("item"), nb::arg("charges") = 0)
      .def(
          "clear_items",
          [](PyWorld& p, int hero) {
            Context c = p.context();
            for (int slot = 0; slot < kItemSlots; ++slot)
              if (p.hero(hero).items[static_cast<std::size_t>(slot)].id >= 0) take_item(c, p.hero(hero), slot);
            refresh_stats(c, p.unit(p.hero(hero).unit.index));
          },
          nb::arg("hero"))
      .def(
          "set_lanes",
          [](PyWorld& p, int hero, int bits, float until) {
            p.hero(hero).lanes_allowed = static_cast<std::uint8_t>(bits);
            p.hero(hero).lanes_until = until;
          },
          nb::arg("hero"), nb::arg("bits"), nb::arg("until"))
      .def("clear_signals",
           [](PyWorld& p) {
             for (HeroState& h : p.world().heroes)
               h.signals.fill(0);
           })
      .def(
          "buyback",
          [](PyWorld& p, int hero) {
            Context c = p.context();
            return buyback(c, p.hero(hero));
          },
          nb::arg("hero"))
      .def(
          "glyph",
          [](PyWorld& p, int team) {
            Context c = p.context();
            return use_glyph(c, team);
          },
          nb::arg("team"))
      .def(
          "shrine",
          [](PyWorld& p, int hero) {
            Context c = p.context();
            return use_shrine(c, p.unit(p.hero(hero).unit.index));
          },
          nb::arg("hero"))
      .def(
          "visible", [](PyWorld& p, int team, int unit) { return unit_visible(p.world(), team, p.unit(unit)); },
          nb::arg("team"), nb::arg("unit"))
      .def(
          "teach",
          [](PyWorld& p, int hero, const std::string& ability, int level) {
            HeroState& h = p.hero(hero);
            const Tables& t = p.tables();
            bool known = false;
            for (AbilityState& a : h.abilities)
              if (a.id >= 0 && t.abilities[static_cast<std::size_t>(a.id)].name == ability) {
                a.level = static_cast<std::int8_t>(level);
                known = true;
              }
            const auto& talents = t.heroes[static_cast<std::size_t>(h.def)].talents;
            for (std::size_t i = 0; i < talents.size(); ++i)
              if (talents[i].name == ability) {
                h.talents = level > 0 ? h.talents | (1u << i) : h.talents & ~(1u << i);
                known = true;
              }
            if (!known) throw nb::key_error(("the hero has no ability or talent '" + ability + "'").c_str());
            Context c = p.context();
            Unit& u = p.unit(h.unit.index);
            apply_learned(c, u);
            refresh_stats(c, u);
          },
          nb::arg("hero"), nb::arg("ability"), nb::arg("level"),
          "Sets the rank of an ability, or takes (1) or drops (0) a talent, whatever the hero's level.")
      .def(
          "ability",
          [](PyWorld& p, int hero, const std::string& name) {
            HeroState& h = p.hero(hero);
            const Tables& t = p.tables();
            Context c = p.context();
            for (int slot = 0; slot < kAbilitySlots; ++slot) {
              const AbilityState& a = h.abilities[static_cast<std::size_t>(slot)];
              if (a.id < 0 || t.abilities[static_cast<std::size_t>(a.id)].name != name) continue;
              nb::dict d;
              d["slot"] = slot;
              d["level"] = a.level;
              d["charges"] = a.charges;
              d["stacks"] = a.stacks;
              d["toggled"] = a.toggled;
              d["ready"] = a.ready;
              d["castable"] = castable(c, p.unit(h.unit.index), slot);
              return d;
            }
            for (int slot = 0; slot < kItemSlots; ++slot) {
              const ItemState& s = h.items[static_cast<std::size_t>(slot)];
              if (s.id < 0 || t.items[static_cast<std::size_t>(s.id)].name != name) continue;
              nb::dict d;
              d["slot"] = 16 + slot;
              d["charges"] = s.charges;
              d["toggle"] = s.toggle;
              d["ready"] = s.ready;
              d["castable"] = castable(c, p.unit(h.unit.index), 16 + slot);
              return d;
            }
            throw nb::key_error(("the hero has no ability or item '" + name + "'").c_str());
          },
          nb::arg("hero"), nb::arg("name"), "State of an ability, or of an item it holds.")
      .def(
          "set_autocast",
          [](PyWorld& p, int hero, const std::string& name, bool on) {
            for (AbilityState& a : p.hero(hero).abilities)
              if (a.id >= 0 && p.tables().abilities[static_cast<std::size_t>(a.id)].name == name) a.autocast = on;
          },
          nb::arg("hero"), nb::arg("name"), nb::arg("on"))
      .def(
          "modifiers",
          [](PyWorld& p, int unit) {
            const World& w = p.world();
            nb::list out;
            for (int i = p.unit(unit).modifiers; i >= 0; i = w.modifiers[static_cast<std::size_t>(i)].next) {
              const Modifier& mod = w.modifiers[static_cast<std::size_t>(i)];
              nb::dict d;
              d["name"] = p.tables().modifiers[static_cast<std::size_t>(mod.name)];
              d["left"] = mod.until - w.time;
              d["stacks"] = mod.stacks;
              d["status"] = mod.status;
              d["flags"] = mod.flags;
              d["shield"] = mod.shield;
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
      .def("projectiles",
           [](PyWorld& p) {
             int n = 0;
             for (const Projectile& q : p.world().projectiles)
               n += q.kind != Projectile::Kind::None;
             return n;
           })
      .def(
          "store_rune",
          [](PyWorld& p, int unit, int kind) {
            Context c = p.context();
            return store_rune(c, p.unit(unit), kind);
          },
          nb::arg("unit"), nb::arg("kind"), "Whether a bottle of the hero took the rune.")
      .def(
          "rune",
          [](PyWorld& p, int unit, int kind) {
            Context c = p.context();
            apply_rune(c, p.unit(unit), kind);
          },
          nb::arg("unit"), nb::arg("kind"));
  const auto list_items = [&m](const char* name, auto items, const char* doc) {
    m.def(
        name,
        [items](const PyTables& t, const std::vector<std::string>& heroes) {
          std::vector<std::string> out;
          for (const std::string& hero : heroes) {
            std::array<int, kMaxHeroes> one;
            one.fill(-1);
            one[0] = hero_index(*t.tables, hero);
            for (const std::string& item : items(*t.tables, one))
              if (std::find(out.begin(), out.end(), item) == out.end()) out.push_back(item);
          }
          return out;
        },
        nb::arg("tables"), nb::arg("heroes"), doc);
  };
  list_items("items_not_bought", &items_not_bought,
             "Items of these heroes' builds that the scripted buyer skips.");
  list_items("items_without_use", &items_without_use,
             "Items of these heroes' builds that are bought for their stats but cannot be used yet.");
}

}  // namespace dota
