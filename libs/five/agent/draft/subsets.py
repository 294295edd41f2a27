"""Numbering of hero sets: all subsets of one size as bit masks in ascending order."""

from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
MAX_HEROES = 62  # bits of an int64 mask, without its sign


class Subsets:
    """The subsets of ``size`` of ``n`` heroes.

    ``masks`` int64 [C(n, size)], ascending; bit h stands for hero h. Raise ValueError for an invalid size.
    """

    def __init__(self, n: int, size: int) -> None:
        if not 0 <= size <= n <= MAX_HEROES:
            raise ValueError(f"sets of {size} of {n} heroes: 0 <= {size} <= {n} <= {MAX_HEROES} is required")
        self.n, self.size = n, size
        chosen = np.array(list(combinations(range(n), size)), np.int64).reshape(comb(n, size), size)
        self.masks: Ints = np.sort((np.int64(1) << chosen).sum(axis=1))

    def __len__(self) -> int:
        return len(self.masks)

    def rank(self, masks: Ints) -> Ints:
        """Return the numbers of sets given as masks of any shape. Every mask must be one of these subsets."""
        return np.searchsorted(self.masks, masks)

    @cached_property
    def members(self) -> Ints:
        """int64 [C(n, size), size]: the heroes of each set, ascending."""
        return self._positions(self.masks, self.size)

    @cached_property
    def others(self) -> Ints:
        """int64 [C(n, size), n - size]: the heroes outside each set, ascending."""
        return self._positions(~self.masks & ((1 << self.n) - 1), self.n - self.size)

    def _positions(self, masks: Ints, size: int) -> Ints:
        there = (masks[:, None] >> np.arange(self.n)) & 1
        return np.nonzero(there)[1].astype(np.int64).reshape(len(masks), size)


@lru_cache(maxsize=256)
def subsets(n: int, size: int) -> Subsets:
    """Return cached `Subsets`."""
    return Subsets(n, size)


def remove_position(masks: Ints, position: int) -> Ints:
    """Return masks without the bit at ``position``; higher bits move down by one."""
    low = (np.int64(1) << position) - 1
    return (masks & low) | ((masks >> (position + 1)) << position)


def insert_position(masks: Ints, position: int, taken: bool) -> Ints:
    """Return masks with a bit inserted at ``position``, set if ``taken``; bits from there on move up by one."""
    low = (np.int64(1) << position) - 1
    return (masks & low) | (np.int64(taken) << position) | ((masks & ~low) << 1)
