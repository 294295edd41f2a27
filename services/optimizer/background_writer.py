"""Background writes of the first rank: versions, checkpoints, and the callers that wait for a checkpoint."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from five.services.optimizer import metrics as page

log = logging.getLogger(__name__)
Write = Callable[[], None]
MIN_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.2, 5.0
BLOCKED_LOG_SECONDS = 5.0  # learning is blocked for so long before a line is logged
WANTED_SECONDS = 1.0  # between two checks whether a requested checkpoint is still wanted


class BackgroundWriter:
    """Run one write at a time on a background thread, retrying while a store is unavailable.

    Writes run in order and never overlap, so one copy of the parameters is enough. The next call of `submit`, `wait` or
    `raise_error` raises the error of a write. A write whose error is ``retryable`` (a store is down, a disk is full)
    is repeated until it succeeds, so it must be idempotent; ``error`` describes the last failure meanwhile.
    """

    def __init__(self, retryable: Callable[[Exception], bool] = lambda error: False, name: str = "background-writer"
                 ) -> None:
        self._retryable = retryable
        self._pool = ThreadPoolExecutor(1, name)
        self._running: Future[None] | None = None
        self._no_retries = threading.Event()
        self.error = ""

    @property
    def is_idle(self) -> bool:
        """Whether no write is running."""
        return self._running is None or self._running.done()

    def submit(self, write: Write) -> None:
        """Start a write after the previous one has ended."""
        self.wait()
        self._no_retries.clear()
        self._running = self._pool.submit(self._retry, write)

    def stop_retrying(self) -> None:
        """Let the running write fail for good at its next error."""
        self._no_retries.set()

    def wait(self) -> None:
        """Wait until no write is running."""
        running, self._running = self._running, None
        if running is not None:
            running.result()

    def raise_error(self) -> None:
        """Raise the error of a write that has ended. Never waits."""
        if self._running is not None and self._running.done():
            self.wait()

    def _retry(self, write: Write) -> None:
        pause = MIN_RETRY_SECONDS
        while True:
            try:
                write()
            except Exception as error:
                if not self._retryable(error) or self._no_retries.is_set():
                    self.error = ""
                    raise
                self.error = f"{type(error).__name__}: {error}"
                log.warning("write failed, retrying in %.1f s: %s", pause, self.error)
            else:
                self.error = ""
                return
            self._no_retries.wait(pause)
            pause = min(2 * pause, MAX_RETRY_SECONDS)


class VersionWriter:
    """Writes versions and checkpoints in the background, at most one of each at a time.

    Only the training thread uses it, and errors are raised there. Training waits for the previous version but never for
    a checkpoint. The checkpoint of a version starts after the version is published, so that games receive it first.
    """

    def __init__(self, retryable: Callable[[Exception], bool]) -> None:
        self._versions = BackgroundWriter(retryable, "version-writer")
        self._checkpoints = BackgroundWriter(retryable, "checkpoint-writer")
        self._queued_checkpoint: Write | None = None  # until its version is published

    @property
    def is_idle(self) -> bool:
        """Whether everything is written."""
        return self._versions.is_idle and self.is_checkpoint_idle

    @property
    def is_checkpoint_idle(self) -> bool:
        """Whether no checkpoint is queued or running."""
        return self._queued_checkpoint is None and self._checkpoints.is_idle

    @property
    def blocked_reason(self) -> str:
        """The reason why no further version may be made; "" if one may.

        The previous version must be published. A checkpoint may be slow, but a failing one blocks: everything learned
        meanwhile would be lost with the process.
        """
        if not self._versions.is_idle:
            return ": ".join(filter(None, ("the previous version is not published", self._versions.error)))
        if not self._checkpoints.is_idle and self._checkpoints.error:
            return f"the checkpoint is not written: {self._checkpoints.error}"
        return ""

    def submit_version(self, publish: Write, save: Write | None = None) -> None:
        """Publish a version after the previous one, then write its checkpoint. ``save`` needs `is_checkpoint_idle`."""
        assert save is None or self.is_checkpoint_idle
        self._versions.submit(publish)
        self._queued_checkpoint = save or self._queued_checkpoint

    def submit_checkpoint(self, save: Write) -> None:
        """Write a checkpoint after everything else is written."""
        self.wait()
        self._checkpoints.submit(save)

    def poll(self) -> None:
        """Raise the error of an ended write and start the checkpoint of a published version. Never waits."""
        self._versions.raise_error()
        self._checkpoints.raise_error()
        if self._queued_checkpoint is not None and self._versions.is_idle:
            save, self._queued_checkpoint = self._queued_checkpoint, None
            self._checkpoints.submit(save)

    def wait_for_version(self) -> None:
        """Wait until the last version is published."""
        self._versions.wait()

    def wait(self) -> None:
        """Wait until everything is written."""
        self._versions.wait()
        self.poll()
        self._checkpoints.wait()

    def finish(self) -> None:
        """Wait for the running writes without further retries and drop a queued checkpoint; the final one follows."""
        self._queued_checkpoint = None
        self._versions.stop_retrying()
        self._checkpoints.stop_retrying()
        try:
            self._versions.wait()
        finally:
            self._checkpoints.wait()


class CheckpointRequests:
    """Queue of callers waiting for the next checkpoint."""

    def __init__(self) -> None:
        self._waiters: deque[Future[int]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def request(self, is_wanted: Callable[[], bool]) -> int:
        """Request a checkpoint, wait until it is written and return its version.

        Any thread may call this. Raises TimeoutError once ``is_wanted()`` is false, or the error of the write.
        """
        waiter: Future[int] = Future()
        self._waiters.append(waiter)
        while not wait({waiter}, WANTED_SECONDS).done:
            if not is_wanted():
                raise TimeoutError("no checkpoint was written in time: learning is blocked or the blob store is slow, "
                                   "see the optimizer's log")
        return waiter.result()

    def take(self) -> list[Future[int]]:
        """Remove and return all waiters; the checkpoint being written now is theirs."""
        return [self._waiters.popleft() for _ in range(len(self._waiters))]


@contextmanager
def failing_waiters(waiters: list[Future[int]]) -> Iterator[None]:
    """Deliver an error of the block to the waiters instead of raising it."""
    try:
        yield
    except Exception as error:
        for waiter in waiters:
            waiter.set_exception(error)


def resolve_waiters(waiters: list[Future[int]], version: int, write: Write) -> Write:
    """Return a write that runs ``write`` and delivers its version or its error to the waiters."""
    def resolving() -> None:
        with failing_waiters(waiters):
            write()
            for waiter in waiters:
                waiter.set_result(version)

    return resolving


class BlockedTimer:
    """Reports on the metrics page and in the log why and how long learning is blocked."""

    def __init__(self) -> None:
        self.reason = ""  # "" while learning is not blocked
        self._since = 0.0
        self._logged = False

    def update(self, reason: str) -> None:
        """Record the reason of this iteration; "" when learning is not blocked."""
        now = time.monotonic()
        if not self.reason:
            self._since = now
        self.reason = reason
        page.BLOCKED_SECONDS.set(now - self._since if reason else 0.0)
        if reason and now - self._since > BLOCKED_LOG_SECONDS and not self._logged:
            self._logged = True
            log.warning("learning blocked: %s", reason)
        elif not reason and self._logged:
            self._logged = False
            log.info("learning continues")
