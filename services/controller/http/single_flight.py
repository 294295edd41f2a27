"""A cache that computes a value once for concurrent callers, to limit the load on the store."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlightCache(Generic[T]):
    """A value at most ``seconds`` old that never predates the last ``invalidate``. Thread-safe. Callers that waited for
    a failed computation get the same exception.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._generation = 0
        self._made_in = -1
        self._made_at = 0.0
        self._value: T
        self._error: Exception | None = None

    def get(self, compute: Callable[[], T]) -> T:
        """Return the value; call ``compute`` if the cached one is too old. Raise what ``compute`` raises."""
        requested_at = self._clock()
        with self._lock:
            if self._made_in != self._generation or self._made_at < requested_at - self._seconds:
                generation, self._error = self._generation, None
                try:
                    self._value = compute()
                except Exception as error:
                    self._error = error
                self._made_in, self._made_at = generation, self._clock()
            if self._error is not None:
                raise self._error
            return self._value

    def invalidate(self) -> None:
        """Invalidate the cached value."""
        self._generation += 1
