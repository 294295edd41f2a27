"""The autoscaler's signals: rates over a window, from the counters in the services' heartbeats.

Counters in ``stats`` of each service's lease, since the service started:

- rollout: ``throttled_seconds``, seconds in which its games stood still because segments waited to be received (mean
  of its game groups, including a wait in progress, without pauses of the run);
- optimizer: ``received`` and ``consumed`` samples, and ``starved_seconds`` without a batch to learn from (including a
  wait in progress);
- inference: ``requests``, their ``queued_seconds`` before a batch, the evaluated ``team_steps`` and the
  ``forward_seconds`` they took.

Counters instead of rates make all rates cover the same window and lose nothing when a heartbeat is missed.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

MIN_ACTIVE_SHARE = 0.02  # minimum working share of a side, so that the signal stays finite
COUNTERS: dict[str, tuple[str, ...]] = {
    "rollout": ("throttled_seconds",),
    "optimizer": ("received", "consumed", "starved_seconds"),
    "inference": ("requests", "queued_seconds", "forward_seconds", "team_steps"),
}


class HeartbeatSample(NamedTuple):
    """A heartbeat: the instance, the times of the heartbeat and of the start (instance's clock, seconds), and its
    counters."""

    kind: str
    id: str
    at: float
    started_at: float
    stats: Mapping[str, Any]


@dataclass(frozen=True)
class Signals:
    """Measurements over a window.

    ``rollouts``, ``inference`` and ``optimizers`` are mean numbers of live instances. Shares are fractions of their
    time. None means that nothing was measured. ``inference_pace`` is team-steps per second of forward passes; it grows
    with the batch size.
    """

    rollouts: float = 0.0
    inference: float = 0.0
    optimizers: float = 0.0
    reuse: float | None = None
    rollouts_throttled: float | None = None
    optimizers_starved: float | None = None
    queue_seconds: float | None = None
    inference_busy: float | None = None
    inference_pace: float | None = None

    @property
    def unpaced_reuse(self) -> float | None:
        """Sample reuse if neither rollouts nor optimizers waited for each other."""
        if self.reuse is None or self.rollouts_throttled is None or self.optimizers_starved is None:
            return None
        return (self.reuse * max(1 - self.rollouts_throttled, MIN_ACTIVE_SHARE)
                / max(1 - self.optimizers_starved, MIN_ACTIVE_SHARE))

    def as_dict(self) -> dict[str, float]:
        """Return the known signals by name, rounded for display."""
        known = {**asdict(self), "unpaced_reuse": self.unpaced_reuse}
        return {name: round(value, 4) for name, value in known.items() if value is not None}


class _Point(NamedTuple):
    """Counters at a time of the instance's clock, and the local time when they were seen."""

    at: float
    seen: float
    values: tuple[float, ...]


@dataclass
class _Track:
    """An instance's counters over the window."""

    started_at: float
    points: deque[_Point]

    @property
    def seconds(self) -> float:
        return self.points[-1].at - self.points[0].at

    def growth(self, index: int) -> float:
        return self.points[-1].values[index] - self.points[0].values[index]


class SignalWindow:
    """Counters of all instances over the last ``seconds``."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._tracks: dict[tuple[str, str], _Track] = {}

    def reset(self) -> None:
        """Drop all counters, because they belong to another state of the run."""
        self._tracks.clear()

    def observe(self, now: float, beats: Iterable[HeartbeatSample]) -> None:
        """Add the newest heartbeat of each live instance; repeated heartbeats are ignored. ``now`` is the caller's
        clock, which need not agree with the instances' clocks.
        """
        for beat in beats:
            names = COUNTERS.get(beat.kind)
            if names is None:
                continue
            try:
                values = tuple(float(beat.stats[name]) for name in names)
            except (KeyError, TypeError, ValueError):
                continue  # no counters yet
            track = self._tracks.get((beat.kind, beat.id))
            if track is None or track.started_at != beat.started_at:  # another process under the same name
                track = self._tracks[beat.kind, beat.id] = _Track(beat.started_at, deque())
            if not track.points or beat.at > track.points[-1].at:
                track.points.append(_Point(beat.at, now, values))
        for key, track in list(self._tracks.items()):
            while track.points and track.points[0].seen < now - self.seconds:
                track.points.popleft()
            if not track.points:
                del self._tracks[key]

    def signals(self, min_coverage: float = 0.7) -> Signals | None:
        """Return the signals, or None until the window is covered to the share ``min_coverage``.

        Averages over instances are weighted by the time for which each instance was seen.
        """
        span = max((t.seconds for t in self._tracks.values()), default=0.0)
        if span < min_coverage * self.seconds:
            return None
        rollouts, inference, optimizers = (self._observed_seconds(kind) for kind in ("rollout", "inference",
                                                                                     "optimizer"))
        received, consumed, starved = (self._sum("optimizer", i) for i in range(3))
        requests, queued, forward, steps = (self._sum("inference", i) for i in range(4))
        return Signals(
            rollouts / span, inference / span, optimizers / span,
            reuse=consumed / received if received else None,
            rollouts_throttled=_ratio(self._sum("rollout", 0), rollouts),
            optimizers_starved=_ratio(starved, optimizers),
            queue_seconds=queued / requests if requests else None,
            inference_busy=_ratio(forward, inference), inference_pace=steps / forward if forward else None)

    def _observed_seconds(self, kind: str) -> float:
        return sum(track.seconds for (of, _), track in self._tracks.items() if of == kind)

    def _sum(self, kind: str, index: int) -> float:
        return sum(track.growth(index) for (of, _), track in self._tracks.items() if of == kind)


def _ratio(part: float, whole: float) -> float | None:
    return min(max(part / whole, 0.0), 1.0) if whole else None
