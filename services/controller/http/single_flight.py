"""One answer for everybody who asks for the same at the same moment: many readers cost a store what one does."""

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """An answer that is at most ``seconds`` old, and never from before the last ``forget``. Safe to share between
    threads. A failure is shared as well: who waited for it does not wait for another one.
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

    def get(self, make: Callable[[], T]) -> T:
        """The answer; ``make`` finds it where none is young enough. Raises what ``make`` raises."""
        asked = self._clock()
        with self._lock:
            if self._made_in != self._generation or self._made_at < asked - self._seconds:
                generation, self._error = self._generation, None
                try:
                    self._value = make()
                except Exception as error:
                    self._error = error
                self._made_in, self._made_at = generation, self._clock()
            if self._error is not None:
                raise self._error
            return self._value

    def forget(self) -> None:
        """Something has changed: answers from before are none any more."""
        self._generation += 1
