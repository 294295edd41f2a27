"""Discounted sums of a whole segment at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def linear_recurrence(decay: npt.NDArray[np.floating[Any]] | float, add: npt.NDArray[np.floating[Any]],
               initial: npt.NDArray[np.floating[Any]] | float = 0.0, *, backward: bool = False) -> Doubles:
    """All values of x[t] = decay[t] · x[t-1] + add[t], with ``initial`` before the first.

    Args:
        decay: [T, ...] or what broadcasts to ``add``.
        add: [T, ...].
        initial: [...], or a number.
        backward: from the last row to the first: x[t] = decay[t] · x[t+1] + add[t], ``initial`` after the last.

    Returns float64 [T, ...], computed in log2 T passes over all rows (Hillis & Steele 1986): sums over spans of 1, 2,
    4, ... rows, each from two of the half.
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
