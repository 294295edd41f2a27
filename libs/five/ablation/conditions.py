"""Conditions of a trial's training: its processors, its processor time and the machine's load."""

import os
import resource
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

SAMPLE_SECONDS = 15.0


@dataclass(frozen=True)
class Conditions:
    """Conditions of a trial. ``processors``: numbers of those it was bound to. ``processor_seconds``: user and system
    time of its processes, which ran for ``wall_seconds``. ``load``: the machine's mean load meanwhile;
    ``load_before``: the load at the start. ``commit`` of the source."""

    processors: list[int]
    processor_seconds: float
    wall_seconds: float
    load: float
    load_before: float
    commit: str

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values that `Conditions(**values)` reads."""
        return asdict(self)

    def __add__(self, later: "Conditions") -> "Conditions":
        """Return the conditions of a training in two parts."""
        wall = self.wall_seconds + later.wall_seconds
        load = (self.load * self.wall_seconds + later.load * later.wall_seconds) / max(wall, 1e-9)
        return Conditions(sorted({*self.processors, *later.processors}),
                          self.processor_seconds + later.processor_seconds, wall, round(load, 2), self.load_before,
                          later.commit)

    @property
    def core_hours(self) -> float:
        """Processor time in hours of one processor."""
        return self.processor_seconds / 3600.0

    @property
    def share(self) -> float:
        """Mean share of the trial's processors that it kept busy."""
        return self.processor_seconds / max(self.wall_seconds * len(self.processors), 1e-9)


def monitor_process(process: "subprocess.Popen[bytes]", timeout: float, commit: str,
                    load: Callable[[], float] = lambda: os.getloadavg()[0]) -> Conditions:
    """Wait for a process that was just started and return its conditions.

    After ``timeout`` seconds kill it and raise subprocess.TimeoutExpired. Processor time includes all children of
    this process that end meanwhile, and the children they waited for. ``load`` returns the machine's load average.
    """
    began, used, before = time.monotonic(), _children_seconds(), load()
    seen = [before]
    try:
        while True:
            left = began + timeout - time.monotonic()
            try:
                process.wait(max(min(SAMPLE_SECONDS, left), 0.0))
                break
            except subprocess.TimeoutExpired:
                if left <= SAMPLE_SECONDS:
                    raise subprocess.TimeoutExpired(process.args, timeout) from None
                seen.append(load())
    except BaseException:
        process.kill()
        process.wait()
        raise
    return Conditions(_processors(), _children_seconds() - used, time.monotonic() - began,
                      round(sum(seen) / len(seen), 2), round(before, 2), commit)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _processors() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))
