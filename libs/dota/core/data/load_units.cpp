#include <algorithm>

#include "data/loading.hpp"

namespace dota {

namespace {

UnitKind kind_of(const std::string& cls) {
  if (cls == "lane_creep" || cls == "siege_creep") return UnitKind::LaneCreep;
  if (cls == "neutral" || cls == "neutral_summon") return UnitKind::Neutral;
  if (cls == "roshan") return UnitKind::Roshan;
  if (cls == "tower") return UnitKind::Tower;
  if (cls == "barracks") return UnitKind::Barracks;
  if (cls == "ancient_building") return UnitKind::Fort;
  if (cls == "filler") return UnitKind::Filler;
  if (cls == "shrine") return UnitKind::Shrine;
  if (cls == "fountain") return UnitKind::Fountain;
  if (cls == "courier") return UnitKind::Courier;
  if (cls == "ward") return UnitKind::Ward;
  if (cls == "summon") return UnitKind::Summon;
  throw std::runtime_error("class '" + cls + "' is not known");
}

AttackClass attack_class_of(const std::string& s) {
  if (s == "basic") return AttackClass::Basic;
  if (s == "pierce") return AttackClass::Pierce;
  if (s == "siege") return AttackClass::Siege;
  if (s == "hero") return AttackClass::Hero;
  throw std::runtime_error("attack_class '" + s + "' is not known");
}

DefendClass defend_class_of(const std::string& s) {
  if (s == "basic") return DefendClass::Basic;
  if (s == "structure") return DefendClass::Structure;
  if (s == "hero") return DefendClass::Hero;
  throw std::runtime_error("defend_class '" + s + "' is not known");
}

MoveCap move_cap_of(const std::string& s) {
  if (s == "none") return MoveCap::None;
  if (s == "ground") return MoveCap::Ground;
  if (s == "fly") return MoveCap::Fly;
  throw std::runtime_error("move_cap '" + s + "' is not known");
}

const std::string& text(const Node& n, const std::string& key) {
  const Node& v = n.at(key);
  if (!v.is(Node::Type::String)) throw std::runtime_error("key '" + key + "' is not text");
  return v.string;
}

UnitDef read_unit(const std::string& name, const Node& n) {
  UnitDef u;
  u.name = name;
  u.kind = kind_of(text(n, "class"));
  u.siege = text(n, "class") == "siege_creep";
  u.level = static_cast<int>(n.num("level"));
  u.hp = n.num("hp");
  u.hp_regen = n.num("hp_regen");
  u.mana = n.num("mana");
  u.mana_regen = n.num("mana_regen");
  u.armor = n.num("armor");
  u.magic_resist_pct = n.num("magic_resist");
  u.dmg_min = n.num("dmg_min");
  u.dmg_max = n.num("dmg_max");
  u.attack_time = n.num("attack_time");
  u.attack_point = n.num("attack_point");
  u.attack_range = n.num("attack_range");
  u.acquisition_range = n.num("acquisition_range");
  u.projectile_speed = n.num("projectile_speed");
  u.move_speed = n.num("move_speed");
  u.turn_rate = n.num("turn_rate");
  u.gold_min = n.num("gold_min");
  u.gold_max = n.num("gold_max");
  u.xp = n.num("xp");
  u.vision_day = n.num("vision_day");
  u.vision_night = n.num("vision_night");
  u.hull_radius = n.num("hull_radius");
  u.true_sight = n.num("true_sight", 0);
  u.accuracy = n.num("accuracy_pct", 0) / 100;
  u.move_cap = move_cap_of(text(n, "move_cap"));
  u.attack_class = attack_class_of(text(n, "attack_class"));
  u.defend_class = defend_class_of(text(n, "defend_class"));
  u.can_attack = text(n, "attack_cap") != "no_attack";
  u.ancient = n.num("ancient", 0) > 0;
  u.hits_to_kill = whole(n, "hits_to_kill", 0);
  return u;
}

UnitDef read_body(const std::string& name, const Node& n) {
  UnitDef u;
  u.name = name;
  u.kind = UnitKind::Hero;
  u.hp = n.num("base_hp");
  u.hp_regen = n.num("base_hp_regen");
  u.mana = n.num("base_mana");
  u.mana_regen = n.num("base_mana_regen");
  u.armor = n.num("base_armor");
  u.magic_resist_pct = n.num("base_magic_resist");
  u.dmg_min = n.num("base_dmg_min");
  u.dmg_max = n.num("base_dmg_max");
  u.attack_time = n.num("base_attack_time");
  u.attack_point = n.num("attack_point");
  u.attack_range = n.num("attack_range");
  u.acquisition_range = n.num("acquisition_range");
  u.projectile_speed = n.num("projectile_speed");
  u.move_speed = n.num("move_speed");
  u.turn_rate = n.num("turn_rate");
  u.vision_day = n.num("vision_day");
  u.vision_night = n.num("vision_night");
  u.hull_radius = n.num("hull_radius");
  u.attack_class = AttackClass::Hero;
  u.defend_class = DefendClass::Hero;
  return u;
}

TalentDef read_talent(const Node& n, const Tables& t) {
  TalentDef d;
  d.level = static_cast<int>(n.num("level"));
  d.name = text(n, "id");
  d.ability = index_of(t.ability_index, d.name, "talent");
  for (const auto& [k, v] : n.at("values").object)
    d.values.emplace_back(k, static_cast<float>(v.number));
  if (const Node* a = n.find("affects"))
    for (const Node& pair : a->list) {
      if (pair.list.size() != 2)
        throw std::runtime_error("talents: '" + d.name + "': 'affects' is not a list of [ability, special] pairs");
      d.affects.emplace_back(index_of(t.ability_index, pair.list[0].string, "ability"), pair.list[1].string);
    }
  if (const Node* e = n.find("effects")) d.effects = *e;
  return d;
}

// The game's own lists hold names of other patches too: those are passed over.
void read_item_pool(const Node& n, HeroDef& h, const Tables& t) {
  std::vector<int> bought;
  for (const std::string& name : strings(n, "default_bot_items"))
    if (const auto at = t.item_index.find(name); at != t.item_index.end()) bought.push_back(at->second);
  bought.insert(bought.end(), h.item_order.begin(), h.item_order.end());
  for (const int item : bought)
    if (!t.items[item].consumable && std::find(h.item_pool.begin(), h.item_pool.end(), item) == h.item_pool.end())
      h.item_pool.push_back(item);
}

// Entry of HeroDef::skill_build: an ability's index, -(i + 2) for talent i, -1 for a level without a point.
int skill_entry(const Node& n, const HeroDef& h, const Tables& t) {
  if (n.is(Node::Type::Null)) return -1;
  for (std::size_t i = 0; i < h.talents.size(); ++i)
    if (h.talents[i].name == n.string) return -static_cast<int>(i) - 2;
  return index_of(t.ability_index, n.string, "ability");
}

}  // namespace

void load_units(const Node& units, Tables& t) {
  reading_each(units.at("units"), [&](const std::string& name, const Node& n) {
    t.unit_index[name] = static_cast<int>(t.units.size());
    t.units.push_back(read_unit(name, n));
  });
}

void load_hero_bodies(const Node& heroes, Tables& t) {
  reading_each(heroes.at("heroes"), [&](const std::string& name, const Node& n) {
    HeroDef h;
    h.name = name;
    h.unit = static_cast<int>(t.units.size());
    UnitDef body = read_body(name, n);
    body.hero = static_cast<int>(t.heroes.size());
    t.unit_index[name] = h.unit;
    t.hero_index[name] = body.hero;
    t.units.push_back(std::move(body));
    t.heroes.push_back(std::move(h));
  });
  for (const auto& [list, pool] :
       {std::pair{"pool_finals_2019_17", &t.pool_finals}, {"pool_ti8_2018_18", &t.pool_ti8}})
    for (const std::string& name : strings(heroes, list))
      pool->push_back(index_of(t.hero_index, name, "hero"));
}

void load_heroes(const Node& heroes, Tables& t) {
  // Talents close the vocabulary of abilities; one that two heroes share is there once.
  for (const auto& [name, n] : heroes.at("heroes").object)
    for (const Node& talent : n.at("talents").list) {
      const std::string& id = text(talent, "id");
      if (t.ability_index.count(id)) continue;
      AbilityDef a;
      a.name = id;
      a.id = static_cast<int>(t.abilities.size());
      a.learnable = false;
      a.passive = true;
      t.ability_index[id] = a.id;
      t.abilities.push_back(std::move(a));
    }
  for (HeroDef& h : t.heroes)
    reading(h.name, [&] {
      const Node& n = heroes.at("heroes").at(h.name);
      h.number = whole(n, "id", 0);
      const std::string& primary = text(n, "primary");
      if (primary != "str" && primary != "agi" && primary != "int")
        throw std::runtime_error("primary '" + primary + "' is not str, agi or int");
      h.primary = primary == "str" ? Attribute::Str : primary == "agi" ? Attribute::Agi : Attribute::Int;
      h.base = {n.num("base_str"), n.num("base_agi"), n.num("base_int")};
      h.gain = {n.num("gain_str"), n.num("gain_agi"), n.num("gain_int")};
      for (const std::string& a : strings(n, "abilities"))
        h.abilities.push_back(index_of(t.ability_index, a, "ability"));
      if (h.abilities.size() > 6) throw std::runtime_error("more than 6 abilities");
      for (const Node& talent : n.at("talents").list)
        h.talents.push_back(read_talent(talent, t));
      if (h.talents.size() > 8) throw std::runtime_error("more than 8 talents");
      for (const Node& s : n.at("skill_build").list)
        h.skill_build.push_back(skill_entry(s, h, t));
      const Node& items = n.at("item_build");
      for (const std::string& i : strings(items, "start"))
        h.item_start.push_back(index_of(t.item_index, i, "item"));
      for (const std::string& i : strings(items, "order"))
        h.item_order.push_back(index_of(t.item_index, i, "item"));
      read_item_pool(n, h, t);
      h.role_position = static_cast<int>(n.num("role_position"));
    });
}

void load_unit_abilities(const Node& units, Tables& t) {
  reading_each(units.at("units"), [&](const std::string& name, const Node& n) {
    UnitDef& u = t.units[t.unit_index.at(name)];
    for (const std::string& a : strings(n, "abilities"))
      u.abilities.push_back(index_of(t.ability_index, a, "ability"));
  });
}

void load_camp_sets(const Node& units, Tables& t) {
  const Node& sets = units.at("neutral_camp_sets");
  for (const char* tier : {"small", "medium", "large", "ancient"}) {
    std::vector<std::vector<int>> of_tier;
    for (const Node& set : sets.at(tier).list) {
      std::vector<int> ids;
      for (const Node& u : set.list)
        ids.push_back(index_of(t.unit_index, u.string, "unit"));
      if (ids.empty())
        throw std::runtime_error(std::string("neutral_camp_sets: a set of '") + tier + "' is empty");
      of_tier.push_back(std::move(ids));
    }
    if (of_tier.empty()) throw std::runtime_error(std::string("neutral_camp_sets: '") + tier + "' is empty");
    if (of_tier.size() > 127)  // Camp::last_set
      throw std::runtime_error(std::string("neutral_camp_sets: '") + tier + "' has more than 127 sets");
    t.camp_sets.push_back(std::move(of_tier));
  }
}

}  // namespace dota
