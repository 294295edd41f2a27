"""The queue in front of the forward passes, which decides what requests share a batch and when a batch is closed."""

import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from five.services.inference.models import ResidentVersion
from five.services.inference.requests import Reply, Request

POLL_SECONDS = 1.0  # `take` returns after so long without a request


@dataclass
class PendingRequest:
    """Request that waits for its answer.

    ``served`` holds the versions reserved for it, ``slots`` int64 [n] those of its states.
    """

    request: Request
    future: "Future[Reply]"
    enqueued: float
    served: dict[int, ResidentVersion] = field(default_factory=dict)
    slots: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def rows(self) -> int:
        """Return the number of team-steps of the request."""
        return len(self.request.sessions)


class BatchQueue:
    """Thread-safe queue of requests in order of arrival.

    A batch is closed when it has ``max_batch`` team-steps, when its oldest request has waited ``delay_seconds``, or
    when every open stream has a request in it. Two requests of one session never share a batch, and are served in
    order.
    """

    def __init__(self, max_batch: int, delay_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_batch = max_batch
        self._delay = delay_seconds
        self._clock = clock
        self._condition = threading.Condition()
        self._waiting: deque[PendingRequest] = deque()
        self._streams: set[int] = set()
        self.closed = False

    def open_stream(self, stream: int) -> None:
        """Register a connected client: batches wait for its request, at most for the delay."""
        with self._condition:
            self._streams.add(stream)

    def close_stream(self, stream: int) -> None:
        """Remove a client that disconnected."""
        with self._condition:
            self._streams.discard(stream)
            self._condition.notify_all()

    def put(self, pending: PendingRequest) -> bool:
        """Queue a request. Return False if the queue is closed."""
        with self._condition:
            if not self.closed:
                self._waiting.append(pending)
                self._condition.notify()
            return not self.closed

    def close(self) -> None:
        """Refuse further requests, and wake threads that wait for a batch."""
        with self._condition:
            self.closed = True
            self._condition.notify_all()

    def drain(self) -> list[PendingRequest]:
        """Remove and return all requests in the queue."""
        with self._condition:
            left = list(self._waiting)
            self._waiting.clear()
            return left

    def take(self) -> list[PendingRequest]:
        """Return the next batch in order of arrival, or an empty list after POLL_SECONDS without a request."""
        with self._condition:
            if not self._waiting:
                self._condition.wait(POLL_SECONDS)
            if not self._waiting:
                return []
            closes = self._waiting[0].enqueued + self._delay
            while not self.closed and not self._is_full():
                left = closes - self._clock()
                if left <= 0:
                    break
                self._condition.wait(left)
            return self._first_batch()

    def _is_full(self) -> bool:
        rows = sum(pending.rows for pending in self._waiting)
        return rows >= self._max_batch or {pending.request.stream for pending in self._waiting} >= self._streams

    def _first_batch(self) -> list[PendingRequest]:
        batch: list[PendingRequest] = []
        later: deque[PendingRequest] = deque()
        rows = 0
        busy: set[int] = set()
        full = False
        for pending in self._waiting:
            sessions = pending.request.sessions
            full = full or rows + pending.rows > self._max_batch
            if full or not busy.isdisjoint(sessions):
                later.append(pending)
            else:
                batch.append(pending)
                rows += pending.rows
            busy.update(sessions)
        self._waiting = later
        return batch
