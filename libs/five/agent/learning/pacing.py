"""The pace of learning: how often samples are used, and who waits for whom.

Sample reuse is (samples per batch x batches a second) / (samples received a second) (Berner et al. 2019, equation 13).
The optimizer waits until a step keeps it at or under its target, so that a fast optimizer does not fit old data again
and again; and samples are held back at ingest while more of them wait than the optimizer can make use of, so that a
slow optimizer does not learn from old ones.
"""

import threading
import time
from collections import deque
from collections.abc import Callable

from five.agent.config import BufferConfig


class Pacer:
    """Counts samples in and out, and says when a gradient step and when an intake may go on.

    `credit` is ``sample_reuse x received - consumed``: the samples that may still be consumed. A step may be taken
    when the credit is not negative, so that ``consumed <= sample_reuse x received + batch`` holds after it. The
    credit is bounded by ``reuse_window_batches`` batches: what an optimizer missed while it stood still is not
    made up for by using new samples more often.
    """

    def __init__(self, config: BufferConfig, batch_samples: int) -> None:
        if batch_samples < 1:
            raise ValueError(f"a batch has at least one sample, not {batch_samples}")
        self.config = config
        self.batch_samples = batch_samples
        self.received = 0
        self.consumed = 0
        self.forgone = 0.0  # uses that the bound on the credit took away
        self._limit = config.reuse_window_batches * batch_samples
        self._minimum = max(config.minimum_samples, batch_samples)
        self._admitted = config.admission_batches * batch_samples

    @property
    def credit(self) -> float:
        """Samples that may be consumed before reuse exceeds its target; negative by at most a batch."""
        return self.config.sample_reuse * self.received - self.consumed - self.forgone

    def on_received(self, samples: int) -> None:
        """Samples came into the buffer."""
        self.received += samples
        excess = self.credit - self._limit
        if excess > 0:
            self.forgone += excess

    def on_consumed(self, samples: int) -> None:
        """A batch was drawn."""
        self.consumed += samples

    def may_step(self, buffered: int) -> bool:
        """Whether a gradient step may be taken now, with ``buffered`` samples in the buffer."""
        return buffered >= self._minimum and self.credit >= 0

    def may_admit(self, buffered: int) -> bool:
        """Whether more samples should be let in now.

        False only while a step may be taken: intake and learning never wait for each other.
        """
        return not self.may_step(buffered) or self.credit <= self._admitted

    def state_dict(self) -> dict[str, float]:
        """Counters for a checkpoint."""
        return {"received": self.received, "consumed": self.consumed, "forgone": self.forgone}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Goes on from a checkpoint. Its buffer is gone, so what was left to consume is not owed; a debt stays."""
        self.received, self.consumed = int(state["received"]), int(state["consumed"])
        self.forgone = float(state["forgone"])
        if self.credit > 0:
            self.forgone += self.credit


class WaitMeter:
    """Seconds that parts of a process have waited, summed; waits under way count. Safe to read from any thread.

    A wait goes from ``begin`` to ``end``, or is a ``with`` block; several may be under way.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ended = 0.0
        self._since: list[float] = []

    def begin(self) -> None:
        """A wait begins."""
        with self._lock:
            self._since.append(self._clock())

    def end(self) -> None:
        """A wait ends; nothing when none is under way."""
        with self._lock:
            # Which of several it is makes no difference to their sum.
            if self._since:
                self._ended += self._clock() - self._since.pop()

    def __enter__(self) -> "WaitMeter":
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def waiting(self) -> bool:
        """Whether a wait is under way."""
        return bool(self._since)

    @property
    def seconds(self) -> float:
        """All waits until now."""
        with self._lock:
            now = self._clock()
            return self._ended + sum(now - since for since in self._since)


class ReuseMeter:
    """Sample reuse over the last ``window_seconds``, as equation 13 defines it. Times are any monotonic seconds."""

    def __init__(self, window_seconds: float = 300.0) -> None:
        self.window_seconds = window_seconds
        self._events: deque[tuple[float, int, int]] = deque()
        self._received = 0
        self._consumed = 0

    def on_received(self, samples: int, now: float) -> None:
        """Samples came in at ``now``."""
        self._add(now, samples, 0)

    def on_consumed(self, samples: int, now: float) -> None:
        """Samples were used at ``now``."""
        self._add(now, 0, samples)

    def value(self, now: float) -> float | None:
        """Uses per sample received within the window; None while nothing was received in it."""
        self._expire(now)
        return self._consumed / self._received if self._received else None

    def rates(self, now: float) -> tuple[float, float]:
        """(samples received, samples consumed) a second over the window, or over what there is of it."""
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
