"""Replay player that reproduces a game bit for bit."""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dota import _core
from dota.play import apply_person_row
from dota.replay import PersonRow, Replay
from dota.tables import made_by
from dota.vec_game import VecGame


def play(replay: Replay) -> Iterator[VecGame]:
    """Play a replay: yield its game after the reset and after each step.

    Raises ValueError, within two minutes of game time, when the game diverges from the recorded one; the error names
    what differs between then and now.
    """
    game = VecGame(replay.config, 1)
    game.reset_as(0, replay.seed, replay.lineup)
    yield game
    every = replay.check_every
    step_by = _step_with_people(game, replay.people) if replay.people else _step_without_people(game)
    for step, row in enumerate(replay.orders, 1):
        step_by(np.ascontiguousarray(row))
        check = step // every - 1
        if step % every == 0 and check < len(replay.checks):
            _compare(replay, game.hash(0), replay.checks[check], f"after {game.game_time[0]:.0f} s of game time")
        yield game
    if replay.final_hash is not None:
        _compare(replay, game.hash(0), replay.final_hash, "at the end")


def _step_without_people(game: VecGame) -> Callable[[npt.NDArray[np.int16]], None]:
    return lambda commands: game.step_commands(commands[None])


def _step_with_people(game: VecGame, people: list[PersonRow]) -> Callable[[npt.NDArray[np.int16]], None]:
    """Return a step function that applies people's orders before the frames in which they took effect."""
    core = _core.Play(game._core, 0)
    waiting = deque(people)

    def give_due() -> None:
        while waiting and waiting[0].frame <= core.engine_frame():
            row = waiting.popleft()
            try:
                apply_person_row(core, row)
            except IndexError as error:
                raise ValueError(f"the replay has an order to hero {row.hero}: {error}") from error

    def step(commands: npt.NDArray[np.int16]) -> None:
        give_due()
        core.begin_commands(commands)
        last = False
        while not last:
            give_due()
            last = core.frame()

    return step


def _compare(replay: Replay, state: int, recorded: int, when: str) -> None:
    if state == recorded:
        return
    patch = replay.config.patch
    now = made_by(patch)
    if replay.made_by is None or replay.made_by == now:
        why = "its orders were changed, or it was made by another version of the game"
    else:
        changed = [what for what, was, here in zip(("the core", f"the data of patch {patch}"), replay.made_by, now,
                                                   strict=True) if was != here]
        why = f"{' and '.join(changed)} changed since it was recorded"
    raise ValueError(f"the replay diverged {when}: state {state:016x}, recorded {recorded:016x}; {why}")


def run(path: str | Path) -> Iterator[dict[str, Any]]:
    """Play a replay file and yield the spectator's view after each timestep (``VecGame.spectate``).

    Raises ValueError for a file that is not a replay, and at the end when the result differs from the recorded one.
    """
    for game in play(Replay.load(path)):
        yield game.spectate(0)
