#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "actor.hpp"
#include "row_math.hpp"

namespace five {

namespace {

constexpr std::size_t kDelays = 4, kOffsets = 9, kSmallParts = 3, kActionParts = 6, kRanks = 5;
// Values of parts that an action does not read.
constexpr std::size_t kDefaultParts[kSmallParts] = {0, kOffsets / 2, kOffsets / 2};

// Returns the index of the largest of logp - noise, the first among equals. Null noise counts as zeros.
std::size_t sample(const float* logp, const float* noise, std::size_t n) {
  std::size_t best = 0;
  float largest = noise == nullptr ? logp[0] : logp[0] - noise[0];
  for (std::size_t i = 1; i < n; ++i) {
    const float here = noise == nullptr ? logp[i] : logp[i] - noise[i];
    if (here > largest) {
      largest = here;
      best = i;
    }
  }
  return best;
}

// Offset of each head in a row of the layer `heads`.
struct HeadOffsets {
  std::size_t key, unit, teleport, delay, offsets, splits, value, hidden, width;

  explicit HeadOffsets(const PolicyNet& net) {
    key = net.action.width;
    unit = key;
    teleport = unit + key;
    delay = teleport + key;
    offsets = delay + kDelays;
    splits = offsets + net.offset_pairs * 2 * kOffsets;
    width = net.win.in();
    hidden = net.heads.out() - 3 * width;
    value = hidden - 1;
  }
};

// Chooses the action of one hero at a time.
class ActionChooser {
 public:
  ActionChooser(const PolicyNet& net, const ActorInput& input, const TrunkOutput& trunk, const ActorOutput& output)
      : net_(net),
        input_(input),
        trunk_(trunk),
        output_(output),
        heads_(net),
        math_(row_math(net.instructions)),
        query_(heads_.key) {}

  void choose(std::size_t row, const float* logits) {
    const std::size_t step = row / net_.heroes, hero = row % net_.heroes;
    float logp = 0.0f;
    bool acts = false;
    const std::size_t slot = primary(row, logits, acts, logp);
    const std::size_t action = input_.available[row * net_.available + slot];
    std::size_t small[kSmallParts];
    small_parts(row, logits, action, acts, small, logp);
    const bool teleports = net_.actions.reads_teleport[action] != 0;
    bool has_target = false;
    const std::size_t unit = target(row, step, hero, logits, action, teleports, has_target, logp);

    std::int16_t* out = output_.actions + row * kActionParts;
    const std::size_t parts[kActionParts] = {slot,     small[0], teleports ? 0 : unit, teleports ? unit : 0,
                                             small[1], small[2]};
    for (std::size_t i = 0; i < kActionParts; ++i)
      out[i] = static_cast<std::int16_t>(parts[i]);
    output_.logp[row] = logp;
    output_.values[row] = logits[heads_.value];
    float* embedding = output_.target + row * heads_.key;
    if (has_target)
      std::copy_n(key_of(step, hero, unit), heads_.key, embedding);
    else
      std::fill_n(embedding, heads_.key, 0.0f);
  }

 private:
  const float* key_of(std::size_t step, std::size_t hero, std::size_t unit) const {
    const auto unit_row = static_cast<std::size_t>(trunk_.row_of[step * net_.units + unit]);
    return trunk_.keys.data() + (unit_row * net_.heroes + hero) * heads_.key;
  }

  std::size_t primary(std::size_t row, const float* logits, bool& acts, float& logp) {
    const std::uint16_t* ids = input_.available + row * net_.available;
    float* slot_logp = output_.primary + row * net_.available;
    for (std::size_t i = 0; i < net_.available; ++i) {
      if (ids[i] >= net_.action.vocabulary) throw std::out_of_range("act: an action id without an embedding");
      acts = acts || ids[i] != 0;
      slot_logp[i] =
          ids[i] == 0 ? kMasked : math_.dot(logits, net_.action.table.data() + ids[i] * heads_.key, heads_.key);
    }
    math_.log_softmax(slot_logp, net_.available);
    const std::size_t slot = sample(slot_logp, noise(0, row, net_.available), net_.available);
    if (acts) logp += slot_logp[slot];
    return slot;
  }

  void small_parts(std::size_t row, const float* logits, std::size_t action, bool acts, std::size_t* small,
                   float& logp) {
    const auto pair = static_cast<std::size_t>(net_.actions.offset_pair[action]);
    const float* offsets = logits + heads_.offsets + pair * 2 * kOffsets;
    float small_logits[kSmallParts][kOffsets];
    std::fill_n(small_logits[0], kOffsets, kMasked);
    std::copy_n(logits + heads_.delay, kDelays, small_logits[0]);
    std::memcpy(small_logits[1], offsets, 2 * kOffsets * sizeof(float));
    const float* small_noise = noise(1, row, kSmallParts * kOffsets);
    for (std::size_t i = 0; i < kSmallParts; ++i) {
      small[i] = kDefaultParts[i];
      if (!(i == 0 ? acts && !net_.fixed_delay : net_.actions.reads_offset[action] != 0)) continue;
      math_.log_softmax(small_logits[i], kOffsets);
      small[i] = sample(small_logits[i], small_noise == nullptr ? nullptr : small_noise + i * kOffsets, kOffsets);
      logp += small_logits[i][small[i]];
    }
  }

