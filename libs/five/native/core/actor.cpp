#include "actor.hpp"

#include <algorithm>

#include "row_math.hpp"

namespace five {

namespace {

constexpr std::size_t kBlock = 64;  // Rows of heroes whose gates fit in a near cache.

// Writes the LSTM's input to `out` [steps][heroes][`stride`].
void join_inputs(const PolicyNet& net, const TrunkOutput& trunk, std::size_t steps, float* out,
                 std::size_t stride) {
  const std::size_t heroes = net.heroes, width = net.join.out(), rows = steps * heroes;
  // The team's half goes into its first hero's row and is copied to the other heroes.
  net.join(trunk.team.data(), net.join.in(), steps, out, heroes * stride);
  for (std::size_t r = 0; r < rows; ++r)
    if (r % heroes != 0) std::copy_n(out + (r - r % heroes) * stride, width, out + r * stride);
  net.join_private(trunk.hero.data(), net.join_private.in(), rows, out, stride, true,
                   LinearLayer::Activation::kRelu);
  if (heroes == 1 || net.cross_hero_pooled == 0) return;
  const RowMath math = row_math(net.instructions);
  for (std::size_t s = 0; s < steps; ++s) {
    float* team = out + s * heroes * stride;
    for (std::size_t h = 1; h < heroes; ++h)
      math.max_into(team, team + h * stride, net.cross_hero_pooled);
    for (std::size_t h = 1; h < heroes; ++h)
      std::copy_n(team, net.cross_hero_pooled, team + h * stride);
  }
}

}  // namespace

void act(const PolicyNet& net, const ActorInput& input, const ActorOutput& output) {
  thread_local TrunkOutput trunk;
  thread_local std::vector<float> inputs, gates, logits;
  evaluate_trunk(net, input, trunk);
  const std::size_t rows = input.steps * net.heroes, width = net.gates.in(), units = net.gates.out() / 4;
  const std::size_t joined = net.join.out(), heads = net.heads.out();
  inputs.resize(rows * width);
  gates.resize(kBlock * 4 * units);
  logits.resize(kBlock * heads);
  join_inputs(net, trunk, input.steps, inputs.data(), width);
  for (std::size_t r = 0; r < rows; ++r)
    std::copy_n(input.h + r * units, units, inputs.data() + r * width + joined);
  std::copy_n(input.c, rows * units, output.c);
  const RowMath math = row_math(net.instructions);
  for (std::size_t first = 0; first < rows; first += kBlock) {
    const std::size_t count = std::min(kBlock, rows - first);
    net.gates(inputs.data() + first * width, width, count, gates.data(), 4 * units);
    for (std::size_t r = 0; r < count; ++r)
      math.lstm_cell(gates.data() + r * 4 * units, units, output.h + (first + r) * units,
                     output.c + (first + r) * units);
    net.heads(output.h + first * units, units, count, logits.data(), heads);
    choose_actions(net, input, trunk, logits.data(), first, first + count, output);
  }
}

}  // namespace five
