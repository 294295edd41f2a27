"""Limit on the CPU time that the evaluator takes from training."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

BURST_SECONDS = 5.0  # unused seconds of the share that may be used later
MAX_DELAY_SECONDS = 60.0  # a requested match or the first rating, which are not limited, costs rated games no more


@dataclass
class CpuLimit:
    """Limit of this process to ``share`` cores on average; 0 disables it.

    The time to sleep is proportional to the CPU time used. On a busy machine a step takes longer anyway, and a fixed
    time to sleep would delay ratings.
    """

    share: float
    used: Callable[[], float] = time.process_time
    clock: Callable[[], float] = time.monotonic
    _used: float = field(init=False)
    _at: float = field(init=False)
    _credit: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._used, self._at = self.used(), self.clock()

    def delay(self) -> float:
        """Return the seconds to sleep, at most MAX_DELAY_SECONDS, so that the CPU time since the last call stays within
        the share."""
        used, at = self.used(), self.clock()
        earned = (at - self._at) * self.share
        credit = self._credit + earned - (used - self._used)
        self._credit = max(min(credit, BURST_SECONDS * self.share), -MAX_DELAY_SECONDS * self.share)
        self._used, self._at = used, at
        return max(0.0, -self._credit / self.share) if self.share > 0 else 0.0
