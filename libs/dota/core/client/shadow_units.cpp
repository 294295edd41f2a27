// Units of a frame: which slot each has, what it shows, and those that are no longer listed.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "client/activities.hpp"
#include "client/shadow.hpp"
#include "effects/abilities.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"

namespace dota {
namespace {

constexpr int kForgetAfter = 2 * kHistory;  // timesteps out of sight
// Limits of what a client says: observations are 16-bit floats.
constexpr float kFarthest = 20000, kMost = 6e4f;

float bounded(float v) { return std::clamp(v, -kMost, kMost); }

struct Flag {
  bool ClientUnit::* told;
  std::uint32_t status;
};
constexpr Flag kFlagsOf[] = {
    {&ClientUnit::is_stunned, kStunned},
    {&ClientUnit::is_rooted, kRooted},
    {&ClientUnit::is_silenced, kSilenced},
    {&ClientUnit::is_disarmed, kDisarmed},
    {&ClientUnit::is_hexed, kHexed},
    {&ClientUnit::is_muted, kMuted},
    {&ClientUnit::is_invisible, kInvisible},
    {&ClientUnit::is_magic_immune, kSpellImmune},
    {&ClientUnit::is_invulnerable, kInvulnerable},
    {&ClientUnit::is_attack_immune, kAttackImmune},
    {&ClientUnit::is_specially_deniable, kDeniable},
    {&ClientUnit::has_scepter, kScepter},
};

std::uint32_t status_of(const ClientUnit& m) {
  std::uint32_t out = kRevealed;  // what the client lists, its team sees
  for (const Flag& f : kFlagsOf)
    if (m.*f.told) out |= f.status;
  return out;
}

}  // namespace

void Shadow::remove(Unit& u) {
  Context c = game_.context();
  const int slot = world().handle(u).index;
  handles_.release(slot);
  memory_[slot] = {};
  u.modifiers = -1;  // remove_unit() would end them as effects, but a frame's modifiers have none
  remove_unit(c, u);
}

Unit* Shadow::slot_for(const ClientUnit& m) {
  World& w = world();
  Context c = game_.context();
  const int team = team_of(m.team_id), named = names_.unit(m.name);
  const UnitKind kind = names_.kind_of(m, named);
  const int seat = kind == UnitKind::Hero && !m.is_illusion ? hero_of_player(m.player_id) : -1;
  if (seat >= 0 && seat / 5 == team) return w.get(w.heroes[seat].unit);
  if (is_building(kind) && team < kTeams) {
    const int building = building_at(m, team);
    for (int i = 0; building >= 0 && i < w.units_end; ++i)
      if (w.units[i].kind != UnitKind::None && w.units[i].building == building + 1) return &w.units[i];
  }
  const UnitKind shown = kind == UnitKind::Hero ? UnitKind::Summon : kind;  // an illusion
  const int known = handles_.slot_of(m.handle);
  if (known >= 0 && memory_[known].kind == shown && w.units[known].team == team) {
    if (named >= 0) w.units[known].type = static_cast<std::uint16_t>(named);
    return &w.units[known];
  }
  if (known >= 0 && w.units[known].hero < 0 && w.units[known].building == 0) remove(w.units[known]);
  const int type = named >= 0 ? named : names_.stand_in(kind, team);
  if (type < 0) return nullptr;
  Unit* const u = spawn_unit(c, type, team, {m.location.x, m.location.y}, 0);
  if (!u) return nullptr;
  u->modifiers = -1;
  set_kind(w, *u, shown);
  memory_[w.handle(*u).index] = {false, 0, shown};
  return u;
}

// First all handles, so that units can name each other.
void Shadow::list_units(const WorldState& s) {
  World& w = world();
  for (Memory& m : memory_) {
    m.listed = false;
    ++m.unseen;
  }
  body_ = {};
  told_ = {};
  for (const ClientUnit& m : s.units) {
    const Unit* u = slot_for(m);
    if (!u) continue;
    const int slot = w.handle(*u).index;
    if (memory_[slot].listed) continue;  // two units for one slot: the first counts
    handles_.bind(m.handle, slot);
    memory_[slot].listed = true;
    memory_[slot].unseen = 0;
    if (u->hero >= 0) body_[u->hero] = &m;
  }
}

void Shadow::fill_unit(const WorldState& s, const ClientUnit& m, Unit& u) {
  World& w = world();
  const UnitDef& def = game_.setup().tables->units[u.type];
  const Vec2 at{std::clamp(m.location.x, -kFarthest, kFarthest), std::clamp(m.location.y, -kFarthest, kFarthest)};
  const float passed = w.time - before_;
  const Vec2 velocity = passed > 0 && passed < 1 ? (at - u.pos) * (1 / passed) : Vec2{};
  u.alive = m.is_alive;
  place_unit(w, u, at);
  u.velocity = velocity;
  u.facing = bounded(m.facing) * std::numbers::pi_v<float> / 180;
  u.status = status_of(m);
  const bool rises = u.hero >= 0 && u.hp <= 0 && m.is_alive;
  u.hp = m.is_alive ? std::max(bounded(m.health), 0.0f) : 0;
  if (rises) u.hp_history.fill(u.hp);
  u.max_hp = std::max(bounded(m.health_max), 1.0f);
  u.hp_regen = bounded(m.health_regen);
  u.mana = bounded(m.mana);
  u.max_mana = bounded(m.mana_max);
  u.mana_regen = bounded(m.mana_regen);
  u.move_speed = bounded(m.movement_speed);
  u.vision_day = bounded(m.vision_day);
  u.vision_night = bounded(m.vision_night);
  if (m.bounding_radius > 0) u.radius = bounded(m.bounding_radius);
  u.dmg_min = bounded(m.base_damage - m.base_damage_variance);
  u.dmg_max = bounded(m.base_damage + m.base_damage_variance);
  u.dmg_bonus = bounded(m.attack_damage - m.base_damage);
  u.attack_range = bounded(m.attack_range);
  u.attack_speed = std::clamp(100 * m.attack_speed, 1.0f, 10000.0f);
  u.attack_interval = def.attack_time / (u.attack_speed / 100);
  u.attack_point = bounded(m.attack_anim_point) / (u.attack_speed / 100);
  u.armor = bounded(m.armor);
  u.magic_resist = bounded(m.magic_resist);
  u.evasion = bounded(m.evasion);
  u.spell_amp = bounded(m.spell_amplification);
  u.str = bounded(m.strength);
  u.agi = bounded(m.agility);
  u.intellect = bounded(m.intelligence);
  u.expires = m.remaining_lifespan > 0 ? w.time + bounded(m.remaining_lifespan) : 0;
  u.shrine_ready = w.time + bounded(m.shrine_cooldown);
  // Of a target that is out of sight the handle is missing: it stays the one before.
  const Handle aimed = unit_of(m.attack_target_handle), before = u.attack_target;
  const bool swings = m.anim_activity == activity::kAttack || m.anim_activity == activity::kAttack2;
  const Unit* target = aimed.index < 0 ? w.get(before) : nullptr;
  const bool lost = target && !memory_[before.index].listed && (swings || target->hero >= 0);
  if (!lost) u.attack_target = aimed.index >= 0 ? aimed : Handle{-1, 1};  // not the body of a hero never seen
  const float launched = u.last_attack;
  if (m.last_attack_time >= 0) u.last_attack = s.dota_time - bounded(s.game_time - m.last_attack_time);
  const bool launches = u.last_attack > launched + kTimeSlack;
  if (u.hero >= 0) {
    HeroState& h = w.heroes[u.hero];
    if (m.level > 0) h.level = static_cast<std::uint8_t>(std::min(m.level, 30u));
    take_abilities(s, m, h);
    take_items(s, m, h);
    if (u.team == team_) take_purse(m, h);
  }
  fill_action(s, m, u, launches);
  take_modifiers(s, m, u);
}

// The animation that runs, and how long it does yet.
void Shadow::fill_action(const WorldState& s, const ClientUnit& m, Unit& u, bool launches) {
  const World& w = world();
  const float cycle = std::clamp(m.anim_cycle, 0.0f, 1.0f);
  const Act before = u.act;
  u.order = Order{};
  u.act = Act::Idle;
  if (!m.is_alive) {
    u.act = Act::Dead;
    return;
  }
  // The ability, or 16 + the item, that is being cast.
  const auto under_way = [&](bool ClientAbility::* told) -> const ClientAbility* {
    const auto abilities = s.abilities_of(m), items = s.items_of(m);
    for (const ClientAbility& a : abilities)
      if (a.*told) {
        const int id = names_.ability(a.ability_id);
        u.order.slot = u.hero >= 0 ? slot_of_ability(w.heroes[u.hero], id) : static_cast<std::int8_t>(a.slot);
        return &a;
      }
    for (const ClientAbility& a : items)
      if (a.*told && a.slot < kItemSlots) {
        u.order.slot = static_cast<std::int8_t>(16 + a.slot);
        return &a;
      }
    return nullptr;
  };
  if (m.is_channeling) {
    u.act = Act::Channel;
    const ClientAbility* a = under_way(&ClientAbility::is_channeling);
    const float whole = a ? std::clamp(a->channel_time, 0.0f, 100.0f) : 0;
    if (before != Act::Channel) u.act_until = w.time + whole;
    if (cycle > 0 && whole > 0) u.act_until = w.time + (1 - cycle) * whole;
    return;
  }
  if (under_way(&ClientAbility::is_in_ability_phase)) {
    u.act = Act::CastWindup;
    const Context c = game_.context();
    int level = 1;
    const AbilityDef* def = slot_ability(c, u, u.order.slot, &level);
    const float point = def ? cast_number(c, u, *def, CastNumber::Point, std::max(level, 1)) : 0;
    u.act_until = w.time + (1 - cycle) * point;
    return;
  }
  if (m.anim_activity >= activity::kCast && m.anim_activity < activity::kCast + kAbilitySlots) {
    u.act = Act::CastWindup;
    u.order.slot = static_cast<std::int8_t>(m.anim_activity - activity::kCast);
    u.act_until = w.time;
  } else if (m.anim_activity == activity::kAttack || m.anim_activity == activity::kAttack2) {
    // An attack's animation lasts as long as the time between two attacks; its point is when the attack leaves.
    // One that became faster since it began is at 0 until its rest fits.
    const float begun = cycle * u.attack_interval;
    const bool rests = before == Act::AttackBackswing && !launches && !w.due(u.act_until);
    const bool winds_up = begun < u.attack_point - kTimeSlack && !(cycle <= 0 && (rests || launches));
    u.act = winds_up ? Act::AttackWindup : Act::AttackBackswing;
    if (winds_up || !rests) u.act_until = w.time + (winds_up ? u.attack_point : u.attack_interval) - begun;
  } else if (m.anim_activity == activity::kRun) {
    u.act = Act::Walk;
  }
}

void Shadow::take_units(const WorldState& s) {
  World& w = world();
  for (std::size_t i = 0; i < static_cast<std::size_t>(w.modifiers_end); ++i)
    w.modifiers[i] = Modifier{};
  w.modifiers_end = 0;
  w.modifier_free = -1;
  w.modifiers_watched = w.modifiers_slow = {};
  for (int i = 0; i < w.units_end; ++i)
    w.units[i].modifiers = -1;
  std::array<bool, kMaxUnits> filled{};
  for (const ClientUnit& m : s.units) {
    const int slot = handles_.slot_of(m.handle);
    if (slot < 0 || filled[slot] || !memory_[slot].listed) continue;
    filled[slot] = true;
    fill_unit(s, m, w.units[slot]);
  }
}

// Of the own team everything that lives is listed. What others have out of sight is remembered for as long as
// observations show its health before.
void Shadow::forget_units() {
  World& w = world();
  for (int i = 0; i < w.units_end; ++i) {
    Unit& u = w.units[i];
    if (u.kind == UnitKind::None || memory_[i].listed) continue;
    u.velocity = {};
    if (u.hero >= 0 && u.team == team_) continue;  // a client leaves out heroes that are dead or stand still
    if (u.hero >= 0 || u.building > 0) {
      u.status = kUnseen;
      continue;
    }
    u.status = kUnseen;
    u.alive = false;
    touch_unit(w, i);
    if (u.team == team_ || memory_[i].unseen > kForgetAfter) remove(u);
  }
}

}  // namespace dota
