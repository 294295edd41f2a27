// The CPU actor: a policy's forward pass over a few team-steps, from observations to actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "layer.hpp"
#include "row_math.hpp"
#include "rows.hpp"

namespace five {

// Numeric fields of one kind of row and their standardisation: scale and shift [groups][fields]. Without fields
// the layout has no such rows.
struct NumericInput {
  RowLayout rows;
  std::vector<float> scale, shift;
};

// An embedded id: its position in the ids of a team-step (or of a hero) and the embedding table
// [vocabulary][width]. The width is 0 where the layout has no such id.
struct EmbeddingInput {
  std::size_t offset = 0, stride = 0, width = 0, vocabulary = 0;
  std::vector<float> table;
};

// A convolution with 2x2 kernels over a map whose cells are row by row, as a layer over each row of the kernel:
// [filters][2 * channels]. The upper one has the bias.
struct Convolution {
  LinearLayer top, bottom;
};

// Convolution, 2x2 max-pool, convolution, with ReLU. A map that is too small for a pool or a second layer has
// none.
struct MapEncoder {
  std::size_t side = 0;  // Cells along a side; 0 where the layout has no such map.
  bool pools = false;
  NumericInput numbers;  // All cells as one row.
  Convolution first, second;
  std::size_t ids_offset = 0, id_fields = 0, vocabulary = 0;  // Each cell has `id_fields` ids.
  // Products of the first layer's weights with the embedding of each id, [id_fields][vocabulary][2][2][filters],
  // relative to those of id 0, which the first layer's bias includes.
  std::vector<float> products;

  // Cells along a side of the pool's output, or of the first layer's without a pool.
  std::size_t pooled_side() const;
  std::size_t last_side() const;
  std::size_t width() const;
};

// Two layers over each row of a set, whose rows are max-pooled by owner.
struct SetEncoder {
  enum class Owner : std::uint8_t { kHero, kOtherUnit, kTeam };
  Owner owner = Owner::kHero;
  std::size_t columns = 0;
  NumericInput numbers;
  EmbeddingInput id;
  LinearLayer first, second;
};

// Two layers over each unit of a group that shares weights. `first_private` is the part of the first layer for
// what each hero observes differently.
struct UnitEncoder {
  std::size_t columns = 0;
  LinearLayer first, first_private, second;
};

// What each action reads, by action id.
struct ActionTable {
  std::vector<std::int64_t> mask_class, offset_pair, unit_split;
  std::vector<std::uint8_t> reads_unit, reads_teleport, reads_offset;
};

// The network of five.agent.model.policy with its parameters. A layer over several inputs takes them in the order
// of that module.
struct PolicyNet {
  InstructionSet instructions = InstructionSet::kPortable;
  std::size_t heroes = 0, units = 0, available = 0, mask_classes = 0, teleport_class = 0;
  // Widths of the observation's arrays.
  std::size_t shared_width = 0, private_width = 0, shared_ids_width = 0, private_ids_width = 0;
  std::size_t cross_hero_pooled = 0, offset_pairs = 0;
  float clip = 0.0f;
  bool fixed_delay = false;  // Every action has delay 0, which is not chosen.

  RowColumns columns;
  std::vector<std::int64_t> owner_slots, group_slots;
  NumericInput global, previous, unit, unit_private, hero, hero_private, ally;
  EmbeddingInput unit_type, animation, build, next_item, last_action;
  MapEncoder minimap, nearby_map;
  std::vector<SetEncoder> sets;
  std::vector<UnitEncoder> unit_groups;

  LinearLayer join, join_private, gates;  // `gates` reads the joined input and the state side by side.
  // All heads that read the LSTM's output, as one layer; `HeadOffsets` has their order.
  LinearLayer heads;
  LinearLayer win, rank, buildings;
  EmbeddingInput action;
  std::vector<float> gate;  // [actions][key], factors of the target queries.
  ActionTable actions;
};

// A batch of team-steps: observations as games write them and recurrent states [steps][heroes][...]. `uniform`
// holds numbers in [0, 1) for sampling the primary action, 3 x 9 small parts and the target unit, each
// [steps][heroes][...]; null: take the most likely.
struct ActorInput {
  std::size_t steps = 0;
  const std::uint16_t *shared = nullptr, *private_ = nullptr, *shared_ids = nullptr, *private_ids = nullptr;
  const std::uint16_t* available = nullptr;
  const std::uint8_t* target_mask = nullptr;
  const float *h = nullptr, *c = nullptr, *target = nullptr;
  const float* uniform[3] = {};
};

// Results, [steps][heroes][...]. `primary` and `unit` are log-probabilities.
struct ActorOutput {
  std::int16_t* actions = nullptr;
  float *logp = nullptr, *values = nullptr, *h = nullptr, *c = nullptr, *target = nullptr;
  float *win = nullptr, *rank = nullptr, *buildings = nullptr, *primary = nullptr, *unit = nullptr;
};

// Evaluates the policy. Any number of threads may use one net. Throws std::out_of_range for an id without an
// embedding.
void act(const PolicyNet& net, const ActorInput& input, const ActorOutput& output);

// Output of the trunk: the inputs of the two halves of the join; of the units that are present, keys
// [rows][heroes][key]; the row of each unit slot, [steps][units] (-1: absent).
struct TrunkOutput {
  std::vector<float> team, hero, keys;
  std::vector<std::int32_t> row_of;
};
// Encodes standardised cells and their ids: [filters][last_side][last_side].
void encode_map(const MapEncoder& map, const float* cells, const std::uint16_t* ids, const RowMath& math,
                float* out);
void evaluate_trunk(const PolicyNet& net, const ActorInput& input, TrunkOutput& output);
// Chooses actions for the rows [first, last) of heroes. `logits` [rows][heads] is the output of the layer `heads`.
void choose_actions(const PolicyNet& net, const ActorInput& input, const TrunkOutput& trunk, const float* logits,
                    std::size_t first, std::size_t last, const ActorOutput& output);

}  // namespace five
