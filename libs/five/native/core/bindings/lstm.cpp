// Python bindings of the LSTM cell and its gradient.
#include "lstm.hpp"

#include <optional>

#include <nanobind/stl/optional.h>

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

namespace {

using Cells = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

struct Sizes {
  std::size_t steps, rows, width, all;  // `all` is steps * rows * width
};

// Raises ValueError without a step, IndexError for a step outside the sequence.
Sizes sizes_of(std::size_t cells, std::size_t rows, std::size_t width, std::size_t step) {
  if (cells < 2) throw nb::value_error("lstm: a sequence needs a step");
  if (step + 1 >= cells) throw nb::index_error("lstm: the step is outside the sequence");
  return {cells - 1, rows, width, (cells - 1) * rows * width};
}

void require_size(std::size_t size, std::size_t expected) {
  if (size != expected) throw nb::value_error("lstm: wrong size of an array");
}

const float* keep_of(const std::optional<Array<const float>>& keep, const Sizes& of) {
  if (!keep) return nullptr;
  require_size(keep->size(), of.steps * of.rows);
  return keep->data();
}

// `T` is the type in Python, `Number` the type of the function.
template <class T, class Number>
void bind_type(nb::module_& m) {
  m.def(
      "lstm_step",
      [](std::size_t step, Array<const T> from_input, Array<const T> product, Array<T> before, Array<float> gates,
         nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu> cells, Array<float> cell_tanh,
         Array<float> outputs, std::optional<Array<const float>> keep) {
        const Sizes of = sizes_of(cells.shape(0), cells.shape(1), cells.shape(2), step);
        require_size(from_input.size(), 4 * of.all), require_size(gates.size(), 4 * of.all);
        require_size(product.size(), 4 * of.rows * of.width), require_size(before.size(), cells.size());
        require_size(cell_tanh.size(), of.all), require_size(outputs.size(), of.all);
        const LstmSequence<Number> sequence{of.steps,
                                            of.rows,
                                            of.width,
                                            keep_of(keep, of),
                                            reinterpret_cast<const Number*>(from_input.data()),
                                            reinterpret_cast<const Number*>(product.data()),
                                            reinterpret_cast<Number*>(before.data()),
                                            gates.data(),
                                            cells.data(),
                                            cell_tanh.data(),
                                            outputs.data()};
        nb::gil_scoped_release free;
        lstm_step(sequence, step);
      },
      nb::arg("step"), nb::arg("from_input").noconvert(), nb::arg("product").noconvert(),
      nb::arg("before").noconvert(), nb::arg("gates").noconvert(), nb::arg("cells").noconvert(),
      nb::arg("cell_tanh").noconvert(), nb::arg("outputs").noconvert(), nb::arg("keep").none(),
      "Evaluates one step of the cell after its product. bfloat16 is given as uint16. Raises ValueError for sizes "
      "that do not match.");
  m.def(
      "lstm_step_gradient",
      [](std::size_t step, Array<const T> product, Array<const float> of_outputs, Array<const float> gates,
         Cells cells, Array<const float> cell_tanh, Array<T> of_gates, Array<float> of_cell,
         std::optional<Array<const float>> keep) {
        const Sizes of = sizes_of(cells.shape(0), cells.shape(1), cells.shape(2), step);
        require_size(of_gates.size(), 4 * of.all), require_size(gates.size(), 4 * of.all);
        require_size(product.size(), of.rows * of.width), require_size(of_cell.size(), of.rows * of.width);
        require_size(cell_tanh.size(), of.all), require_size(of_outputs.size(), of.all);
        const LstmGradient<Number> gradient{of.steps,
                                            of.rows,
                                            of.width,
                                            keep_of(keep, of),
                                            gates.data(),
                                            cells.data(),
                                            cell_tanh.data(),
                                            of_outputs.data(),
                                            reinterpret_cast<const Number*>(product.data()),
                                            reinterpret_cast<Number*>(of_gates.data()),
                                            of_cell.data()};
        nb::gil_scoped_release free;
        lstm_step_gradient(gradient, step);
      },
      nb::arg("step"), nb::arg("product").noconvert(), nb::arg("of_outputs").noconvert(),
      nb::arg("gates").noconvert(), nb::arg("cells").noconvert(), nb::arg("cell_tanh").noconvert(),
      nb::arg("of_gates").noconvert(), nb::arg("of_cell").noconvert(), nb::arg("keep").none(),
      "Evaluates the gradient of one step up to its product. Errors are those of `lstm_step`.");
}

}  // namespace

void bind_lstm(nb::module_& m) {
  bind_type<float, float>(m);
  bind_type<std::uint16_t, Bfloat16>(m);
}

}  // namespace five
