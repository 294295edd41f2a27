#include "set_layers.hpp"

#include <algorithm>

#include "outer.hpp"

namespace five {

namespace {

constexpr std::size_t kBlock = 64;  // rows at a time: they stay in a near cache from layer to layer

// Some rows of all pieces side by side, `stride` apart.
void gather(std::span<const Piece> pieces, std::size_t from, std::size_t rows, std::size_t stride, float* to) {
  std::size_t at = 0;
  for (const Piece& piece : pieces) {
    const float* row = piece.values + from * piece.width;
    for (std::size_t r = 0; r < rows; ++r, row += piece.width)
      std::copy_n(row, piece.width, to + r * stride + at);
    at += piece.width;
  }
}

// The columns [columns][rows] of a weight [rows][width], from `first` on.
void turn(const float* weight, std::size_t rows, std::size_t width, std::size_t first, std::size_t columns,
          float* to) {
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows; ++r)
      to[c * rows + r] = weight[r * width + first + c];
}

void add_rows(const float* d, std::size_t rows, std::size_t width, float* sums) {
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t i = 0; i < width; ++i)
      sums[i] += d[r * width + i];
}

// The layer from the gradient of the hidden layer to that of the pieces that want one.
Layer to_learned(const SetLayers& of, std::span<const Piece> pieces, Instructions with) {
  std::vector<float> weight;
  std::size_t at = 0;
  for (const Piece& piece : pieces) {
    if (piece.gradient != nullptr) {
      weight.resize(weight.size() + piece.width * of.hidden);
      turn(of.first, of.hidden, of.in, at, piece.width, weight.data() + weight.size() - piece.width * of.hidden);
    }
    at += piece.width;
  }
  return {of.hidden, weight.size() / std::max<std::size_t>(of.hidden, 1), weight.data(), nullptr, with};
}

}  // namespace

void set_forward(const SetLayers& of, std::span<const Piece> pieces, std::size_t rows, Instructions with,
                 float* hidden, float* out) {
  const Layer first(of.in, of.hidden, of.first, of.first_bias, with);
  const Layer second(of.hidden, of.out, of.second, of.second_bias, with);
  std::vector<float> x(kBlock * of.in);
  for (std::size_t r = 0; r < rows; r += kBlock) {
    const std::size_t here = std::min(kBlock, rows - r);
    gather(pieces, r, here, of.in, x.data());
    first(x.data(), of.in, here, hidden + r * of.hidden, of.hidden, false, Layer::After::kRelu);
    second(hidden + r * of.hidden, of.hidden, here, out + r * of.out, of.out);
  }
}

void set_backward(const SetLayers& of, std::span<const Piece> pieces, std::size_t rows, Instructions with,
                  const float* hidden, const float* gradient, const SetGradients& to) {
  const std::size_t in_stride = padded_to_vectors(of.in), hidden_stride = padded_to_vectors(of.hidden);
  std::vector<float> turned(of.hidden * of.out);
  turn(of.second, of.out, of.hidden, 0, of.hidden, turned.data());
  const Layer to_hidden(of.out, of.hidden, turned.data(), nullptr, with);
  const Layer to_pieces = to_learned(of, pieces, with);
  // Padded, so that products are of whole vectors.
  std::vector<float> x(kBlock * in_stride), seen(kBlock * hidden_stride), of_hidden(kBlock * of.hidden),
      of_pieces(kBlock * to_pieces.out()), first(of.hidden * in_stride), second(of.out * hidden_stride);
  std::fill_n(to.first_bias, of.hidden, 0.0f);
  std::fill_n(to.second_bias, of.out, 0.0f);
  for (std::size_t r = 0; r < rows; r += kBlock) {
    const std::size_t here = std::min(kBlock, rows - r);
    const float *d = gradient + r * of.out, *was = hidden + r * of.hidden;
    for (std::size_t i = 0; i < here; ++i)
      std::copy_n(was + i * of.hidden, of.hidden, seen.data() + i * hidden_stride);
    add_outer(d, of.out, of.out, seen.data(), of.hidden, here, second.data(), with);
    add_rows(d, here, of.out, to.second_bias);
    to_hidden(d, of.out, here, of_hidden.data(), of.hidden);
    for (std::size_t i = 0; i < here * of.hidden; ++i)  // what is no number shows
      of_hidden[i] = was[i] > 0.0f || was[i] != was[i] ? of_hidden[i] : 0.0f;
    gather(pieces, r, here, in_stride, x.data());
    add_outer(of_hidden.data(), of.hidden, of.hidden, x.data(), of.in, here, first.data(), with);
    add_rows(of_hidden.data(), here, of.hidden, to.first_bias);
    if (to_pieces.out() == 0) continue;
    to_pieces(of_hidden.data(), of.hidden, here, of_pieces.data(), to_pieces.out());
    std::size_t at = 0;
    for (const Piece& piece : pieces) {
      if (piece.gradient == nullptr) continue;
      for (std::size_t i = 0; i < here; ++i)
        std::copy_n(of_pieces.data() + i * to_pieces.out() + at, piece.width,
                    piece.gradient + (r + i) * piece.width);
      at += piece.width;
    }
  }
  for (std::size_t h = 0; h < of.hidden; ++h)
    std::copy_n(first.data() + h * in_stride, of.in, to.first + h * of.in);
  for (std::size_t o = 0; o < of.out; ++o)
    std::copy_n(second.data() + o * hidden_stride, of.hidden, to.second + o * of.hidden);
}

}  // namespace five
