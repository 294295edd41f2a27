#include "effects/modifiers.hpp"

namespace dota {

void apply_rune(Context& c, Unit& u, int kind) {
  const int i = kind - static_cast<int>(PickupKind::DoubleDamage);
  if (i < 0 || i >= static_cast<int>(c.tables.rune_abilities.size())) return;
  const int ability = c.tables.rune_abilities[static_cast<std::size_t>(i)];
  if (ability < 0) return;
  Invocation inv = invocation_of(c, u, ability, 1);
  run_trigger(c, inv, Trigger::Cast);
}

}  // namespace dota
