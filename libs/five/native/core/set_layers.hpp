// Two linear layers over packed rows, and their gradients: what a set of units or items is encoded by.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "layer.hpp"

namespace five {

// out = second(relu(first(row))), weights [out][in] each.
struct SetLayers {
  std::size_t in, hidden, out;
  const float *first, *first_bias, *second, *second_bias;
};

// Columns of the rows [rows][width], which stand side by side with those of the other pieces. `gradient`: where
// what these columns get goes, [rows][width]; null: nothing is learned of them.
struct Piece {
  const float* values;
  std::size_t width;
  float* gradient = nullptr;
};

// Of `rows` rows: hidden [rows][hidden], behind its ReLU, which lets what is no number through; out [rows][out].
void set_forward(const SetLayers& of, std::span<const Piece> pieces, std::size_t rows, Instructions with,
                 float* hidden, float* out);

// Gradients of the weights, shaped as they are.
struct SetGradients {
  float *first, *first_bias, *second, *second_bias;
};

// `hidden` of `set_forward`, `gradient` [rows][out] of its out. Sums over rows are in a fixed order.
void set_backward(const SetLayers& of, std::span<const Piece> pieces, std::size_t rows, Instructions with,
                  const float* hidden, const float* gradient, const SetGradients& to);

}  // namespace five
