#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "actor.hpp"
#include "row_math.hpp"

namespace five {

namespace {

constexpr std::size_t kBlock = 64;  // rows whose inputs and results a near cache holds

// Memory that is made once a thread and only grows.
float* room(std::vector<float>& memory, std::size_t numbers) {
  if (memory.size() < numbers) memory.resize(numbers);
  return memory.data();
}

const float* vector_of(const Embedded& of, const std::uint16_t* ids, std::size_t row) {
  const std::size_t id = ids[of.offset + row * of.stride];
  if (id >= of.rows) throw std::out_of_range("act: an id that the network has no vector for");
  return of.table.data() + id * of.width;
}

// A pool for those owners that have rows: their place among the pools, -1 for the others.
struct Pools {
  std::size_t width = 0, used = 0;
  std::vector<std::int32_t> of;
  std::vector<float> values;
};

class Walk {
 public:
  Walk(const ActorNet& net, const ActorSeen& seen, Trunk& out)
      : net_(net), seen_(seen), out_(out), read_(row_reader()), maths_(row_maths(net.with)) {}

  void run() {
    thread_local std::vector<std::int64_t> columns, steps;
    columns.clear();
    steps.clear();
    find_rows(net_.columns, seen_.shared_ids, net_.shared_ids, seen_.shared, net_.shared, seen_.steps, columns,
              steps);
    column_ = columns.data();
    step_ = steps.data();
    set_columns_ = 0;
    for (const SetNet& set : net_.sets)
      set_columns_ += set.columns;
    const auto rows_before = [&](std::size_t column) {
      return static_cast<std::size_t>(
          std::lower_bound(columns.begin(), columns.end(), static_cast<std::int64_t>(column)) - columns.begin());
    };
    first_ = rows_before(set_columns_);
    units_ = columns.size() - first_;
    team_width_ = net_.join.in();
    hero_width_ = net_.join_apart.in();
    place_units();
    whole();
    thread_local std::vector<Pools> pools;
    pools.resize(net_.sets.size());
    std::size_t column = 0, begin = 0;
    for (std::size_t s = 0; s < net_.sets.size(); ++s) {
      const std::size_t end = rows_before(column + net_.sets[s].columns);
      pool_set(net_.sets[s], pools[s], begin, end, column);
      column += net_.sets[s].columns;
      begin = end;
    }
    for (std::size_t t = 0; t < net_.towers.size(); ++t) {
      column += net_.towers[t].columns;
      const std::size_t end = rows_before(column);
      walk_tower(t, begin, end, pools);
      begin = end;
    }
  }

 private:
  std::size_t slot_of(std::size_t row) const {
    return static_cast<std::size_t>(net_.tower_slots[static_cast<std::size_t>(column_[row]) - set_columns_]);
  }

  std::size_t step_of(std::size_t row) const { return static_cast<std::size_t>(step_[row]); }

  void place_units() {
    out_.row_of.assign(seen_.steps * net_.units, -1);
    for (std::size_t r = 0; r < units_; ++r)
      out_.row_of[step_of(first_ + r) * net_.units + slot_of(first_ + r)] = static_cast<std::int32_t>(r);
  }

  // Reads a row of numbers of one hero's line to `to`; returns where it ends.
  float* numbers(const Numbers& of, const std::uint16_t* array, std::size_t step, std::size_t line,
                 std::size_t slot, std::size_t group, float* to) const {
    const RowPlaces& at = of.at;
    if (at.fields == 0) return to;
    const std::uint16_t* in = array + (step * at.lines + line) * at.width + at.offset + slot * at.stride;
    read_(in, at.fields, of.scale.data() + group * at.fields, of.shift.data() + group * at.fields, net_.clip, to);
    return to + at.fields;
  }

  float* embedded(const Embedded& of, std::size_t step, std::size_t slot, float* to) const {
    if (of.width == 0) return to;
    const float* from = vector_of(of, seen_.shared_ids + step * net_.shared_ids, slot);
    return std::copy_n(from, of.width, to);
  }

