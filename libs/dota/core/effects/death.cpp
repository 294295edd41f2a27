#include <algorithm>

#include "effects/abilities.hpp"
#include "effects/building_death.hpp"
#include "effects/damage.hpp"
#include "effects/experience.hpp"
#include "effects/gold.hpp"
#include "effects/items.hpp"
#include "effects/modifiers.hpp"
#include "effects/neutrals.hpp"
#include "effects/running.hpp"
#include "effects/triggers.hpp"
#include "effects/units.hpp"
#include "map/map_data.hpp"
#include "map/spatial.hpp"
#include "world/events.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

// Seconds for which having hurt a hero counts as having taken part in his death. Not in the data; the game's
// value.
constexpr float kAssistWindow = 20;

// The hero behind a unit: itself or its summon's or ward's owner.
HeroState* hero_of(World& w, const Unit* u) {
  if (!u) return nullptr;
  if (u->hero < 0) u = w.get(u->owner);
  return u && u->hero >= 0 ? &w.heroes[u->hero] : nullptr;
}

int index_of(const World& w, const HeroState& h) { return static_cast<int>(&h - w.heroes.data()); }
int team_of(const World& w, const HeroState& h) { return index_of(w, h) / 5; }

// The living heroes of a team within `radius` of p, as indices; returns how many.
int heroes_near(const World& w, int team, Vec2 p, float radius, std::array<int, 5>& out) {
  int n = 0;
  for (int i = team * 5; i < team * 5 + 5; ++i) {
    const HeroState& h = w.heroes[i];
    const Unit* u = h.in_game ? w.get(h.unit) : nullptr;
    if (u && u->alive && distance(u->pos, p) <= radius) out[n++] = i;
  }
  return n;
}

void share_xp(Context& c, int team, Vec2 p, float xp) {
  std::array<int, 5> near;
  const int n = heroes_near(c.world, team, p, c.tables.rules.xp_radius, near);
  for (int k = 0; k < n; ++k)
    give_xp(c, c.world.heroes[near[k]], xp / static_cast<float>(n));
}

float team_net_worth(const Context& c, int team) {
  float sum = 0;
  for (int i = team * 5; i < team * 5 + 5; ++i)
    if (c.world.heroes[i].in_game) sum += net_worth(c, c.world.heroes[i]);
  return sum;
}

// Place of a hero among the given ones by net worth, richest 0; ties by index.
int richness(const Context& c, const int* heroes, int n, int hero) {
  const float own = net_worth(c, c.world.heroes[hero]);
  int place = 0;
  for (int k = 0; k < n; ++k) {
    if (heroes[k] == hero) continue;
    const float other = net_worth(c, c.world.heroes[heroes[k]]);
    if (other > own || (other == own && heroes[k] < hero)) ++place;
  }
  return place;
}

float streak_xp(const GameRules& g, int streak) {
  if (g.streak_xp_hi <= 0 || streak < g.streak_lo) return 0;
  const int n = std::min(streak, g.streak_hi);
  return g.streak_xp_lo + (g.streak_xp_hi - g.streak_xp_lo) * static_cast<float>(n - g.streak_lo) /
                              static_cast<float>(g.streak_hi - g.streak_lo);
}

// Gold and experience for the heroes near a hero's death (rules.json gold.hero_kill_area, experience.hero_kill).
// The recipients' rank factors run from the poorest to the richest, the victim's from the richest to the poorest.
void reward_area(Context& c, const HeroState& victim, const Unit& body, int team, HeroState* killer) {
  const GameRules& g = *c.tables.game;
  World& w = c.world;
  std::array<int, 5> near;
  int n = heroes_near(w, team, body.pos, g.area_radius, near);
  const int killer_index = killer ? index_of(w, *killer) : -1;
  if (killer && std::find(near.begin(), near.begin() + n, killer_index) == near.begin() + n && n < 5)
    near[n++] = killer_index;
  if (n == 0) return;

  const int own_team = 1 - team;
  std::array<int, 5> mates;
  int count = 0;
  for (int i = own_team * 5; i < own_team * 5 + 5; ++i)
    if (w.heroes[i].in_game) mates[count++] = i;
  const float victim_factor = g.victim_rank[richness(c, mates.data(), count, index_of(w, victim))];
  const bool behind = team_net_worth(c, team) < team_net_worth(c, own_team);
  const float comeback =
      behind ? (g.comeback_frac * net_worth(c, victim) + g.comeback_base) / static_cast<float>(n) : 0;
  const auto& [base, per_level] = g.area[n - 1];
  const float level = static_cast<float>(victim.level);
  std::array<float, 5> gold{};
  for (int k = 0; k < n; ++k) {
    const int poorness = n - 1 - richness(c, near.data(), n, near[k]);
    gold[k] = victim_factor * g.killer_rank[n - 1][poorness] * (base + per_level * level + comeback);
  }
  for (int k = 0; k < n; ++k)
    give_gold(c, w.heroes[near[k]], gold[k], true);

  const int sharers = heroes_near(w, team, body.pos, c.tables.rules.xp_radius, near);
  if (sharers == 0) return;
  float each;
  if (!g.hero_xp_c1.empty()) {  // 7.19: by level and by how far the team is behind
    float own_xp = 0, enemy_xp = 0;
    for (int i = 0; i < kMaxHeroes; ++i)
      (i / 5 == team ? own_xp : enemy_xp) += w.heroes[i].xp;
    const float behind_xp = own_xp + enemy_xp > 0 ? victim.xp * (enemy_xp - own_xp) / (enemy_xp + own_xp) : 0;
    const int k = sharers - 1;
    each = g.hero_xp_c1[k] * level + g.hero_xp_c2[k] * std::max(0.0f, behind_xp);
  } else {
    each =
        (g.hero_xp_base + g.hero_xp_frac * victim.xp + streak_xp(g, victim.streak)) / static_cast<float>(sharers);
  }
  for (int k = 0; k < sharers; ++k)
    give_xp(c, w.heroes[near[k]], each);
}

