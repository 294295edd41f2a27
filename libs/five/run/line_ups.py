"""Observations of line-ups: real games set up with given heroes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.vec_game import TEAMS, VecGame
from five.agent.draft.leaves import HeroPool, Ints

# Facts about the method that computes a table, which the table stores.
METHOD = {"randomised": False, "observation": "the first of the game, both teams'"}


class LineUps:
    """Up to ``games`` line-ups at a time, under the evaluation settings of ``game``. Not thread-safe."""

    def __init__(self, game: GameConfig, pool: HeroPool, games: int) -> None:
        self.games = games
        self._vec = VecGame(game, games)
        self._pool = pool
        self._numbers = np.array([self._vec.heroes.index(hero) for hero in pool.heroes], np.int16)

    def observe(self, leaves: Ints) -> dict[str, npt.NDArray[Any]]:
        """Return both teams' first observations of leaves (their numbers, int64 [k]).

        The arrays [k * TEAMS, ...] by name have both teams of a leaf in a row and are valid until the next call.
        """
        return self.observe_teams(self._pool.teams(leaves))

    def observe_teams(self, teams: Ints) -> dict[str, npt.NDArray[Any]]:
        """Return observations as `observe` does, of teams given as ascending indices into the pool's heroes, int64
        [k, TEAMS, team]."""
        for slot, line_up in enumerate(np.ascontiguousarray(self._numbers[teams])):
            self._vec.reset_as(slot, 0, line_up)
        k = len(teams)
        return {name: array[:k].reshape(k * TEAMS, *array.shape[2:]) for name, array in self._vec.obs.items()}
