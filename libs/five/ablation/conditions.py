"""What a trial trained under: which processors were its own, what it took of them, and the machine's load."""

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
    """``processors``: numbers of those that the trial was held to. ``processor_seconds``: user and system time of all
    of the trial's processes, ``wall_seconds`` how long they ran. ``load``: mean of the machine's load while they did,
    of all that ran there; ``load_before`` it was when they began. ``commit`` of the source they were started from."""

    processors: list[int]
    processor_seconds: float
    wall_seconds: float
    load: float
    load_before: float
    commit: str

    def as_dict(self) -> dict[str, Any]:
        """As JSON values; `Conditions(**values)` reads them."""
        return asdict(self)

    @property
    def share(self) -> float:
        """Processors that were busy with the trial, of those it was held to, on the mean."""
        return self.processor_seconds / max(self.wall_seconds * len(self.processors), 1e-9)


def attend(process: "subprocess.Popen[bytes]", timeout: float, commit: str,
           load: Callable[[], float] = lambda: os.getloadavg()[0]) -> Conditions:
    """Waits for a process that has just been started, and watches what it trains under. Ends it and raises
    subprocess.TimeoutExpired after ``timeout`` seconds.

    Processor time is that of all children of this process which end meanwhile, and of theirs that they waited for.
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