// The hero who gets the kill: the killer's own, or else the last enemy to have hurt the victim.
HeroState* kill_credit(Context& c, const HeroState& victim, Unit* killer, int team) {
  World& w = c.world;
  HeroState* k = hero_of(w, killer);
  if (k && team_of(w, *k) == team) return k;
  if (k) return nullptr;  // denied
  int best = -1;
  for (int i = team * 5; i < team * 5 + 5; ++i) {
    const float at = victim.hurt_by[i];
    if (!w.due(at + kAssistWindow) && (best < 0 || at > victim.hurt_by[best])) best = i;
  }
  return best < 0 ? nullptr : &w.heroes[best];
}

void hero_death(Context& c, Unit& body, Unit* killer) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  HeroState& h = w.heroes[body.hero];
  const int enemy = 1 - body.team;
  ++h.deaths;
  record_event(c, EventKind::HeroDeath, body, killer);
  HeroState* k = kill_credit(c, h, killer, enemy);
  const bool denied = killer && killer->team == body.team;  // by himself, too

  const float loss = g.death_base + net_worth(c, h) / g.death_divisor;
  // Nobody is paid, and nothing is scored, for a hero that neutrals killed with no enemy's part in it.
  if (k || (killer && killer->team == enemy)) {
    w.teams[enemy].kills++;
    reward_area(c, h, body, enemy, k);
  }
  if (k) {
    float gold = g.kill_base + g.kill_per_level * static_cast<float>(h.level) +
                 g.streak_gold[std::min<std::size_t>(h.streak, g.streak_gold.size() - 1)];
    if (!w.first_blood) {
      gold += g.first_blood;
      w.first_blood = true;
    }
    give_gold(c, *k, gold, true);
    ++k->kills;
    k->streak = static_cast<std::uint8_t>(std::min(k->streak + 1, 255));
    record_hero_event(c, EventKind::HeroKill, *k, &body, -1, gold);
  }
  for (int i = enemy * 5; i < enemy * 5 + 5 && !denied; ++i) {
    HeroState& mate = w.heroes[i];
    if (&mate != k && mate.in_game && !w.due(h.hurt_by[i] + kAssistWindow)) {
      ++mate.assists;
      record_hero_event(c, EventKind::Assist, mate, &body);
    }
  }
  h.gold = std::max(0.0f, h.gold - loss);
  h.streak = 0;
  h.hurt_by.fill(-99);
  float penalty = h.death_penalty - stat_sum(w, body, Stat::RespawnRed);
  each_modifier(c, body, [&](Modifier& m, const EffectNode& n, int) {
    if (n.prim == Prim::RespawnAdd) penalty += number(c, invocation_of(c, m), n, Role::Amount);
  });
  h.respawn_at = w.time + c.tables.rules.respawn_s[h.level - 1] + penalty;
  h.death_penalty = 0;
}

void creep_death(Context& c, Unit& victim, Unit* killer) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const UnitDef& def = c.tables.units[victim.type];
  HeroState* k = hero_of(w, killer);
  const bool denied = killer && killer->team == victim.team;
  const float bounty = def.gold_min +
                       static_cast<float>(w.rng.below(static_cast<int>(def.gold_max - def.gold_min) + 1)) +
                       victim.extra_gold;
  float xp = def.xp;
  if (victim.kind == UnitKind::Roshan) xp += g.roshan_xp_min * std::max(0.0f, w.time) / 60;
  const int team = victim.team < kTeams ? 1 - victim.team : (killer && killer->team < kTeams ? killer->team : -1);
  if (k && denied) {
    ++k->denies;
    record_hero_event(c, EventKind::Deny, *k, &victim);
    give_gold(c, *k, bounty * g.deny_denier_gold_frac, false);
    share_xp(c, victim.team, victim.pos, xp * g.deny_denier_xp_frac);
  } else if (k) {
    ++k->last_hits;
    record_hero_event(c, EventKind::LastHit, *k, &victim, -1, bounty);
    give_gold(c, *k, bounty, false);
    if (victim.stacker >= 0 && victim.stacker != index_of(w, *k) && victim.stacker / 5 == team_of(w, *k))
      give_gold(c, w.heroes[victim.stacker], bounty * g.stack_bonus, false);
  }
  if (team >= 0) share_xp(c, team, victim.pos, denied && k ? xp * c.tables.rules.deny_enemy_xp_frac : xp);
}

