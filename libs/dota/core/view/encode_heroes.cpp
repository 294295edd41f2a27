// The rows of heroes: what a hero shows besides its body, its abilities, its items, and what only its own team
// knows.
#include <algorithm>

#include "view/encoder.hpp"
#include "view/half.hpp"

namespace dota {

void Encoder::encode_heroes(const TeamView& v) {
  const auto& k = layout_.hero;
  for (int h = 0; h < 2 * layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[h];
    if (!s.present) continue;
    f(k.alive, h) = s.alive ? 1.0f : 0.0f;
    f(k.deaths, h) = static_cast<float>(s.deaths) * scale::kCount;
    f(k.in_sight, h) = s.in_sight ? 1.0f : 0.0f;
    f(k.since_seen, h) = s.since_seen * scale::kMinutes;
    f(k.teleporting, h) = s.teleporting ? 1.0f : 0.0f;
    f(k.teleport_target, h, 0) = s.teleport_target.x * turn_ * scale::kPosition;
    f(k.teleport_target, h, 1) = s.teleport_target.y * turn_ * scale::kPosition;
    f(k.teleport_time, h) = s.teleport_time * scale::kSeconds;
    f(k.respawn_time, h) = s.respawn_time * scale::kMinutes;
    f(k.gold, h) = s.gold * scale::kGold;
    f(k.level, h) = static_cast<float>(s.level) * scale::kLevel;
    f(k.max_mana, h) = s.max_mana * scale::kMana;
    f(k.mana, h) = s.mana * scale::kMana;
    f(k.mana_regen, h) = s.mana_regen * scale::kRegen;
    f(k.hp_regen, h) = s.hp_regen * scale::kRegen;
    f(k.magic_resistance, h) = s.magic_resistance;
    for (int i = 0; i < 3; ++i)
      f(k.attributes, h, i) = s.attributes[i] * scale::kAttribute;
    f(k.invisible, h) = s.invisible ? 1.0f : 0.0f;
    f(k.using_ability, h) = s.using_ability ? 1.0f : 0.0f;
  }
}

void Encoder::encode_allies(const TeamView& v) {
  const auto& k = layout_.ally;
  const RegistryIds& ids = *v.constants.ids;
  for (int h = 0; h < layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[h];
    if (!s.present) continue;
    for (int i = 0; i < 7; ++i)
      f(k.purchase_settings, h, i) = s.purchase[i];
    f(k.buyback, h, 0) = s.can_buyback ? 1.0f : 0.0f;
    f(k.buyback, h, 1) = s.buyback_cost * scale::kGold;
    f(k.buyback, h, 2) = s.buyback_cooldown * scale::kMinutes;
    int inventory = 0, backpack = 0;
    for (int i = 0; i < kStashFirst; ++i)
      if (s.items[i].id < 0) ++(i < kInventory ? inventory : backpack);
    f(k.empty_slots, h, 0) = static_cast<float>(inventory) * scale::kCount;
    f(k.empty_slots, h, 1) = static_cast<float>(backpack) * scale::kCount;
    // Turned, the top lane is the world's bottom lane.
    for (int lane = 0; lane < 3; ++lane)
      f(k.lanes, h, v.mirrored ? 2 - lane : lane) = (s.lanes_allowed >> lane) & 1 ? 1.0f : 0.0f;
    id(k.build, h) = ids.of(ids.build, s.build_id);
    id(k.next_item, h) = ids.of(ids.item, s.next_item);
  }
}

// Over the zeros that are there.
void Encoder::encode_passability(const TeamView& v, std::uint16_t* shared) {
  const Slot& k = layout_.ally.passability;
  if (k.at >= layout_.width(ObsArray::Shared)) return;  // left out
  const int cells = layout_.table.passability * layout_.table.passability;
  for (int h = 0; h < layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[h];
    if (!s.present || s.unit < 0) continue;
    const std::uint8_t* const grid = v.passable[h].data();
    std::uint16_t* const out = shared + k.row(h);
    if (v.mirrored)
      for (int i = 0; i < cells; ++i)
        out[i] = static_cast<std::uint16_t>(grid[cells - 1 - i] * kHalfOne);
    else
      for (int i = 0; i < cells; ++i)
        out[i] = static_cast<std::uint16_t>(grid[i] * kHalfOne);
  }
}

void Encoder::encode_abilities(const TeamView& v) {
  const auto& k = layout_.ability;
  const RegistryIds& ids = *v.constants.ids;
  for (int h = 0; h < 2 * layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[h];
    if (!s.present) continue;
    for (int i = 0; i < kAbilitySlots; ++i) {
      const SeenAbility& a = s.abilities[i];
      if (a.id < 0) continue;
      const int row = h * kAbilitySlots + i;
      f(k.cooldown, row) = a.cooldown * scale::kMinutes;
      f(k.in_use, row) = a.in_use ? 1.0f : 0.0f;
      f(k.castable, row) = a.castable ? 1.0f : 0.0f;
      for (int l = 0; l < 4; ++l)
        f(k.levels, row, l) = a.level > l ? 1.0f : 0.0f;
      id(k.ability, row) = ids.of(ids.ability, a.id);
    }
  }
}

void Encoder::encode_items(const TeamView& v) {
  const auto& k = layout_.item;
  const RegistryIds& ids = *v.constants.ids;
  for (int h = 0; h < 2 * layout_.heroes; ++h) {
    const SeenHero& s = v.heroes[h];
    if (!s.present) continue;
    for (int i = 0; i < kItemSlots; ++i) {
      const SeenItem& t = s.items[i];
      if (t.id < 0) continue;
      const int row = h * kItemSlots + i;
      const int place = i < kInventory || i == kTpSlot ? 0 : (i < kStashFirst ? 1 : 2);
      f(k.location, row, place) = 1.0f;
      f(k.charges, row) = static_cast<float>(t.charges) * scale::kCharges;
      f(k.on_cooldown, row) = t.cooldown > 0 ? 1.0f : 0.0f;
      f(k.cooldown, row) = t.cooldown * scale::kMinutes;
      f(k.disabled, row) = t.enable_time > 0 ? 1.0f : 0.0f;
      f(k.enable_time, row) = t.enable_time * scale::kShort;
      const bool is_treads = t.id == v.constants.treads;
      f(k.toggled, row) = !is_treads && t.toggle ? 1.0f : 0.0f;
      f(k.treads, row, is_treads && t.toggle >= 0 && t.toggle < 3 ? t.toggle : 3) = 1.0f;
      id(k.item, row) = ids.of(ids.item, t.id);
    }
  }
}

}  // namespace dota
