"""Games that begin in the middle: a ring of snapshots of a process's games, from which a share of new games starts.

A game that starts from a snapshot has a random state of its own, so it continues differently. Its recurrent state is
zero, as at the beginning of a game. Snapshots are of `BotGames` or of the policy's games. The latter began at their
beginning and are not annealed, so that a snapshot fits every group of the process.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

USES = 2  # games that begin with one snapshot, on average, before bots play for another


@dataclass(frozen=True)
class GameSnapshot:
    """State of a game (`dota.vec_game.VecGame.snapshot`) at a game time in seconds."""

    state: bytes
    game_seconds: float


class SnapshotRing:
    """The newest ``capacity`` snapshots, one of a game every ``interval_seconds`` of game time.

    ``of_bots`` tells whether `BotGames` fills it. Otherwise the policy's games do.
    """

    def __init__(self, capacity: int, interval_seconds: float, rng: np.random.Generator, of_bots: bool = False) -> None:
        self.of_bots = of_bots
        self._ring: deque[GameSnapshot] = deque(maxlen=capacity)
        self._capacity = capacity
        self._interval = interval_seconds
        self._rng = rng
        self._is_used = False  # whether games begin in the middle
        self._unpaid = 0  # uses since the newest snapshot

    def __len__(self) -> int:
        return len(self._ring)

    def due(self, before: npt.NDArray[np.float32], after: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        """Return which games crossed a multiple of the interval, above 0, between two times [G]."""
        crossed: npt.NDArray[np.bool_] = after // self._interval > np.maximum(before // self._interval, 0)
        return crossed

    def add(self, snapshot: GameSnapshot) -> None:
        """Add a snapshot; the oldest one leaves a full ring."""
        self._ring.append(snapshot)
        self._unpaid = max(self._unpaid - USES, 0)

    @property
    def wants_snapshots(self) -> bool:
        """Whether games begin in the middle and the ring is not full, or its snapshots were used often."""
        return self._is_used and (len(self._ring) < self._capacity or self._unpaid >= USES)

    def choose(self, fraction: float) -> GameSnapshot | None:
        """Return a random snapshot with probability ``fraction``; None otherwise, and while the ring is empty."""
        self._is_used = fraction > 0
        if not self._ring or self._rng.random() >= fraction:
            return None
        self._unpaid += 1
        return self._ring[int(self._rng.integers(len(self._ring)))]

    def seed(self) -> int:
        """Return a random seed for a game."""
        return int(self._rng.integers(2**63))
