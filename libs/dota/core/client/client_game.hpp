// What a policy sees of a game that a client plays, in the form in which it sees a simulated one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/shadow.hpp"
#include "view/encoder.hpp"

namespace dota {

// A hero's choice with the client's handles.
struct ClientCommand {
  int action = 0, delay = 0, dx = 0, dy = 0;
  std::uint32_t target = 0, teleport = 0;  // 0: none
};

class ClientGame {
 public:
  // Throws std::invalid_argument for a setup that shows what no client says (GameSettings::hide_unseen).
  ClientGame(std::shared_ptr<const GameSetup> setup, ClientIds ids);

  // Takes the next frame. Returns an empty string, or why it is refused; the game then stays as it is, and the
  // next frame brings it up again.
  std::string update(std::string_view frame);
  // Writes the observation and the choices of the team. Call after an update.
  void encode(const TeamStepBuffers& out);
  // Decodes actions int16 [H, 6] by the present choices and remembers them: observations show the last ones.
  std::vector<ClientCommand> choose(const std::int16_t* actions);
  // Remembers choices that were made elsewhere, one a hero.
  void remember(const std::vector<ClientCommand>& commands);

  const GameSetup& setup() const { return *setup_; }
  const Shadow& shadow() const { return shadow_; }
  bool begun() const { return frames_ > 0; }
  std::uint64_t frames() const { return frames_; }
  std::uint64_t refused() const { return refused_; }
  std::uint64_t unknown_fields() const { return unknown_fields_; }
  // The client's handle of each unit slot of the observation, 0: empty.
  std::vector<std::uint32_t> slot_handles() const;
  std::vector<std::uint32_t> hero_handles() const;  // of the own heroes, 0: not known

 private:
  std::uint32_t handle_of(Handle h) const;

  std::shared_ptr<const GameSetup> setup_;
  Shadow shadow_;
  Encoder encoder_;
  WorldState state_;
  std::uint64_t frames_ = 0, refused_ = 0, unknown_fields_ = 0;
};

}  // namespace dota
