"""When versions come out, and how evenly: what a change under a run is measured by."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise


class Watch:
    """When each version came out, as somebody sees who looks every ``seconds``; ``head`` says the newest."""

    def __init__(self, head: Callable[[], int], seconds: float = 0.01) -> None:
        self.at: list[float] = []
        self._head = head
        self._seconds = seconds
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        head = self._head()
        while not self._ends.wait(self._seconds):
            now = self._head()
            self.at += [time.monotonic()] * (now - head)
            head = now

    def gaps(self, begin: float, end: float) -> list[float]:
        """Seconds from the version before, of those that came out between two moments."""
        return [b - a for a, b in pairwise(self.at) if begin <= b <= end]

    @contextmanager
    def on(self) -> Iterator["Watch"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._ends.set()
            self._thread.join()


@dataclass
class Changes:
    """Seconds from version to version without changes and with them, by turns: what else the machine does slows both
    down."""

    before: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)

    def measure(self, watch: Watch, seconds: float, change: Callable[[], None]) -> float:
        """One turn of each, ``seconds`` long; the change is made as the second begins. Returns when it ended."""
        began = time.monotonic()
        time.sleep(seconds)
        changing = time.monotonic()
        change()
        time.sleep(max(changing + seconds - time.monotonic(), 0))
        ended = time.monotonic()
        self.before += watch.gaps(began, changing)
        self.during += watch.gaps(changing, ended)
        return ended

    def told(self, what: str) -> str:
        """A line for a report."""
        if not self.before or not self.during:
            return f"{what}: too few versions came out to say how long one takes"
        mean = sum(self.before) / len(self.before)
        return (f"{what}: from version to version {mean:.2f} s on average ({len(self.before)}, {max(self.before):.2f} "
                f"at most) without, {sum(self.during) / len(self.during):.2f} s ({len(self.during)}, "
                f"{max(self.during):.2f} at most) with them: {max(self.during) / mean:.2f} times the mean at most")
