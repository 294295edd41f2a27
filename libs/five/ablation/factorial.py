"""Factorial designs: several settings compared at once, each in half of the runs."""

from collections.abc import Sequence

import numpy as np

MAX_FACTORS = 16


def combinations(factors: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the runs of a design: for each run the factors that are changed in it. The first run changes none.

    There are twice as many runs as the next power of two from the number of factors on: the rows of a Hadamard matrix
    and of its negative. Each factor is changed in half of the runs, every two of them together in a quarter. The effect
    of a factor then contains neither those of the others nor interactions of two factors (resolution IV: Box, Hunter
    and Hunter 2005, Statistics for Experimenters, chapter 6).
    """
    levels = np.array([[1]])
    while len(levels) < len(factors):
        levels = np.kron(levels, np.array([[1, 1], [1, -1]]))
    runs = np.vstack([-levels, levels])[:, : len(factors)] > 0
    return [tuple(name for name, changed in zip(factors, run, strict=True) if changed) for run in runs]
