// What a network computes between its layers, a row at a time.
#pragma once

#include <cstddef>

#include "layer.hpp"

namespace five {

// What stands where there is no choice: the lowest finite number, as PyTorch's masks have it.
constexpr float kNoChoice = -3.4028234663852886e38f;

// Functions of rows, for one set of instructions. Exponentials and logarithms are exact to 2 units in the last
// place; what is below e^-87 counts as that.
struct RowMaths {
  // In place: log-probabilities of the logits x [n]. Where all are kNoChoice, they are equal.
  void (*log_softmax)(float* x, std::size_t n);
  // One step of a cell of d units. `gates` [4][d]: in, forget, new, out, before their functions. h and c [d] out;
  // `c` holds what it was before.
  void (*lstm_cell)(const float* gates, std::size_t d, float* h, float* c);
  // The inner product of two rows [n].
  float (*product)(const float* a, const float* b, std::size_t n);
  // to[i] = log(-log(u[i])) of n uniform numbers [0, 1): what a logarithmic probability less it is the largest of,
  // is drawn by that probability (the Gumbel-max trick).
  void (*gumbel)(const float* u, float* to, std::size_t n);
  // to[i] = max(to[i], row[i]) of n numbers.
  void (*raise)(float* to, const float* row, std::size_t n);
};

// `with` is one that the processor has.
RowMaths row_maths(Instructions with);

float sigmoid(float x);
float power_of_e(float x);

}  // namespace five
