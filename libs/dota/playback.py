"""Running a replay again: the same game, bit for bit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dota.replay import Replay
from dota.vec_game import VecGame


def play(replay: Replay) -> Iterator[VecGame]:
    """Runs the game again: yields it, one place, after the reset and after each step.

    Raises ValueError at the end when the final hash is not the one that was saved.
    """
    game = VecGame(replay.config, 1)
    game.reset_as(0, replay.seed, replay.lineup)
    yield game
    for row in replay.orders:
        game._core.step_commands(0, np.ascontiguousarray(row))
        yield game
    if replay.final_hash is not None and game.hash(0) != replay.final_hash:
        raise ValueError(f"the replay ended in state {game.hash(0):016x}, {replay.final_hash:016x} was recorded: "
                         "it was made by another version of the game")


def run(path: str | Path) -> Iterator[dict[str, Any]]:
    """Replays a file and yields what a spectator sees after each timestep (``VecGame.spectate``).

    Raises ValueError for a file that is no replay, and at the end when the game did not come out the same.
    """
    for game in play(Replay.load(path)):
        yield game.spectate(0)
