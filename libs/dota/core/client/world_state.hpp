// World state of a Dota 2 client (CMsgBotWorldState) as plain values. Fields that nothing here reads are left out.
// Units are the message's: seconds, world units, degrees, fractions. Absent fields keep the values given here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace dota {

constexpr std::uint32_t kNoClientHandle = 0xFFFFFFFFu;  // since 2021; before, the field is absent (0)

// Unit types of the message.
enum class ClientUnitType : std::uint8_t {
  Invalid,
  Hero,
  CreepHero,
  LaneCreep,
  JungleCreep,
  Roshan,
  Tower,
  Barracks,
  Shrine,
  Fort,
  Building,
  Courier,
  Ward,
  Count
};

// Elements of one of WorldState's lists that belong to a unit.
struct ListRange {
  std::uint32_t first = 0, count = 0;
};

struct ClientVector {
  float x = 0, y = 0, z = 0;
};

struct ClientPlayer {
  int player_id = -1;
  std::uint32_t hero_id = 0, kills = 0, deaths = 0, assists = 0, team_id = 0;
  bool is_alive = true;
  float respawn_time = 0;
};

// An ability or an item.
struct ClientAbility {
  std::uint32_t handle = 0, ability_id = 0, slot = 0, level = 0, cast_range = 0, charges = 0;
  float cooldown_remaining = 0, channel_time = 0;
  bool is_toggled = false, is_in_ability_phase = false, is_channeling = false, is_fully_castable = false;
  int power_treads_stat = -1;
};

struct ClientModifier {
  std::string_view name;
  std::uint32_t stack_count = 0, ability_id = 0;
  float remaining_duration = 0;  // < 0: infinite
};

struct ClientTrackingProjectile {
  std::uint32_t caster_handle = 0, caster_unit_type = 0, ability_id = 0;
  float velocity = 0;
  ClientVector location;
  bool is_attack = false;
};

struct ClientLinearProjectile {
  std::uint32_t handle = 0, caster_handle = 0, ability_id = 0;
  int caster_player_id = -1;
  float radius = 0;
  ClientVector location, velocity;
};

struct ClientZone {
  ClientVector location;
  std::uint32_t caster_handle = 0, ability_id = 0;
  int caster_player_id = -1;
  float radius = 0;
};

struct ClientDroppedItem {
  std::uint32_t item_id = 0;
  ClientVector location;
};

struct ClientRune {
  int type = -1;
  std::uint32_t status = 0;  // 0 unknown, 1 available, 2 missing
  float time_since_seen = 0;
  ClientVector location;
};

struct ClientTeleport {
  int player_id = -1;
  ClientVector location;
  float time_remaining = 0;
};

struct ClientTreeEvent {
  int tree_id = -1;
  bool destroyed = false, respawned = false;
  ClientVector location;
};

struct ClientUnit {
  std::uint32_t handle = 0;
  ClientUnitType unit_type = ClientUnitType::Invalid;
  std::string_view name;
  std::uint32_t team_id = 0, level = 0;
  ClientVector location;
  bool is_alive = true;
  int player_id = -1;
  float bounding_radius = 0, facing = 0, ground_height = 0, vision_day = 0, vision_night = 0;
  float health = 0, health_max = 0, health_regen = 0, mana = 0, mana_max = 0, mana_regen = 0;
  float base_movement_speed = 0, movement_speed = 0;
  int anim_activity = -1;
  float anim_cycle = 0;
  float base_damage = 0, base_damage_variance = 0, bonus_damage = 0, attack_damage = 0, attack_range = 0,
        attack_speed = 1, attack_anim_point = 0, attack_projectile_speed = 0, last_attack_time = -1;
  std::uint32_t attack_target_handle = 0;
  bool is_attack_immune = false, is_blind = false, is_disarmed = false, is_hexed = false, is_invisible = false,
       is_invulnerable = false, is_magic_immune = false, is_muted = false, is_rooted = false, is_silenced = false,
       is_specially_deniable = false, is_stunned = false, has_scepter = false, is_channeling = false,
       is_illusion = false, is_using_ability = false, is_shrine_healing = false;
  float respawn_time = 0, buyback_cost = -1, buyback_cooldown = 0, spell_amplification = 0, armor = 0,
        magic_resist = 0, evasion = 0;
  std::uint32_t active_ability_handle = 0, xp_needed_to_level = 0, ability_points = 0, last_hits = 0, denies = 0,
                net_worth = 0;
  float reliable_gold = -1, unreliable_gold = -1, strength = 0, agility = 0, intelligence = 0,
        remaining_lifespan = 0, shrine_cooldown = 0;
  // In WorldState's lists.
  ListRange abilities, items, modifiers, projectiles;
};

struct WorldState {
  std::uint32_t team_id = 0, game_state = 0;
  float game_time = 0, dota_time = 0, time_of_day = 0, glyph_cooldown = 0, glyph_cooldown_enemy = 0;
  std::vector<ClientPlayer> players;
  std::vector<ClientUnit> units;
  std::vector<ClientDroppedItem> dropped_items;
  std::vector<ClientRune> runes;
  std::vector<ClientTeleport> teleports;
  std::vector<ClientLinearProjectile> linear_projectiles;
  std::vector<ClientZone> zones;
  std::vector<ClientTreeEvent> tree_events;
  std::uint32_t roshan_killed = 0;  // events of this frame
  // Of the units, one unit after another.
  std::vector<ClientAbility> abilities, items;
  std::vector<ClientModifier> modifiers;
  std::vector<ClientTrackingProjectile> projectiles;
  std::uint32_t unknown_fields = 0;  // that the schema does not have

  std::span<const ClientAbility> abilities_of(const ClientUnit& u) const {
    return std::span(abilities).subspan(u.abilities.first, u.abilities.count);
  }
  std::span<const ClientAbility> items_of(const ClientUnit& u) const {
    return std::span(items).subspan(u.items.first, u.items.count);
  }
  std::span<const ClientModifier> modifiers_of(const ClientUnit& u) const {
    return std::span(modifiers).subspan(u.modifiers.first, u.modifiers.count);
  }
  std::span<const ClientTrackingProjectile> projectiles_of(const ClientUnit& u) const {
    return std::span(projectiles).subspan(u.projectiles.first, u.projectiles.count);
  }
};

}  // namespace dota
