"""A table of leaves with one hero decided: picked by a team, or banned. What is left is a table of a pool of one hero
fewer, numbered as such: nothing is worked out hero by hero."""

import numpy as np
import numpy.typing as npt

from five.agent.draft.subsets import Subsets, insert_position, subsets

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def filter_rows(win: Floats, heroes: int, size: int, place: int, taken: bool) -> Floats:
    """The rows of the sets (of ``size`` of ``heroes``) that hold the hero at ``place``, or that don't. Dire's columns
    number what Radiant leaves, which is the same whether its hero counts as picked or as none of the pool."""
    return win[_ranks(subsets(heroes, size), subsets(heroes - 1, size - taken), place, taken)]


def filter_columns(win: Floats, heroes: int, size: int, place: int, taken: bool) -> Floats:
    """The same of columns, where these number sets of the whole pool (`Pool.shared`)."""
    return win[:, _ranks(subsets(heroes, size), subsets(heroes - 1, size - taken), place, taken)]


def filter_remaining_columns(win: Floats, heroes: int, radiant: int, dire: int, place: int, taken: bool) -> Floats:
    """Rows whose set (of ``radiant`` of ``heroes``) lacks the hero at ``place``, and of each the columns whose set (of
    ``dire`` of what the row leaves) holds him, or doesn't. Where he stands among those depends on the row."""
    fewer = subsets(heroes - 1, radiant)
    row = _ranks(subsets(heroes, radiant), fewer, place, False)
    below = fewer.masks & ((np.int64(1) << place) - 1)
    stands = place - np.bitwise_count(below).astype(np.int64)
    whole, part = subsets(heroes - radiant, dire), subsets(heroes - radiant - 1, dire - taken)
    out = np.empty((len(row), len(part)), np.float32)
    for at in np.unique(stands).tolist():
        of = np.flatnonzero(stands == at)
        out[of] = win[row[of][:, None], _ranks(whole, part, at, taken)]
    return out


def _ranks(whole: Subsets, part: Subsets, place: int, taken: bool) -> Ints:
    """Numbers, among ``whole``, of the sets of ``part`` with the hero at ``place`` put in between, taken or not."""
    return whole.rank(insert_position(part.masks, place, taken))
