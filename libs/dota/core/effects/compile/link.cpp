// The last step of loading: what programs name in other tables, talents, and runes as programs of their own.
#include <algorithm>
#include <stdexcept>

#include "data/loading.hpp"
#include "data/stat_names.hpp"
#include "effects/compile/compile.hpp"
#include "effects/compile/programs.hpp"

namespace dota {

namespace {

float talent_value(const TalentDef& t) {
  for (const auto& [key, v] : t.values)
    if (key == "value") return v;
  return t.values.empty() ? 0 : t.values.front().second;
}

// Returns the talent's value of that name (talent_field of a special).
float talent_value(const TalentDef& t, const std::string& field) {
  for (const auto& [key, v] : t.values)
    if (key == field) return v;
  throw std::runtime_error("talent_field: talent '" + t.name + "' has no value '" + field + "'");
}

const HeroDef* owner_of(const Tables& t, const Program& p) {
  const auto it = t.hero_index.find(p.owner);
  return it == t.hero_index.end() ? nullptr : &t.heroes[it->second];
}

// Returns the index of the hero's talent of that name and marks it as used; -1 if the hero does not have it.
int used_talent(Tables& t, const HeroDef* hero, const std::string& name) {
  if (!hero) return -1;
  for (std::size_t i = 0; i < hero->talents.size(); ++i) {
    if (hero->talents[i].name != name) continue;
    if (const int ability = hero->talents[i].ability; ability >= 0) t.abilities[ability].program.inert = false;
    return static_cast<int>(i);
  }
  return -1;
}

// A special may name a talent that its hero does not have in this patch; such a talent never counts.
void link_value(Tables& t, const HeroDef* hero, Value& v) {
  for (const UnlinkedTalent& term : v.unlinked) {
    const int i = used_talent(t, hero, term.talent);
    if (i < 0) continue;
    if (v.talents >= v.talent.size()) throw std::runtime_error("more than two talents change one number");
    const TalentDef& talent = hero->talents[i];
    const float by = term.field.empty() ? talent_value(talent) : talent_value(talent, term.field);
    v.talent[v.talents++] = {static_cast<std::int8_t>(i), term.sign * by};
  }
  v.unlinked.clear();
}

void link_node(Tables& t, const AbilityDef& a, Program& p, const HeroDef* hero, EffectNode& n) {
  for (Value& v : n.values)
    link_value(t, hero, v);
  for (NodeStat& s : n.stats) {
    link_value(t, hero, s.value);
    link_value(t, hero, s.far);
  }
  if (!n.talent.empty()) n.talent_index = static_cast<std::int8_t>(used_talent(t, hero, n.talent));
  // The data name the missile by its row of units.json only.
  if (n.prim == Prim::MissileUnit && n.name.empty()) n.name = "npc_dota_gyrocopter_homing_missile";
  if (n.name.empty()) return;
  const auto find = [&](const std::unordered_map<std::string, int>& index) {
    const auto it = index.find(n.name);
    if (it == index.end())
      throw std::runtime_error("ability '" + a.name + "': '" + n.name + "' is not in the data");
    return static_cast<std::int16_t>(it->second);
  };
  if (n.prim == Prim::ItemTransferCharge) n.item = find(t.item_index);
  const bool names_ability = n.prim == Prim::CastAbility || n.prim == Prim::AttackModifier ||
                             n.prim == Prim::RandomTargetHits || n.prim == Prim::AmplifyAbility;
  if (names_ability) n.ability = find(t.ability_index);
  if (n.prim != Prim::PlaceWard && n.prim != Prim::Summon && n.prim != Prim::MissileUnit) return;
  // A summon of which the data has no row is a part that is not there; wards always have one.
  if (n.name == "either" || (n.prim == Prim::Summon && !t.unit_index.count(n.name)))
    p.missing.push_back(std::string(primitive_name(n.prim)) + "." + n.name);
  else
    n.unit = find(t.unit_index);
}

Node number_node(double v) {
  Node n;
  n.type = Node::Type::Number;
  n.number = v;
  return n;
}
Node text_node(const std::string& s) {
  Node n;
  n.type = Node::Type::String;
  n.string = s;
  return n;
}
Node object_node(std::vector<std::pair<std::string, Node>> fields) {
  Node n;
  n.type = Node::Type::Object;
  n.object = std::move(fields);
  return n;
}
Node list_node(std::vector<Node> elements) {
  Node list;
  list.type = Node::Type::List;
  list.list = std::move(elements);
  return list;
}
Node program_node(std::vector<Node> effects) {
  return object_node({{"dispellable", text_node("yes")}, {"effects", list_node(std::move(effects))}});
}

// A talent that brings effects of its own: a passive whose special values are the talent's.
Node passive_node(const TalentDef& talent) {
  std::vector<std::pair<std::string, Node>> specials;
  for (const auto& [key, v] : talent.values)
    specials.emplace_back(key, object_node({{"v", list_node({number_node(v)})}}));
  return object_node({{"dispellable", text_node("yes")},
                      {"behavior", list_node({text_node("passive")})},
                      {"specials", object_node(std::move(specials))},
                      {"effects", talent.effects}});
}

// Stats that plain talents give, by the stem of their name.
constexpr std::pair<const char*, const char*> kPlain[] = {{"spell_amplify", "spell_amp_pct"},
                                                          {"attack_speed", "as"},
                                                          {"movement_speed", "ms_flat"},
                                                          {"cooldown_reduction", "cooldown_red_pct"},
                                                          {"attack_damage", "dmg"},
                                                          {"attack_range", "range"},
                                                          {"cast_range", "cast_range"},
                                                          {"gold_income", "gold_per_10s"},
                                                          {"hp_regen", "hp_regen"},
                                                          {"mp_regen", "mana_regen"},
                                                          {"hp", "hp"},
                                                          {"mp", "mana"},
                                                          {"strength", "str"},
                                                          {"agility", "agi"},
                                                          {"intelligence", "int"},
                                                          {"all_stats", "all"},
                                                          {"armor", "armor"},
                                                          {"magic_resistance", "mr_pct"},
                                                          {"lifesteal", "lifesteal_pct"},
                                                          {"spell_lifesteal", "spell_lifesteal_pct"},
                                                          {"exp_boost", "xp_pct"},
                                                          {"evasion", "evasion_pct"},
                                                          {"respawn_reduction", "respawn_red"},
                                                          {"night_vision", "night_vision"}};

// "special_bonus_attack_speed_20" -> "attack_speed".
std::string stem(const std::string& name) {
  const std::string prefix = "special_bonus_";
  if (name.rfind(prefix, 0) != 0) return "";
  std::string s = name.substr(prefix.size());
  const std::size_t last = s.find_last_of('_');
  return last == std::string::npos ? s : s.substr(0, last);
}

// The program of a talent that changes no special of an ability.
Program talent_program(const TalentDef& talent, Tables& t) {
  const std::string what = stem(talent.name);
  const auto value = [&](const char* key) {
    for (const auto& [k, v] : talent.values)
      if (k == key) return number_node(v);
    throw std::runtime_error("talent '" + talent.name + "': value '" + key + "' is missing");
  };
  if (talent.effects.is(Node::Type::List)) return compile_program(passive_node(talent), talent.name, t);
  if (what == "spell_block")
    return compile_program(
        program_node({object_node({{"p", text_node("spell_block")}, {"icd", value("block_cooldown")}})}),
        talent.name, t);
  if (talent.name.find("_crit_") != std::string::npos)
    return compile_program(program_node({object_node({{"p", text_node("crit")},
                                                      {"chance_pct", value("crit_chance")},
                                                      {"mult_pct", value("crit_multiplier")}})}),
                           talent.name, t);
  for (const auto& [name, stat] : kPlain) {
    if (what != name) continue;
    const Node stats = object_node({{stat, number_node(talent_value(talent))}});
    return compile_program(program_node({object_node({{"p", text_node("passive_stats")}, {"stats", stats}})}),
                           talent.name, t);
  }
  Program p;
  p.inert = true;  // until a number that it changes is found
  return p;
}

Node rune_effect(const std::string& kind, const Node& r) {
  const Node dur = number_node(r.num("dur"));
  const auto self = [&](const char* p, std::vector<std::pair<std::string, Node>> more) {
    std::vector<std::pair<std::string, Node>> fields{{"p", text_node(p)}, {"to", text_node("self")}, {"dur", dur}};
    for (auto& f : more)
      fields.push_back(std::move(f));
    return object_node(std::move(fields));
  };
  if (kind == "double_damage")
    return program_node(
        {self("mod", {{"stats", object_node({{"base_dmg_pct", number_node(r.num("base_dmg_pct"))}})}})});
  if (kind == "haste")
    return program_node({self("mod", {{"stats", object_node({{"ms_set", number_node(r.num("ms"))}})}})});
  if (kind == "invisibility") return program_node({self("invis", {{"fade", number_node(r.num("fade"))}})});
  if (kind == "arcane")
    return program_node(
        {self("mod", {{"stats", object_node({{"cooldown_red_pct", number_node(r.num("cooldown_red_pct"))},
                                             {"mana_cost_red_pct", number_node(r.num("mana_cost_red_pct"))}})}})});
  if (kind == "regeneration")
    return program_node({self("hot", {{"pct_max_per_sec", number_node(r.num("hp_pct_per_s"))},
                                      {"ends_on", text_node("damage_or_full")}}),
                         self("mana_over_time", {{"pct_max_per_sec", number_node(r.num("mana_pct_per_s"))},
                                                 {"ends_on", text_node("damage_or_full")}})});
  throw std::runtime_error("rune '" + kind + "' is unknown");
}

void link_runes(Tables& t) {
  constexpr const char* kKinds[] = {"double_damage", "haste", "invisibility", "regeneration", "arcane"};
  const Node* rules = t.rules.root.find("rules");
  const Node& root = rules ? *rules : t.rules.root;
  const Node* runes = root.find("runes");
  if (!runes) return;  // tables of a test that has no rules
  for (std::size_t i = 0; i < 5; ++i) {
    AbilityDef a;
    a.name = std::string("rune_") + kKinds[i];
    a.id = static_cast<int>(t.abilities.size());
    a.learnable = false;
    a.program = compile_program(rune_effect(kKinds[i], runes->at("effects").at(kKinds[i])), a.name, t);
    t.rune_abilities[i] = a.id;
    t.ability_index[a.name] = a.id;
    t.abilities.push_back(std::move(a));
  }
}

void link_changes(Tables& t, const HeroDef* hero, AbilityDef& a) {
  for (CastChange& change : a.changes) {
    if (change.talent.empty()) continue;
    change.index = used_talent(t, hero, change.talent);
    if (change.index >= 0) change.add *= talent_value(hero->talents[change.index]);
  }
}

// Checks that the specials and fields listed by a talent refer to it, and that every talent has an effect: one
// without an effect would look like the others to a player.
void check_talents(const Tables& t, const HeroDef& h) {
  for (const TalentDef& talent : h.talents) {
    if (talent.ability < 0) continue;
    if (t.abilities[talent.ability].program.inert)
      throw std::runtime_error("talents: '" + talent.name +
                               "' changes nothing: no effect's number (specials[x].talent), field "
                               "(fields[x].talent) or condition (talent) "
                               "names it, and it has no 'effects' of its own");
  }
}

}  // namespace

void link_programs(Tables& t) {
  for (HeroDef& h : t.heroes)
    reading("heroes.json, " + h.name, [&] {
      for (TalentDef& talent : h.talents) {
        if (talent.ability < 0) continue;
        Program p = talent_program(talent, t);
        p.owner = h.name;
        t.abilities[talent.ability].program = std::move(p);
      }
    });
  reading("rules.json, runes", [&] { link_runes(t); });
  for (AbilityDef& a : t.abilities) {
    const HeroDef* hero = owner_of(t, a.program);
    reading((a.is_item >= 0 ? "items.json, " : "abilities.json, ") + a.name, [&] {
      link_changes(t, hero, a);
      for (EffectNode& n : a.program.nodes) {
        link_node(t, a, a.program, hero, n);
        n.rests = rests_while_it_lasts(n);
        n.rests_on_others = rests_on_others(n);
        n.fixed = gives_fixed_stats(n);
      }
    });
  }
  for (HeroDef& h : t.heroes) {
    reading("heroes.json, " + h.name, [&] { check_talents(t, h); });
    h.has_charges = std::any_of(h.abilities.begin(), h.abilities.end(),
                                [&](int id) { return t.abilities[id].program.charges >= 0; });
    const auto does = [&](Prim prim) {
      return std::any_of(h.abilities.begin(), h.abilities.end(), [&](int id) {
        const auto& nodes = t.abilities[id].program.nodes;
        return std::any_of(nodes.begin(), nodes.end(), [&](const EffectNode& n) { return n.prim == prim; });
      });
    };
    h.hides = does(Prim::Invis);
    h.bashes = does(Prim::Bash);
    h.reacts_to_hits = std::any_of(h.abilities.begin(), h.abilities.end(),
                                   [&](int id) { return t.abilities[id].program.has(Trigger::OwnAbilityHits); });
  }
}

}  // namespace dota
