"""Flow-control window: a bound on the requests in flight."""

import asyncio
from collections import deque


class RequestWindow:
    """First-in, first-out semaphore of ``size`` slots for one asyncio loop, which can also fail its waiters.

    An `asyncio.Semaphore` with an `asyncio.Event` for the failure would need two tasks per wait. That costs more than
    sending a small message.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._failure: Exception | None = None

    async def acquire(self) -> None:
        """Wait for a free slot and take it. Raise the exception given to `fail`."""
        if self._failure is not None:
            raise self._failure
        if self._free:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release()  # the slot was granted just before the cancellation
            raise

    def release(self) -> None:
        """Free a slot, or hand it to the caller that has waited longest."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1

    def fail(self, failure: Exception) -> None:
        """Raise ``failure`` in every waiting and every later `acquire`."""
        self._failure = failure
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(failure)