  std::size_t target(std::size_t row, std::size_t step, std::size_t hero, const float* logits, std::size_t action,
                     bool teleports, bool& has_target, float& logp) {
    const std::size_t units = net_.units;
    float* unit_logp = output_.unit + row * units;
    std::fill_n(unit_logp, units, kMasked);
    if (net_.actions.reads_unit[action] != 0 || teleports) {
      const std::size_t mask_class =
          teleports ? net_.teleport_class : static_cast<std::size_t>(net_.actions.mask_class[action]);
      const std::uint8_t* mask = input_.target_mask + (row * net_.mask_classes + mask_class) * units;
      const std::int32_t* row_of = trunk_.row_of.data() + step * units;
      for (std::size_t u = 0; u < units; ++u) {
        if (mask[u] == 0 || row_of[u] < 0) continue;
        if (!has_target) set_query(logits, action, teleports);
        has_target = true;
        unit_logp[u] = math_.dot(query_.data(), key_of(step, hero, u), heads_.key);
      }
    }
    std::size_t unit = 0;
    if (has_target) {
      math_.log_softmax(unit_logp, units);
      unit = sample(unit_logp, noise(2, row, units), units);
      logp += unit_logp[unit];
    }
    for (std::size_t u = 0; u < units; ++u)
      if (unit_logp[u] <= kMasked / 2) unit_logp[u] = -HUGE_VALF;
    return unit;
  }

  void set_query(const float* logits, std::size_t action, bool teleports) {
    const auto split = static_cast<std::size_t>(net_.actions.unit_split[action]);
    const float* query = logits + (teleports ? heads_.teleport
                                   : split   ? heads_.splits + (split - 1) * heads_.key
                                             : heads_.unit);
    for (std::size_t k = 0; k < heads_.key; ++k)
      query_[k] = query[k] * net_.gate[action * heads_.key + k];
  }

  // Returns Gumbel noise for the row's n log-probabilities, valid until the next call; null when greedy.
  const float* noise(std::size_t part, std::size_t row, std::size_t n) {
    if (input_.uniform[part] == nullptr) return nullptr;
    noise_.resize(n);
    math_.gumbel(input_.uniform[part] + row * n, noise_.data(), n);
    return noise_.data();
  }

  const PolicyNet& net_;
  const ActorInput& input_;
  const TrunkOutput& trunk_;
  const ActorOutput& output_;
  HeadOffsets heads_;
  RowMath math_;
  std::vector<float> query_, noise_;
};

}  // namespace

void choose_actions(const PolicyNet& net, const ActorInput& input, const TrunkOutput& trunk, const float* logits,
                    std::size_t first, std::size_t last, const ActorOutput& output) {
  ActionChooser chooser(net, input, trunk, output);
  const HeadOffsets heads(net);
  const std::size_t width = net.heads.out(), buildings = net.buildings.out();
  thread_local std::vector<float> hidden;
  hidden.resize((last - first) * 3 * heads.width);
  for (std::size_t r = 0; r < last - first; ++r) {
    chooser.choose(first + r, logits + r * width);
    for (std::size_t i = 0; i < 3 * heads.width; ++i)
      hidden[r * 3 * heads.width + i] = std::max(logits[r * width + heads.hidden + i], 0.0f);
  }
  float* rank = output.rank + first * kRanks;
  float* building_events = output.buildings + first * buildings;
  net.win(hidden.data(), 3 * heads.width, last - first, output.win + first, 1);
  net.rank(hidden.data() + heads.width, 3 * heads.width, last - first, rank, kRanks);
  net.buildings(hidden.data() + 2 * heads.width, 3 * heads.width, last - first, building_events, buildings);
  const RowMath math = row_math(net.instructions);
  for (std::size_t r = 0; r < last - first; ++r) {
    output.win[first + r] = sigmoid(output.win[first + r]);
    math.log_softmax(rank + r * kRanks, kRanks);
    for (std::size_t i = 0; i < kRanks; ++i)
      rank[r * kRanks + i] = exponential(rank[r * kRanks + i]);
    for (std::size_t i = 0; i < buildings; ++i)
      building_events[r * buildings + i] = sigmoid(building_events[r * buildings + i]);
  }
}

}  // namespace five
