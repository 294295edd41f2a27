#include "play/play.hpp"

#include <stdexcept>
#include <string>

#include "effects/experience.hpp"
#include "effects/items.hpp"
#include "map/map_data.hpp"
#include "play/world_state.hpp"
#include "rules/inventory.hpp"
#include "rules/orders.hpp"
#include "rules/step.hpp"

namespace dota {
namespace {

constexpr std::size_t kQueued = 16;  // orders that wait for a hero
constexpr std::size_t kGiven = 64;   // orders to a hero in one frame
constexpr int kTries = 3;            // walks towards what an order is about, before it is given up

bool is_free(const Unit& u) {
  return u.order.type == OrderType::None && u.act != Act::Channel && u.act != Act::CastWindup;
}

}  // namespace

Play::Play(Game& game) : game_(&game) {
  sight_.look_before(game.world());
  sight_.look_after(game.world(), *game.setup().tables->map);
}

void Play::take(int i, bool held, bool buys, bool learns) {
  if (i < 0 || i >= kMaxHeroes || !hero(i).in_game) throw std::invalid_argument("no such hero plays");
  Seat& seat = seats_[i];
  seat.held = held;
  seat.buys = buys;
  seat.learns = learns;
  seat.changed = true;
  seat.ruled = seat.ruled || held;
  if (!held) seat.given.clear();
}

void Play::forget_skills(int i) {
  if (i < 0 || i >= kMaxHeroes || !hero(i).in_game) throw std::invalid_argument("no such hero plays");
  if (game_->world().frame != 0) throw std::logic_error("the game has begun");
  Context c = game_->context();
  dota::forget_skills(c, hero(i));
}

Refusal Play::order(int i, const PersonOrder& o) {
  if (i < 0 || i >= kMaxHeroes || !hero(i).in_game) return Refusal::Unknown;
  Seat& seat = seats_[i];
  if (!seat.held) return Refusal::NotHeld;
  if (game_->world().winner != Winner::None) return Refusal::GameOver;
  if (o.kind >= PersonKind::Count) return Refusal::Unknown;
  if (seat.given.size() >= kGiven) return Refusal::Busy;
  Context c = game_->context();
  Refusal r = Refusal::None;
  if (o.queue && moves_hero(o.kind)) {
    r = queueable(c, hero(i), o);
    if (r == Refusal::None && seat.queue.size() >= kQueued) r = Refusal::Full;
  } else {
    r = carry_out(c, hero(i), o, false).refusal;
  }
  if (r == Refusal::None) seat.given.push_back(o);
  return r;
}

void Play::begin(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers) {
  std::array<Command, kMaxHeroes> commands{};
  game_->choose(actions, controllers, commands);
  begin(commands);
}

void Play::begin(const std::array<Command, kMaxHeroes>& commands) {
  if (under_way()) throw std::logic_error("a timestep is under way: it has 4 frames");
  next_frame_ = 0;
  events_from_ = 0;
  commands_ = commands;
  for (Seat& seat : seats_)
    seat.ruled = seat.held;
  silence_ruled();
  over_ = game_->world().winner != Winner::None;
  if (over_) return;
  const GameState& s = game_->state();
  if (offered_.size() == kOffered) offered_.pop_back();
  offered_.push_front({{s.choices[0].available, s.choices[1].available}, s.slots});
  game_->remember(commands_);
  Context c = game_->context();
  begin_step(c);
}

// Of a hero that was held at any time of a timestep no command counts, so that it does not matter on which side of
// begin() it was taken.
void Play::silence_ruled() {
  for (std::size_t i = 0; i < kMaxHeroes; ++i)
    if (seats_[i].ruled) {
      commands_[i] = Command{};
      commands_[i].action = kNoop;
    }
}

void Play::choose(const std::int16_t* actions, const std::array<BotKind, kTeams>& controllers, int age) {
  if (!under_way()) throw std::logic_error("no timestep is under way: begin() is due");
  if (over_) return;
  if (age < 0 || age >= static_cast<int>(offered_.size()))
    throw std::invalid_argument("an observation of " + std::to_string(age) + " timesteps before is not kept; " +
                                std::to_string(offered_.size()) + " are, the present one included");
  const Offered& then = offered_[age];
  for (std::size_t t = 0; t < kTeams; ++t)
    if (controllers[t] == BotKind::Policy) game_->decode(actions, t, then.available[t], then.slots[t], commands_);
}

void Play::settle_seats() {
  Context c = game_->context();
  for (int i = 0; i < kMaxHeroes; ++i) {
    Seat& seat = seats_[i];
    if (!seat.changed) continue;
    seat.changed = false;
    seat.queue.clear();
    HeroState& h = hero(i);
    if (seat.held) h.pending = Command{};
    const bool bought = h.by_hand(), learned = h.learns_by_hand();
    const bool buys = seat.held && !seat.buys, learns = seat.held && !seat.learns;
    h.hand = static_cast<std::uint8_t>((h.hand & kWasByHand) | (buys ? kByHand | kWasByHand : 0) |
                                       (learns ? kLearnsByHand | kWasByHand : 0));
    if (bought && !buys) {
      h.items_changed = true;
      skip_owned(c, h);
    }
    if (learned && !learns) learn_skills(c, h);
  }
}

Outcome Play::execute(int i, const PersonOrder& o) {
  Context c = game_->context();
  Seat& seat = seats_[i];
  const Unit* u = game_->world().get(hero(i).unit);
  const float last_attack = u ? u->last_attack : 0;
  const Outcome done = carry_out(c, hero(i), o, true);
  if (done.refusal != Refusal::None || !moves_hero(o.kind)) return done;
  const bool once = o.kind == PersonKind::Attack && o.once;
  // Given again, an attack that has not been launched goes on.
  if (once && seat.once == o.target) return done;
  seat.once = once ? o.target : Handle{};
  seat.once_since = last_attack;
  return done;
}

// The order ends when the attack is launched.
void Play::stop_after_attack(int i) {
  Seat& seat = seats_[i];
  if (seat.once.index < 0) return;
  Unit* u = game_->world().get(hero(i).unit);
  const bool going = u && u->alive && u->order.type == OrderType::AttackUnit && u->order.target == seat.once;
  if (going && u->last_attack == seat.once_since) return;
  seat.once = Handle{};
  if (!going) return;
  Context c = game_->context();
  Order stop;
  stop.type = OrderType::Stop;
  issue_order(c, *u, stop);
}

void Play::carry_out_given(int i) {
  Seat& seat = seats_[i];
  for (const PersonOrder& o : seat.given) {
    if (o.queue && moves_hero(o.kind)) {
      if (seat.queue.size() < kQueued) seat.queue.push_back({o});
      continue;
    }
    const Outcome done = execute(i, o);
    if (!moves_hero(o.kind) || done.refusal != Refusal::None) continue;
    seat.queue.clear();
    if (done.again) seat.queue.push_front({o, 1});
  }
  seat.given.clear();
}

void Play::go_on_with_queue(int i) {
  Seat& seat = seats_[i];
  if (seat.queue.empty()) return;
  const Unit* u = game_->world().get(hero(i).unit);
  if (!u || !u->alive) return seat.queue.clear();
  while (!seat.queue.empty() && is_free(*u)) {
    Waiting next = seat.queue.front();
    seat.queue.pop_front();
    const Outcome done = execute(i, next.order);
    if (done.refusal != Refusal::None || !done.again) continue;
    if (++next.tries <= kTries) seat.queue.push_front(next);
    return;
  }
}

// Whom a hero follows it loses where its team does, and goes on to where he was last seen.
void Play::follow_the_seen(int i) {
  World& w = game_->world();
  Unit* u = seats_[i].held ? w.get(hero(i).unit) : nullptr;
  if (!u || u->order.type != OrderType::MoveTo || u->order.target.index < 0) return;
  Context c = game_->context();
  if (const Unit* leader = seen_unit(c, u->team, u->order.target))
    u->order.point = leader->pos;
  else
    u->order.target = Handle{};
}

bool Play::frame() {
  if (!under_way()) throw std::logic_error("no timestep is under way: begin() is due");
  World& w = game_->world();
  const int f = next_frame_++;
  const bool last = next_frame_ == kFramesPerStep;
  Context c = game_->context();
  if (bot_events_) c.damage_log = &bot_events_->damage_of_frame();
  if (!over_ && w.winner == Winner::None) {
    sight_.look_before(w);
    events_from_ = w.event_count;
    settle_seats();
    for (int i = 0; i < kMaxHeroes; ++i) {
      carry_out_given(i);
      go_on_with_queue(i);
      follow_the_seen(i);
    }
    step_frame(c, f);
    for (int i = 0; i < kMaxHeroes; ++i)
      stop_after_attack(i);
  } else {
    events_from_ = w.event_count;
  }
  if (last && !over_) {
    silence_ruled();
    game_->remember(commands_);
    end_step(c, commands_);
    game_->observe();
  }
  sight_.look_after(w, *c.tables.map);
  if (bot_events_) bot_events_->after_frame(c, sight_, events_from_);
  return last;
}

std::string Play::world_state(int team, const AbsentHeroes& absent) {
  if (!bot_events_) bot_events_ = std::make_unique<WorldStateEvents>(game_->world(), sight_);
  const Context c = game_->context();
  return write_world_state({c, game_->state().views[team], team}, bot_events_->take(team), absent);
}

}  // namespace dota
