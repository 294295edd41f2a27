#include "effects/orders.hpp"
#include "effects/abilities.hpp"

namespace dota {

Order idle_order(const Unit& u) {
  Order o;
  if (u.kind == UnitKind::LaneCreep && u.lane >= 0) o.type = OrderType::FollowLane;
  return o;
}

void take_order(Context& c, Unit& u, const Order& o) {
  if (u.act == Act::Channel) {
    channel_end(c, u, false);
    u.act = Act::Idle;
    u.order = Order{};
  }
  if (is_cast(o.type)) {
    if (!is_cast(u.order.type)) u.queued = u.order;
  } else {
    u.queued = Order{};
  }
  if (u.act == Act::CastWindup) u.act = Act::Idle;
  if (u.act == Act::AttackWindup && !(o.type == OrderType::AttackUnit && o.target == u.attack_target))
    u.act = Act::Idle;
  u.order = o;
  if (o.type == OrderType::Stop || o.type == OrderType::None) {
    u.order = idle_order(u);
    u.attack_target = Handle{};
    stop_motion(u);
  }
}

}  // namespace dota
