#include "client/client_game.hpp"

#include <algorithm>
#include <stdexcept>

#include "client/world_state_reader.hpp"

namespace dota {

ClientGame::ClientGame(std::shared_ptr<const GameSetup> setup, ClientIds ids)
    : setup_(std::move(setup)), shadow_(*setup_, std::move(ids)), encoder_(setup_->layout) {
  if (!setup_->settings.hide_unseen)
    throw std::invalid_argument("hide_unseen is off: a client does not say what it would show; set it");
}

std::string ClientGame::update(std::string_view frame) {
  std::string refused = read_world_state(frame, state_);
  int steps = -1;
  if (refused.empty()) {
    unknown_fields_ += state_.unknown_fields;
    steps = shadow_.apply(state_);
    if (steps < 0) refused = "the frame has no heroes: the game has not begun";
  }
  if (!refused.empty()) {
    ++refused_;
    return refused;
  }
  Game& game = shadow_.game();
  const int team = shadow_.team();
  TeamView& view = game.view(team);
  if (steps == 0)
    for (int t = 0; t < kTeams; ++t)
      reset_view(game.view(t), setup_->constants, t, setup_->layout.table.mirror_dire && t == kDire);
  // Timesteps without a frame: what was seen before them and is seen after them was seen in them.
  for (int k = 1; k < std::min(steps, kHistory); ++k)
    for (std::uint16_t& bits : view.seen_bits)
      bits = static_cast<std::uint16_t>(bits << 1 | (bits & 1));
  game.look();
  shadow_.adjust(view);
  game.offer();
  ++frames_;
  return {};
}

void ClientGame::encode(const TeamStepBuffers& out) { shadow_.game().encode(shadow_.team(), encoder_, out); }

std::uint32_t ClientGame::handle_of(Handle h) const {
  const World& w = shadow_.game().state().world;
  return w.get(h) ? shadow_.handles().handle_of(h.index) : 0;
}

std::vector<ClientCommand> ClientGame::choose(const std::int16_t* actions) {
  Game& game = shadow_.game();
  const std::size_t team = shadow_.team();
  std::vector<std::int16_t> both(kTeams * setup_->settings.heroes_per_team * kActionParts, 0);
  const std::size_t own = both.size() / kTeams;
  std::copy_n(actions, own, both.begin() + static_cast<std::ptrdiff_t>(team * own));
  std::array<Command, kMaxHeroes> commands{};
  game.decode(both.data(), team, game.state().choices[team].available, game.state().slots[team], commands);
  game.remember(commands);
  std::vector<ClientCommand> out;
  for (int i = 0; i < setup_->settings.heroes_per_team; ++i) {
    const Command& c = commands[team * 5 + i];
    out.push_back({c.action, c.delay, c.dx, c.dy, handle_of(c.target), handle_of(c.teleport)});
  }
  return out;
}

void ClientGame::remember(const std::vector<ClientCommand>& commands) {
  std::array<Command, kMaxHeroes> out{};
  const std::size_t team = shadow_.team();
  const std::size_t n = std::min<std::size_t>(commands.size(), setup_->settings.heroes_per_team);
  for (std::size_t i = 0; i < n; ++i) {
    const ClientCommand& c = commands[i];
    Command& to = out[team * 5 + i];
    const bool known = c.action >= 0 && c.action < static_cast<int>(setup_->vocabulary.defs.size());
    to.action = static_cast<std::int16_t>(known ? c.action : 0);
    to.delay = static_cast<std::uint8_t>(std::clamp(c.delay, 0, kFramesPerStep - 1));
    to.dx = static_cast<std::int8_t>(std::clamp(c.dx, -4, 4));
    to.dy = static_cast<std::int8_t>(std::clamp(c.dy, -4, 4));
    to.target = shadow_.unit_of(c.target);
    to.teleport = shadow_.unit_of(c.teleport);
  }
  shadow_.game().remember(out);
}

std::vector<std::uint32_t> ClientGame::slot_handles() const {
  const SlotTable& slots = shadow_.game().state().slots[shadow_.team()];
  std::vector<std::uint32_t> out;
  for (int i = 0; i < slots.count; ++i)
    out.push_back(slots.unit[i] < 0 ? 0 : handle_of(slots.handle[i]));
  return out;
}

std::vector<std::uint32_t> ClientGame::hero_handles() const {
  const World& w = shadow_.game().state().world;
  std::vector<std::uint32_t> out;
  for (int i = 0; i < setup_->settings.heroes_per_team; ++i)
    out.push_back(handle_of(w.heroes[shadow_.team() * 5 + i].unit));
  return out;
}

}  // namespace dota
