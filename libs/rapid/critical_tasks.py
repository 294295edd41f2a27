"""Critical threads, tasks and loops of a process: the process ends when one of them dies or hangs.

A thread or a task that dies unnoticed leaves a process that looks alive and does no work. Here its death drains the
process, and the last line of the log has the reason. A loop that misses its watchdog's deadline counts as dead: the
process logs the stacks of all threads and exits at once.
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
CHECK_SECONDS = 1.0
T = TypeVar("T")


class Watchdog:
    """Deadline of one loop: every iteration must call `beat` within ``seconds`` of the previous one."""

    def __init__(self, name: str, seconds: float, clock: Callable[[], float]) -> None:
        self.name = name
        self.seconds = seconds
        self._clock = clock
        self._last_beat: float | None = None

    def beat(self) -> None:
        """Restart the deadline. The first call arms the watchdog. Any thread may call it."""
        self._last_beat = self._clock()

    def stop(self) -> None:
        """Disarm the watchdog, because its loop has ended."""
        self._last_beat = None

    @property
    def elapsed(self) -> float:
        """Seconds since the last beat; 0 while the watchdog is not armed."""
        last = self._last_beat
        return 0.0 if last is None else self._clock() - last

    @property
    def is_expired(self) -> bool:
        """Whether the deadline has passed."""
        return self.elapsed > self.seconds


class CriticalTasks:
    """The critical threads, tasks and loops of one process.

    The first death calls ``drain`` with its reason, which ``failure`` then holds. `report_failure` logs the reason when
    the process ends. While ``draining()`` is true, threads and tasks may end normally.
    """

    def __init__(self, drain: Callable[[str], None], draining: Callable[[], bool], watchdog_seconds: float,
                 exit_process: Callable[[int], None] = os._exit, clock: Callable[[], float] = time.monotonic) -> None:
        self._drain = drain
        self._draining = draining
        self._stuck_seconds = watchdog_seconds
        self._exit = exit_process
        self._clock = clock
        self._watchdogs: list[Watchdog] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._checker: threading.Thread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self.failure = ""

    # Threads and tasks.

    def thread(self, name: str, work: Callable[[], object], may_end: bool = False) -> threading.Thread:
        """Create a daemon thread, not started, whose death ends the process.

        It may return while the process drains, and at any time with ``may_end``.
        """
        def guarded() -> None:
            try:
                work()
            except BaseException as error:
                self.fail(name, error)
                return
            if not may_end and not self._may_end:
                self.fail(name, None)

        return threading.Thread(target=guarded, name=name, daemon=True)

    def task(self, name: str, work: Coroutine[Any, Any, Any], may_end: bool = False) -> "asyncio.Task[Any]":
        """Start a task whose death ends the process. It may be cancelled."""
        return self.watch(asyncio.get_running_loop().create_task(work, name=name), may_end)

    def watch(self, task: "asyncio.Task[T]", may_end: bool = False) -> "asyncio.Task[T]":
        """Make a running task critical. Its name identifies it in the log."""
        def ended(task: "asyncio.Task[T]") -> None:
            self._tasks.discard(task)
            if task.cancelled():
                return
            error = task.exception()
            if error is not None or not (may_end or self._may_end):
                self.fail(task.get_name(), error)

        self._tasks.add(task)  # the loop holds only weak references to tasks
        task.add_done_callback(ended)
        return task

    @property
    def _may_end(self) -> bool:
        return self._draining() or self._closed.is_set()

    def fail(self, name: str, error: BaseException | None) -> None:
        """Record the death of a critical part and drain the process. Later deaths are only logged."""
        reason = f"{name} died: " + ("it returned" if error is None else f"{type(error).__name__}: {error}")
        with self._lock:
            first = not self.failure
            self.failure = self.failure or reason
        log.critical("%s", reason, exc_info=error)
        if first:
            self._drain(reason)

    def report_failure(self) -> None:
        """Log why the process ends, if a critical part died."""
        if self.failure:
            log.critical("process ended: %s", self.failure)

    # Loops.

    def watchdog(self, name: str, seconds: float | None = None) -> Watchdog:
        """Create a watchdog. Its deadline is ``seconds``, by default ``lifecycle.watchdog_seconds``."""
        found = Watchdog(name, self._stuck_seconds if seconds is None else seconds, self._clock)
        with self._lock:
            self._watchdogs.append(found)
            if self._checker is None:
                self._checker = threading.Thread(target=self._check_loop, name="watchdog", daemon=True)
                self._checker.start()
        return found

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine as `asyncio.run` does, with a watchdog on the event loop."""
        watchdog = self.watchdog("event loop")

        async def beat() -> None:
            while True:
                watchdog.beat()
                await asyncio.sleep(CHECK_SECONDS)

        async def watched() -> T:
            beating = asyncio.get_running_loop().create_task(beat())
            try:
                return await work
            finally:
                beating.cancel()
                watchdog.stop()

        return asyncio.run(watched())

    def failure_reason(self) -> str:
        """Return what has died or missed its deadline; '' while the process is healthy. Other processes do not matter.
        """
        with self._lock:
            expired = [watchdog for watchdog in self._watchdogs if watchdog.is_expired]
        return self.failure or "; ".join(f"{w.name} made no progress for {w.elapsed:.0f} s" for w in expired)

    def check(self) -> None:
        """Exit the process if a watchdog has expired, after the stacks of all threads are logged."""
        with self._lock:
            expired = any(watchdog.is_expired for watchdog in self._watchdogs)
        if not expired:
            return
        reason = self.failure_reason()
        log.critical("%s: stacks of all threads follow", reason)
        try:
            faulthandler.dump_traceback(file=sys.__stderr__ or sys.stderr, all_threads=True)
        except (OSError, ValueError, AttributeError):
            pass  # standard error has no file descriptor
        log.critical("process ended: %s", reason)
        for handler in logging.getLogger().handlers:
            handler.flush()
        self._exit(1)

    def _check_loop(self) -> None:
        while not self._closed.wait(CHECK_SECONDS):
            self.check()

    def close(self) -> None:
        """Stop checking the watchdogs."""
        self._closed.set()
        if self._checker is not None and self._checker is not threading.current_thread():
            self._checker.join(timeout=5)
