"""Filters that reduce a leaf table to one hero fewer, after that hero was picked or banned.

The result is numbered as the table of a pool without the hero.
"""

import numpy as np
import numpy.typing as npt

from five.agent.draft.subsets import Subsets, insert_position, subsets

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def filter_rows(win: Floats, heroes: int, size: int, position: int, taken: bool) -> Floats:
    """Keep the rows of sets (``size`` of ``heroes``) that contain the hero at ``position``, or that do not.

    Columns stay: Dire's sets number the heroes that Radiant leaves, with or without the decided hero.
    """
    return win[_ranks(subsets(heroes, size), subsets(heroes - 1, size - taken), position, taken)]


def filter_columns(win: Floats, heroes: int, size: int, position: int, taken: bool) -> Floats:
    """Keep the columns of sets that contain the hero at ``position``, or that do not, for a shared pool
    (`HeroPool.shared`)."""
    return win[:, _ranks(subsets(heroes, size), subsets(heroes - 1, size - taken), position, taken)]


def filter_remaining_columns(win: Floats, heroes: int, radiant: int, dire: int, position: int, taken: bool) -> Floats:
    """Keep the rows without the hero at ``position``, and their columns that contain the hero, or that do not.

    Rows are sets of ``radiant`` of ``heroes``; columns are sets of ``dire`` of the heroes that the row leaves. The
    hero's index among these depends on the row.
    """
    fewer = subsets(heroes - 1, radiant)
    row = _ranks(subsets(heroes, radiant), fewer, position, False)
    below = fewer.masks & ((np.int64(1) << position) - 1)
    index = position - np.bitwise_count(below).astype(np.int64)
    whole, part = subsets(heroes - radiant, dire), subsets(heroes - radiant - 1, dire - taken)
    out = np.empty((len(row), len(part)), np.float32)
    for at in np.unique(index).tolist():
        selected = np.flatnonzero(index == at)
        out[selected] = win[row[selected][:, None], _ranks(whole, part, at, taken)]
    return out


def _ranks(whole: Subsets, part: Subsets, position: int, taken: bool) -> Ints:
    """Return the ranks in ``whole`` of the sets of ``part`` after inserting a hero at ``position``, taken or not."""
    return whole.rank(insert_position(part.masks, position, taken))