  // What every team-step has; pools are left at their floor.
  void whole() {
    const std::size_t heroes = net_.heroes, key = net_.action.width;
    float* team = room(out_.of_team, seen_.steps * team_width_);
    float* hero = room(out_.of_hero, seen_.steps * heroes * hero_width_);
    const std::size_t pools =
        hero_width_ - net_.maps_apart - net_.previous.at.fields - key - net_.last_action.width;
    for (std::size_t s = 0; s < seen_.steps; ++s, team += team_width_) {
      float* to = numbers(net_.global, seen_.shared, s, 0, 0, 0, team);
      if (net_.maps) to = std::copy_n(seen_.maps + s * net_.maps, net_.maps, to);
      std::fill(to, team + team_width_, 0.0f);
      for (std::size_t h = 0; h < heroes; ++h, hero += hero_width_) {
        const std::size_t row = s * heroes + h;
        float* of = hero;
        if (net_.maps_apart) of = std::copy_n(seen_.maps_apart + row * net_.maps_apart, net_.maps_apart, of);
        of = std::fill_n(of, pools, 0.0f);
        of = numbers(net_.previous, seen_.apart, s, h, 0, 0, of);
        of = std::copy_n(seen_.target + row * key, key, of);
        if (net_.last_action.width)
          std::copy_n(vector_of(net_.last_action, seen_.apart_ids + row * net_.apart_ids, 0), key, of);
      }
    }
  }

  void pool_set(const SetNet& set, Pools& pools, std::size_t begin, std::size_t end, std::size_t first_column) {
    thread_local std::vector<float> inputs, hidden, rows;
    const std::size_t in = set.first.in(), between = set.first.out(), width = set.second.out();
    float* x = room(inputs, kBlock * in);
    float* y = room(hidden, kBlock * between);
    float* z = room(rows, kBlock * width);
    pools.width = width;
    pools.used = 0;
    const bool of_team = set.owner == SetNet::Owner::kTeam;
    if (!of_team) pools.of.assign(units_, -1);
    float* pooled =
        of_team ? out_.of_team.data() + team_width_ - width : room(pools.values, (end - begin) * width);
    for (std::size_t at = begin; at < end; at += kBlock) {
      const std::size_t count = std::min(kBlock, end - at);
      for (std::size_t r = 0; r < count; ++r) {
        const std::size_t place = static_cast<std::size_t>(column_[at + r]) - first_column;
        float* to = numbers(set.numbers, seen_.shared, step_of(at + r), 0, place, 0, x + r * in);
        embedded(set.id, step_of(at + r), place, to);
      }
      set.first(x, in, count, y, between, false, Layer::After::kRelu);
      set.second(y, between, count, z, width);
      for (std::size_t r = 0; r < count; ++r) {
        float* into = nullptr;
        if (of_team) {
          into = pooled + step_of(at + r) * team_width_;
        } else {
          const auto slot = static_cast<std::size_t>(net_.owner_slots[static_cast<std::size_t>(column_[at + r])]);
          std::int32_t& of = pools.of[static_cast<std::size_t>(out_.row_of[step_of(at + r) * net_.units + slot])];
          if (of < 0) {
            of = static_cast<std::int32_t>(pools.used++);
            std::fill_n(pooled + static_cast<std::size_t>(of) * width, width, 0.0f);
          }
          into = pooled + static_cast<std::size_t>(of) * width;
        }
        maths_.raise(into, z + r * width, width);
      }
    }
  }

  static float* pool_of(const Pools& pools, std::size_t unit, float* to) {
    const std::int32_t of = pools.of[unit];
    if (of < 0) return std::fill_n(to, pools.width, 0.0f);
    return std::copy_n(pools.values.data() + static_cast<std::size_t>(of) * pools.width, pools.width, to);
  }

