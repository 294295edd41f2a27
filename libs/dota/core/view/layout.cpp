#include "view/layout.hpp"

#include <algorithm>
#include <stdexcept>

#include "world/world.hpp"

namespace dota {

namespace {
constexpr const char* kGroupNames[kGroups] = {
    "allied_heroes",   "enemy_heroes", "allied_creeps", "enemy_creeps",   "neutral_creeps", "allied_buildings",
    "enemy_buildings", "allied_wards", "enemy_wards",   "allied_courier", "enemy_courier"};
constexpr const char* kArrayNames[kObsArrays] = {"shared", "private", "shared_ids", "private_ids", "model"};
}  // namespace

Slot Layout::resolve(const char* block, const char* field, int count, ObsArray array) {
  const std::string path = std::string(block) + "." + field;
  if (std::find(table.omitted.begin(), table.omitted.end(), path) != table.omitted.end()) {
    const std::size_t a = ordinal(array);
    const Slot slot{pitch(array), count};
    aside_[a] += rows_ * count;
    return slot;
  }
  for (std::size_t b = 0; b < table.blocks.size(); ++b) {
    const LayoutTable::Block& k = table.blocks[b];
    if (k.name != block) continue;
    for (std::size_t f = 0; f < k.fields.size(); ++f) {
      const LayoutTable::Field& d = k.fields[f];
      if (d.name != field) continue;
      if (d.count != count)
        throw std::runtime_error("observation layout: field " + path + " has " + std::to_string(d.count) +
                                 " values, the core writes " + std::to_string(count));
      if (d.array != array)
        throw std::runtime_error("observation layout: field " + path + " lies in '" +
                                 kArrayNames[static_cast<int>(d.array)] + "', the core writes it to '" +
                                 kArrayNames[static_cast<int>(array)] + "'");
      const std::size_t a = ordinal(array);
      const int end = k.offset[a] + (k.instances - 1) * k.stride[a] + d.offset + d.count;
      if (d.offset < 0 || k.offset[a] < 0 || (k.instances > 0 && end > table.widths[a]))
        throw std::runtime_error("observation layout: field " + path + " ends at " + std::to_string(end) +
                                 ", array '" + kArrayNames[a] + "' has " + std::to_string(table.widths[a]));
      written_.emplace_back(static_cast<int>(b), static_cast<int>(f));
      return {k.offset[a] + d.offset, k.stride[a]};
    }
    break;
  }
  throw std::runtime_error("observation layout: field " + path + " is missing");
}

int Layout::instances(const char* block, int expected) {
  for (const LayoutTable::Block& k : table.blocks)
    if (k.name == block) {
      const bool left_out = k.instances == 0 && k.fields.empty();
      rows_ = expected >= 0 ? expected : k.instances;
      if (expected >= 0 && k.instances != expected && !left_out)
        throw std::runtime_error(std::string("observation layout: block ") + block + " has " +
                                 std::to_string(k.instances) + " rows, the core expects " +
                                 std::to_string(expected));
      return k.instances;
    }
  throw std::runtime_error(std::string("observation layout: block ") + block + " is missing");
}

Rows Layout::rows(const char* block, ObsArray array, const std::vector<std::pair<Slot, int>>& fields) const {
  const std::size_t a = ordinal(array);
  const auto found = std::find_if(table.blocks.begin(), table.blocks.end(),
                                  [&](const LayoutTable::Block& b) { return b.name == block; });
  Rows out{found->offset[a], found->stride[a], 0, {}};
  for (const auto& [slot, count] : fields) {
    const bool left_out = slot.at >= width(array);
    if (!left_out) {
      const Rows::Piece piece{out.made, slot.at - out.at, count};
      Rows::Piece* const last = out.pieces.empty() ? nullptr : &out.pieces.back();
      if (last && last->from + last->n == piece.from && last->at + last->n == piece.at)
        last->n += count;
      else
        out.pieces.push_back(piece);
    }
    out.made += count;
  }
  return out;
}

Layout::Layout(const LayoutTable& t) : table(t), heroes(t.heroes), units(t.units) {
  if (heroes < 1 || heroes > kMaxHeroes / kTeams)
    throw std::runtime_error("observation layout: " + std::to_string(heroes) +
                             " heroes a team, 1 to 5 are possible");
  if (units > kMaxSlots)
    throw std::runtime_error("observation layout: " + std::to_string(units) + " unit slots, the core holds " +
                             std::to_string(kMaxSlots));
  for (int g = 0; g < kGroups; ++g) {
    const auto found = std::find_if(t.groups.begin(), t.groups.end(),
                                    [&](const LayoutTable::Group& x) { return x.name == kGroupNames[g]; });
    if (found == t.groups.end())
      throw std::runtime_error(std::string("observation layout: unit group ") + kGroupNames[g] + " is missing");
    if (found->start < 0 || found->count < 0 || found->start + found->count > units)
      throw std::runtime_error(std::string("observation layout: unit group ") + kGroupNames[g] +
                               " leaves the slots");
    groups[g] = {found->start, found->count};
  }

  const auto F = ObsArray::Shared, P = ObsArray::Private, I = ObsArray::SharedIds, J = ObsArray::PrivateIds;
  instances("global", 1);
  global.time = resolve("global", "time", 1, F);
  global.day = resolve("global", "day", 1, F);
  global.time_to_day_change = resolve("global", "time_to_day_change", 1, F);
  global.time_to_creeps = resolve("global", "time_to_creeps", 1, F);
  global.time_to_neutrals = resolve("global", "time_to_neutrals", 1, F);
  global.time_to_bounty = resolve("global", "time_to_bounty", 1, F);
  global.time_to_runes = resolve("global", "time_to_runes", 1, F);
  global.enemy_courier_unseen = resolve("global", "enemy_courier_unseen", 1, F);
  global.roshan_spawn_min = resolve("global", "roshan_spawn_min", 1, F);
  global.roshan_spawn_max = resolve("global", "roshan_spawn_max", 1, F);
  global.roshan_max_hp = resolve("global", "roshan_max_hp", 1, F);
  global.roshan_alive = resolve("global", "roshan_alive", 1, F);
  global.roshan_dead = resolve("global", "roshan_dead", 1, F);
  global.roshan_cheese = resolve("global", "roshan_cheese", 1, F);
  global.roshan_refresher = resolve("global", "roshan_refresher", 1, F);
  global.roshan_randomisation = resolve("global", "roshan_randomisation", 1, F);
  global.glyph_cooldown = resolve("global", "glyph_cooldown", 2, F);
  global.stock = resolve("global", "stock", 4, F);

  instances("units", units);
  unit.position = resolve("units", "position", 3, F);
  unit.facing = resolve("units", "facing", 2, F);
  unit.attacking = resolve("units", "attacking", 1, F);
  unit.since_attack = resolve("units", "since_attack", 1, F);
  unit.max_hp = resolve("units", "max_hp", 1, F);
  unit.hp_history = resolve("units", "hp_history", kHistory, F);
  unit.damage = resolve("units", "damage", 1, F);
  unit.attack_speed = resolve("units", "attack_speed", 1, F);
  unit.physical_resistance = resolve("units", "physical_resistance", 1, F);
  unit.glyphed = resolve("units", "glyphed", 1, F);
  unit.glyph_timer = resolve("units", "glyph_timer", 1, F);
  unit.move_speed = resolve("units", "move_speed", 1, F);
  unit.mine = resolve("units", "mine", 1, F);
  unit.neutral = resolve("units", "neutral", 1, F);
  unit.animation_time = resolve("units", "animation_time", 1, F);
  unit.ranged_creep_eta = resolve("units", "ranged_creep_eta", 1, F);
  unit.tower_eta = resolve("units", "tower_eta", 1, F);
  unit.melee_creeps_attacking = resolve("units", "melee_creeps_attacking", 1, F);
  unit.shrine_cooldown = resolve("units", "shrine_cooldown", 1, F);
  unit.vector = resolve("units", "vector", 3, P);
  unit.i_attack_it = resolve("units", "i_attack_it", 1, P);
  unit.it_attacks_me = resolve("units", "it_attacks_me", 1, P);
  unit.projectile_eta = resolve("units", "projectile_eta", 1, P);
  unit.unit = resolve("units", "unit", 1, I);
  unit.animation = resolve("units", "animation", 1, I);

  instances("heroes", 2 * heroes);
  hero.alive = resolve("heroes", "alive", 1, F);
  hero.deaths = resolve("heroes", "deaths", 1, F);
  hero.in_sight = resolve("heroes", "in_sight", 1, F);
  hero.since_seen = resolve("heroes", "since_seen", 1, F);
  hero.teleporting = resolve("heroes", "teleporting", 1, F);
  hero.teleport_target = resolve("heroes", "teleport_target", 2, F);
  hero.teleport_time = resolve("heroes", "teleport_time", 1, F);
  hero.respawn_time = resolve("heroes", "respawn_time", 1, F);
  hero.gold = resolve("heroes", "gold", 1, F);
  hero.level = resolve("heroes", "level", 1, F);
  hero.max_mana = resolve("heroes", "max_mana", 1, F);
  hero.mana = resolve("heroes", "mana", 1, F);
  hero.mana_regen = resolve("heroes", "mana_regen", 1, F);
  hero.hp_regen = resolve("heroes", "hp_regen", 1, F);
  hero.magic_resistance = resolve("heroes", "magic_resistance", 1, F);
  hero.attributes = resolve("heroes", "attributes", 3, F);
  hero.invisible = resolve("heroes", "invisible", 1, F);
  hero.using_ability = resolve("heroes", "using_ability", 1, F);
  hero.in_line = resolve("heroes", "in_line", 4, P);

  instances("allied_heroes", heroes);
  ally.purchase_settings = resolve("allied_heroes", "purchase_settings", 7, F);
  ally.buyback = resolve("allied_heroes", "buyback", 3, F);
  ally.empty_slots = resolve("allied_heroes", "empty_slots", 2, F);
  ally.lanes = resolve("allied_heroes", "lanes", 3, F);
  ally.passability = resolve("allied_heroes", "passability", t.passability * t.passability, F);
  ally.build = resolve("allied_heroes", "build", 1, I);
  ally.next_item = resolve("allied_heroes", "next_item", 1, I);

  instances("hero_modifiers", 2 * heroes * t.hero_modifiers);
  hero_modifier.remaining = resolve("hero_modifiers", "remaining", 1, F);
  hero_modifier.stacks = resolve("hero_modifiers", "stacks", 1, F);
  hero_modifier.modifier = resolve("hero_modifiers", "modifier", 1, I);
  instances("unit_modifiers", (units - 2 * heroes) * t.unit_modifiers);
  unit_modifier.remaining = resolve("unit_modifiers", "remaining", 1, F);
  unit_modifier.stacks = resolve("unit_modifiers", "stacks", 1, F);
  unit_modifier.modifier = resolve("unit_modifiers", "modifier", 1, I);

  instances("abilities", 2 * heroes * kAbilitySlots);
  ability.cooldown = resolve("abilities", "cooldown", 1, F);
  ability.in_use = resolve("abilities", "in_use", 1, F);
  ability.castable = resolve("abilities", "castable", 1, F);
  ability.levels = resolve("abilities", "levels", 4, F);
  ability.ability = resolve("abilities", "ability", 1, I);

  instances("items", 2 * heroes * kItemSlots);
  item.location = resolve("items", "location", 3, F);
  item.charges = resolve("items", "charges", 1, F);
  item.on_cooldown = resolve("items", "on_cooldown", 1, F);
  item.cooldown = resolve("items", "cooldown", 1, F);
  item.disabled = resolve("items", "disabled", 1, F);
  item.enable_time = resolve("items", "enable_time", 1, F);
  item.toggled = resolve("items", "toggled", 1, F);
  item.treads = resolve("items", "treads", 4, F);
  item.item = resolve("items", "item", 1, I);

  pickups = instances("pickups", -1);
  if (pickups > kMaxPickups)
    throw std::runtime_error("observation layout: block pickups has " + std::to_string(pickups) +
                             " rows, at most " + std::to_string(kMaxPickups) + " exist");
  pickup.status = resolve("pickups", "status", 3, F);
  pickup.location = resolve("pickups", "location", 2, F);
  pickup.distance = resolve("pickups", "distance", 2 * heroes, F);
  pickup.pickup = resolve("pickups", "pickup", 1, I);

  minimap.exists = instances("minimap", t.minimap * t.minimap) > 0;
  minimap.visible = resolve("minimap", "visible", 1, F);
  minimap.creeps = resolve("minimap", "creeps", 2, F);
  minimap.wards = resolve("minimap", "wards", 2, F);
  minimap.enemy_heroes = resolve("minimap", "enemy_heroes", 1, F);
  minimap.cell = resolve("minimap", "cell", 3, F);

  nearby.exists = instances("nearby_map", t.nearby_map * t.nearby_map) > 0;
  nearby.elevation = resolve("nearby_map", "elevation", 1, P);
  nearby.passable = resolve("nearby_map", "passable", 1, P);
  nearby.creeps = resolve("nearby_map", "creeps", 2, P);
  nearby.area = resolve("nearby_map", "area", 2, P);
  nearby.area_effect = resolve("nearby_map", "area_effect", 2, J);

  instances("previous_action", 1);
  previous.offsets = resolve("previous_action", "offsets", 6 * kOffsets, P);
  previous.action = resolve("previous_action", "action", 1, J);
  previous.target_slot = resolve("previous_action", "target_slot", 1, J);

  unit_rows = rows("units", F,
                   {{unit.position, 3},
                    {unit.facing, 2},
                    {unit.attacking, 1},
                    {unit.since_attack, 1},
                    {unit.max_hp, 1},
                    {unit.hp_history, kHistory},
                    {unit.damage, 1},
                    {unit.attack_speed, 1},
                    {unit.physical_resistance, 1},
                    {unit.glyphed, 1},
                    {unit.glyph_timer, 1},
                    {unit.move_speed, 1},
                    {unit.mine, 1},
                    {unit.neutral, 1},
                    {unit.animation_time, 1},
                    {unit.ranged_creep_eta, 1},
                    {unit.tower_eta, 1},
                    {unit.melee_creeps_attacking, 1},
                    {unit.shrine_cooldown, 1}});
  look_rows = rows("units", P,
                   {{unit.vector, 3}, {unit.i_attack_it, 1}, {unit.it_attacks_me, 1}, {unit.projectile_eta, 1}});
  ground_rows =
      rows("nearby_map", P, {{nearby.elevation, 1}, {nearby.passable, 1}, {nearby.creeps, 2}, {nearby.area, 2}});
}

std::vector<std::string> Layout::unwritten_fields() const {
  std::vector<std::string> out;
  for (std::size_t b = 0; b < table.blocks.size(); ++b)
    for (std::size_t f = 0; f < table.blocks[b].fields.size(); ++f) {
      const std::pair<int, int> key(static_cast<int>(b), static_cast<int>(f));
      if (table.blocks[b].fields[f].array != ObsArray::Model &&
          std::find(written_.begin(), written_.end(), key) == written_.end())
        out.push_back(table.blocks[b].name + "." + table.blocks[b].fields[f].name);
    }
  return out;
}

void Layout::trace(ObsArray array, std::vector<int>& field, std::vector<int>& row) const {
  const std::size_t n = width(array);
  field.assign(n, 0);
  row.assign(n, 0);
  int index = 0;
  for (std::size_t b = 0; b < table.blocks.size(); ++b)
    for (std::size_t f = 0; f < table.blocks[b].fields.size(); ++f) {
      ++index;
      const LayoutTable::Block& k = table.blocks[b];
      const LayoutTable::Field& d = k.fields[f];
      const std::pair<int, int> key(static_cast<int>(b), static_cast<int>(f));
      if (d.array != array || std::find(written_.begin(), written_.end(), key) == written_.end()) continue;
      const std::size_t a = ordinal(array);
      const Slot slot{k.offset[a] + d.offset, k.stride[a]};
      for (int i = 0; i < k.instances; ++i)
        for (int j = 0; j < d.count; ++j) {
          const std::size_t cell = slot.row(i) + j;
          if (cell >= n || field[cell] != 0)
            throw std::runtime_error("observation layout: " + k.name + "." + d.name + " overlaps another field");
          field[cell] = index;
          row[cell] = i;
        }
    }
}

}  // namespace dota
