"""Line-ups of a hero pool, the leaves of a draft, with their win probabilities.

A leaf is a row and a column. The row numbers Radiant's set among the sets of the pool. The column numbers Dire's set
among those of the remaining heroes, or of the whole pool if both teams may play the same hero (as in training games).
"""

from dataclasses import dataclass, field
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from five.agent.draft import table_filters
from five.agent.draft.subsets import Subsets, subsets

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class HeroPool:
    """``heroes`` in order, ``team`` of them a side. ``shared``: both teams may play the same hero.

    Raise ValueError for too few heroes or a duplicate.
    """

    heroes: tuple[str, ...]
    team: int
    shared: bool = False

    def __post_init__(self) -> None:
        needed = self.team if self.shared else 2 * self.team
        if self.team < 1 or len(self.heroes) < needed:
            raise ValueError(f"a pool of {len(self.heroes)} heroes is too small for two teams of {self.team}"
                             + ("" if self.shared else " without shared heroes"))
        if len(set(self.heroes)) != len(self.heroes):
            raise ValueError("the pool has a duplicate hero")

    @classmethod
    def from_game(cls, heroes: list[str], team: int) -> "HeroPool":
        """Return the pool of a game's configuration. Each hero is picked once if there are enough heroes for two
        teams."""
        return cls(tuple(heroes), team, shared=len(heroes) < 2 * team)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the table."""
        n, t = len(self.heroes), self.team
        return comb(n, t), comb(n if self.shared else n - t, t)

    @property
    def line_ups(self) -> int:
        """Number of leaves: C(17, 5) * C(12, 5) = 4,900,896 for 17 heroes, five a side."""
        rows, columns = self.shape
        return rows * columns

    @property
    def radiant(self) -> Subsets:
        """Radiant's sets: the rows."""
        return subsets(len(self.heroes), self.team)

    @property
    def dire(self) -> Subsets:
        """Dire's sets: the columns, as indices into the heroes that Radiant leaves."""
        return subsets(len(self.heroes) - (0 if self.shared else self.team), self.team)

    def teams(self, leaves: Ints) -> Ints:
        """Return the heroes of leaves (row-major numbers [k]) as ascending indices into ``heroes``, int64 [k, 2,
        team]."""
        rows, columns = leaves // self.shape[1], leaves % self.shape[1]
        radiant, dire = self.radiant.members[rows], self.dire.members[columns]
        if not self.shared:
            dire = np.take_along_axis(self.radiant.others[rows], dire, axis=1)
        return np.stack((radiant, dire), axis=1)

    def sets(self, leaves: Ints) -> tuple[Ints, Ints]:
        """Return both teams of leaves (row-major numbers [k]) as numbers among the pool's sets (`radiant`), int64 [k]
        each."""
        dire = self.teams(leaves)[:, 1]
        return leaves // self.shape[1], self.radiant.rank((np.int64(1) << dire).sum(axis=1))


def win_from_heads(heads: npt.NDArray[np.floating[Any]]) -> Floats:
    """Return win probabilities of leaves, float32 [k], from all heroes' heads at the first observation, [k, 2, H].

    A team's prediction is the mean over its heroes. The result is the mean of Radiant's prediction and 1 minus Dire's.
    """
    chance = np.asarray(heads, np.float64).mean(axis=-1)
    return np.asarray((chance[:, 0] + 1.0 - chance[:, 1]) / 2.0, np.float32)


@dataclass(frozen=True)
class LeafTable:
    """Win probabilities of all line-ups of a pool.

    ``win`` float32 [rows, columns] of ``pool.shape``: the probability that Radiant wins, a drawn game being half.
    ``facts``: the version and the method of the table, JSON values. Raise ValueError for another shape.
    """

    pool: HeroPool
    win: Floats
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.win.shape != self.pool.shape:
            raise ValueError(f"win has shape {list(self.win.shape)}, expected {list(self.pool.shape)} of the pool")

    def remaining(self, radiant: int, dire: int, banned: int) -> Floats:
        """Return the leaves that agree with picks and bans, float32 [C(a, r), C(b, d)].

        The arguments are bit masks of heroes. Rows and columns number sets of the a and b heroes that Radiant and Dire
        may still pick (`open_heroes`); Radiant picks r more and Dire d.
        """
        win, r, d = self.win, self.pool.team, self.pool.team
        shared = self.pool.shared
        mine = list(range(len(self.pool.heroes)))
        theirs = mine.copy() if shared else mine  # the same list object if each hero is picked once
        for hero in _members(radiant):
            win, r = table_filters.filter_rows(win, len(mine), r, mine.index(hero), True), r - 1
            mine.remove(hero)
        for decided, picked in ((dire, True), (banned, False)):
            for hero in _members(decided):
                if shared:
                    win = table_filters.filter_columns(win, len(theirs), d, theirs.index(hero), picked)
                    theirs.remove(hero)
                    if not picked:
                        win = table_filters.filter_rows(win, len(mine), r, mine.index(hero), False)
                        mine.remove(hero)
                else:
                    win = table_filters.filter_remaining_columns(win, len(mine), r, d, mine.index(hero), picked)
                    mine.remove(hero)
                d -= picked
        return win


def open_heroes(pool: HeroPool, radiant: int, dire: int, banned: int) -> tuple[list[int], list[int]]:
    """Return the heroes that Radiant and Dire may still pick."""
    every = range(len(pool.heroes))
    if pool.shared:
        return ([h for h in every if not (radiant | banned) >> h & 1],
                [h for h in every if not (dire | banned) >> h & 1])
    free = [h for h in every if not (radiant | dire | banned) >> h & 1]
    return free, free


def _members(mask: int) -> list[int]:
    return [hero for hero in range(mask.bit_length()) if mask >> hero & 1]
