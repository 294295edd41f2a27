// What one team can see now: the seam between a game and everything that looks at it. The simulator fills it
// through fog of war; the encoder, the filters of actions and the bots read nothing else.
#pragma once

#include <array>
#include <cstdint>

#include "base/memory.hpp"
#include "view/actions.hpp"
#include "view/ids.hpp"
#include "view/layout.hpp"
#include "world/world.hpp"

namespace dota {

struct BotBook;  // bots/book.hpp

// Constants of the game that a view's readers may look up.
struct ViewConstants {
  const Tables* tables = nullptr;
  const GameSettings* settings = nullptr;
  const ActionVocabulary* actions = nullptr;
  const RegistryIds* ids = nullptr;
  // Slot of each building of the map among its team's buildings, most important first: towers of the lanes played,
  // base towers, fort, barracks, shrines, fountain, then the lanes not played and the fillers. [1] is for readers
  // that see the map turned, whose top lane is the world's bottom lane.
  std::array<std::array<std::int8_t, 64>, 2> building_slot{};
  int treads = -1;                // Tables::items of Power Treads, whose state is shown apart
  const BotBook* book = nullptr;  // what scripted players know of abilities and items
};
ViewConstants make_constants(const Tables& tables, const GameSettings& settings, const ActionVocabulary& actions,
                             const RegistryIds& ids);

enum class Side : std::uint8_t { Own, Enemy, Neutral };

constexpr int kUnitModifiers = 8, kHeroModifiers = 32, kViewAreas = 64, kViewProjectiles = 128;
constexpr int kMaxGridSide = 16, kMaxMinimapSide = 32;
// Sides of a cell of the terrain grids around a hero, in world units. Berner et al. 2019 do not give them.
constexpr float kNearbyCell = 200.0f, kPassabilityCell = 64.0f;

struct SeenModifier {
  std::int16_t name = -1;  // Tables::modifiers
  std::uint8_t stacks = 0;
  float remaining = 0;  // seconds; infinite ones: kLongest
};
constexpr float kLongest = 600.0f;

struct SeenUnit {
  Handle handle;
  UnitKind kind = UnitKind::None;
  Side side = Side::Neutral;
  std::int8_t hero = -1;  // own 0..H-1, enemies H..2H-1; -1: no hero
  std::int8_t lane = -1;
  std::uint8_t tier = 0, building = 0;
  bool visible = false, attacking = false, invulnerable = false, melee = false;
  Act act = Act::Idle;
  std::uint16_t type = 0;  // Tables::units
  std::uint32_t status = 0;
  Vec2 pos, velocity;
  std::int8_t level = 0;  // of the ground
  float facing = 0, radius = 0;
  float hp = 0, max_hp = 0;
  float damage = 0, attack_speed = 0, attack_range = 0, attack_interval = 1, physical_resistance = 0,
        move_speed = 0;
  float since_attack = 0, act_left = 0, shrine_cooldown = 0, glyph_left = 0;
  Handle attack_target;                       // whom it can be seen attacking
  float tower_eta = 0, ranged_creep_eta = 0;  // seconds until a shot on its way hits it; 0: none
  std::uint8_t melee_creeps_attacking = 0;
  std::uint8_t modifier_count = 0;  // in TeamView::unit_modifiers
};
using HpHistory = std::array<float, kHistory>;  // newest first; where it was not seen, what was seen next

struct SeenAbility {
  std::int16_t id = -1;
  std::int8_t level = 0, charges = 0;
  bool castable = false, in_use = false, toggled = false;
  float cooldown = 0;
  float reach = 0;  // cast_reach(), of an own hero's that can be cast now
};
struct SeenItem {
  std::int16_t id = -1;
  std::int8_t charges = 0, toggle = 0;
  bool castable = false;
  float cooldown = 0, enable_time = 0;
  float reach = 0;  // as of an ability
};

// A hero. Of an enemy in fog everything but what the scoreboard shows is as it was last seen.
struct SeenHero {
  bool present = false, alive = false, in_sight = false;
  std::int16_t unit = -1;  // index into TeamView::units of its body as now or last seen; -1: never seen
  std::int16_t def = -1;   // Tables::heroes
  std::uint16_t deaths = 0;
  std::uint8_t level = 1;
  float since_seen = 0, respawn_time = 0;
  bool teleporting = false, invisible = false, using_ability = false;
  Vec2 teleport_target;
  float teleport_time = 0;
  float mana = 0, max_mana = 0, mana_regen = 0, hp_regen = 0, magic_resistance = 0;
  std::array<float, 3> attributes{};
  std::array<SeenAbility, kAbilitySlots> abilities{};
  std::array<SeenItem, kItemSlots> items{};
  std::uint8_t modifier_count = 0;
  std::array<SeenModifier, kHeroModifiers> modifiers{};
  // Own heroes only.
  float gold = 0;
  bool can_buyback = false;
  float buyback_cost = 0, buyback_cooldown = 0;
  std::uint8_t lanes_allowed = 7;
  std::uint16_t build_id = 0;
  std::int16_t next_item = -1;
  std::array<float, 7> purchase{};
  bool tree_near = false;      // a standing tree within reach of a tree-targeted item
  std::int8_t rune_near = -1;  // pickup within reach, index
  Command previous;
  std::int16_t previous_slot = -1;
  std::array<std::int8_t, 2> previous_offset{};  // as the policy gave it, in its own orientation
};

struct SeenProjectile {
  Handle source, target;
  Projectile::Kind kind = Projectile::Kind::None;
  Side side = Side::Neutral;
  bool source_tower = false, source_ranged_creep = false;
  Vec2 pos, direction;
  float speed = 0, eta = 0;
  std::int16_t ability = -1;
};

struct SeenArea {
  Side side = Side::Neutral;
  Vec2 pos;
  float radius = 0, starts_in = 0, remaining = 0;
  std::int16_t ability = -1;
};

struct SeenPickup {
  std::uint8_t status = 0;  // 0 unknown, 1 present, 2 absent
  std::int8_t kind = -1;    // PickupKind, -1: not known
  // Whether the spot was seen empty before its first rune; whether runes have appeared since it was last seen.
  bool seen_empty = false, outdated = false;
  Vec2 pos;
};

struct TeamView {
  ViewConstants constants;
  std::uint8_t team = 0, heroes_per_team = 5;
  bool mirrored = false;  // readers show it turned by 180 degrees

