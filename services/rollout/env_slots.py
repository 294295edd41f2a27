"""State of a group's environment slots: who acts in each game, and the recurrent states for restoring a lost
session."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from five.clients.inference import NEWEST, RESET, WANT_POLICY_DEBUG, WANT_STATE
from five.services.rollout.step_buffer import SIDES, Array, Arrays

Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
StateSpecs = Mapping[str, tuple[tuple[int, ...], Any]]


@dataclass(frozen=True)
class SideAssignment:
    """The two sides of a game.

    ``policies`` are the versions (-1: the newest). ``acting`` says whether inference plays the side rather than a
    scripted bot. ``trains`` says whether it is learned from.
    """

    policies: tuple[int, int]
    acting: tuple[bool, bool]
    trains: tuple[bool, bool]


class EnvSlots:
    """Vectors over a group's slots, [G] for games and [G, 2] for sides.

    Samples are counted from a game's first step, so both sides of a game cross sample and segment boundaries together.

    Attributes:
        sessions: int64 [G, 2].
        policies: int64 [G, 2].
        acting: bool [G, 2].
        trains: bool [G, 2].
        watched: bool [G], whether the game has viewers.
        start_step: int64 [G], the group's step at which the game began.
        start: int64 [G], the group's step at which the present segment began.
        target: int64 [G], the number of steps of the full present segment.
        limit: float64 [G], the game time in seconds at which the game is cut.
        sample_states: [samples, G, 2, ...], the states at the starts of the segment's samples.
        boundary: int64 [G, 2], the last sample boundary at which each side's state is known.
        boundary_states: [G, 2, ...], the states there.
        boundary_predictions: [G, 2, ...], the auxiliary predictions there, by name.
    """

    def __init__(self, games: int, unroll: int, samples: int, state_specs: StateSpecs,
                 rng: np.random.Generator) -> None:
        self._unroll = unroll
        self._samples = samples
        self._rng = rng
        self.sessions: Ints = np.zeros((games, SIDES), np.int64)
        self.policies: Ints = np.full((games, SIDES), NEWEST, np.int64)
        self.acting: Bools = np.zeros((games, SIDES), np.bool_)
        self.trains: Bools = np.zeros((games, SIDES), np.bool_)
        self.watched: Bools = np.zeros(games, np.bool_)
        self.start_step: Ints = np.zeros(games, np.int64)
        self.start: Ints = np.zeros(games, np.int64)
        self.target: Ints = np.full(games, unroll * samples, np.int64)
        self.limit: npt.NDArray[np.float64] = np.full(games, np.inf)
        self.boundary: Ints = np.zeros((games, SIDES), np.int64)
        lead = (games, SIDES)
        self.boundary_states: Arrays = {
            name: np.zeros((*lead, *shape), np.float32) for name, (shape, _) in state_specs.items()}
        self.sample_states: Arrays = {
            name: np.zeros((samples, *lead, *shape), np.float32) for name, (shape, _) in state_specs.items()}
        self.boundary_predictions: Arrays = {}  # by name
        self._rows: Ints | None = None

    def start_game(self, game: int, step: int, seats: SideAssignment, first_target: int | None = None,
                   limit: float = np.inf) -> None:
        """Start a new game in a slot at the group's step ``step``, with new session ids.

        ``first_target`` shortens the first segment, so that the slots do not all send at once. ``limit`` is the game
        time at which the game is cut.
        """
        self.limit[game] = limit
        self.sessions[game] = self._rng.integers(0, 2**63 - 1, SIDES)
        self.policies[game] = seats.policies
        self.acting[game] = seats.acting
        self.trains[game] = seats.trains
        self.start_step[game] = step
        self.boundary[game] = step
        self.start[game] = step
        self.target[game] = first_target or self._unroll * self._samples
        self._rows = None

    def staggered_target(self, game: int) -> int:
        """Return a length in steps for the first segment of a slot, from one sample to a full segment by slot."""
        return self._unroll * (1 + game % self._samples)

    def start_segment(self, games: Ints, step: int) -> None:
        """Start the games' next segments at ``step``."""
        self.start[games] = step
        self.target[games] = self._unroll * self._samples

    @property
    def rows(self) -> Ints:
        """Sides that inference plays, as indices into [G * 2]."""
        if self._rows is None:
            self._rows = np.flatnonzero(self.acting.ravel())
        return self._rows

    def flags(self, step: int) -> npt.NDArray[np.uint8]:
        """Return the request flags of each side at a step, uint8 [G, 2].

        A new game needs a reset, a sample's start its state, and a watched game the policy's debug output.
        """
        age = step - self.start_step
        flags = np.where(age % self._unroll == 0, WANT_STATE, 0) | np.where(age == 0, RESET, 0)
        flags = flags | np.where(self.watched, WANT_POLICY_DEBUG, 0)
        return np.broadcast_to(flags.astype(np.uint8)[:, None], (len(age), SIDES)).copy()

    def full_segments(self, step: int) -> Ints:
        """Return the games whose segment is full before ``step``."""
        return np.flatnonzero(step - self.start == self.target)

    def over_limit(self, step: int, game_time: npt.NDArray[np.float32]) -> Ints:
        """Return the games that are cut at ``step``: it begins a sample, and ``game_time`` [G] before it reached the
        limit."""
        age = step - self.start_step
        return np.flatnonzero((age > 0) & (age % self._unroll == 0) & (game_time >= self.limit))

    def last_boundary(self, game: int) -> int:
        """Return the last sample boundary at which the states of all acting sides are known."""
        return int(self.boundary[game][self.acting[game]].min())

    def split_segment(self, game: int, step: int) -> None:
        """End the present segment at the sample boundary ``step``, before it is full.

        The rest ends where the full segment would have, so the slots keep sending at different times.
        """
        self.target[game] -= step - self.start[game]
        self.start[game] = step
        for name, state in self.boundary_states.items():
            self.sample_states[name][0, game] = state[game]

    def record_predictions(self, rows: Ints, predictions: Mapping[str, Array]) -> None:
        """Record auxiliary predictions [len(rows), ...] of sides at a sample boundary; ``rows`` index [G * 2]."""
        games, sides = rows // SIDES, rows % SIDES
        for name, prediction in predictions.items():
            stored = self.boundary_predictions.get(name)
            if stored is None or stored.shape[2:] != prediction.shape[1:]:
                stored = np.zeros((*self.boundary.shape, *prediction.shape[1:]), prediction.dtype)
                self.boundary_predictions[name] = stored
            stored[games, sides] = prediction

    def record_states(self, step: int, rows: Ints, states: Mapping[str, Array]) -> None:
        """Record states [len(rows), ...] of sides at a sample boundary; ``rows`` index [G * 2].

        Cut a segment that ends there first, because the next segment's states replace its states.
        """
        games, sides = rows // SIDES, rows % SIDES
        sample = (step - self.start[games]) // self._unroll
        self.boundary[games, sides] = step
        for name, state in states.items():
            self.boundary_states[name][games, sides] = state
            self.sample_states[name][sample, games, sides] = state
