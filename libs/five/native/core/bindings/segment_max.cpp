// Python bindings of pools over rows.
#include "segment_max.hpp"

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

namespace {

template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Raises IndexError for an unknown owner, ValueError for sizes that do not match.
Segments segments(std::size_t rows, std::size_t width, const Array<const std::int64_t>& owner, std::size_t owners,
                  std::size_t pooled_width) {
  if (owner.size() != rows) throw nb::value_error("segment max: rows and owners differ in length");
  if (pooled_width != width) throw nb::value_error("segment max: rows and pools differ in width");
  for (std::size_t r = 0; r < rows; ++r)
    if (owner.data()[r] < 0 || static_cast<std::size_t>(owner.data()[r]) >= owners)
      throw nb::index_error("segment max: an owner is outside the pools");
  return {owner.data(), rows, owners, width};
}

// `T` is the type in Python, `Number` the type of the function.
template <class T, class Number>
void bind_type(nb::module_& m) {
  m.def(
      "segment_max",
      [](Matrix<const T> values, Array<const std::int64_t> owner, Matrix<T> pooled) {
        const Segments of = segments(values.shape(0), values.shape(1), owner, pooled.shape(0), pooled.shape(1));
        nb::gil_scoped_release free;
        segment_max(of, reinterpret_cast<const Number*>(values.data()), reinterpret_cast<Number*>(pooled.data()));
      },
      nb::arg("values").noconvert(), nb::arg("owner").noconvert(), nb::arg("pooled").noconvert(),
      "Writes the maximum of 0 and each owner's rows. bfloat16 is given as uint16. Raises IndexError for an "
      "unknown owner.");
  m.def(
      "segment_max_gradient",
      [](Matrix<const T> values, Array<const std::int64_t> owner, Matrix<const T> pooled, Matrix<const T> gradient,
         Matrix<T> out) {
        const Segments of = segments(values.shape(0), values.shape(1), owner, pooled.shape(0), pooled.shape(1));
        if (gradient.size() != pooled.size() || out.size() != values.size())
          throw nb::value_error("segment max: wrong size of a gradient");
        nb::gil_scoped_release free;
        segment_max_gradient(
            of, reinterpret_cast<const Number*>(values.data()), reinterpret_cast<const Number*>(pooled.data()),
            reinterpret_cast<const Number*>(gradient.data()), reinterpret_cast<Number*>(out.data()));
      },
      nb::arg("values").noconvert(), nb::arg("owner").noconvert(), nb::arg("pooled").noconvert(),
      nb::arg("gradient").noconvert(), nb::arg("out").noconvert(),
      "Writes the gradient of the rows. Arguments and errors are those of `segment_max`.");
}

}  // namespace

void bind_segment_max(nb::module_& m) {
  bind_type<float, float>(m);
  bind_type<std::uint16_t, Bfloat16>(m);
}

}  // namespace five
