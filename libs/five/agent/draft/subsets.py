"""Sets of heroes by number: the subsets of one size of n heroes, each a mask of bits, in ascending order of the masks.
"""

from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
MAX_HEROES = 24  # of a pool: its table of leaves has millions of entries long before


class Subsets:
    """The subsets of ``size`` of ``n`` heroes.

    ``masks`` int64 [C(n, size)], ascending: bit h stands for hero h. Raises ValueError for a size that n has not.
    """

    def __init__(self, n: int, size: int) -> None:
        if not 0 <= size <= n <= MAX_HEROES:
            raise ValueError(f"there are no sets of {size} of {n} heroes (at most {MAX_HEROES})")
        self.n, self.size = n, size
        chosen = np.array(list(combinations(range(n), size)), np.int64).reshape(comb(n, size), size)
        self.masks: Ints = np.sort((np.int64(1) << chosen).sum(axis=1))

    def __len__(self) -> int:
        return len(self.masks)

    def rank(self, masks: Ints) -> Ints:
        """Numbers of sets given as masks of any shape; each has to be one of these."""
        return np.searchsorted(self.masks, masks)

    @cached_property
    def members(self) -> Ints:
        """int64 [C(n, size), size]: the heroes of each set, ascending."""
        return self._positions(self.masks, self.size)

    @cached_property
    def others(self) -> Ints:
        """int64 [C(n, size), n - size]: the heroes that are not in each set, ascending."""
        return self._positions(~self.masks & ((1 << self.n) - 1), self.n - self.size)

    def _positions(self, masks: Ints, size: int) -> Ints:
        there = (masks[:, None] >> np.arange(self.n)) & 1
        return np.nonzero(there)[1].astype(np.int64).reshape(len(masks), size)


@lru_cache(maxsize=256)
def subsets(n: int, size: int) -> Subsets:
    """`Subsets`, made once."""
    return Subsets(n, size)


def remove_position(masks: Ints, position: int) -> Ints:
    """Masks over heroes of which the one at ``position`` is taken out: the bits above move down by one."""
    low = (np.int64(1) << position) - 1
    return (masks & low) | ((masks >> (position + 1)) << position)


def insert_position(masks: Ints, position: int, taken: bool) -> Ints:
    """Masks over one hero more, who stands at ``position`` and is in the set, or is not: the bits from there on move up
    by one."""
    low = (np.int64(1) << position) - 1
    return (masks & low) | (np.int64(taken) << position) | ((masks & ~low) << 1)
