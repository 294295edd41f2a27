#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "actor.hpp"
#include "row_math.hpp"

namespace five {

namespace {

constexpr std::size_t kBlock = 64;  // Rows whose inputs and results fit in a near cache.

// Returns memory for so many numbers; it only grows.
float* reserve(std::vector<float>& memory, std::size_t numbers) {
  if (memory.size() < numbers) memory.resize(numbers);
  return memory.data();
}

const float* embedding_of(const EmbeddingInput& input, const std::uint16_t* ids, std::size_t row) {
  const std::size_t id = ids[input.offset + row * input.stride];
  if (id >= input.vocabulary) throw std::out_of_range("act: an id without an embedding");
  return input.table.data() + id * input.width;
}

// Max-pools of a set by unit row. `index` is -1 for a unit without rows.
struct Pools {
  std::size_t width = 0, used = 0;
  std::vector<std::int32_t> index;
  std::vector<float> values;
};

class TrunkEvaluator {
 public:
  TrunkEvaluator(const PolicyNet& net, const ActorInput& input, TrunkOutput& out)
      : net_(net), input_(input), output_(out), read_(row_reader()), math_(row_math(net.instructions)) {}

  void run() {
    thread_local std::vector<std::int64_t> columns, steps;
    columns.clear();
    steps.clear();
    find_rows(net_.columns, input_.shared_ids, net_.shared_ids_width, input_.shared, net_.shared_width,
              input_.steps, columns, steps);
    column_ = columns.data();
    step_ = steps.data();
    set_columns_ = 0;
    for (const SetEncoder& set : net_.sets)
      set_columns_ += set.columns;
    const auto rows_before = [&](std::size_t column) {
      return static_cast<std::size_t>(
          std::lower_bound(columns.begin(), columns.end(), static_cast<std::int64_t>(column)) - columns.begin());
    };
    first_ = rows_before(set_columns_);
    units_ = columns.size() - first_;
    team_width_ = net_.join.in();
    hero_width_ = net_.join_private.in();
    index_units();
    evaluate_team_inputs();
    thread_local std::vector<Pools> pools;
    pools.resize(net_.sets.size());
    std::size_t column = 0, begin = 0;
    for (std::size_t s = 0; s < net_.sets.size(); ++s) {
      const std::size_t end = rows_before(column + net_.sets[s].columns);
      evaluate_set(net_.sets[s], pools[s], begin, end, column);
      column += net_.sets[s].columns;
      begin = end;
    }
    for (std::size_t t = 0; t < net_.unit_groups.size(); ++t) {
      column += net_.unit_groups[t].columns;
      const std::size_t end = rows_before(column);
      evaluate_group(t, begin, end, pools);
      begin = end;
    }
  }

 private:
  std::size_t slot_of(std::size_t row) const {
    return static_cast<std::size_t>(net_.group_slots[static_cast<std::size_t>(column_[row]) - set_columns_]);
  }

  std::size_t step_of(std::size_t row) const { return static_cast<std::size_t>(step_[row]); }

  void index_units() {
    output_.row_of.assign(input_.steps * net_.units, -1);
    for (std::size_t r = 0; r < units_; ++r)
      output_.row_of[step_of(first_ + r) * net_.units + slot_of(first_ + r)] = static_cast<std::int32_t>(r);
  }

  // Writes a standardised row of one hero's line to `to` and returns the end of the written values.
  float* numbers(const NumericInput& input, const std::uint16_t* array, std::size_t step, std::size_t line,
                 std::size_t slot, std::size_t group, float* to) const {
    const RowLayout& rows = input.rows;
    if (rows.fields == 0) return to;
    const std::uint16_t* in = array + (step * rows.lines + line) * rows.width + rows.offset + slot * rows.stride;
    read_(in, rows.fields, input.scale.data() + group * rows.fields, input.shift.data() + group * rows.fields,
          net_.clip, to);
    return to + rows.fields;
  }

  float* embedded(const EmbeddingInput& input, std::size_t step, std::size_t slot, float* to) const {
    if (input.width == 0) return to;
    const float* from = embedding_of(input, input_.shared_ids + step * net_.shared_ids_width, slot);
    return std::copy_n(from, input.width, to);
  }