  float time = 0, time_to_day_change = 0, time_to_creeps = 0, time_to_neutrals = 0, time_to_bounty = 0,
        time_to_runes = 0, enemy_courier_unseen = 0;
  bool day = true;
  float roshan_spawn_min = 0, roshan_spawn_max = 0, roshan_max_hp = 0, roshan_randomisation = 0;
  bool roshan_alive = false, roshan_dead = false, roshan_cheese = false, roshan_refresher = false;
  std::array<float, 2> glyph_cooldown{};        // own, enemy
  std::array<std::int8_t, kStockSeen> stock{};  // gem, smoke, observer ward, infused raindrop
  std::array<std::uint8_t, 2> kills{};          // own, enemy

  // Units: the own team's all, others as far as seen; enemy heroes in fog as last seen, at the end.
  std::int16_t unit_count = 0;
  std::array<SeenUnit, kMaxUnits + 5> units{};
  // What few readers want of them, apart: all of them go through the units again and again.
  std::array<HpHistory, kMaxUnits + 5> hp_histories{};
  std::array<std::array<SeenModifier, kUnitModifiers>, kMaxUnits + 5> unit_modifiers{};
  std::array<std::int16_t, kMaxUnits> index_of{};  // world slot -> index into units, -1: not seen
  std::array<SeenHero, kMaxHeroes> heroes{};       // own 0..H-1, enemies H..2H-1
  std::array<SeenUnit, 5> remembered{};            // enemy heroes' bodies as last seen
  std::array<HpHistory, 5> remembered_hp{};
  std::int16_t projectile_count = 0;
  std::array<SeenProjectile, kViewProjectiles> projectiles{};
  std::int16_t area_count = 0;
  std::array<SeenArea, kViewAreas> areas{};
  std::array<SeenPickup, kMaxPickups> pickups{};

  // Terrain grids around each own hero and the minimap's share of visible ground, in the world's orientation.
  std::array<std::array<std::int8_t, kMaxGridSide * kMaxGridSide>, 5> nearby_level{};
  std::array<std::array<std::uint8_t, kMaxGridSide * kMaxGridSide>, 5> nearby_passable{}, passable{};
  std::array<float, kMaxMinimapSide * kMaxMinimapSide> minimap_visible{};

  // Which of the last timesteps each unit was seen in: bit k, k timesteps ago.
  std::array<std::uint16_t, kMaxUnits> seen_bits{}, seen_generation{};
  std::array<float, 5> enemy_seen_at{};  // game time each enemy hero was last seen
  float courier_seen_at = 0;             // the enemy's
  // Slot, in the observation it was chosen from, of the unit that each own hero's last command was about; -1:
  // none.
  std::array<std::int16_t, 5> previous_slots{-1, -1, -1, -1, -1};
  // Choices of each own hero since it last chose to move or follow, 0 right after it; 255: many, or never.
  std::array<std::uint8_t, 5> choices_since_move{255, 255, 255, 255, 255};

  // Index into units of what the handle names, if it is seen; else -1.
  int find(Handle h) const {
    if (h.index < 0 || h.index >= kMaxUnits) return -1;
    const int i = index_of[h.index];
    return i >= 0 && units[i].handle == h ? i : -1;
  }
  const HpHistory& hp_history(const SeenUnit& unit) const { return hp_histories[&unit - units.data()]; }
  const SeenUnit* body(int hero) const {
    const int i = heroes[hero].unit;
    return i < 0 ? nullptr : &units[i];
  }
};

// The unit slots of a team's last observation.
struct SlotTable {
  std::int16_t count = 0;
  std::array<std::int16_t, kMaxSlots> unit{};  // index into TeamView::units, -1: empty
  std::array<Handle, kMaxSlots> handle{};
};

void reset_view(TeamView& view, const ViewConstants& constants, int team, bool mirrored);
// Fills both teams' views. Call once a timestep, after step_game. `ahead` is prefetched in between; may be null.
void fill_views(const Context& c, std::array<TeamView, kTeams>& views, PrefetchQueue* ahead);
// Fills the terrain grids and the minimap, which only the encoder reads: call before it, after fill_views.
void fill_ground(const Context& c, const Layout& layout, TeamView& view);
// Gives every seen unit its slot: heroes and buildings have fixed slots, the rest go by distance to the nearest
// own hero, then by index, so that the nearest remain when there are too many (Berner et al. 2019, appendix E).
void assign_slots(const Layout& layout, const TeamView& view, SlotTable& out);

}  // namespace dota
