// Projectiles and zones of a world state.
#include <cmath>

#include "map/vision.hpp"
#include "play/world_state.hpp"

namespace dota {
namespace {

// Who caused it, as far as the team sees him, and by which ability. Each message has its own numbers for it.
struct CasterFields {
  std::uint32_t handle, type, player, ability_handle, ability;
};

void write_caster(WireWriter& out, const BotEye& eye, const CasterFields& field, Handle caster, int ability) {
  const Unit* u = eye.listed(caster);
  if (u) out.number(field.handle, bot_handle(caster));
  // Its looks show the kind of its sender, even of one out of sight.
  if (const Unit* sender = eye.w().get(caster)) out.signed_number(field.type, unit_type_number(sender->kind));
  out.signed_number(field.player, u ? player_of(eye.w(), *u) : -1);
  const int slot = u ? slot_with(eye, *u, ability) : -1;
  if (slot >= 0) out.number(field.ability_handle, bot_ability_handle(caster, slot));
  if (const std::uint64_t number = ability_number(eye.c.tables, ability)) out.number(field.ability, number);
}

bool seen(const BotEye& eye, int team, Vec2 at) { return team == eye.team || cell_visible(eye.w(), eye.team, at); }

}  // namespace

void write_incoming_projectiles(WireWriter& out, const BotEye& eye, const Unit& u) {
  const World& w = eye.w();
  const Handle target = w.handle(u);
  for (int i = 0; i < w.projectiles_end; ++i) {
    const Projectile& p = w.projectiles[i];
    if (p.kind != Projectile::Kind::Attack && p.kind != Projectile::Kind::Homing) continue;
    if (p.target != target || p.disjointed || !seen(eye, p.team, p.pos)) continue;
    out.message(93, [&] {
      write_caster(out, eye, {1, 9, 2, 3, 4}, p.source, p.ability);
      write_place(out, 5, eye, p.pos);
      out.whole(6, p.speed);
      out.flag(7, true);
      out.flag(8, p.kind == Projectile::Kind::Attack);
    });
  }
}

void write_linear_projectiles(WireWriter& out, const BotEye& eye) {
  const World& w = eye.w();
  for (int i = 0; i < w.projectiles_end; ++i) {
    const Projectile& p = w.projectiles[i];
    if (p.kind != Projectile::Kind::Linear && p.kind != Projectile::Kind::Point) continue;
    if (!seen(eye, p.team, p.pos)) continue;
    out.message(15, [&] {
      out.number(1, bot_handle({static_cast<std::int16_t>(i), p.generation}));
      write_caster(out, eye, {2, 9, 3, 4, 5}, p.source, p.ability);
      write_place(out, 6, eye, p.pos);
      out.message(7, [&] {
        out.real(1, p.direction.x * p.speed);
        out.real(2, p.direction.y * p.speed);
        out.real(3, 0);
      });
      out.whole(8, p.w0);
    });
  }
}

void write_avoidance_zones(WireWriter& out, const BotEye& eye) {
  for (const Area& a : eye.w().areas_in_use()) {
    if (!a.active || !seen(eye, a.team, a.pos)) continue;
    out.message(16, [&] {
      write_place(out, 1, eye, a.pos);
      write_caster(out, eye, {2, 7, 3, 4, 5}, a.owner, a.ability);
      out.whole(6, a.radius);
    });
  }
}

}  // namespace dota
