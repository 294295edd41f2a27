"""Speed of a trainer process."""

import json
import time
from pathlib import Path

import psutil

WARM_UP_SECONDS = 12.0


class Speed:
    """Hero-steps learned from a second, and the processor time for them, after a warm-up.

    The processor time is that of this process and of all its children that still run. ``seconds`` follow
    ``WARM_UP_SECONDS`` from the first call of `observe`. ``hero_steps`` are those of the last call.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._first: float | None = None
        self._begin: tuple[float, float, int] | None = None
        self._last: tuple[float, float, int] | None = None
        self.hero_steps = 0

    def observe(self, hero_steps: int) -> bool:
        """Record the hero-steps learned from until now. Return whether the measurement is complete."""
        self.hero_steps = hero_steps
        now = time.monotonic()
        if self._first is None:
            self._first = now
        if now < self._first + WARM_UP_SECONDS:
            return False
        self._last = now, _processor_seconds(), hero_steps
        if self._begin is None:
            self._begin = self._last
        return now >= self._begin[0] + self._seconds

    def write(self, path: Path, **more: float) -> None:
        """Write the result as JSON. Raises RuntimeError if nothing was measured."""
        if self._begin is None or self._last is None or self._last[0] <= self._begin[0]:
            raise RuntimeError("the trainer ended within its warm-up: there is nothing to measure")
        wall, processor, steps = (b - a for a, b in zip(self._begin, self._last, strict=True))
        path.write_text(json.dumps({"hero_steps_per_second": steps / wall, "cores": processor / wall,
                                    "hero_steps_per_cpu_second": steps / processor, **more}), encoding="utf-8")


def _processor_seconds() -> float:
    this = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (this, *this.children(recursive=True)))
