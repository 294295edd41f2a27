"""Single-game API: a ``VecGame`` of one game, with arrays that lack the leading dimension."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.config import GameConfig
from dota.events import Event
from dota.replay import Replay
from dota.vec_game import VecGame, Winner


class Game:
    """A single game of a configuration.

    ``lineup`` fixes the heroes by name, one list a team; otherwise the seed selects them from the pool. ``obs`` holds
    the arrays of ``layout.array_specs()`` with leading dimension [2]; ``signals`` and ``stats`` are [2, H, .];
    ``controllers`` is uint8 [2]. ``VecGame`` defines their meaning. Raises ValueError as ``VecGame`` does.
    """

    def __init__(self, config: GameConfig, seed: int = 0, lineup: Sequence[Sequence[str]] | None = None) -> None:
        self._look_at(VecGame(config, 1, seed))
        self._lineup = None if lineup is None else self._vec.lineup(lineup)
        self.reset(seed)

    def _look_at(self, vec: VecGame) -> None:
        self._vec = vec
        self.config = vec.config
        self.layout = vec.layout
        self.obs = {name: array[0] for name, array in vec.obs.items()}
        self.signals = vec.signals[0]
        self.stats = vec.stats[0]
        self.controllers = vec.controllers[0]
        self.lineup = vec.lineups[0]

    def __getstate__(self) -> dict[str, Any]:
        return {"vec": self._vec, "lineup": self._lineup}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._look_at(state["vec"])
        self._lineup = state["lineup"]

    @property
    def winner(self) -> Winner:
        """Winning side, or RUNNING."""
        return Winner(int(self._vec.winner[0]))

    @property
    def time(self) -> float:
        """Seconds since the horn."""
        return float(self._vec.game_time[0])

    def reset(self, seed: int, lineup: Sequence[Sequence[str]] | None = None) -> None:
        """Start the game of a seed; ``lineup`` fixes its heroes. Raises ValueError for an invalid lineup."""
        self._vec.reset_as(0, seed, self._lineup if lineup is None else self._vec.lineup(lineup))

    def step(self, actions: npt.NDArray[np.int16] | None = None) -> None:
        """Play one step, ``frameskip`` frames, with ``actions`` int16 [2, H, 6]. Raises ValueError for another shape or
        dtype."""
        if actions is not None and actions.shape != self._vec._no_actions.shape[1:]:
            raise ValueError(f"actions has shape {actions.shape}, expected {self._vec._no_actions.shape[1:]}")
        self._vec.step(None if actions is None else actions[None])

    def hash(self) -> int:
        """Return the 64-bit hash of the state."""
        return self._vec.hash(0)

    def snapshot(self) -> bytes:
        """Return a snapshot of the state."""
        return self._vec.snapshot(0)

    def restore(self, snapshot: bytes) -> None:
        """Restore a snapshot. Raises ValueError for bytes that are not a snapshot of this configuration."""
        self._vec.restore(0, snapshot)

    def record(self) -> Replay:
        """Start recording; call it right after a reset."""
        return self._vec.record(0)

    def events(self) -> list[Event]:
        """Return the events of the last step in order."""
        return self._vec.events(0)

    def spectate(self) -> dict[str, Any]:
        """Return the whole state for a viewer, without fog of war."""
        return self._vec.spectate(0)
