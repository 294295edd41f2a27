// Max-pools over packed rows as Python asks for them.
#include "pool.hpp"

#include "bindings/module.hpp"

namespace nb = nanobind;

namespace five {

namespace {

using Floats = Array<const float>;

PooledRows rows_of(const Floats& values, const Array<const std::int64_t>& owner, std::size_t pools) {
  if (values.ndim() != 2 || owner.size() != values.shape(0))
    throw nb::value_error("pools: an owner for each row is needed");
  const PooledRows of{values.data(), owner.data(), values.shape(0), 0, values.shape(1)};
  if (of.width == 0 || pools % of.width != 0) throw nb::value_error("pools: pools are as wide as rows");
  const std::size_t owners = pools / of.width;
  for (std::size_t r = 0; r < of.rows; ++r)
    if (of.owner[r] < 0 || static_cast<std::size_t>(of.owner[r]) >= owners)
      throw nb::index_error("pools: a row of an owner that there is not");
  return {of.values, of.owner, of.rows, owners, of.width};
}

}  // namespace

void bind_pool(nb::module_& m) {
  m.def(
      "pool_rows",
      [](Floats values, Array<const std::int64_t> owner, Array<float> pooled) {
        const PooledRows of = rows_of(values, owner, pooled.size());
        nb::gil_scoped_release free;
        pool_rows(of, pooled.data());
      },
      nb::arg("values").noconvert(), nb::arg("owner").noconvert(), nb::arg("pooled").noconvert(),
      "Writes the largest of 0 and each owner's rows.");
  m.def(
      "pool_gradient",
      [](Floats values, Array<const std::int64_t> owner, Floats pooled, Floats gradient, Array<float> out) {
        const PooledRows of = rows_of(values, owner, pooled.size());
        if (gradient.size() != pooled.size() || out.size() != values.size())
          throw nb::value_error("pools: a gradient is of another size than its pools or rows");
        nb::gil_scoped_release free;
        pool_gradient(of, pooled.data(), gradient.data(), out.data());
      },
      nb::arg("values").noconvert(), nb::arg("owner").noconvert(), nb::arg("pooled").noconvert(),
      nb::arg("gradient").noconvert(), nb::arg("out").noconvert(),
      "Writes what of the pools' gradient each row gets.");
}

}  // namespace five
