"""How long draining takes: a version that is under way, then a checkpoint, at the pace at which the last were kept."""

import time
from collections.abc import Callable, Mapping

from torch import Tensor

from five.services.optimizer import metrics as page

ASSUMED_RATE = 50e6  # bytes a second of a blob store before anything was written; the chart's blobs.megabytesPerSecond
WRITES = 2.5  # checkpoints that may have to be written: one under way, the last one, and a version
SETTLED = 3  # checkpoints whose slowest pace counts


class DrainTime:
    """Tells how long a drain may take, from the checkpoint's size and the measured rate of the blob store.

    ``base`` is what a drain takes beside it (``lifecycle.grace_seconds``); ``allow`` is told of each change.
    """

    def __init__(self, base: float, checkpoint_bytes: int, allow: Callable[[float], None],
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._base = base
        self._bytes = checkpoint_bytes
        self._allow = allow
        self._clock = clock
        self._rates: list[float] = []
        self._tell()

    @property
    def seconds(self) -> float:
        """What a drain may take now."""
        rate = min(self._rates, default=ASSUMED_RATE)
        return self._base + WRITES * self._bytes / rate

    def timed(self, write: Callable[[], None], size: int) -> None:
        """Writes a checkpoint of ``size`` bytes, and learns from how long it takes."""
        began = self._clock()
        write()
        self._bytes = size
        self._rates = [*self._rates[1 - SETTLED:], size / max(self._clock() - began, 1e-3)]
        self._tell()

    def _tell(self) -> None:
        page.DRAIN_SECONDS.set(self.seconds)
        if self._rates:
            page.BLOB_RATE.set(self._rates[-1])
        self._allow(self.seconds)


def nbytes(tensors: Mapping[str, Tensor]) -> int:
    """Bytes of a checkpoint's tensors."""
    return sum(tensor.nbytes for tensor in tensors.values())