  // Writes the encoding of one hero's map to `to` and returns its end. `ids` are those of the hero.
  float* encoded(const MapEncoder& map, const std::uint16_t* array, const std::uint16_t* ids, std::size_t step,
                 std::size_t line, float* to) const {
    thread_local std::vector<float> cells;
    if (map.side == 0) return to;
    numbers(map.numbers, array, step, line, 0, 0, reserve(cells, map.numbers.rows.fields));
    encode_map(map, cells.data(), ids + map.ids_offset, math_, to);
    return to + map.width();
  }

  // Writes the inputs that every team-step has; pools start at their floor of zero.
  void evaluate_team_inputs() {
    const std::size_t heroes = net_.heroes, key = net_.action.width;
    float* team = reserve(output_.team, input_.steps * team_width_);
    float* hero = reserve(output_.hero, input_.steps * heroes * hero_width_);
    const std::size_t pools =
        hero_width_ - net_.nearby_map.width() - net_.previous.rows.fields - key - net_.last_action.width;
    for (std::size_t s = 0; s < input_.steps; ++s, team += team_width_) {
      float* to = numbers(net_.global, input_.shared, s, 0, 0, 0, team);
      to = encoded(net_.minimap, input_.shared, input_.shared_ids + s * net_.shared_ids_width, s, 0, to);
      std::fill(to, team + team_width_, 0.0f);
      for (std::size_t h = 0; h < heroes; ++h, hero += hero_width_) {
        const std::size_t row = s * heroes + h;
        const std::uint16_t* ids = input_.private_ids + row * net_.private_ids_width;
        float* end = encoded(net_.nearby_map, input_.private_, ids, s, h, hero);
        end = std::fill_n(end, pools, 0.0f);
        end = numbers(net_.previous, input_.private_, s, h, 0, 0, end);
        end = std::copy_n(input_.target + row * key, key, end);
        if (net_.last_action.width) std::copy_n(embedding_of(net_.last_action, ids, 0), key, end);
      }
    }
  }

  void evaluate_set(const SetEncoder& set, Pools& pools, std::size_t begin, std::size_t end,
                    std::size_t first_column) {
    thread_local std::vector<float> inputs, hidden, rows;
    const std::size_t in = set.first.in(), between = set.first.out(), width = set.second.out();
    float* x = reserve(inputs, kBlock * in);
    float* y = reserve(hidden, kBlock * between);
    float* z = reserve(rows, kBlock * width);
    pools.width = width;
    pools.used = 0;
    const bool is_team = set.owner == SetEncoder::Owner::kTeam;
    if (!is_team) pools.index.assign(units_, -1);
    float* pooled =
        is_team ? output_.team.data() + team_width_ - width : reserve(pools.values, (end - begin) * width);
    for (std::size_t at = begin; at < end; at += kBlock) {
      const std::size_t count = std::min(kBlock, end - at);
      for (std::size_t r = 0; r < count; ++r) {
        const std::size_t slot = static_cast<std::size_t>(column_[at + r]) - first_column;
        float* to = numbers(set.numbers, input_.shared, step_of(at + r), 0, slot, 0, x + r * in);
        embedded(set.id, step_of(at + r), slot, to);
      }
      set.first(x, in, count, y, between, false, LinearLayer::Activation::kRelu);
      set.second(y, between, count, z, width);
      for (std::size_t r = 0; r < count; ++r) {
        float* into = nullptr;
        if (is_team) {
          into = pooled + step_of(at + r) * team_width_;
        } else {
          const auto owner = static_cast<std::size_t>(net_.owner_slots[static_cast<std::size_t>(column_[at + r])]);
          std::int32_t& pool =
              pools.index[static_cast<std::size_t>(output_.row_of[step_of(at + r) * net_.units + owner])];
          if (pool < 0) {
            pool = static_cast<std::int32_t>(pools.used++);
            std::fill_n(pooled + static_cast<std::size_t>(pool) * width, width, 0.0f);
          }
          into = pooled + static_cast<std::size_t>(pool) * width;
        }
        math_.max_into(into, z + r * width, width);
      }
    }
  }

  static float* copy_pool(const Pools& pools, std::size_t unit, float* to) {
    const std::int32_t pool = pools.index[unit];
    if (pool < 0) return std::fill_n(to, pools.width, 0.0f);
    return std::copy_n(pools.values.data() + static_cast<std::size_t>(pool) * pools.width, pools.width, to);
  }

