"""Progress of a rehearsal, written to the run's state, and its cancellation."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import redis

from five.services.controller.surgery.rehearsals import Rehearsal, Rehearsals, RehearsalState

BEAT_SECONDS = 1.0
END_SECONDS = 20.0  # time to wait at the end for an unavailable Redis


class RehearsalStopped(RuntimeError):
    """The rehearsal was cancelled, or its process received a signal."""


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Raise RehearsalStopped in the main thread on the first SIGTERM or SIGINT. Later signals do not disturb the
    cleanup."""
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop(number: int, frame: FrameType | None) -> None:
        for one in numbers:
            signal.signal(one, signal.SIG_IGN)
        raise RehearsalStopped(f"stopped by a signal ({signal.Signals(number).name})")

    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class RehearsalProgress:
    """Background thread that holds a rehearsal's lease, writes its progress and stops the main thread on cancellation.

    Use it as a context manager within `raise_on_signals`. While Redis is unavailable, progress is written later.
    ``stop_reason`` says why it stopped the main thread, '' if it did not.
    """

    def __init__(self, rehearsals: Rehearsals, identity: str) -> None:
        self._rehearsals = rehearsals
        self._identity = identity
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {"began_at": time.time()}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="rehearsal", daemon=True)
        self.cancelled = False
        self.stop_reason = ""

    def update(self, **values: Any) -> None:
        """Set fields of `Rehearsal`. They are written within about a second."""
        with self._lock:
            self._values.update(values)

    def end(self, state: RehearsalState, **values: Any) -> None:
        """Write the final state with its event and release the lease. If Redis stays unavailable, the rehearsal counts
        as abandoned."""
        self.update(state=state, ended_at=time.time(), **values)
        result = values.get("result")
        scores = {} if result is None else result.model_dump()
        event = ("five surgery rehearse", "rehearsal.ended", {
            "rehearsal": self._identity, "state": state.value, **scores, "error": values.get("error", "")})
        until = time.monotonic() + END_SECONDS
        while True:
            try:
                self._rehearsals.change(self._identity, self._with_values, event)
                self._rehearsals.release(self._identity)
                return
            except redis.RedisError:
                if time.monotonic() > until:
                    return
                time.sleep(BEAT_SECONDS)

    def _with_values(self, rehearsal: Rehearsal) -> Rehearsal:
        with self._lock:
            return rehearsal.model_copy(update={"error": "", **self._values})

    def _beat(self) -> None:
        while not self._over.is_set():
            try:
                if not self._rehearsals.hold(self._identity):
                    self._stop("another rehearsal has started, because this process did not renew its lease in time")
                    return
                now = self._rehearsals.change(self._identity, self._with_values)
                if now is not None and now.cancel:
                    self.cancelled = True
                    self._stop("the rehearsal was cancelled")
                    return
            except redis.RedisError:
                pass
            self._over.wait(BEAT_SECONDS)

    def _stop(self, reason: str) -> None:
        if not self._over.is_set():
            self.stop_reason = reason
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)

    def __enter__(self) -> "RehearsalProgress":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
