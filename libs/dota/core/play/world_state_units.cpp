// Units of a world state: what all kinds have.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "effects/abilities.hpp"
#include "map/ground.hpp"
#include "map/protection.hpp"
#include "play/world_state.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// Numbers of animations (Valve's GameActivity_t).
enum Activity : std::int16_t {
  kNoActivity = -1,
  kIdle = 1500,
  kRun = 1502,
  kAttack = 1503,
  kDie = 1506,
  kCastFirst = 1510,     // of ability slots 0-5
  kChannelFirst = 1520,  // likewise
  kTeleport = 1595
};
// What a bot's unit does (BOT_ACTION_TYPE).
enum class BotAction : std::uint8_t {
  None,
  Idle,
  Move,
  MoveDirectly,
  Attack,
  AttackMove,
  UseAbility,
  PickRune,
  UseItem
};

bool is_still(UnitKind k) { return is_building(k) && k != UnitKind::Tower; }

int activity_of(const BotEye& eye, const Unit& u) {
  if (!u.alive) return kDie;
  if (is_still(u.kind)) return kNoActivity;
  switch (u.act) {
    case Act::Walk:
      return kRun;
    case Act::AttackWindup:
    case Act::AttackBackswing:
      return kAttack;
    case Act::CastWindup:
    case Act::CastBackswing:
      return u.order.slot >= 0 && u.order.slot < kAbilitySlots ? kCastFirst + u.order.slot : kIdle;
    case Act::Channel: {
      const AbilityDef* a = slot_ability(eye.c, u, u.order.slot, nullptr);
      if (a && a->target == TargetType::Teleport) return kTeleport;
      return u.order.slot >= 0 && u.order.slot < kAbilitySlots ? kChannelFirst + u.order.slot : kIdle;
    }
    default:
      return kIdle;
  }
}

// Share of the animation that is over. An attack's lasts from one swing to the next, a cast's until its cast
// point, a channel's as long as the channel; those that loop last a second.
float cycle_of(const BotEye& eye, const Unit& u) {
  const World& w = eye.w();
  if (!u.alive || is_still(u.kind)) return 0;
  const float left = u.act_until - w.time;
  float share = 0;
  int level = 0;
  switch (u.act) {
    case Act::AttackWindup:
      share = (u.attack_point - left) / std::max(u.attack_interval, kDt);
      break;
    case Act::AttackBackswing:
      share = 1 - left / std::max(u.attack_interval, kDt);
      break;
    case Act::CastWindup:
    case Act::CastBackswing:
    case Act::Channel: {
      const AbilityDef* a = slot_ability(eye.c, u, u.order.slot, &level);
      const CastNumber what = u.act == Act::Channel ? CastNumber::Channel : CastNumber::Point;
      const float whole = a ? cast_number(eye.c, u, *a, what, level) : 0;
      share = 1 - left / std::max({whole, left, kDt});
      break;
    }
    default: {
      const double time = static_cast<double>(w.frame) / 30;
      return static_cast<float>(time - std::floor(time));
    }
  }
  return std::clamp(share, 0.0f, 1.0f);
}

BotAction action_of(const Unit& u, bool own) {
  if (!own) {  // others' orders are not told, what they do is seen
    if (u.act == Act::Walk) return BotAction::Move;
    if (u.act == Act::AttackWindup || u.act == Act::AttackBackswing) return BotAction::Attack;
    return u.act == Act::CastWindup || u.act == Act::Channel ? BotAction::UseAbility : BotAction::Idle;
  }
  switch (u.order.type) {
    case OrderType::MoveTo:
    case OrderType::FollowLane:
      return BotAction::Move;
    case OrderType::AttackUnit:
      return BotAction::Attack;
    case OrderType::AttackMove:
      return BotAction::AttackMove;
    case OrderType::CastNoTarget:
    case OrderType::CastPoint:
    case OrderType::CastUnit:
      return u.order.slot < kAbilitySlots ? BotAction::UseAbility : BotAction::UseItem;
    case OrderType::Pickup:
      return BotAction::PickRune;
    default:
      return BotAction::Idle;
  }
}

int degrees_of(float radians) {
  const long whole = std::lround(radians * (180 / std::numbers::pi_v<float>)) % 360;
  return static_cast<int>(whole < 0 ? whole + 360 : whole);
}

// Points of what lives are never 0.
std::uint64_t points(float value) { return value > 0 ? std::max<std::uint64_t>(std::lround(value), 1) : 0; }

void write_attack(WireWriter& out, const BotEye& eye, const Unit& u, const UnitDef& def) {
  const World& w = eye.w();
  const float base = (u.dmg_min + u.dmg_max) / 2;
  out.whole(40, base);
  out.whole(41, (u.dmg_max - u.dmg_min) / 2);
  out.signed_number(42, std::lround(u.dmg_bonus));
  out.signed_number(43, std::lround(base + u.dmg_bonus));
  out.whole(44, u.attack_range);
  out.real(45, u.attack_speed / 100);
  out.real(46, def.attack_point);
  out.whole(47, def.acquisition_range);
  out.whole(48, def.projectile_speed);
  const bool swinging = u.act == Act::AttackWindup || u.act == Act::AttackBackswing;
  if (u.alive && (swinging || w.time - u.last_attack < u.attack_interval))
    if (const std::uint32_t target = eye.handle(u.attack_target)) out.number(49, target);
  out.signed_number(50, static_cast<int>(1 / std::max(u.attack_interval, kDt)));
  if (u.last_attack > kNever) out.real(51, static_cast<float>(w.frame) * kDt - (w.time - u.last_attack));
}

