#include "bots/bots.hpp"

namespace dota {

bool bot_built(BotKind kind) { return kind == BotKind::Policy || kind == BotKind::Random; }

void bot_command(BotKind kind, const TeamView& view, const SlotTable& slots, const Choices& choices, BotMemory& memory,
                 Rng& rng, std::array<Command, 5>& out) {
  (void)memory;
  if (kind == BotKind::Random) random_command(view, slots, choices, rng, out);
}

}  // namespace dota
