#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "actor.hpp"
#include "row_math.hpp"

namespace five {

namespace {

constexpr std::size_t kDelays = 4, kOffsets = 9, kSmall = 3, kParts = 6, kRanks = 5;
constexpr std::size_t kUnread[kSmall] = {0, kOffsets / 2, kOffsets / 2};  // what stands where an action reads none

// The place of the largest of logp - noise, the first of several; noise null: of logp.
std::size_t drawn(const float* logp, const float* noise, std::size_t n) {
  std::size_t best = 0;
  float most = noise == nullptr ? logp[0] : logp[0] - noise[0];
  for (std::size_t i = 1; i < n; ++i) {
    const float here = noise == nullptr ? logp[i] : logp[i] - noise[i];
    if (here > most) {
      most = here;
      best = i;
    }
  }
  return best;
}

// Where each head begins in the row that the layer of heads gave.
struct Heads {
  std::size_t key, unit, teleport, delay, offsets, splits, value, hidden, width;

  explicit Heads(const ActorNet& net) {
    key = net.action.width;
    unit = key;
    teleport = unit + key;
    delay = teleport + key;
    offsets = delay + kDelays;
    splits = offsets + net.pairs * 2 * kOffsets;
    width = net.win.in();
    hidden = net.heads.out() - 3 * width;
    value = hidden - 1;
  }
};

class Row {
 public:
  Row(const ActorNet& net, const ActorSeen& seen, const Trunk& trunk, const ActorDone& done)
      : net_(net),
        seen_(seen),
        trunk_(trunk),
        done_(done),
        heads_(net),
        maths_(row_maths(net.with)),
        query_(heads_.key) {}

  void choose(std::size_t row, const float* said) {
    const std::size_t step = row / net_.heroes, hero = row % net_.heroes;
    float logp = 0.0f;
    bool acts = false;
    const std::size_t slot = primary(row, said, acts, logp);
    const std::size_t action = seen_.available[row * net_.choices + slot];
    std::size_t small[kSmall];
    small_parts(row, said, action, acts, small, logp);
    const bool teleports = net_.reads.teleport[action] != 0;
    bool counted = false;
    const std::size_t unit = target(row, step, hero, said, action, teleports, counted, logp);

    std::int16_t* out = done_.actions + row * kParts;
    const std::size_t parts[kParts] = {slot,     small[0], teleports ? 0 : unit, teleports ? unit : 0,
                                       small[1], small[2]};
    for (std::size_t i = 0; i < kParts; ++i)
      out[i] = static_cast<std::int16_t>(parts[i]);
    done_.logp[row] = logp;
    done_.values[row] = said[heads_.value];
    float* aimed = done_.target + row * heads_.key;
    if (counted)
      std::copy_n(key_of(step, hero, unit), heads_.key, aimed);
    else
      std::fill_n(aimed, heads_.key, 0.0f);
  }

 private:
  const float* key_of(std::size_t step, std::size_t hero, std::size_t unit) const {
    const auto at = static_cast<std::size_t>(trunk_.row_of[step * net_.units + unit]);
    return trunk_.keys.data() + (at * net_.heroes + hero) * heads_.key;
  }

  std::size_t primary(std::size_t row, const float* said, bool& acts, float& logp) {
    const std::uint16_t* ids = seen_.available + row * net_.choices;
    float* choice = done_.choice + row * net_.choices;
    for (std::size_t i = 0; i < net_.choices; ++i) {
      if (ids[i] >= net_.action.rows) throw std::out_of_range("act: an action that the network has no vector for");
      acts = acts || ids[i] != 0;
      choice[i] = ids[i] == 0 ? kNoChoice
                              : maths_.product(said, net_.action.table.data() + ids[i] * heads_.key, heads_.key);
    }
    maths_.log_softmax(choice, net_.choices);
    const std::size_t slot = drawn(choice, noise(0, row, net_.choices), net_.choices);
    if (acts) logp += choice[slot];
    return slot;
  }

  void small_parts(std::size_t row, const float* said, std::size_t action, bool acts, std::size_t* small,
                   float& logp) {
    const auto pair = static_cast<std::size_t>(net_.reads.offset_pair[action]);
    const float* offsets = said + heads_.offsets + pair * 2 * kOffsets;
    float logits[kSmall][kOffsets];
    std::fill_n(logits[0], kOffsets, kNoChoice);
    std::copy_n(said + heads_.delay, kDelays, logits[0]);
    std::memcpy(logits[1], offsets, 2 * kOffsets * sizeof(float));
    const float* drawn_by = noise(1, row, kSmall * kOffsets);
    for (std::size_t i = 0; i < kSmall; ++i) {
      small[i] = kUnread[i];
      if (!(i == 0 ? acts : net_.reads.offset[action] != 0)) continue;
      maths_.log_softmax(logits[i], kOffsets);
      small[i] = drawn(logits[i], drawn_by == nullptr ? nullptr : drawn_by + i * kOffsets, kOffsets);
      logp += logits[i][small[i]];
    }
  }

