"""Upper bound on the time of a drain: the write in progress and a final checkpoint at the measured write rate."""

import time
from collections.abc import Callable

from five.services.optimizer import metrics as page

ASSUMED_RATE = 50e6  # bytes/s before the first measurement; the chart's blobs.megabytesPerSecond has the same value
WRITES = 2.5  # checkpoint sizes to write: the running one, the final one and a version
MEASURED_WRITES = 3  # the slowest of the last ones counts


class DrainTime:
    """Estimates a drain's duration from the checkpoint's size and the blob store's measured write rate.

    ``base`` is the part that does not depend on it (``lifecycle.grace_seconds``). ``allow`` receives each new estimate.
    """

    def __init__(self, base: float, checkpoint_bytes: int, allow: Callable[[float], None],
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._base = base
        self._bytes = checkpoint_bytes
        self._allow = allow
        self._clock = clock
        self._rates: list[float] = []
        self._report()

    @property
    def seconds(self) -> float:
        """The present estimate."""
        rate = min(self._rates, default=ASSUMED_RATE)
        return self._base + WRITES * self._bytes / rate

    def measure(self, write: Callable[[], None], size: int) -> None:
        """Run the write of a checkpoint of ``size`` bytes and update the estimate."""
        began = self._clock()
        write()
        self._bytes = max(self._bytes, size)  # a run's first checkpoint has no moments of Adam yet
        self._rates = [*self._rates[1 - MEASURED_WRITES:], size / max(self._clock() - began, 1e-3)]
        self._report()

    def _report(self) -> None:
        page.DRAIN_SECONDS.set(self.seconds)
        if self._rates:
            page.BLOB_RATE.set(self._rates[-1])
        self._allow(self.seconds)
