"""Times of published versions: how much a change slows a run down."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise


class Watch:
    """Recorder of the time of each version. ``head`` returns the newest version and is polled every ``seconds``."""

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
        """Return the seconds since the previous version, for the versions published between two times."""
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
    """Seconds between versions with and without changes, in alternating intervals, so that other load affects both."""

    before: list[float] = field(default_factory=list)
    during: list[float] = field(default_factory=list)

    def measure(self, watch: Watch, seconds: float, change: Callable[[], None]) -> float:
        """Measure one interval of each kind; the change is made at the start of the second. Return the end time."""
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
        """Return the result as one line."""
        if not self.before or not self.during:
            return f"{what}: too few versions came out to say how long one takes"
        mean = sum(self.before) / len(self.before)
        return (f"{what}: from version to version {mean:.2f} s on average ({len(self.before)}, {max(self.before):.2f} "
                f"at most) without, {sum(self.during) / len(self.during):.2f} s ({len(self.during)}, "
                f"{max(self.during):.2f} at most) with them: {max(self.during) / mean:.2f} times the mean at most")
