"""Linear recurrences over a whole segment."""

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def linear_recurrence(decay: npt.NDArray[np.floating[Any]] | float, add: npt.NDArray[np.floating[Any]],
                      initial: npt.NDArray[np.floating[Any]] | float = 0.0, *, backward: bool = False) -> Doubles:
    """Return all values of x[t] = decay[t] · x[t-1] + add[t], float64 [T, ...].

    Args:
        decay: [T, ...] or a shape that broadcasts to ``add``.
        add: [T, ...].
        initial: [...] or a number, the value before the first row.
        backward: run from the last row to the first, x[t] = decay[t] · x[t+1] + add[t], with ``initial`` after the last
            row.

    The scan takes log2 T passes over all rows (Hillis & Steele 1986), doubling the span that each row has summed.
    """
    order = slice(None, None, -1) if backward else slice(None)
    sums = np.array(add[order], np.float64)
    factors = np.array(np.broadcast_to(decay, add.shape)[order], np.float64)
    span = 1
    while span < len(sums):
        sums[span:] += factors[span:] * sums[:-span]
        factors[span:] = factors[span:] * factors[:-span]
        span *= 2
    sums += factors * initial
    return sums[order]
