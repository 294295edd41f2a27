#include "actor.hpp"

#include <algorithm>

#include "row_math.hpp"

namespace five {

namespace {

constexpr std::size_t kBlock = 64;  // rows of heroes whose gates a near cache holds

// What the LSTM is given, into `to` [steps][heroes][`stride`].
void join_inputs(const ActorNet& net, const Trunk& trunk, std::size_t steps, float* to, std::size_t stride) {
  const std::size_t heroes = net.heroes, width = net.join.out(), rows = steps * heroes;
  // Of the team into its first hero's row; from there to the others.
  net.join(trunk.of_team.data(), net.join.in(), steps, to, heroes * stride);
  for (std::size_t r = 0; r < rows; ++r)
    if (r % heroes != 0) std::copy_n(to + (r - r % heroes) * stride, width, to + r * stride);
  net.join_apart(trunk.of_hero.data(), net.join_apart.in(), rows, to, stride, true, Layer::After::kRelu);
  if (heroes == 1 || net.pooled == 0) return;
  const RowMaths maths = row_maths(net.with);
  for (std::size_t s = 0; s < steps; ++s) {
    float* team = to + s * heroes * stride;
    for (std::size_t h = 1; h < heroes; ++h)
      maths.raise(team, team + h * stride, net.pooled);
    for (std::size_t h = 1; h < heroes; ++h)
      std::copy_n(team, net.pooled, team + h * stride);
  }
}

}  // namespace

void act(const ActorNet& net, const ActorSeen& seen, const ActorDone& done) {
  thread_local Trunk trunk;
  thread_local std::vector<float> inputs, gates, said;
  walk_trunk(net, seen, trunk);
  const std::size_t rows = seen.steps * net.heroes, width = net.gates.in(), units = net.gates.out() / 4;
  const std::size_t joined = net.join.out(), heads = net.heads.out();
  inputs.resize(rows * width);
  gates.resize(kBlock * 4 * units);
  said.resize(kBlock * heads);
  join_inputs(net, trunk, seen.steps, inputs.data(), width);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(seen.h + r * units, units, inputs.data() + r * width + joined);
  std::copy_n(seen.c, rows * units, done.c);
  const RowMaths maths = row_maths(net.with);
  for (std::size_t first = 0; first < rows; first += kBlock) {
    const std::size_t count = std::min(kBlock, rows - first);
    net.gates(inputs.data() + first * width, width, count, gates.data(), 4 * units);
    for (std::size_t r = 0; r < count; ++r)
      maths.lstm_cell(gates.data() + r * 4 * units, units, done.h + (first + r) * units,
                      done.c + (first + r) * units);
    net.heads(done.h + first * units, units, count, said.data(), heads);
    choose(net, seen, trunk, said.data(), first, first + count, done);
  }
}

}  // namespace five
