#include "effects/neutrals.hpp"
#include "world/game_rules.hpp"

namespace dota {
namespace {

void turn_on(const World& w, Unit& u, const Unit& attacker) {
  u.aggro_target = w.handle(attacker);
  if (attacker.hero >= 0)
    u.drawn_by = attacker.hero;
  else if (distance(u.pos, u.spawn) <= kCalmNear)
    u.drawn_by = -1;
}

}  // namespace

void neutral_hurt(Context& c, Unit& neutral, Unit& attacker) {
  World& w = c.world;
  const float until = w.time + c.tables.game->neutral_chase;
  if (neutral.camp < 0) {
    turn_on(w, neutral, attacker);
    neutral.aggro_until = until;
    return;
  }
  each_unit<UnitKind::Neutral>(w, [&](Unit& u) {
    if (u.camp != neutral.camp || !u.alive) return;
    const bool busy = &u != &neutral && w.get(u.aggro_target) && !w.due(u.aggro_until);
    if (!busy) turn_on(w, u, attacker);
    u.aggro_until = until;
  });
}

void camp_member_died(Context& c, const Unit& neutral) {
  if (neutral.camp < 0) return;
  Camp& camp = c.world.camps[neutral.camp];
  if (camp.living > 0) --camp.living;
}

}  // namespace dota
