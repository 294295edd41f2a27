"""What a process cannot do without: its threads, its tasks, and loops that have to turn.

A thread or a task that dies unseen leaves a process that looks alive and does nothing. Here its death is the end of the
process: the process drains, and the reason is the last line of its log. A loop that has not turned for
``stuck_seconds`` is as good as dead: where every thread stands is written to the log, and the process ends at once.
"""

import asyncio
import faulthandler
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
T = TypeVar("T")


class Pulse:
    """A loop that has to turn. ``seconds``: how long a turn may take."""

    def __init__(self, name: str, seconds: float, clock: Callable[[], float]) -> None:
        self.name = name
        self.seconds = seconds
        self._clock = clock
        self._at: float | None = None

    def turn(self) -> None:
        """The loop has come round; before the first turn nobody waits for one. Of any thread."""
        self._at = self._clock()

    def end(self) -> None:
        """The loop has ended as it should."""
        self._at = None

    @property
    def late(self) -> float:
        """Seconds since the last turn; 0 when none is due."""
        at = self._at
        return 0.0 if at is None else self._clock() - at

    @property
    def stuck(self) -> bool:
        """Whether the turn takes longer than it may."""
        return self.late > self.seconds


class Vital:
    """The vital parts of one process.

    ``drain`` is told the reason when one dies; ``draining`` says whether parts may end by now. Once a part has died
    ``failure`` says which and why, and `last_words` writes it down at the process's end.
    """

    def __init__(self, drain: Callable[[str], None], draining: Callable[[], bool], stuck_seconds: float,
                 exit_process: Callable[[int], None] = os._exit, clock: Callable[[], float] = time.monotonic) -> None:
        self._drain = drain
        self._draining = draining
        self._stuck_seconds = stuck_seconds
        self._exit = exit_process
        self._clock = clock
        self._pulses: list[Pulse] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.failure = ""

    # Threads and tasks.

    def thread(self, name: str, work: Callable[[], object], may_end: bool = False) -> threading.Thread:
        """A daemon thread, not started, whose death is the process's. It may end by itself while the process drains;
        at any time with ``may_end``."""
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self.died(name, error)
                return
            if not may_end and not self._may_end:
                self.died(name, None)

        return threading.Thread(target=guarded, name=name, daemon=True)

    def task(self, name: str, work: Coroutine[Any, Any, Any], may_end: bool = False) -> "asyncio.Task[Any]":
        """A task whose death is the process's, begun; it may be cancelled."""
        return self.watch(asyncio.get_running_loop().create_task(work, name=name), may_end)

    def watch(self, task: "asyncio.Task[T]", may_end: bool = False) -> "asyncio.Task[T]":
        """The same for a task that is under way, known by its name."""
        def ended(task: "asyncio.Task[T]") -> None:
            self._tasks.discard(task)
            if task.cancelled():
                return
            error = task.exception()
            if error is not None or not (may_end or self._may_end):
                self.died(task.get_name(), error)

        self._tasks.add(task)  # the loop holds tasks weakly
        task.add_done_callback(ended)
        return task

    @property
    def _may_end(self) -> bool:
        return self._draining() or self._closed.is_set()

    def died(self, name: str, error: BaseException | None) -> None:
        """A vital part is dead: the process drains and ends. Only the first one counts."""
        reason = f"{name} has died: " + (
            "it ended by itself" if error is None else f"{type(error).__name__}: {error}")
        with self._lock:
            first = not self.failure
            self.failure = self.failure or reason
        log.critical("%s", reason, exc_info=error)
        if first:
            self._drain(reason)

    def last_words(self) -> None:
        """Writes down why the process ends, if a part has died; the last line of its log."""
        if self.failure:
            log.critical("ended: %s", self.failure)

    # Loops.

    def pulse(self, name: str, seconds: float | None = None) -> Pulse:
        """A loop to be watched from its first turn on."""
        found = Pulse(name, self._stuck_seconds if seconds is None else seconds, self._clock)
        with self._lock:
            self._pulses.append(found)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch_pulses, name="vital", daemon=True)
                self._watcher.start()
        return found

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """As asyncio.run, in a loop that is watched."""
        pulse = self.pulse("the event loop")

        async def beat() -> None:
            while True:
                pulse.turn()
                await asyncio.sleep(LOOK_SECONDS)

        async def watched() -> T:
            beating = asyncio.get_running_loop().create_task(beat())
            try:
                return await work
            finally:
                beating.cancel()
                pulse.end()

        return asyncio.run(watched())

    def why_dead(self) -> str:
        """What has died or stands still; '' while all lives. It depends on no peer."""
        with self._lock:
            stuck = [pulse for pulse in self._pulses if pulse.stuck]
        return self.failure or "; ".join(f"{pulse.name} has not turned for {pulse.late:.0f} s" for pulse in stuck)

    def look(self) -> None:
        """Ends the process if a loop stands still."""
        with self._lock:
            stuck = [pulse for pulse in self._pulses if pulse.stuck]
        if not stuck:
            return
        reason = self.why_dead()
        log.critical("%s: where every thread stands follows", reason)
        try:
            faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr, all_threads=True)
        except (OSError, ValueError, AttributeError):
            pass  # a standard error that is no file
        log.critical("ended: %s", reason)
        for handler in logging.getLogger().handlers:
            handler.flush()
        self._exit(1)

    def _watch_pulses(self) -> None:
        while not self._closed.wait(LOOK_SECONDS):
            self.look()

    def close(self) -> None:
        """Ends the watching."""
        self._closed.set()
        if self._watcher is not None and self._watcher is not threading.current_thread():
            self._watcher.join(timeout=5)
