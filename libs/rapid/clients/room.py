"""Room for a bounded number of things under way."""

import asyncio
from collections import deque


class Room:
    """``places`` that are taken and left again, in the order in which they were asked for. Within one asyncio loop.

    Who waits is woken by an error as well (`fail`): a semaphore beside an event would take two tasks a wait, which cost
    more than to send a small message.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._failure: Exception | None = None

    async def take(self) -> None:
        """Waits for a place. Raises what `fail` was told."""
        if self._failure is not None:
            raise self._failure
        if self._free:
            self._free -= 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave()  # it was given the place, and does not take it
            raise

    def leave(self) -> None:
        """Gives a place to who has waited longest."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1

    def fail(self, failure: Exception) -> None:
        """From now on nobody gets a place: who waits, and who asks, is told why."""
        self._failure = failure
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_exception(failure)
