// Python binding of the gradient clip.
#include "element_clip.hpp"

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

void bind_element_clip(nb::module_& m) {
  m.def(
      "clip_elements",
      [](Array<float> gradient, Array<float> v, float scale, float decay, float share) {
        if (gradient.size() != v.size()) throw nb::value_error("element clip: gradient and v differ in length");
        nb::gil_scoped_release free;
        return clip_elements(gradient.data(), v.data(), v.size(), scale, decay, share);
      },
      nb::arg("gradient").noconvert(), nb::arg("v").noconvert(), nb::arg("scale"), nb::arg("decay"),
      nb::arg("share"),
      "Clips a gradient to ± sqrt(v * scale) where that is not 0, and then adds the unclipped gradient to its "
      "second "
      "moment `v`. Returns the number of clipped elements.");
}

}  // namespace five
