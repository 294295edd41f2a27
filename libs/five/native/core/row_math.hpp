// Row-wise functions of the network: log-softmax, the LSTM cell, inner products and Gumbel noise.
#pragma once

#include <cstddef>

#include "layer.hpp"

namespace five {

// Log-probability of a masked entry: the lowest finite number, as in the PyTorch policy.
constexpr float kMasked = -3.4028234663852886e38f;

// Functions for one instruction set. Exponentials and logarithms are accurate to 2 units in the last place;
// exponents below -87 are clamped.
struct RowMath {
  // Replaces the logits x [n] by log-probabilities; equal ones where all logits are kMasked.
  void (*log_softmax)(float* x, std::size_t n);
  // One LSTM step of d units. `gates` [4][d]: input, forget, cell and output gates before their activations.
  // Writes h [d] and updates c [d].
  void (*lstm_cell)(const float* gates, std::size_t d, float* h, float* c);
  // Returns the inner product of two rows [n].
  float (*dot)(const float* a, const float* b, std::size_t n);
  // to[i] = log(-log(u[i])) of n uniform numbers in [0, 1). The argmax of log-probabilities minus this noise is a
  // sample (the Gumbel-max trick).
  void (*gumbel)(const float* u, float* to, std::size_t n);
  // to[i] = max(to[i], row[i]) for n numbers.
  void (*max_into)(float* to, const float* row, std::size_t n);
};

// `instructions` must be supported by the CPU.
RowMath row_math(InstructionSet instructions);

float sigmoid(float x);
float exponential(float x);

}  // namespace five