  void read_unit(std::size_t group, std::size_t row, const std::vector<Pools>& pools, float* to) const {
    const std::size_t step = step_of(row), slot = slot_of(row);
    const bool is_hero = group < 2;
    to = numbers(net_.unit, input_.shared, step, 0, slot, group, to);
    to = embedded(net_.unit_type, step, slot, to);
    to = embedded(net_.animation, step, slot, to);
    if (is_hero) to = numbers(net_.hero, input_.shared, step, 0, slot, group, to);
    const auto owner = is_hero ? SetEncoder::Owner::kHero : SetEncoder::Owner::kOtherUnit;
    for (std::size_t s = 0; s < net_.sets.size(); ++s)
      if (net_.sets[s].owner == owner) to = copy_pool(pools[s], row - first_, to);
    if (group > 0) return;
    to = numbers(net_.ally, input_.shared, step, 0, slot, 0, to);
    to = embedded(net_.build, step, slot, to);
    embedded(net_.next_item, step, slot, to);
  }

  void evaluate_group(std::size_t group, std::size_t begin, std::size_t end, const std::vector<Pools>& pools) {
    thread_local std::vector<float> inputs, private_inputs, team, hidden, rows;
    const UnitEncoder& net = net_.unit_groups[group];
    const std::size_t heroes = net_.heroes, in = net.first.in(), private_width = net.first_private.in(),
                      between = net.first.out();
    const std::size_t width = net.second.out(), key = net_.action.width;
    float* x = reserve(inputs, kBlock * in);
    float* x_private = reserve(private_inputs, kBlock * heroes * private_width);
    float* y = reserve(hidden, kBlock * heroes * between);
    float* z = reserve(rows, kBlock * heroes * width);
    float* keys = reserve(output_.keys, std::max<std::size_t>(units_, 1) * heroes * key);
    const std::size_t pool_offset = net_.nearby_map.width() + group * width,
                      own_offset = net_.nearby_map.width() + net_.unit_groups.size() * width;
    for (std::size_t at = begin; at < end; at += kBlock) {
      const std::size_t count = std::min(kBlock, end - at);
      for (std::size_t r = 0; r < count; ++r) {
        read_unit(group, at + r, pools, x + r * in);
        for (std::size_t h = 0; h < heroes; ++h) {
          float* to = x_private + (r * heroes + h) * private_width;
          to = numbers(net_.unit_private, input_.private_, step_of(at + r), h, slot_of(at + r), group, to);
          if (group < 2)
            numbers(net_.hero_private, input_.private_, step_of(at + r), h, slot_of(at + r), group, to);
        }
      }
      float* once = heroes == 1 ? y : reserve(team, kBlock * between);
      net.first(x, in, count, once, between);
      if (heroes > 1)
        for (std::size_t r = 0; r < count * heroes; ++r)
          std::copy_n(once + r / heroes * between, between, y + r * between);
      net.first_private(x_private, private_width, count * heroes, y, between, true,
                        LinearLayer::Activation::kRelu);
      net.second(y, between, count * heroes, z, width);
      for (std::size_t r = 0; r < count; ++r)
        for (std::size_t h = 0; h < heroes; ++h) {
          const float* row = z + (r * heroes + h) * width;
          float* hero = output_.hero.data() + (step_of(at + r) * heroes + h) * hero_width_;
          math_.max_into(hero + pool_offset, row, width);
          if (group == 0 && slot_of(at + r) == h) std::copy_n(row, width, hero + own_offset);
          std::copy_n(row, key, keys + ((at + r - first_) * heroes + h) * key);
        }
    }
  }

  const PolicyNet& net_;
  const ActorInput& input_;
  TrunkOutput& output_;
  RowReader read_;
  RowMath math_;
  const std::int64_t *column_ = nullptr, *step_ = nullptr;
  std::size_t set_columns_ = 0, first_ = 0, units_ = 0, team_width_ = 0, hero_width_ = 0;
};

}  // namespace

void evaluate_trunk(const PolicyNet& net, const ActorInput& input, TrunkOutput& out) {
  TrunkEvaluator(net, input, out).run();
}

}  // namespace five
