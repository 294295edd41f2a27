"""The last steps of a group's games, in arrays that are made once: a segment is a slice of them."""

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dota.packing import join_changes, join_f16, split_f16
from rapid.packed_array import PackedArray, PackedRows, RowJoiner

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
Specs = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]

SIDES = 2
ACTION_PARTS = 6
JOIN = RowJoiner(join_f16, join_changes)


def split_team_rows(array: PackedArray) -> npt.NDArray[np.object_]:
    """Of an array [k, 2, ...], packed as a whole, each team-step's own bytes, object [k, 2]. Raises ValueError when it
    is of another shape, or not packed so."""
    if array.shape[1:2] != (SIDES,):
        raise ValueError(f"{list(array.shape)} are not observations of {SIDES} sides")
    rows = split_f16(array.data, array.shape[0] * SIDES, math.prod(array.shape[2:]))
    return np.array(rows, np.object_).reshape(-1, SIDES)


class StepBuffer:
    """Arrays of ``capacity`` steps of G games in lockstep. Step ``t`` of the group lies in row ``t % capacity``.

    Attributes, leading with [capacity, G, 2]: ``observations`` by name; ``actions`` int16 [H, 6]; ``logp``, ``values``
    float32 [H]; ``versions`` int32 []; ``signals`` float32 [H, signals]. ``game_time`` float32 [capacity, G], seconds.

    A row's observation is there from the step before on; the rest is what was answered to it and what followed.

    Of the float16 observations named ``packed`` a row holds the bytes of their sparse encoding, as they come from the
    games and go to inference and optimizers: object [capacity, G, 2].
    """

    def __init__(self, specs: Specs, capacity: int, games: int, heroes: int, signals: int,
                 packed: Collection[str] = ()) -> None:
        lead = (capacity, games, SIDES)
        self.capacity = capacity
        self.games = games
        self.heroes = heroes
        self.observations: Arrays = {
            name: np.full(lead, b"", np.object_) if name in packed else np.zeros((*lead, *shape), dtype)
            for name, (shape, dtype) in specs.items()}
        self._packed = {name: specs[name][0] for name in packed}
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
        """The observation of a step, [G, 2, ...], as views to write into; of packed ones the rows' bytes, [G, 2]."""
        row = self.row(step)
        return {name: array[row] for name, array in self.observations.items()}

    def request_observations(self, step: int, places: npt.NDArray[np.integer]) -> dict[str, Array | PackedRows]:
        """The observation of a step, of the sides ``places`` ([G * 2] indices), as it is sent: [len(places), ...]."""
        whole = len(places) == self.games * SIDES
        found: dict[str, Array | PackedRows] = {}
        for name, array in self.observation(step).items():
            flat = array.reshape(self.games * SIDES, *array.shape[2:])
            found[name] = self._in_wire_form(name, flat if whole else flat[places])
        return found

    def _in_wire_form(self, name: str, rows: Array) -> Array | PackedRows:
        return PackedRows(rows, self._packed[name], JOIN) if name in self._packed else rows

    def team_arrays(self, game: int, side: int) -> dict[str, Array | PackedRows]:
        """All rows of one team, [capacity, ...], as views under the names that samples have."""
        at = (slice(None), game, side)
        seen = {name: self._in_wire_form(name, array[at]) for name, array in self.observations.items()}
        return {**seen, "actions": self.actions[at], "behaviour_logp": self.logp[at],
                "behaviour_values": self.values[at], "versions": self.versions[at]}

    def nonzero(self, name: str, rows: npt.NDArray[np.intp], game: int, side: int, columns: npt.NDArray[np.intp]
                ) -> npt.NDArray[np.bool_]:
        """Which of a team's values in those rows are not zero, [len(rows), len(columns)], of a float16 observation [n].
        """
        team = self._in_wire_form(name, self.observations[name][:, game, side])
        if isinstance(team, PackedRows):
            return team[rows].present(columns)
        found: npt.NDArray[np.bool_] = team[rows[:, None], columns[None]] != 0
        return found

    def row_indices(self, start: int, steps: int) -> npt.NDArray[np.intp]:
        """Rows of ``steps`` steps from ``start`` on, in order. Raises ValueError when some are overwritten already."""
        if steps > self.capacity:
            raise ValueError(f"{steps} steps do not fit a ring of {self.capacity}")
        return np.arange(start, start + steps) % self.capacity
