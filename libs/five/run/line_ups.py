"""Line-ups of a pool set up in real games, to be shown to whoever says what they are worth."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.vec_game import TEAMS, VecGame
from five.agent.draft.leaves import HeroPool, Ints

# How leaves are read, as their table says it.
HOW = {"randomised": False, "observation": "the first of the game, both teams'"}


class LineUps:
    """Up to ``games`` at a time; ``game`` as it is evaluated. Not to be shared between threads."""

    def __init__(self, game: GameConfig, pool: HeroPool, games: int) -> None:
        self.games = games
        self._vec = VecGame(game, games)
        self._pool = pool
        self._numbers = np.array([self._vec.heroes.index(hero) for hero in pool.heroes], np.int16)

    def seen(self, leaves: Ints) -> dict[str, npt.NDArray[Any]]:
        """What both teams see first of leaves (their numbers, [k]): observations [k * TEAMS, ...], until the next call.
        """
        return self.seen_by(self._pool.teams(leaves))

    def seen_by(self, teams: Ints) -> dict[str, npt.NDArray[Any]]:
        """As `seen`, of teams int64 [k, TEAMS, team], indices into the pool's heroes, ascending."""
        for place, line_up in enumerate(np.ascontiguousarray(self._numbers[teams])):
            self._vec.reset_as(place, 0, line_up)
        k = len(teams)
        return {name: array[:k].reshape(k * TEAMS, *array.shape[2:]) for name, array in self._vec.obs.items()}
