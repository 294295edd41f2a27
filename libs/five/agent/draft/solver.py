"""Minimax solution of a draft: the best pick if both teams pick optimally to the end.

The value of a partial draft depends on the two sets of heroes and not on the order of picks. So backward induction runs
over pairs of sets, one level of picks at a time (Berner et al. 2019 draft by "minimax", dynamic programming over
partial drafts). A level has Radiant's sets as rows and Dire's as columns, as the leaves do (`five.agent.draft.leaves`).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from five.agent.draft.pick_order import RADIANT
from five.agent.draft.subsets import remove_position, subsets

Floats = npt.NDArray[np.float32]


class DraftSolution(NamedTuple):
    """Solution of a partial draft.

    ``value`` is the probability that Radiant wins. ``choices`` float32 [n] is that value after each pick of the team to
    move, by its open heroes in order; it is empty if no pick is left.
    """

    value: float
    choices: Floats


def solve(leaves: Floats, radiant_open: int, dire_open: int, order: str, shared: bool = False) -> DraftSolution:
    """Solve a draft with the remaining ``order`` ("DRRD": Dire first) and the given numbers of open heroes.

    ``leaves`` float32 [rows, columns]: the probability that Radiant wins, for each set that Radiant can add (one hero
    per R of the order) and each that Dire can. Radiant maximizes it and Dire minimizes it. Without ``shared`` both
    teams pick from the same heroes, and columns number sets of the heroes that the row leaves. With it rows and columns
    are independent.
    """
    level = leaves
    r = order.count(RADIANT)
    d = len(order) - r
    for step in range(len(order) - 1, 0, -1):
        if order[step] == RADIANT:
            r -= 1
            level = _undo_radiant_pick(level, radiant_open, r, d, shared)
        else:
            d -= 1
            level = _undo_dire_pick(level, dire_open if shared else dire_open - r, d)
    if not order:
        return DraftSolution(float(level[0, 0]), np.zeros(0, np.float32))
    # One pick is left, and sets of one hero are numbered like the heroes.
    choices = level[:, 0] if order[0] == RADIANT else level[0, :]
    return DraftSolution(float(choices.max() if order[0] == RADIANT else choices.min()), choices.copy())


def _undo_radiant_pick(after: Floats, heroes: int, r: int, d: int, shared: bool) -> Floats:
    """Maximize over Radiant's pick from r to r + 1 heroes, with d of Dire: float32 [C(n, r), C(m, d)] from [C(n, r +
    1), ...]."""
    sets, larger = subsets(heroes, r), subsets(heroes, r + 1)
    if shared:
        out = np.full((len(sets), after.shape[1]), -np.inf, np.float32)
        for position in range(heroes - r):
            row = larger.rank(sets.masks | (1 << sets.others[:, position]))
            np.maximum(out, after[row], out=out)
        return out
    theirs, fewer = subsets(heroes - r, d), subsets(heroes - r - 1, d)
    out = np.full((len(sets), len(theirs)), -np.inf, np.float32)
    for position in range(heroes - r):  # index of the pick among the heroes outside Radiant's set
        row = larger.rank(sets.masks | (1 << sets.others[:, position]))
        free = np.flatnonzero((theirs.masks >> position) & 1 == 0)
        column = fewer.rank(remove_position(theirs.masks[free], position))
        out[:, free] = np.maximum(out[:, free], after[row[:, None], column])
    return out


def _undo_dire_pick(after: Floats, heroes: int, d: int) -> Floats:
    """Minimize over Dire's pick from d to d + 1 of ``heroes``: float32 [rows, C(m, d)] from [rows, C(m, d + 1)]."""
    sets, larger = subsets(heroes, d), subsets(heroes, d + 1)
    out = np.full((len(after), len(sets)), np.inf, np.float32)
    for position in range(heroes):
        free = np.flatnonzero((sets.masks >> position) & 1 == 0)
        column = larger.rank(sets.masks[free] | (1 << position))
        out[:, free] = np.minimum(out[:, free], after[:, column])
    return out
