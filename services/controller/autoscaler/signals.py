"""The autoscaler's signals: rates over a window, from the counters in the services' heartbeats.

What each kind of service counts, in ``stats`` of its lease, since it started:

- rollout: ``throttled_seconds``, seconds in which its games stood still because segments were waiting to be taken (mean
  of its groups, a wait under way included; a pause of the run is not counted);
- optimizer: ``received`` and ``consumed`` samples, and ``starved_seconds`` without a batch to learn from (a wait under
  way included);
- inference: ``requests``, the seconds that they waited for their batch, ``queued_seconds``, the ``team_steps`` that
  were evaluated and the ``forward_seconds`` that it took.

Counters and not rates, so that a heartbeat that is missed loses nothing and all rates are over the same window.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

LEAST_SHARE = 0.02  # of its time that a side counts as working: one that only waits still gives a finite signal
COUNTERS: dict[str, tuple[str, ...]] = {
    "rollout": ("throttled_seconds",),
    "optimizer": ("received", "consumed", "starved_seconds"),
    "inference": ("requests", "queued_seconds", "forward_seconds", "team_steps"),
}


class Beat(NamedTuple):
    """A heartbeat: of whom, when it was given and since when it lives (its own clock, seconds), its counters."""

    kind: str
    id: str
    at: float
    started_at: float
    stats: Mapping[str, Any]


@dataclass(frozen=True)
class Signals:
    """What was measured over a window.

    ``rollouts``, ``inference``, ``optimizers``: how many lived, averaged over the window. Shares are of their time;
    None: there was nothing to measure. ``inference_pace``: team-steps evaluated in a second of forward passes; it grows
    with the size of batches.
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
        return (self.reuse * max(1 - self.rollouts_throttled, LEAST_SHARE)
                / max(1 - self.optimizers_starved, LEAST_SHARE))

    def as_dict(self) -> dict[str, float]:
        """What is known, by name, rounded for people."""
        known = {**asdict(self), "unpaced_reuse": self.unpaced_reuse}
        return {name: round(value, 4) for name, value in known.items() if value is not None}


class _Point(NamedTuple):
    """Counters at a time of the instance's own clock, and when they were seen here."""

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

    def forget(self) -> None:
        """Starts over: what was counted before is of another state of the run."""
        self._tracks.clear()

    def observe(self, now: float, beats: Iterable[Beat]) -> None:
        """Takes in the newest heartbeat of everybody who lives; one that was seen before changes nothing. ``now`` is
        the caller's clock: those of the instances need not agree with it or with each other."""
        for beat in beats:
            names = COUNTERS.get(beat.kind)
            if names is None:
                continue
            try:
                values = tuple(float(beat.stats[name]) for name in names)
            except (KeyError, TypeError, ValueError):
                continue  # it has not begun to count yet
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

    def signals(self, least: float = 0.7) -> Signals | None:
        """What the window shows; None until it was watched for the share ``least`` of its length.

        An average over instances weighs each by the time for which it was seen.
        """
        span = max((t.seconds for t in self._tracks.values()), default=0.0)
        if span < least * self.seconds:
            return None
        rollouts, inference, optimizers = (self._seen(kind) for kind in ("rollout", "inference", "optimizer"))
        received, consumed, starved = (self._sum("optimizer", i) for i in range(3))
        requests, queued, forward, steps = (self._sum("inference", i) for i in range(4))
        return Signals(
            rollouts / span, inference / span, optimizers / span,
            reuse=consumed / received if received else None,
            rollouts_throttled=_share(self._sum("rollout", 0), rollouts),
            optimizers_starved=_share(starved, optimizers),
            queue_seconds=queued / requests if requests else None,
            inference_busy=_share(forward, inference), inference_pace=steps / forward if forward else None)

    def _seen(self, kind: str) -> float:
        return sum(track.seconds for (of, _), track in self._tracks.items() if of == kind)

    def _sum(self, kind: str, index: int) -> float:
        return sum(track.growth(index) for (of, _), track in self._tracks.items() if of == kind)


def _share(part: float, whole: float) -> float | None:
    return min(max(part / whole, 0.0), 1.0) if whole > 0 else None
