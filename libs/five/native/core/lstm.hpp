// The LSTM cell and its gradient, one step of a sequence at a time, without the matrix products.
#pragma once

#include <cstddef>

#include "bfloat16.hpp"

namespace five {

// Arrays of a sequence of `steps` steps of `rows` rows and `width` units, T is float or Bfloat16.
//
// The gates [rows][4 * width] are in the order input, forget, cell, output. `keep` [steps][rows] is 0 where the
// state is zero before the step and 1 elsewhere; null: nowhere.
template <class T>
struct LstmSequence {
  std::size_t steps, rows, width;
  const float* keep;
  const T* from_input;  // [steps][rows][4 * width]: the inputs' and biases' share of the gates.
  const T* product;     // [rows][4 * width]: the state's share of a step's gates.
  T* before;            // [steps + 1][rows][width]: the state before each step, and the last.
  float* gates;         // [steps][rows][4 * width] after their activations.
  float* cells;         // [steps + 1][rows][width]: the cell before each step, and the last.
  float* cell_tanh;     // [steps][rows][width]
  float* outputs;       // [steps][rows][width]
};

// Reads `product`, `before` and `cells` of step t. Writes its gates, outputs and tanh of the cell, and state and
// cell before the next step.
template <class T>
void lstm_step(const LstmSequence<T>& of, std::size_t t);

// Arrays of the gradient.
template <class T>
struct LstmGradient {
  std::size_t steps, rows, width;
  const float *keep, *gates, *cells, *cell_tanh;
  const float* of_outputs;  // [steps][rows][width]
  const T* product;         // [rows][width]: the gradient of the state before step t + 1.
  T* of_gates;              // [steps][rows][4 * width]
  float* of_cell;           // [rows][width]: the gradient of the cell after step t, then of the cell before it.
};

// Reads `product` and `of_cell` of step t and writes `of_gates` and `of_cell`.
template <class T>
void lstm_step_gradient(const LstmGradient<T>& of, std::size_t t);

}  // namespace five