void write_flags(WireWriter& out, const BotEye& eye, const Unit& u) {
  const std::uint32_t s = u.status;
  out.flag(70, s & (kAttackImmune | kEthereal));
  out.flag(71, u.miss > 0);
  out.flag(72, false);  // block, here and below: dominated, evasion, nightmares
  out.flag(73, s & kDisarmed);
  out.flag(75, false);
  out.flag(76, s & kHexed);
  out.flag(77, s & kInvisible);
  out.flag(78, (s & kInvulnerable) || (u.building > 0 && building_protected(eye.c, u)));
  out.flag(79, s & kSpellImmune);
  out.flag(80, s & kMuted);
  out.flag(82, false);
  out.flag(83, s & kRooted);
  out.flag(84, s & kSilenced);
  out.flag(85, s & kDeniable);
  out.flag(86, s & kStunned);
  out.flag(87, s & kTrueStrike);
  out.flag(88, s & kScepter);
}

// What the unit uses now.
void write_use(WireWriter& out, const BotEye& eye, const Unit& u) {
  const bool using_now = u.alive && (u.act == Act::CastWindup || u.act == Act::Channel);
  if (!using_now || u.order.slot < 0) return;
  out.number(66, bot_ability_handle(eye.w().handle(u), u.order.slot));
  if (eye.own(u) && u.order.type == OrderType::CastUnit)
    if (const std::uint32_t target = eye.handle(u.order.target)) out.number(101, target);
  out.flag(102, true);
}

}  // namespace

int unit_type_number(UnitKind kind) {
  switch (kind) {
    case UnitKind::Hero:
      return 1;
    case UnitKind::LaneCreep:
      return 3;
    case UnitKind::Neutral:
      return 4;
    case UnitKind::Roshan:
      return 5;
    case UnitKind::Tower:
      return 6;
    case UnitKind::Barracks:
      return 7;
    case UnitKind::Shrine:
      return 8;
    case UnitKind::Fort:
      return 9;
    case UnitKind::Filler:
    case UnitKind::Fountain:
      return 10;
    case UnitKind::Courier:
      return 11;
    case UnitKind::Ward:
      return 12;
    default:
      return 0;  // summons: INVALID, as in recordings of 2017
  }
}

void write_unit(WireWriter& out, const BotEye& eye, const Unit& u) {
  const World& w = eye.w();
  const UnitDef& def = eye.c.tables.units[u.type];
  const int ground = std::max(elevation(*eye.c.tables.map, u.pos), 0) * 128;
  out.number(1, bot_handle(w.handle(u)));
  out.signed_number(2, unit_type_number(u.kind));
  out.text(3, def.name);
  out.number(4, team_number(u.team));
  out.signed_number(5, u.hero >= 0 ? w.heroes[u.hero].level : def.level);
  write_place(out, 6, eye, u.pos);
  out.flag(7, u.alive);
  out.signed_number(8, player_of(w, u));
  out.whole(10, u.radius);
  out.signed_number(11, degrees_of(u.facing));
  out.signed_number(12, ground);
  out.whole(15, u.vision_day);
  out.whole(16, u.vision_night);
  out.number(20, u.alive ? points(u.hp) : 0);
  out.number(21, points(u.max_hp));
  out.real(22, u.hp_regen);
  out.number(25, points(u.mana));
  out.number(26, points(u.max_mana));
  out.real(27, u.mana_regen);
  out.whole(30, def.move_speed);
  out.whole(31, u.move_speed);
  out.signed_number(35, activity_of(eye, u));
  out.real(36, cycle_of(eye, u));
  write_attack(out, eye, u, def);
  out.whole(60, u.hero >= 0 ? eye.c.tables.rules.xp_for_level[w.heroes[u.hero].level - 1u] : def.xp);
  out.whole(61, def.gold_min + u.extra_gold);
  out.whole(62, def.gold_max + u.extra_gold);
  out.flag(65, u.alive && u.act == Act::Channel);
  write_flags(out, eye, u);
  write_abilities(out, eye, u);
  write_items(out, eye, u);
  write_modifiers(out, eye, u);
  write_incoming_projectiles(out, eye, u);
  const bool acts = u.kind == UnitKind::Hero || u.kind == UnitKind::Summon;
  out.number(100, static_cast<std::uint64_t>(acts && u.alive ? action_of(u, eye.own(u)) : BotAction::None));
  write_use(out, eye, u);
  out.real(116, u.armor);
  out.real(117, u.magic_resist);
  out.real(118, u.evasion);
  if (u.hero >= 0) write_hero(out, eye, u);
  if (u.expires != 0) out.real(130, std::max(u.expires - w.time, 0.0f));
  if (u.kind == UnitKind::Courier) out.flag(140, u.type == eye.c.tables.game->flying_courier_unit);
  if (u.kind != UnitKind::Shrine) return;
  out.real(150, std::max(u.shrine_ready - w.time, 0.0f));
  out.flag(151, !w.due(u.shrine_until));
}

}  // namespace dota
