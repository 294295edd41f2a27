// State of a hero beyond its unit: abilities, items, gold, its policy's command and its outputs.
#pragma once

#include <array>
#include <cstdint>

#include "world/values.hpp"

namespace dota {

struct AbilityState {
  std::int16_t id = -1;  // Tables::abilities
  std::int8_t level = 0, charges = 0, stacks = 0;
  bool autocast = false, toggled = false;
  float ready = -999;     // game time
  float next_charge = 0;  // game time; 0: none is under way
};
struct ItemState {
  std::int16_t id = -1;  // Tables::items
  std::int8_t charges = 0, toggle = 0;
  bool on_courier = false;  // a stash item the courier is flying; cannot be used or taken until delivered
  float ready = -999, enabled_at = -999;  // enabled_at: after a backpack swap
  float stored_until = 0;                 // a bottle's rune, whose PickupKind is `toggle`, is used by then
  float bought_at = -999;                 // from a shop; one that was assembled never was
};

// Abilities and items of a unit other than a hero: world/loadout.hpp.
struct Loadout {
  bool used = false;
  std::array<AbilityState, kAbilitySlots> abilities{};
  std::array<ItemState, kInventory> items{};
};

// One primary action with its parameters, resolved against the observation it was chosen from.
struct Command {
  std::int16_t action = 0;  // action id of the vocabulary (0: none)
  std::uint8_t delay = 0;   // frame 0-3 of the step in which it fires
  Handle target, teleport;
  std::int8_t dx = 0, dy = 0;  // -4..4
};

// What happened to a hero since its team was last observed; cleared by the encoder. The order is that of
// dota.rewards.SIGNALS.
enum class Signal : std::uint8_t {
  Win,
  HeroDeath,
  CourierDeath,
  Xp,
  Gold,
  GoldSpent,
  Health,
  Mana,
  KilledHero,
  LastHit,
  Deny,
  Aegis,
  AncientHp,
  Megas,
  Tower1,
  Tower2,
  Tower3,
  Tower4,
  Shrine,
  Barracks,
  LaneAssign,
  Count
};
constexpr int kSignals = static_cast<int>(Signal::Count);

// Whether a person decides what scripts else decide for a hero: skills, purchases, where its items lie. Like who
// plays a team it comes from outside the world, so that the checksum leaves it out.
enum Hand : std::uint8_t {
  kByHand = 1u << 0,        // purchases and items, now
  kWasByHand = 1u << 1,     // either, at any time: scripts then follow the hero's state, not their own record
  kLearnsByHand = 1u << 2,  // skills, now
};

struct HeroState {
  Handle unit;
  std::int16_t def = -1;  // Tables::heroes
  std::uint8_t level = 1, ability_points = 0, streak = 0, skill_next = 0;
  bool in_game = false;
  float xp = 0, gold = 0, reliable = 0, spent = 0;  // gold: unreliable part
  float income = 0, upkeep = 0;  // all gold it ever got, the start's included; what of it went on upkeep
  std::uint16_t kills = 0, deaths = 0, assists = 0, last_hits = 0, denies = 0, wards_placed = 0;
  float damage_dealt = 0;
  float respawn_at = 0, death_penalty = 0, buyback_ready = 0, last_teleport = -99;
  std::array<AbilityState, kAbilitySlots> abilities{};
  std::array<ItemState, kItemSlots> items{};
  std::uint32_t talents = 0;  // bit per talent taken
  std::int16_t build_next = 0;
  std::uint16_t build_id = 0;
  std::uint32_t build_skip = 0;  // randomisation: bit per item of the order left out
  std::int16_t build_insert =
      -1;  // randomisation: item of the hero's pool that comes before the rest of the order
  std::array<std::uint8_t, kKept> keep{};  // charges that the buyer keeps: tango, salve, clarity, scroll
  float keep_until = 0;                    // game time until which it keeps all but scrolls
  std::int16_t recipe = -1;                // item whose recipe is in the stash, for delivery by courier
  std::int16_t secret_wish = -1;           // item that only a secret shop sells: the courier fetches it
  bool recipe_on_courier = false;
  std::uint8_t lanes_allowed = 7;  // bit per lane; 7 = all
  float lanes_until = 0;
  Vec2 seen_pos[kTeams];  // last seen by each team
  float seen_at[kTeams] = {-99, -99};
  std::array<float, kTeams> damage_credit_until{};
  std::array<float, kMaxHeroes> hurt_by{};  // game time of the last damage from each hero, for assists and kills
  Command pending, previous;                // pending: applied in the next step; previous: what was last sampled
  std::array<float, kSignals> signals{};
  float prev_hp_frac = 1, prev_mana_frac = 1;
  std::uint8_t courier_trips = 0;
  float fountain_until = -99, shrine_until = -99;  // healing lasts until
  float aegis_expires = 0;
  bool rising = false;             // dead, and to rise on the spot at respawn_at (Aegis)
  std::uint32_t skill_swaps = 0;   // randomisation: bit k = entries k and k + 1 of the skill order change places
  bool items_changed = true;       // the inventory is to be put in order
  std::uint8_t hand = 0;           // Hand bits: a person plays it, or did
  std::int32_t passive_ticks = 0;  // passive gold payments so far

  bool by_hand() const { return hand & kByHand; }
  bool learns_by_hand() const { return hand & kLearnsByHand; }
};

}  // namespace dota
