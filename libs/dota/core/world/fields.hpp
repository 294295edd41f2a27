// The fields of a world's parts, each named once: for its hash and for the check of a foreign state. A visitor has
// all(fields...), and comes back here for those that have parts themselves.
#pragma once

#include "world/world.hpp"

namespace dota {

template <class V>
void fields(V& visit, const Vec2& v) {
  visit.all(v.x, v.y);
}
template <class V>
void fields(V& visit, const Handle& h) {
  visit.all(h.index, h.generation);
}
template <class V>
void fields(V& visit, const Rng& r) {
  visit.all(r.state);
}
template <class V>
void fields(V& visit, const Order& o) {
  visit.all(o.type, o.slot, o.target, o.point, o.tree);
}
template <class V>
void fields(V& visit, const StatChange& s) {
  visit.all(s.stat, s.value);
}
template <class V>
void fields(V& visit, const Command& c) {
  visit.all(c.action, c.delay, c.target, c.teleport, c.dx, c.dy);
}
template <class V>
void fields(V& visit, const AbilityState& a) {
  visit.all(a.id, a.level, a.charges, a.stacks, a.autocast, a.toggled, a.ready, a.next_charge);
}
template <class V>
void fields(V& visit, const ItemState& i) {
  visit.all(i.id, i.charges, i.toggle, i.on_courier, i.ready, i.enabled_at, i.stored_until, i.bought_at);
}
template <class V>
void fields(V& visit, const Loadout& k) {
  visit.all(k.used, k.abilities, k.items);
}
template <class V>
void fields(V& visit, const Pickup& p) {
  visit.all(p.present, p.kind, p.pos, p.until, p.known);
}
template <class V>
void fields(V& visit, const GroundItem& g) {
  visit.all(g.id, g.charges, g.pos);
}
template <class V>
void fields(V& visit, const Camp& c) {
  visit.all(c.next_spawn, c.last_set, c.living);
}
template <class V>
void fields(V& visit, const Fog& f) {
  visit.all(f.visible, f.true_sight);
}
template <class V>
void fields(V& visit, const Nav& n) {
  visit.all(n.blocked, n.buildings, n.ready, n.blocks, n.trees_down, n.next_regrow, n.head, n.next, n.prev,
            n.cell);
}
template <class V>
void fields(V& visit, const Unit& u) {
  visit.all(u.kind, u.team, u.hero, u.lane, u.tier, u.building, u.alive, u.type, u.generation, u.owner, u.pos,
            u.spawn, u.facing, u.hp, u.mana);
  visit.all(u.max_hp, u.max_mana, u.hp_regen, u.mana_regen, u.armor, u.magic_resist, u.move_speed, u.attack_speed,
            u.attack_interval, u.attack_point, u.attack_range, u.dmg_min, u.dmg_max, u.dmg_bonus, u.turn_rate,
            u.vision_day, u.vision_night, u.true_sight, u.evasion, u.miss, u.lifesteal, u.spell_amp,
            u.status_resist, u.heal_amp, u.attack_taken, u.dmg_dealt, u.dmg_taken, u.str, u.agi, u.intellect,
            u.radius, u.cooldown_red, u.mana_cost_red, u.cast_range, u.gold_per_10s, u.xp_bonus, u.spell_lifesteal,
            u.status, u.stats_dirty);
  visit.all(u.extra_hp, u.extra_dmg, u.extra_armor, u.extra_gold, u.extra_ms, u.extra_hp_regen, u.extra_mana_regen,
            u.extra_mr, u.extra_as, u.extra_attr, u.aura_armor);
  visit.all(u.order, u.queued, u.act, u.act_until, u.attack_ready, u.last_attack, u.last_damaged_by_player,
            u.shown_until, u.attack_target, u.last_attacker, u.aggro_target, u.aggro_until, u.aggro_ready,
            u.expires, u.hits_left, u.hits_hero, u.hits_tower, u.waypoint, u.camp, u.velocity);
  visit.all(u.path, u.path_goal, u.path_end, u.path_points, u.path_n, u.path_i, u.path_side, u.path_until);
  visit.all(u.loadout, u.modifiers, u.hp_history, u.shrine_ready, u.shrine_until, u.backdoor_until, u.backdoor_hp,
            u.credited, u.drawn_by, u.stacker, u.first_wave, u.paced_until, u.died_at);
}
template <class V>
void fields(V& visit, const Modifier& m) {
  visit.all(m.next, m.name, m.ability, m.node, m.source, m.until, m.start, m.next_tick, m.interval, m.per_tick,
            m.mana_per_tick, m.shield, m.share, m.gathered, m.drawn, m.hp_before, m.status, m.damage_type, m.level,
            m.stacks, m.flags, m.stats, m.owner, m.generation, m.counter, m.attacks_left, m.charges, m.phase,
            m.ready, m.anchor, m.motion, m.aim);
}
template <class V>
void fields(V& visit, const Projectile& p) {
  visit.all(p.kind, p.team, p.level, p.crit, p.disjointed, p.returning, p.jumps_left, p.generation, p.waits,
            p.source, p.target, p.pos, p.origin, p.direction, p.goal, p.speed, p.travelled, p.length, p.w0, p.w1,
            p.damage, p.ability, p.node, p.hit);
}
template <class V>
void fields(V& visit, const Area& a) {
  visit.all(a.active, a.generation, a.team, a.level, a.pulses, a.quadrant, a.at_home, a.to_come, a.blocks, a.extra,
            a.along, a.gathered, a.owner, a.follow, a.pos, a.radius, a.start, a.until, a.next_tick, a.interval,
            a.ability, a.node);
}
template <class V>
void fields(V& visit, const Delayed& d) {
  visit.all(d.active, d.team, d.level, d.step, d.owner, d.target, d.point, d.at, d.ability, d.node);
}
template <class V>
void fields(V& visit, const StackEnd& s) {
  visit.all(s.at, s.modifier, s.generation, s.count);
}
template <class V>
void fields(V& visit, const Arrival& a) {
  visit.all(a.anchor, a.at, a.hero);
}
template <class V>
void fields(V& visit, const HeroState& h) {
  visit.all(h.unit, h.def, h.level, h.ability_points, h.streak, h.skill_next, h.in_game, h.xp, h.gold, h.reliable,
            h.spent, h.income, h.upkeep, h.kills, h.deaths, h.assists, h.last_hits, h.denies, h.wards_placed,
            h.damage_dealt, h.respawn_at, h.death_penalty, h.buyback_ready, h.last_teleport, h.abilities, h.items,
            h.talents, h.build_next, h.build_id, h.build_skip, h.build_insert, h.keep, h.keep_until, h.recipe,
            h.secret_wish, h.recipe_on_courier, h.lanes_allowed, h.lanes_until, h.seen_pos, h.seen_at,
            h.damage_credit_until, h.hurt_by, h.pending, h.previous, h.prev_hp_frac, h.prev_mana_frac,
            h.courier_trips, h.fountain_until, h.shrine_until, h.aegis_expires, h.rising, h.skill_swaps,
            h.items_changed, h.passive_ticks);
}
template <class V>
void fields(V& visit, const TeamState& t) {
  visit.all(t.courier, t.fort, t.courier_respawn, t.glyph_ready, t.glyph_until, t.courier_seen, t.kills,
            t.towers_lost, t.super_melee, t.super_ranged, t.megas, t.stock, t.stock_next, t.courier_for,
            t.courier_state, t.tomes, t.arrivals, t.scan_ready, t.scan_until, t.scan_at, t.scan_found);
}

template <class V>
void fields(V& visit, const World& w) {
  visit.all(w.seed, w.rng, w.frame, w.step_index, w.time, w.winner, w.heroes_per_team, w.is_day, w.units,
            w.units_end, w.freed, w.loadouts, w.dropped, w.modifiers, w.modifier_free, w.modifiers_end,
            w.projectiles, w.projectiles_end, w.areas, w.delayed, w.stack_ends, w.stack_ends_count, w.heroes,
            w.teams, w.camps, w.pickups, w.ground, w.buildings_standing, w.tree_regrow, w.fog, w.nav, w.next_wave,
            w.waves, w.roshan_respawn, w.roshan_health_scale, w.roshan_died, w.roshan_kills, w.first_blood,
            w.next_power_rune, w.next_bounty, w.last_rune_kind);
}

// A new field of the state must be added above; then the size here is brought up to date.
static_assert(sizeof(Unit) == 576 && sizeof(Modifier) == 152 && sizeof(HeroState) == 808 &&
                  sizeof(TeamState) == 184,
              "a field was added to the state: name it above, then update this size");

}  // namespace dota
