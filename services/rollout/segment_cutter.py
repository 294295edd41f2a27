"""Cuts the segments of a group's games, running or ended, and queues them for sending."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from five.agent.learning.labels import GameOutcome
from five.agent.learning.segments import Bootstrap
from five.services.rollout.env_slots import EnvSlots, Ints
from five.services.rollout.group_progress import GroupProgress
from five.services.rollout.matchmaking import GameRecord
from five.services.rollout.segment_builder import ScheduleValues, SegmentBuilder
from five.services.rollout.sender import Sender
from five.services.rollout.step_buffer import StepBuffer
from rapid.telemetry import tracing


@dataclass
class SegmentCutter:
    """Cuts the steps of a group's games into segments and queues them for sending.

    A segment ends where its game ends or at a sample boundary. There the values and predictions of inference are its
    bootstraps.

    Attributes:
        records: of the running games, by slot. The rewards of cut steps are added to them.
        reward_std: running deviation of rewards, from the newest answer of inference. Set it before the first cut.
    """

    sender: Sender
    schedule_values: Callable[[int, float], ScheduleValues]
    buffer: StepBuffer
    slots: EnvSlots
    segments: SegmentBuilder
    records: Sequence[GameRecord]
    progress: GroupProgress
    reward_std: float = field(init=False)

    def __post_init__(self) -> None:
        self._traced: tuple[int, str] | None = None  # a sampled step and its trace, until its segment is cut

    def trace(self, step: int, traceparent: str) -> None:
        """Trace the segment of a sampled step, unless another sampled step still waits for its segment."""
        if self._traced is None or step - self._traced[0] >= self.buffer.capacity:
            self._traced = step, traceparent

    def cut(self, game: int, end: int, ends: Mapping[int, Bootstrap | GameOutcome]) -> None:
        """Cut segments of a game's steps before ``end``, one of each side that learns.

        ``ends`` has the bootstrap or the outcome of each of these sides.
        """
        start = int(self.slots.start[game])
        train = tuple(np.flatnonzero(self.slots.trains[game]).tolist())
        schedule = self.schedule_values(self.progress.newest_version, self.reward_std)
        began_ns = time.time_ns()
        segments, earned = self.segments.cut(game, start, end - start, train, self.slots.sample_states, schedule, ends,
                                             self.records[game].variant.name)
        self.records[game].earned += earned
        if self._traced is not None and segments and start <= self._traced[0] < end:
            traceparent = tracing.record("build segment", self._traced[1], began_ns, time.time_ns())
            segments[0], self._traced = replace(segments[0], traceparent=traceparent), None
        for segment in segments:
            self.sender.put(segment)
        self.progress.segments += len(segments)

    def cut_at_boundary(self, games: Ints, boundary: int) -> None:
        """Cut running games' segments at a sample boundary and start their next ones there.

        The boundary's values and predictions must have been recorded, but not yet its states.
        """
        for game in games.tolist():
            self.cut(game, boundary, self._bootstraps(game, boundary))
        self.slots.start_segment(games, boundary)

    def cut_all(self) -> None:
        """Cut the running games' segments at their last sample boundary. Later steps start the next segments."""
        slots = self.slots
        for game in range(self.buffer.games):
            boundary = slots.last_boundary(game)
            if boundary > slots.start[game]:
                self.cut(game, boundary, self._bootstraps(game, boundary))
                slots.split_segment(game, boundary)

    def _bootstraps(self, game: int, boundary: int) -> dict[int, Bootstrap]:
        """Return the bootstraps at a game's last sample boundary of the sides that inference plays."""
        values = self.buffer.values[self.buffer.row(boundary), game]
        predictions = self.slots.boundary_predictions
        return {side: Bootstrap(values[side], {name: array[game, side] for name, array in predictions.items()})
                for side in np.flatnonzero(self.slots.acting[game]).tolist()}
