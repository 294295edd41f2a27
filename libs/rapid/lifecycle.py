"""Lifecycle of a service process: draining on SIGTERM, and following the run's status."""

import asyncio
import logging
import math
import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import redis

from rapid.critical_tasks import CriticalTasks
from rapid.store.errors import Corrupt
from rapid.store.record import RunRecord
from rapid.store.state import ACTIVE, ENDED, PAUSE_HOLDS, RunState, Status

log = logging.getLogger(__name__)


class Lifecycle:
    """State of a service process: active, idle or draining.

    The first SIGTERM or SIGINT starts draining: ``draining`` becomes true, and the process exits after
    ``grace_seconds`` at the latest. A second signal exits at once. `watch` polls the run's status. The statuses
    ``stopping`` and ``failed`` also start draining, unless the service outlives its run. Every wait has a blocking and
    an asyncio form. Use it as a context in the main thread. ``critical_tasks`` starts the threads and tasks whose death
    drains the process; each of its loops must make progress within ``watchdog_seconds``.
    """

    def __init__(self, grace_seconds: float, exit_process: Callable[[int], None] = os._exit,
                 watchdog_seconds: float = math.inf) -> None:
        self.grace_seconds = grace_seconds
        self._exit = exit_process
        self._draining = threading.Event()
        self._changed = threading.Condition()
        self._status: Status | None = None
        self._pause = 0
        self._callbacks: list[Callable[[], None]] = []
        self._previous: dict[int, Any] = {}
        self._closed = threading.Event()
        self._poller: threading.Thread | None = None
        self._signals = 0
        self._ends_with_run = True
        self._on_poll: Callable[[RunRecord | None], None] = lambda record: None
        self.critical_tasks = CriticalTasks(self.drain, lambda: self.draining, watchdog_seconds, exit_process)
        self.drain_reason = ""
        self._drain_began: float | None = None  # monotonic seconds

    def set_grace_seconds(self, seconds: float) -> None:
        """Replace the grace period, also while draining: a service may know better than its configuration how long it
        writes."""
        self.grace_seconds = seconds

    @property
    def remaining_seconds(self) -> float:
        """Seconds until a draining process exits, at least 0; infinite before draining starts."""
        began = self._drain_began
        return math.inf if began is None else max(began + self.grace_seconds - time.monotonic(), 0.0)

    # Draining.

    @property
    def draining(self) -> bool:
        """Whether the service is to finish its work in progress and exit."""
        return self._draining.is_set()

    @property
    def signal_received(self) -> bool:
        """Whether a signal has asked the process to exit."""
        return self._signals > 0

    def install(self) -> None:
        """Install the handlers of SIGTERM and SIGINT. Call it in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 1:
            self._exit(128 + number)
            return
        # Not in the handler: it may have interrupted a holder of the locks that draining needs.
        threading.Thread(target=self.drain, args=(signal.Signals(number).name,), daemon=True).start()

    def drain(self, reason: str) -> None:
        """Start draining. A repeated call changes nothing."""
        with self._changed:
            if self._draining.is_set():
                return
            self.drain_reason = reason
            self._drain_began = time.monotonic()
            self._draining.set()
            callbacks = list(self._callbacks)
            self._changed.notify_all()
        log.info("draining (%s), at most %g s", reason, self.grace_seconds)
        for callback in callbacks:
            callback()
        threading.Thread(target=self._enforce, name="grace-period", daemon=True).start()

    def _enforce(self) -> None:
        # ``grace_seconds`` may change meanwhile.
        while not self._closed.wait(min(self.remaining_seconds, 1.0)):
            if self.remaining_seconds:
                continue
            log.error("exiting: still alive %g s after %s", self.grace_seconds, self.drain_reason)
            self._exit(1)
            return

    def on_drain(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` from another thread when draining starts, or now if it has started."""
        with self._changed:
            if not self._draining.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def wait_drain(self, timeout: float | None = None) -> bool:
        """Block until draining starts. Return False when ``timeout`` seconds pass first."""
        return self._draining.wait(timeout)

    async def wait_drained(self) -> None:
        """Wait until draining starts."""
        loop = asyncio.get_running_loop()
        event = asyncio.Event()

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # the loop is closed

        self.on_drain(wake)
        try:
            await event.wait()
        finally:
            with self._changed:
                if wake in self._callbacks:
                    self._callbacks.remove(wake)

    # The run's status.

    @property
    def status(self) -> Status | None:
        """The run's status at the last poll; None before the first poll or without a run."""
        return self._status

    @property
    def active(self) -> bool:
        """Whether the run plays and learns now. Always true for a service that follows no run."""
        return self._poller is None or self._status in ACTIVE

    @property
    def pause(self) -> int:
        """Number of the pause that holds the run, at the last poll; 0 without one."""
        with self._changed:
            return self._pause if self._status in PAUSE_HOLDS else 0

    def watch(self, state: RunState, poll_seconds: float, ends_with_run: bool = True,
              on_poll: Callable[[RunRecord | None], None] = lambda record: None) -> None:
        """Poll the run's status and record on a thread, every ``poll_seconds``.

        While Redis is unreachable, or status or record are damaged, the last status stays. With ``ends_with_run`` False
        the service outlives a stopped run. ``on_poll`` is called on that thread with the run's record after each
        successful poll.
        """
        self._ends_with_run = ends_with_run
        self._on_poll = on_poll
        self._poller = self.critical_tasks.thread("run-status-poller", lambda: self._poll(state, poll_seconds),
                                                  may_end=True)
        self._poller.start()

    def _poll(self, state: RunState, poll_seconds: float) -> None:
        while not self._closed.is_set():
            try:
                now, record = state.snapshot()
                self._set(now.status if now else None, now.pause if now else 0)
                self._on_poll(record)
            except (redis.RedisError, ValueError, Corrupt) as error:
                log.warning("run status poll failed: %s", error)
            self._closed.wait(poll_seconds)

    def _set(self, status: Status | None, pause: int = 0) -> None:
        with self._changed:
            self._pause = pause
            before, self._status = self._status, status
            if before is not status:
                self._changed.notify_all()
        if before is not status and status is not None:
            log.info("the run is %s", status)
            if status in ENDED and self._ends_with_run:
                self.drain(f"the run is {status}")

    async def wait_active(self, poll_seconds: float = 0.2) -> bool:
        """Wait while the run is starting, paused or in surgery. Return False once the service drains."""
        while not self.draining:
            if self.active:
                return True
            await asyncio.sleep(poll_seconds)
        return False

    # Context.

    def close(self) -> None:
        """End the threads and restore the signal handlers."""
        self._closed.set()
        self.critical_tasks.close()
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()
        if self._poller is not None:
            self._poller.join(timeout=5)

    def __enter__(self) -> "Lifecycle":
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

