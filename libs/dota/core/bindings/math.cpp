// The pinned functions, for their test against Python's math.
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "base/math.hpp"

namespace nb = nanobind;

namespace dota {

void bind_math(nb::module_& m) {
  m.def(
      "pinned_sin_cos",
      [](const std::vector<float>& angles) {
        std::vector<std::pair<float, float>> out;
        for (const float a : angles) {
          const SinCos v = sin_cos(a);
          out.emplace_back(v.sin, v.cos);
        }
        return out;
      },
      nb::arg("angles"), "Sine and cosine of each angle, as the game computes them.");
  m.def(
      "pinned_sin_cos_of",
      [](const std::vector<float>& angles) {
        std::vector<float> sines(angles.size()), cosines(angles.size());
        sin_cos_of(angles.data(), angles.size(), sines.data(), cosines.data());
        std::vector<std::pair<float, float>> out;
        for (std::size_t i = 0; i < angles.size(); ++i)
          out.emplace_back(sines[i], cosines[i]);
        return out;
      },
      nb::arg("angles"), "The same, several at a time.");
  m.def("pinned_angle", [](float y, float x) { return angle_of(y, x); }, nb::arg("y"), nb::arg("x"));
  m.def("pinned_ln", [](float x) { return ln(x); }, nb::arg("x"));
  m.def(
      "pinned_power",
      [](float base, int exponent) {
        if (exponent < 0) throw nb::value_error("whole_power: the exponent is at least 0");
        return whole_power(base, exponent);
      },
      nb::arg("base"), nb::arg("exponent"));
}

}  // namespace dota
