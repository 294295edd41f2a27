"""Pacing of learning: bounds on sample reuse and on intake.

Sample reuse is (samples per batch x batches a second) / (samples received a second) (Berner et al. 2019, equation 13).
The optimizer waits until a step keeps reuse at or below its target, so a fast optimizer does not fit old data
repeatedly. Intake stops while too many samples wait, so a slow optimizer does not learn from stale ones.
"""

import threading
import time
from collections import deque
from collections.abc import Callable

from five.agent.config import BufferConfig


class Pacer:
    """Counts samples in and out, and decides when a gradient step and when intake may proceed.

    `credit` is ``sample_reuse x received - consumed``, the number of samples that may still be consumed. A step may run
    if the credit is not negative, so ``consumed <= sample_reuse x received + batch`` holds after it. The credit is at
    most ``reuse_window_batches`` batches: an idle optimizer does not catch up later by reusing new samples more often.
    """

    def __init__(self, config: BufferConfig, batch_samples: int) -> None:
        if batch_samples < 1:
            raise ValueError(f"batch_samples {batch_samples}: at least 1 is required")
        self.config = config
        self.batch_samples = batch_samples
        self.received = 0
        self.consumed = 0
        self.forgone = 0.0  # uses lost to the bound on the credit; below 0 after sample_reuse was lowered
        self._limit = config.reuse_window_batches * batch_samples
        self._minimum = max(config.minimum_samples, batch_samples)
        self._admitted = config.admission_batches * batch_samples

    @property
    def credit(self) -> float:
        """Samples that may be consumed before reuse exceeds its target; negative by at most a batch."""
        return self.config.sample_reuse * self.received - self.consumed - self.forgone

    def on_received(self, samples: int) -> None:
        """Count samples that entered the buffer."""
        self.received += samples
        excess = self.credit - self._limit
        if excess > 0:
            self.forgone += excess

    def on_consumed(self, samples: int) -> None:
        """Count samples of a batch."""
        self.consumed += samples

    def may_step(self, buffered: int) -> bool:
        """Whether a gradient step may run now, with ``buffered`` samples in the buffer."""
        return buffered >= self._minimum and self.credit >= 0

    def may_admit(self, buffered: int) -> bool:
        """Whether intake may accept more samples now.

        It is False only while a step may run, so intake and learning never wait for each other.
        """
        return not self.may_step(buffered) or self.credit <= self._admitted

    def state_dict(self) -> dict[str, float]:
        """Return the counters of a checkpoint."""
        return {"received": self.received, "consumed": self.consumed, "forgone": self.forgone}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Restore the counters of a checkpoint. Its buffer is empty, so positive credit is dropped.

        Negative credit stays up to a batch. There is more after ``sample_reuse`` was lowered, and learning would wait
        until new samples made up for all earlier uses.
        """
        self.received, self.consumed = int(state["received"]), int(state["consumed"])
        self.forgone = float(state["forgone"])
        self.forgone += self.credit - min(max(self.credit, -self.batch_samples), 0)


class WaitMeter:
    """Total seconds that parts of a process have waited, running waits included. Any thread may read it.

    A wait lasts from ``begin`` to ``end``, or is a ``with`` block. Several may run at once.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ended = 0.0
        self._since: list[float] = []

    def begin(self) -> None:
        """Start a wait."""
        with self._lock:
            self._since.append(self._clock())

    def end(self) -> None:
        """End a wait, if one is running."""
        with self._lock:
            # The total does not depend on which wait ends.
            if self._since:
                self._ended += self._clock() - self._since.pop()

    def __enter__(self) -> "WaitMeter":
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def is_waiting(self) -> bool:
        """Whether a wait is running."""
        return bool(self._since)

    @property
    def seconds(self) -> float:
        """Seconds of all waits until now."""
        with self._lock:
            now = self._clock()
            return self._ended + sum(now - since for since in self._since)


class ReuseMeter:
    """Sample reuse (equation 13) over the last ``window_seconds``. Times are seconds of any monotonic clock."""

    def __init__(self, window_seconds: float = 300.0) -> None:
        self.window_seconds = window_seconds
        self._events: deque[tuple[float, int, int]] = deque()
        self._received = 0
        self._consumed = 0

    def on_received(self, samples: int, now: float) -> None:
        """Count samples received at ``now``."""
        self._add(now, samples, 0)

    def on_consumed(self, samples: int, now: float) -> None:
        """Count samples consumed at ``now``."""
        self._add(now, 0, samples)

    def value(self, now: float) -> float | None:
        """Return the uses per sample received within the window, or None if nothing was received in it."""
        self._expire(now)
        return self._consumed / self._received if self._received else None

    def rates(self, now: float) -> tuple[float, float]:
        """Return (samples received, samples consumed) a second over the window, or since the first event if that is
        shorter."""
        self._expire(now)
        if not self._events:
            return 0.0, 0.0
        seconds = max(now - self._events[0][0], 1e-9)
        return self._received / seconds, self._consumed / seconds

    def _add(self, now: float, received: int, consumed: int) -> None:
        self._events.append((now, received, consumed))
        self._received += received
        self._consumed += consumed
        self._expire(now)

    def _expire(self, now: float) -> None:
        while self._events and self._events[0][0] < now - self.window_seconds:
            _, received, consumed = self._events.popleft()
            self._received -= received
            self._consumed -= consumed
