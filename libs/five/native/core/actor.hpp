// A whole policy on rows of observations in the host's memory: what acts where a call of a few rows must cost
// little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layer.hpp"
#include "rows.hpp"

namespace five {

// Numbers of one kind of row and how they are standardised: scale and shift [groups][fields]. No fields: no such
// rows.
struct Numbers {
  RowPlaces at;
  std::vector<float> scale, shift;
};

// Where a row's id lies in the ids of a team-step (or of a hero), and the vectors of its space [rows][width];
// width 0: the layout has no such id.
struct Embedded {
  std::size_t offset = 0, stride = 0, width = 0, rows = 0;
  std::vector<float> table;
};

// A set of rows, pooled by what they hang on.
struct SetNet {
  enum class Owner : std::uint8_t { kHero, kOtherUnit, kTeam };
  Owner owner = Owner::kHero;
  std::size_t columns = 0;
  Numbers numbers;
  Embedded id;
  Layer first, second;
};

// Units that share weights; `apart`: the part of the first layer for what heroes see differently.
struct TowerNet {
  std::size_t columns = 0;
  Layer first, apart, second;
};

// What an action reads, by its id.
struct ActionReads {
  std::vector<std::int64_t> mask_class, offset_pair, unit_split;
  std::vector<std::uint8_t> unit, teleport, offset;
};

// The policy of five.agent.model.policy, with its parameters. Layers over several things one after another have
// their inputs in that module's order.
struct ActorNet {
  Instructions with = Instructions::kPortable;
  std::size_t heroes = 0, units = 0, choices = 0, classes = 0, teleports = 0;  // `teleports`: the class of these
  std::size_t shared = 0, apart = 0, shared_ids = 0, apart_ids = 0;  // widths of the observation's arrays
  std::size_t maps = 0, maps_apart = 0;  // widths of what others made of the maps, of a team and of a hero
  std::size_t pooled = 0, pairs = 0;
  float clip = 0.0f;

  RowColumns columns;
  std::vector<std::int64_t> owner_slots, tower_slots;
  Numbers global, previous, unit, unit_apart, hero, hero_apart, ally;
  Embedded unit_type, animation, build, next_item, last_action;
  std::vector<SetNet> sets;
  std::vector<TowerNet> towers;

  Layer join, join_apart, gates;  // gates: of the joined input and the state side by side
  // primary, unit and teleport queries, delays, offsets, queries of split heads, the value and the hidden layers
  // of the three auxiliary heads, side by side
  Layer heads;
  Layer win, rank, buildings;
  Embedded action;
  std::vector<float> gate;  // [actions][key]: what queries are multiplied by
  ActionReads reads;
};

// A batch of team-steps: observations as games write them, recurrent states [steps][heroes][...]. `uniform` is
// null where the likeliest is taken; else it holds numbers [0, 1) to draw by: for choices, for 3 x 9 small parts
// and for units, each [steps][heroes][...].
struct ActorSeen {
  std::size_t steps = 0;
  const std::uint16_t *shared = nullptr, *apart = nullptr, *shared_ids = nullptr, *apart_ids = nullptr;
  const std::uint16_t* available = nullptr;
  const std::uint8_t* target_mask = nullptr;
  const float *maps = nullptr, *maps_apart = nullptr;
  const float *h = nullptr, *c = nullptr, *target = nullptr;
  const float* uniform[3] = {};
};

// What was done, [steps][heroes][...]; `choice` and `aim` are log-probabilities.
struct ActorDone {
  std::int16_t* actions = nullptr;
  float *logp = nullptr, *values = nullptr, *h = nullptr, *c = nullptr, *target = nullptr;
  float *win = nullptr, *rank = nullptr, *buildings = nullptr, *choice = nullptr, *aim = nullptr;
};

// Any number of threads may act with one net. Throws std::out_of_range for an id without a vector.
void act(const ActorNet& net, const ActorSeen& seen, const ActorDone& done);

// Parts of it. What the trunk makes of a batch: the input of the join's two halves and, of the units that are
// there, keys [rows][heroes][key] and where each slot's row is, [steps][units] (-1: nothing).
struct Trunk {
  std::vector<float> of_team, of_hero, keys;
  std::vector<std::int32_t> row_of;
};
void walk_trunk(const ActorNet& net, const ActorSeen& seen, Trunk& out);
// Chooses for the rows [first, last) of heroes, `said` [rows][heads] as the layer of heads gave it.
void choose(const ActorNet& net, const ActorSeen& seen, const Trunk& trunk, const float* said, std::size_t first,
            std::size_t last, const ActorDone& done);

}  // namespace five
