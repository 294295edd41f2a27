#include <algorithm>
#include <functional>

#include "data/loading.hpp"
#include "data/stat_names.hpp"

namespace dota {

namespace {

constexpr int kDeepestRecipe = 16;  // steps from an item to its simplest parts

bool has(const std::vector<std::string>& list, const char* word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool uses_primitive(const Node& n, const char* primitive) {
  const Node* effects = n.find("effects");
  if (!effects) return false;
  return std::any_of(effects->list.begin(), effects->list.end(),
                     [&](const Node& e) { return e.str("p") == primitive; });
}

void read_targets(const Node& n, AbilityDef& a) {
  const auto team = strings(n, "target_team"), type = strings(n, "target_type"),
             flags = strings(n, "target_flags");
  a.target_tree = has(type, "tree");
  const bool either = has(team, "both") || (has(team, "custom") && !a.target_tree);
  a.target_enemy = either || has(team, "enemy");
  a.target_friendly = either || has(team, "friendly");
  // Alone, "custom" stands for every body (Blink Strike, Eul's); beside "hero" it adds none (Moon Shard).
  const bool any_body = has(type, "custom") && !has(type, "hero") && !a.target_tree;
  a.target_hero = any_body || has(type, "hero");
  a.target_basic = any_body || has(type, "basic") || has(type, "creep");
  a.target_building = has(type, "building");
  if (const Node* effects = n.find("effects"))
    for (const Node& e : effects->list) {
      const std::string to = e.str("to");
      a.target_ally_self = a.target_ally_self || to == "self_or_enemy";
      a.blinks_to_target =
          a.blinks_to_target || (e.str("p") == "blink" && (to == "target" || to == "behind_target"));
    }
  a.target_immune_enemies = has(flags, "magic_immune_enemies");
  a.target_immune_allies = !has(flags, "not_magic_immune_allies");
  a.target_invulnerable = has(flags, "invulnerable");
  a.target_ancients = !has(flags, "not_ancients");
}

// What the action reads (Berner et al. 2019, Table 5). A point that a circle is dropped on is aimed at the
// surroundings of a unit, as Shrapnel is; other points are relative to the caster.
TargetType target_type(const Node& n, const AbilityDef& a, const std::vector<std::string>& behavior) {
  if (a.passive) return TargetType::None;
  if (uses_primitive(n, "teleport")) return TargetType::Teleport;
  if (uses_primitive(n, "place_ward")) return TargetType::Ward;
  if (a.target_tree && !a.target_hero) return TargetType::Point;
  if (has(behavior, "unit_target")) return TargetType::Unit;
  if (has(behavior, "point")) return a.aoe && !a.cast_range.empty() ? TargetType::UnitOffset : TargetType::Point;
  return TargetType::None;
}

int cooldown_group(Tables& t, const std::string& name) {
  const auto at = std::find(t.cooldown_groups.begin(), t.cooldown_groups.end(), name);
  if (at != t.cooldown_groups.end()) return static_cast<int>(at - t.cooldown_groups.begin());
  t.cooldown_groups.push_back(name);
  return static_cast<int>(t.cooldown_groups.size()) - 1;
}

constexpr std::pair<const char*, CastNumber> kCastNumbers[] = {{"cast_range", CastNumber::Range},
                                                               {"cast_point", CastNumber::Point},
                                                               {"channel_time", CastNumber::Channel},
                                                               {"cooldown", CastNumber::Cooldown},
                                                               {"mana_cost", CastNumber::Mana}};

// Talents and Aghanim's Scepter that change the ability's own fields: `fields`, and specials like
// cooldown_scepter.
void read_changes(const Node& n, AbilityDef& a) {
  const Node* fields = n.find("fields");
  const Node* specials = n.find("specials");
  for (const auto& [key, what] : kCastNumbers) {
    if (const Node* s = specials ? specials->find(std::string(key) + "_scepter") : nullptr) {
      CastChange change;
      change.what = what;
      change.instead = numbers(*s, "v");
      a.changes.push_back(std::move(change));
    }
    const Node* field = fields ? fields->find(key) : nullptr;
    if (!field) continue;
    CastChange change;
    change.what = what;
    if (field->str("scepter") == "unlimited") {
      change.unlimited = true;
      a.changes.push_back(change);
    }
    change.talent = field->str("talent");
    if (change.talent.empty()) continue;
    const std::string op = field->str("talent_op", "add");
    if (op != "add" && op != "subtract" && op != "unlimited")
      throw std::runtime_error("fields: '" + std::string(key) + "': talent_op '" + op +
                               "' is not add, subtract or unlimited");
    change.unlimited = op == "unlimited";
    change.add = op == "subtract" ? -1.0f : 1.0f;  // times the talent's value, which link_programs() knows
    a.changes.push_back(std::move(change));
  }
  if (!fields) return;
  for (const auto& [key, value] : fields->object)
    if (std::none_of(std::begin(kCastNumbers), std::end(kCastNumbers),
                     [&, &name = key](const auto& known) { return name == known.first; }))
      throw std::runtime_error("fields: '" + key + "' is not a field that anything changes");
}

AbilityDef read_ability(const std::string& name, const Node& n, Tables& t) {
  AbilityDef a;
  a.name = name;
  const auto behavior = strings(n, "behavior");
  a.passive = has(behavior, "passive");
  a.channelled = has(behavior, "channelled");
  a.autocast = has(behavior, "autocast");
  a.toggle = has(behavior, "toggle");
  a.attack_behavior = has(behavior, "attack");
  a.immediate = has(behavior, "immediate");
  a.ignore_channel = has(behavior, "ignore_channel");
  a.ignore_backswing = has(behavior, "ignore_backswing");
  a.root_disables = has(behavior, "root_disables");
  a.aoe = has(behavior, "aoe");
  a.at_point = has(behavior, "point");
  a.hidden = has(behavior, "hidden");
  read_targets(n, a);
  a.pierces_immunity = n.str("spell_immunity") == "enemies_yes";
  a.pierces_immunity_scepter = n.str("spell_immunity_scepter") == "enemies_yes";
  a.cast_range = numbers(n, "cast_range");
  a.cast_range_buffer = numbers(n, "cast_range_buffer");
  a.cast_point = numbers(n, "cast_point");
  a.channel_time = numbers(n, "channel_time");
  a.cooldown = numbers(n, "cooldown");
  a.mana_cost = numbers(n, "mana_cost");
  read_changes(n, a);
  if (const Node* specials = n.find("specials"))
    if (const Node* range = specials->find("cast_range_enemy")) {
      const std::vector<float> v = numbers(*range, "v");
      if (v.empty()) throw std::runtime_error("special 'cast_range_enemy' has no values");
      a.cast_range_enemy = v.front();
    }
  a.free_on_self = n.num("free_on_self", 0) > 0;
  const Node* shared = n.find("shared_cooldown");
  if (shared && shared->is(Node::Type::String)) a.shared_cooldown = cooldown_group(t, shared->string);
  a.target = target_type(n, a, behavior);
  return a;
}

bool is_recipe(const std::string& name) { return name.rfind("item_recipe_", 0) == 0; }

void read_recipe(const Node& items, const Node& n, const std::string& name, ItemDef& d, const Tables& t) {
  const Node* recipe = n.find("recipe");
  if (!recipe) return;
  d.recipe_cost = static_cast<int>(recipe->num("cost"));
  for (const Node& alternative : recipe->at("needs").list) {
    std::vector<int> parts;
    int papers = 0;
    bool itself = false;
    for (const Node& part : alternative.list) {
      if (part.string == name) itself = true;
      if (is_recipe(part.string))
        papers += static_cast<int>(items.at("recipe_costs").num(part.string));
      else
        parts.push_back(index_of(t.item_index, part.string, "item"));
    }
    if (itself) continue;  // bought again for its charges, which the game does not play
    if (d.recipes.empty()) d.recipe_cost += papers;
    d.recipes.push_back(std::move(parts));
  }
}

// An item that is made of itself, by however many steps, could never be bought: the buyer would ask without end.
void check_recipes(const Tables& t) {
  std::vector<int> way;
  const std::function<void(int)> walk = [&](int item) {
    const auto met = std::find(way.begin(), way.end(), item);
    const std::string& name = t.items[item].name;
    if (met != way.end()) {
      std::string circle;
      for (auto at = met; at != way.end(); ++at)
        circle += t.items[*at].name + " needs ";
      throw std::runtime_error(name + ": key 'recipe' goes in a circle: " + circle + name);
    }
    way.push_back(item);
    for (const auto& recipe : t.items[item].recipes)
      for (const int part : recipe)
        walk(part);
    way.pop_back();
  };
  for (std::size_t i = 0; i < t.items.size(); ++i)
    walk(static_cast<int>(i));
}

// Boots, and what is built from them: their speed does not stack with another pair's.
bool built_from_boots(const Node& items, const std::string& name, int depth = 0) {
  if (name == "item_boots") return true;
  if (depth > kDeepestRecipe) return false;  // a circle: check_recipes() refuses it
  const Node* n = items.at("items").find(name);
  const Node* recipe = n ? n->find("recipe") : nullptr;
  if (!recipe) return false;
  for (const Node& alternative : recipe->at("needs").list)
    for (const Node& part : alternative.list)
      if (part.string != name && !is_recipe(part.string) && built_from_boots(items, part.string, depth + 1))
        return true;
  return false;
}

ItemDef read_item(const std::string& name, const Node& n, const Node& items) {
  ItemDef d;
  d.name = name;
  d.number = whole(n, "id", 0);
  d.cost = static_cast<int>(n.num("cost"));
  d.initial_charges = whole(n, "initial_charges", 0);
  d.stock_max = whole(n, "stock_max", 0);
  d.stock_initial = whole(n, "stock_initial", d.stock_max);
  d.stock_time = n.num("stock_time", 0);
  d.stock_first_s = n.num("stock_first_time", 0);
  d.stackable = n.num("stackable", 0) > 0;
  d.consumable = n.num("consumable", 0) > 0;
  d.purchasable = n.num("purchasable", 1) > 0;
  d.sellable = n.num("sellable", 1) > 0;
  d.droppable = n.num("droppable", 1) > 0;
  d.requires_charges = n.num("requires_charges", 0) > 0;
  d.secret_shop = n.num("secret_shop", 0) > 0 && n.num("global_shop", 0) == 0;
  d.sold_secretly = n.num("secret_shop", 0) > 0;
  d.side_shop = n.num("side_shop", 0) > 0;
  d.excluded = n.find("excluded") != nullptr;
  d.counts_once = n.num("counts_once", 0) > 0;
  d.base_level = whole(n, "base_level", 1);
  const bool boots = built_from_boots(items, name);
  if (const Node* stats = n.find("stats"))
    for (const auto& [key, value] : stats->object) {
      const Stat s = boots ? parse_item_stat(key) : parse_stat(key, nullptr);
      if (s == Stat::Count) throw std::runtime_error("stat '" + key + "' is not known");
      const std::vector<float> v = numbers(*stats, key);
      if (v.empty()) throw std::runtime_error("stat '" + key + "' is not a number");
      d.stats.emplace_back(s, v[std::min(v.size(), static_cast<std::size_t>(d.base_level)) - 1]);
    }
  return d;
}

// A skill that is not learned copies the rank of the learnable one in its ring of linked abilities.
int ring_head(const Node& all, const std::string& name) {
  std::string at = name;
  for (int hops = 0; hops < 8; ++hops) {
    const Node& n = all.at(at);
    if (n.num("learnable", 1) > 0) return hops == 0 ? -1 : hops;
    at = n.str("linked_ability");
    if (at.empty()) return -1;
  }
  return -1;
}

int linked_skill(const Node& all, const std::string& name, const Tables& t) {
  const int hops = ring_head(all, name);
  if (hops < 0) return -1;
  std::string at = name;
  for (int i = 0; i < hops; ++i)
    at = all.at(at).str("linked_ability");
  return index_of(t.ability_index, at, "ability");
}

void add_ability(Tables& t, AbilityDef&& a) {
  a.id = static_cast<int>(t.abilities.size());
  t.ability_index[a.name] = a.id;
  t.abilities.push_back(std::move(a));
}

// Returns whether the ability's effects refer to the talent (talent, unless_talent).
bool effects_name(const Node& n, const std::string& talent) {
  if (n.is(Node::Type::String)) return n.string == talent;
  return std::any_of(n.list.begin(), n.list.end(), [&](const Node& x) { return effects_name(x, talent); }) ||
         std::any_of(n.object.begin(), n.object.end(),
                     [&](const auto& entry) { return effects_name(entry.second, talent); });
}

// Whether what heroes.json says of a talent is what abilities.json does with it.
bool names_talent(const Node& ability, const std::string& what, const std::string& talent) {
  const Node* effects = ability.find("effects");
  if (what == "effects") return effects && effects_name(*effects, talent);
  for (const char* where : {"specials", "fields"}) {
    const Node* list = ability.find(where);
    const Node* entry = list ? list->find(what) : nullptr;
    if (entry && entry->str("talent") == talent) return true;
  }
  return false;
}

}  // namespace

// Rank-dependent lists of an item are cut to the rank it is sold at, so that its program needs no rank.
Node at_base_level(const Node& item, int level) {
  if (!item.find("base_level")) return item;  // Black King Bar's ranks are its uses
  const std::function<void(Node&)> cut = [&](Node& list) {
    if (!list.is(Node::Type::List) || list.list.size() < 2) return;
    const std::size_t i = std::min(list.list.size(), static_cast<std::size_t>(level)) - 1;
    list.list = {Node(list.list[i])};
  };
  Node out = item;
  for (auto& [key, value] : out.object) {
    if (key == "cast_range" || key == "cooldown" || key == "mana_cost" || key == "channel_time") cut(value);
    if (key == "specials")
      for (auto& [name, special] : value.object)
        for (auto& [k, v] : special.object)
          if (k == "v") cut(v);
  }
  return out;
}

void check_affects(const Node& abilities, const Tables& t) {
  for (const HeroDef& h : t.heroes)
    for (const TalentDef& talent : h.talents)
      for (const auto& [ability, what] : talent.affects) {
        const std::string& name = t.abilities[ability].name;
        if (!names_talent(abilities.at("abilities").at(name), what, talent.name))
          throw std::runtime_error("heroes.json, " + h.name + ": talents: '" + talent.name +
                                   "': 'affects' says [" + name + ", " + what +
                                   "], but abilities.json does not name the talent there");
      }
}

void load_abilities(const Node& abilities, Tables& t) {
  const Node& all = abilities.at("abilities");
  reading_each(all, [&](const std::string& name, const Node& n) {
    AbilityDef a = read_ability(name, n, t);
    a.number = whole(n, "id", 0);
    a.max_level = static_cast<int>(n.num("max_level"));
    a.required_level = static_cast<int>(n.num("required_level"));
    a.levels_between = static_cast<int>(n.num("levels_between"));
    a.slot = whole(n, "slot", 0);
    a.learnable = n.num("learnable", 1) > 0;
    a.ultimate = n.str("type") == "ultimate";
    a.granted_by_scepter = n.str("granted_by") == "scepter";
    const auto owner = t.unit_index.find(n.str("owner"));
    if (owner != t.unit_index.end()) a.owner_unit = owner->second;
    add_ability(t, std::move(a));
  });
  reading_each(all, [&](const std::string& name, const Node&) {
    AbilityDef& a = t.abilities[t.ability_index.at(name)];
    a.linked_skill = linked_skill(all, name, t);
  });
}

void load_items(const Node& items, Tables& t) {
  const Node& all = items.at("items");
  reading_each(all, [&](const std::string& name, const Node& n) {
    t.item_index[name] = static_cast<int>(t.items.size());
    t.items.push_back(read_item(name, n, items));
  });
  reading_each(all, [&](const std::string& name, const Node& n) {
    read_recipe(items, n, name, t.items[t.item_index.at(name)], t);
  });
  check_recipes(t);
  reading_each(all, [&](const std::string& name, const Node& n) {
    ItemDef& d = t.items[t.item_index.at(name)];
    if (!n.find("effects")) return;
    AbilityDef a = read_ability(name, at_base_level(n, d.base_level), t);
    // An item with nothing but passive effects says nothing, or "passive"; whatever can be used says how.
    const auto behavior = strings(n, "behavior");
    a.passive = !has(behavior, "no_target") && !has(behavior, "unit_target") && !has(behavior, "point");
    if (a.passive) a.target = TargetType::None;
    a.is_item = t.item_index.at(name);
    a.learnable = false;
    a.required_level = 0;
    a.levels_between = 0;
    d.ability = static_cast<int>(t.abilities.size());
    add_ability(t, std::move(a));
  });
}

}  // namespace dota