void ward_death(Context& c, const Unit& victim, Unit* killer) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  HeroState* k = hero_of(w, killer);
  if (!k || killer->team == victim.team || c.tables.units[victim.type].gold_max <= 0) return;
  const float minute = std::max(0.0f, w.time) / 60;
  give_gold(c, *k, g.ward_gold + g.ward_gold_min * std::floor(minute), false);
  give_xp(c, *k, g.ward_xp + g.ward_xp_min * std::floor(minute));
}

void courier_death(Context& c, Unit& victim, const Unit* killer) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  const bool flying = c.tables.units[victim.type].move_cap == MoveCap::Fly;
  team_gold(c, 1 - victim.team, flying ? g.courier_gold_flying : g.courier_gold);
  record_event(c, EventKind::CourierDeath, victim, killer);
  TeamState& t = w.teams[victim.team];
  t.courier = Handle{};
  t.courier_for = Handle{};
  t.courier_state = 0;
  t.courier_respawn = w.time + g.courier_respawn;
}

// Returns the unit that claims the death by a modifier (Reaper's Scythe), else the killer.
Unit* killer_by_claim(Context& c, Unit& victim, Unit* killer) {
  each_modifier(c, victim, [&](Modifier& m, const EffectNode& n, int) {
    Unit* claims = n.prim == Prim::RespawnAdd ? c.world.get(m.source) : nullptr;
    if (claims) killer = claims;
  });
  return killer;
}

}  // namespace

namespace {

// Switches off the abilities and items of a hero who dies.
void switch_off(Context& c, HeroState& h) {
  for (AbilityState& a : h.abilities)
    a.toggled = false;
  for (ItemState& i : h.items) {
    const int ability = i.id < 0 ? -1 : c.tables.items[i.id].ability;
    if (ability >= 0 && program_of(c, ability).has(Trigger::Toggle)) i.toggle = 0;
  }
}

}  // namespace

bool reincarnate(Context& c, Unit& hero) {
  World& w = c.world;
  const GameRules& g = *c.tables.game;
  HeroState& h = w.heroes[hero.hero];
  for (int slot = 0; slot < kInventory; ++slot) {
    if (g.aegis_item < 0 || h.items[slot].id != g.aegis_item) continue;
    take_item(c, h, slot);
    switch_off(c, h);
    hero.alive = false;
    touch_unit(w, w.handle(hero).index);
    hero.hp = 0;
    hero.died_at = w.time;
    hero.act = Act::Dead;
    hero.order = hero.queued = Order{};
    clear_modifiers(c, hero);
    disjoint(c, hero);
    hero.status = 0;
    hero.velocity = Vec2{};
    h.rising = true;
    h.respawn_at = w.time + g.aegis_delay;
    return true;
  }
  return false;
}

void kill(Context& c, Unit& victim, Unit* killer) {
  if (!victim.alive) return;
  World& w = c.world;
  killer = killer_by_claim(c, victim, killer);
  if (victim.act == Act::Channel) channel_end(c, victim, false);
  if (victim.kind == UnitKind::Hero && reincarnate(c, victim)) {
    record_event(c, EventKind::Reincarnation, victim, killer);
    return;
  }
  victim.alive = false;
  touch_unit(w, w.handle(victim).index);
  victim.hp = 0;
  victim.died_at = w.time;
  victim.order = victim.queued = Order{};
  victim.act = Act::Dead;
  victim.attack_target = victim.aggro_target = Handle{};
  switch (victim.kind) {
    case UnitKind::Hero:
      hero_death(c, victim, killer);
      break;
    case UnitKind::LaneCreep:
    case UnitKind::Neutral:
    case UnitKind::Summon:
      record_event(c, EventKind::UnitDeath, victim, killer);
      creep_death(c, victim, killer);
      break;
    case UnitKind::Roshan:
      record_event(c, EventKind::RoshanDeath, victim, killer, -1, static_cast<float>(w.roshan_kills + 1));
      creep_death(c, victim, killer);
      roshan_died(c, victim, killer);
      break;
    case UnitKind::Ward:
      record_event(c, EventKind::WardDeath, victim, killer);
      ward_death(c, victim, killer);
      break;
    case UnitKind::Courier:
      courier_death(c, victim, killer);
      break;
    case UnitKind::None:
      break;
    default:
      building_death(c, victim, killer, killer && killer->team == victim.team ? nullptr : hero_of(w, killer));
      break;
  }
  if (killer && killer->alive) on_kill(c, *killer, victim);
  on_death(c, victim, killer);
  drop_items(c, victim);
  if (victim.kind == UnitKind::Neutral) camp_member_died(c, victim);
  if (victim.kind == UnitKind::Hero) {
    switch_off(c, w.heroes[victim.hero]);
    clear_modifiers(c, victim);
    disjoint(c, victim);
    victim.status = 0;
    victim.velocity = Vec2{};
  } else if (victim.kind != UnitKind::None) {
    remove_unit(c, victim);
  }
}

}  // namespace dota
