// A game that people play in: engine frame by engine frame, their heroes by their orders, the others by policies
// and bots, a timestep at a time.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "play/person_order.hpp"
#include "play/team_sight.hpp"
#include "play/world_state.hpp"
#include "play/world_state_events.hpp"
#include "vec/game.hpp"

namespace dota {

class Play {
 public:
  static constexpr int kOffered = 8;  // timesteps, the present one included, whose observations may be answered

  explicit Play(Game& game);

  // Takes the hero from policies and bots, or gives it back, from the next frame on. While it is held, scripts buy
  // and carry items for it only if `buys`, and learn its skills only if `learns`. Throws std::invalid_argument for
  // a hero that does not play.
  void take(int hero, bool held, bool buys, bool learns);
  // Gives back the ability points that the hero's script spent at the start, before the first frame. Throws
  // std::logic_error after it, and as take().
  void forget_skills(int hero);
  // Looked at now, carried out when the next frame begins.
  Refusal order(int hero, const PersonOrder& o);
  // Begins a timestep by what policies and bots choose, or by commands that are already resolved. Throws
  // std::logic_error while one is under way; frame() when none is.
  void begin(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers);
  void begin(const std::array<Command, kMaxHeroes>& commands);
  // What policies chose from the observations that a timestep began with, `age` timesteps before the present one,
  // at any time before the present one's last frame: their commands take effect in the next timestep, as those
  // given to begin() do. An action names what its own observation offered. Throws as frame(), and
  // std::invalid_argument for an age that is not kept.
  void choose(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers, int age = 0);
  bool frame();  // true: it was the timestep's last; views are new, observations are to be written
  // What the team sees now as CMsgBotWorldState, with the events since its previous one; those before the first
  // one of either team are left out. `absent`: as in write_world_state().
  std::string world_state(int team, const AbsentHeroes& absent);
  bool under_way() const { return next_frame_ < kFramesPerStep; }

  const std::array<Command, kMaxHeroes>& commands() const { return commands_; }
  const TeamSight& sight() const { return sight_; }
  const Game& game() const { return *game_; }
  int events_from() const { return events_from_; }  // the first of World::events of the last frame

 private:
  // What a timestep's observations offered both teams.
  struct Offered {
    std::array<Available, kTeams> available;
    std::array<SlotTable, kTeams> slots;
  };
  struct Waiting {
    PersonOrder order;
    int tries = 0;
  };
  struct Seat {
    bool held = false, buys = false, learns = false, changed = false;
    bool ruled = false;              // held at some time of this timestep
    std::vector<PersonOrder> given;  // since the last frame
    std::deque<Waiting> queue;       // for when the hero has done what it does
    Handle once;                     // whom it attacks once
    float once_since = 0;            // last_attack when that began
  };

  void silence_ruled();
  void settle_seats();
  void carry_out_given(int hero);
  void go_on_with_queue(int hero);
  void follow_the_seen(int hero);
  Outcome execute(int hero, const PersonOrder& o);
  void stop_after_attack(int hero);
  HeroState& hero(int i) { return game_->world().heroes[i]; }

  Game* game_;
  std::array<Seat, kMaxHeroes> seats_{};
  std::array<Command, kMaxHeroes> commands_{};
  std::deque<Offered> offered_;  // the present timestep's first
  TeamSight sight_;
  std::unique_ptr<WorldStateEvents> bot_events_;  // once somebody asked for a world state
  int next_frame_ = kFramesPerStep, events_from_ = 0;
  bool over_ = false;
};

}  // namespace dota
