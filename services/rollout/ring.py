"""The last steps of a group's games, in arrays that are made once: a segment is a slice of them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Specs = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]

SIDES = 2
ACTION_PARTS = 6


class StepRing:
    """Arrays of ``capacity`` steps of G games in lockstep. Step ``t`` of the group lies in row ``t % capacity``.

    Attributes, leading with [capacity, G, 2]: ``observations`` by name; ``actions`` int16 [H, 6]; ``logp``, ``values``
    float32 [H]; ``versions`` int32 []; ``signals`` float32 [H, signals]. ``game_time`` float32 [capacity, G], seconds.

    A row's observation is there from the step before on; the rest is what was answered to it and what followed.
    """

    def __init__(self, specs: Specs, capacity: int, games: int, heroes: int, signals: int) -> None:
        lead = (capacity, games, SIDES)
        self.capacity = capacity
        self.games = games
        self.heroes = heroes
        self.observations: Arrays = {name: np.zeros((*lead, *shape), dtype) for name, (shape, dtype) in specs.items()}
        self.actions = np.zeros((*lead, heroes, ACTION_PARTS), np.int16)
        self.logp = np.zeros((*lead, heroes), np.float32)
        self.values = np.zeros((*lead, heroes), np.float32)
        self.versions = np.zeros(lead, np.int32)
        self.signals = np.zeros((*lead, heroes, signals), np.float32)
        self.game_time = np.zeros((capacity, games), np.float32)

    def row(self, step: int) -> int:
        """Where a step lies."""
        return step % self.capacity

    def observation(self, step: int) -> Arrays:
        """The observation of a step, [G, 2, ...], as views to read or to write into."""
        row = self.row(step)
        return {name: array[row] for name, array in self.observations.items()}

    def team(self, game: int, side: int) -> Arrays:
        """All rows of one team, [capacity, ...], as views under the names that samples have."""
        at = (slice(None), game, side)
        return {**{name: array[at] for name, array in self.observations.items()}, "actions": self.actions[at],
                "behaviour_logp": self.logp[at], "behaviour_values": self.values[at], "versions": self.versions[at]}

    def span(self, start: int, steps: int) -> npt.NDArray[np.intp]:
        """Rows of ``steps`` steps from ``start`` on, in order. Raises ValueError when some are overwritten already."""
        if steps > self.capacity:
            raise ValueError(f"{steps} steps do not fit a ring of {self.capacity}")
        return np.arange(start, start + steps) % self.capacity