  void read_unit(std::size_t tower, std::size_t row, const std::vector<Pools>& pools, float* to) const {
    const std::size_t step = step_of(row), slot = slot_of(row);
    const bool is_hero = tower < 2;
    to = numbers(net_.unit, seen_.shared, step, 0, slot, tower, to);
    to = embedded(net_.unit_type, step, slot, to);
    to = embedded(net_.animation, step, slot, to);
    if (is_hero) to = numbers(net_.hero, seen_.shared, step, 0, slot, tower, to);
    const auto owner = is_hero ? SetNet::Owner::kHero : SetNet::Owner::kOtherUnit;
    for (std::size_t s = 0; s < net_.sets.size(); ++s)
      if (net_.sets[s].owner == owner) to = pool_of(pools[s], row - first_, to);
    if (tower > 0) return;
    to = numbers(net_.ally, seen_.shared, step, 0, slot, 0, to);
    to = embedded(net_.build, step, slot, to);
    embedded(net_.next_item, step, slot, to);
  }

  void walk_tower(std::size_t tower, std::size_t begin, std::size_t end, const std::vector<Pools>& pools) {
    thread_local std::vector<float> inputs, inputs_apart, team, hidden, rows;
    const TowerNet& net = net_.towers[tower];
    const std::size_t heroes = net_.heroes, in = net.first.in(), apart = net.apart.in(), between = net.first.out();
    const std::size_t width = net.second.out(), key = net_.action.width;
    float* x = room(inputs, kBlock * in);
    float* own = room(inputs_apart, kBlock * heroes * apart);
    float* y = room(hidden, kBlock * heroes * between);
    float* z = room(rows, kBlock * heroes * width);
    float* keys = room(out_.keys, std::max<std::size_t>(units_, 1) * heroes * key);
    const std::size_t pool = net_.maps_apart + tower * width,
                      itself = net_.maps_apart + net_.towers.size() * width;
    for (std::size_t at = begin; at < end; at += kBlock) {
      const std::size_t count = std::min(kBlock, end - at);
      for (std::size_t r = 0; r < count; ++r) {
        read_unit(tower, at + r, pools, x + r * in);
        for (std::size_t h = 0; h < heroes; ++h) {
          float* to = own + (r * heroes + h) * apart;
          to = numbers(net_.unit_apart, seen_.apart, step_of(at + r), h, slot_of(at + r), tower, to);
          if (tower < 2) numbers(net_.hero_apart, seen_.apart, step_of(at + r), h, slot_of(at + r), tower, to);
        }
      }
      float* once = heroes == 1 ? y : room(team, kBlock * between);
      net.first(x, in, count, once, between);
      if (heroes > 1)
        for (std::size_t r = 0; r < count * heroes; ++r)
          std::copy_n(once + r / heroes * between, between, y + r * between);
      net.apart(own, apart, count * heroes, y, between, true, Layer::After::kRelu);
      net.second(y, between, count * heroes, z, width);
      for (std::size_t r = 0; r < count; ++r)
        for (std::size_t h = 0; h < heroes; ++h) {
          const float* row = z + (r * heroes + h) * width;
          float* hero = out_.of_hero.data() + (step_of(at + r) * heroes + h) * hero_width_;
          maths_.raise(hero + pool, row, width);
          if (tower == 0 && slot_of(at + r) == h) std::copy_n(row, width, hero + itself);
          std::copy_n(row, key, keys + ((at + r - first_) * heroes + h) * key);
        }
    }
  }

  const ActorNet& net_;
  const ActorSeen& seen_;
  Trunk& out_;
  RowReader read_;
  RowMaths maths_;
  const std::int64_t *column_ = nullptr, *step_ = nullptr;
  std::size_t set_columns_ = 0, first_ = 0, units_ = 0, team_width_ = 0, hero_width_ = 0;
};

}  // namespace

void walk_trunk(const ActorNet& net, const ActorSeen& seen, Trunk& out) { Walk(net, seen, out).run(); }

}  // namespace five
