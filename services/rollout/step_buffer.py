"""Ring buffer of the last steps of a group's games. Segments are cut from it."""

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
    """Split an array [k, 2, ...], packed as a whole, into each team-step's bytes, object [k, 2].

    Raises ValueError for another shape or encoding.
    """
    if array.shape[1:2] != (SIDES,):
        raise ValueError(f"shape {list(array.shape)}: observations have {SIDES} sides, [games, {SIDES}, ...]")
    rows = split_f16(array.data, array.shape[0] * SIDES, math.prod(array.shape[2:]))
    return np.array(rows, np.object_).reshape(-1, SIDES)


class StepBuffer:
    """Arrays of the last ``capacity`` steps of G games in lockstep. Step ``t`` is in row ``t % capacity``.

    The observation of a row is written by the step before; the other arrays follow when it is answered and played. For
    a float16 observation named in ``packed`` a row holds the sparse encoding's bytes, in which games, inference and
    optimizers exchange it: object [capacity, G, 2].

    Attributes, with leading dimensions [capacity, G, 2]:
        observations: by name.
        actions: int16 [H, 6].
        logp: float32 [H].
        values: float32 [H].
        versions: int32 [].
        signals: float32 [H, signals].
        game_time: float32 [capacity, G], seconds.
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
        """Return the row of a step."""
        return step % self.capacity

    def observation(self, step: int) -> Arrays:
        """Return the observation of a step as views to write into, [G, 2, ...]; packed ones as object [G, 2]."""
        row = self.row(step)
        return {name: array[row] for name, array in self.observations.items()}

    def request_observations(self, step: int, sides: npt.NDArray[np.integer]) -> dict[str, Array | PackedRows]:
        """Return a step's observations for an inference request of the sides ``sides`` (indices into [G * 2])."""
        whole = len(sides) == self.games * SIDES
        found: dict[str, Array | PackedRows] = {}
        for name, array in self.observation(step).items():
            flat = array.reshape(self.games * SIDES, *array.shape[2:])
            found[name] = self._in_wire_form(name, flat if whole else flat[sides])
        return found

    def _in_wire_form(self, name: str, rows: Array) -> Array | PackedRows:
        return PackedRows(rows, self._packed[name], JOIN) if name in self._packed else rows

    def team_arrays(self, game: int, side: int) -> dict[str, Array | PackedRows]:
        """Return all rows of one team as views, [capacity, ...], under the names of samples."""
        at = (slice(None), game, side)
        seen = {name: self._in_wire_form(name, array[at]) for name, array in self.observations.items()}
        return {**seen, "actions": self.actions[at], "behaviour_logp": self.logp[at],
                "behaviour_values": self.values[at], "versions": self.versions[at]}

    def nonzero(self, name: str, rows: npt.NDArray[np.intp], game: int, side: int, columns: npt.NDArray[np.intp]
                ) -> npt.NDArray[np.bool_]:
        """Return which of a team's values are not zero, [len(rows), len(columns)], in a float16 observation [n]."""
        team = self._in_wire_form(name, self.observations[name][:, game, side])
        if isinstance(team, PackedRows):
            return team[rows].present(columns)
        found: npt.NDArray[np.bool_] = team[rows[:, None], columns[None]] != 0
        return found

    def row_indices(self, start: int, steps: int) -> npt.NDArray[np.intp]:
        """Return the rows of ``steps`` steps from ``start`` on. Raises ValueError for more steps than the capacity."""
        if steps > self.capacity:
            raise ValueError(f"{steps} steps exceed the capacity of {self.capacity}")
        return np.arange(start, start + steps) % self.capacity
