// Two layers over packed rows as Python asks for them.
#include "set_layers.hpp"

#include <string>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

namespace {

using Floats = Array<const float>;
using Out = Array<float>;

void require(bool fits, const char* what) {
  if (!fits) throw nb::value_error((std::string("set layers: ") + what + " does not fit").c_str());
}

Instructions instructions_of(const std::string& name) {
  const Instructions best = best_instructions();
  if (name == "portable" || best == Instructions::kPortable) return Instructions::kPortable;
  return name == "avx2" ? Instructions::kAvx2 : best;
}

// Layers whose weights, pieces and rows were found to fit together.
struct Asked {
  Asked(const std::vector<Floats>& given, const std::vector<Floats>& weights, std::size_t hidden_size) {
    require(weights.size() == 4 && weights[0].ndim() == 2 && weights[2].ndim() == 2, "the number of weights");
    layers = {weights[0].shape(1), weights[0].shape(0), weights[2].shape(0), weights[0].data(),
              weights[1].data(),   weights[2].data(),   weights[3].data()};
    require(layers.hidden > 0 && layers.out > 0 && weights[2].shape(1) == layers.hidden, "a weight");
    require(weights[1].size() == layers.hidden && weights[3].size() == layers.out, "a bias");
    std::size_t in = 0;
    for (const Floats& piece : given) {
      require(piece.ndim() == 2 && piece.shape(0) == given[0].shape(0), "a piece");
      pieces.push_back({piece.data(), piece.shape(1)});
      in += piece.shape(1);
    }
    require(!given.empty() && in == layers.in, "the width of the pieces");
    rows = given[0].shape(0);
    require(hidden_size == rows * layers.hidden, "the hidden layer");
  }

  SetLayers layers;
  std::vector<Piece> pieces;
  std::size_t rows;
};

}  // namespace

void bind_set_layers(nb::module_& m) {
  m.def(
      "set_forward",
      [](const std::vector<Floats>& pieces, const std::vector<Floats>& weights, Out hidden, Out out,
         const std::string& instructions) {
        const Asked asked(pieces, weights, hidden.size());
        require(out.size() == asked.rows * asked.layers.out, "the result");
        nb::gil_scoped_release free;
        set_forward(asked.layers, asked.pieces, asked.rows, instructions_of(instructions), hidden.data(),
                    out.data());
      },
      nb::arg("pieces").noconvert(), nb::arg("weights").noconvert(), nb::arg("hidden").noconvert(),
      nb::arg("out").noconvert(), nb::arg("instructions") = "",
      "`weights`: those and the bias of the first layer and of the second. Writes what is behind the first one's "
      "ReLU, "
      "and what the second makes of it. `instructions`: 'portable' or 'avx2' in place of the widest.");
  m.def(
      "set_backward",
      [](const std::vector<Floats>& pieces, const std::vector<std::optional<Out>>& of_pieces,
         const std::vector<Floats>& weights, const std::vector<Out>& of_weights, Floats hidden, Floats gradient,
         const std::string& instructions) {
        Asked asked(pieces, weights, hidden.size());
        require(gradient.size() == asked.rows * asked.layers.out, "the gradient");
        require(of_weights.size() == weights.size() && of_pieces.size() == pieces.size(),
                "the number of gradients");
        for (std::size_t i = 0; i < weights.size(); ++i)
          require(of_weights[i].size() == weights[i].size(), "the gradient of a weight");
        for (std::size_t i = 0; i < pieces.size(); ++i)
          if (of_pieces[i]) {
            require(of_pieces[i]->size() == pieces[i].size(), "the gradient of a piece");
            asked.pieces[i].gradient = of_pieces[i]->data();
          }
        const SetGradients to{of_weights[0].data(), of_weights[1].data(), of_weights[2].data(),
                              of_weights[3].data()};
        nb::gil_scoped_release free;
        set_backward(asked.layers, asked.pieces, asked.rows, instructions_of(instructions), hidden.data(),
                     gradient.data(), to);
      },
      nb::arg("pieces").noconvert(), nb::arg("of_pieces").noconvert(), nb::arg("weights").noconvert(),
      nb::arg("of_weights").noconvert(), nb::arg("hidden").noconvert(), nb::arg("gradient").noconvert(),
      nb::arg("instructions") = "",
      "Writes the gradients of the weights, and of those pieces for which an array is given.");
}

}  // namespace five
