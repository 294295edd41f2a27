"""Max-pools over packed rows on a processor, and their gradient: a pass or two over memory, where array operations take
eight."""

import numpy as np
import numpy.typing as npt

from five.native import _native

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def pool_rows(values: Floats, owner: Ints, pooled: Floats) -> None:
    """Writes ``pooled`` [owners, width]: the largest of 0 and the rows of ``values`` [R, width] that belong to each, by
    ``owner`` [R]. NaN stays NaN. Raises ValueError for sizes that do not fit together, IndexError for an unknown
    owner."""
    _native.pool_rows(values, owner, pooled)


def pool_gradient(values: Floats, owner: Ints, pooled: Floats, gradient: Floats) -> Floats:
    """What each row of ``values`` gets of the ``gradient`` [owners, width] of what `pool_rows` made of them: rows that
    share a maximum share its gradient, and a pool at its floor of zero was reached by no row. Raises as `pool_rows`."""
    out = np.empty_like(values)
    _native.pool_gradient(values, owner, pooled, gradient, out)
    return out