  std::size_t target(std::size_t row, std::size_t step, std::size_t hero, const float* said, std::size_t action,
                     bool teleports, bool& counted, float& logp) {
    const std::size_t units = net_.units;
    float* aim = done_.aim + row * units;
    std::fill_n(aim, units, kNoChoice);
    if (net_.reads.unit[action] != 0 || teleports) {
      const std::size_t by = teleports ? net_.teleports : static_cast<std::size_t>(net_.reads.mask_class[action]);
      const std::uint8_t* mask = seen_.target_mask + (row * net_.classes + by) * units;
      const std::int32_t* there = trunk_.row_of.data() + step * units;
      for (std::size_t u = 0; u < units; ++u) {
        if (mask[u] == 0 || there[u] < 0) continue;
        if (!counted) ask(said, action, teleports);
        counted = true;
        aim[u] = maths_.product(query_.data(), key_of(step, hero, u), heads_.key);
      }
    }
    std::size_t unit = 0;
    if (counted) {
      maths_.log_softmax(aim, units);
      unit = drawn(aim, noise(2, row, units), units);
      logp += aim[unit];
    }
    for (std::size_t u = 0; u < units; ++u)
      if (aim[u] <= kNoChoice / 2) aim[u] = -HUGE_VALF;
    return unit;
  }

  void ask(const float* said, std::size_t action, bool teleports) {
    const auto split = static_cast<std::size_t>(net_.reads.unit_split[action]);
    const float* query = said + (teleports ? heads_.teleport
                                 : split   ? heads_.splits + (split - 1) * heads_.key
                                           : heads_.unit);
    for (std::size_t k = 0; k < heads_.key; ++k)
      query_[k] = query[k] * net_.gate[action * heads_.key + k];
  }

  // What is taken from the row's n log-probabilities; null: nothing. Until the next call.
  const float* noise(std::size_t of, std::size_t row, std::size_t n) {
    if (seen_.uniform[of] == nullptr) return nullptr;
    noise_.resize(n);
    maths_.gumbel(seen_.uniform[of] + row * n, noise_.data(), n);
    return noise_.data();
  }

  const ActorNet& net_;
  const ActorSeen& seen_;
  const Trunk& trunk_;
  const ActorDone& done_;
  Heads heads_;
  RowMaths maths_;
  std::vector<float> query_, noise_;
};

}  // namespace

void choose(const ActorNet& net, const ActorSeen& seen, const Trunk& trunk, const float* said, std::size_t first,
            std::size_t last, const ActorDone& done) {
  Row row(net, seen, trunk, done);
  const Heads heads(net);
  const std::size_t width = net.heads.out(), buildings = net.buildings.out();
  thread_local std::vector<float> hidden;
  hidden.resize((last - first) * 3 * heads.width);
  for (std::size_t r = 0; r < last - first; ++r) {
    row.choose(first + r, said + r * width);
    for (std::size_t i = 0; i < 3 * heads.width; ++i)
      hidden[r * 3 * heads.width + i] = std::max(said[r * width + heads.hidden + i], 0.0f);
  }
  float* rank = done.rank + first * kRanks;
  float* of_buildings = done.buildings + first * buildings;
  net.win(hidden.data(), 3 * heads.width, last - first, done.win + first, 1);
  net.rank(hidden.data() + heads.width, 3 * heads.width, last - first, rank, kRanks);
  net.buildings(hidden.data() + 2 * heads.width, 3 * heads.width, last - first, of_buildings, buildings);
  const RowMaths maths = row_maths(net.with);
  for (std::size_t r = 0; r < last - first; ++r) {
    done.win[first + r] = sigmoid(done.win[first + r]);
    maths.log_softmax(rank + r * kRanks, kRanks);
    for (std::size_t i = 0; i < kRanks; ++i)
      rank[r * kRanks + i] = power_of_e(rank[r * kRanks + i]);
    for (std::size_t i = 0; i < buildings; ++i)
      of_buildings[r * buildings + i] = sigmoid(of_buildings[r * buildings + i]);
  }
}

}  // namespace five
