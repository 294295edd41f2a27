"""SegmentBuilder on their way to the optimizers."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Sequence

import numpy as np

from dota.spaces import Layout
from five.agent.learning.pacing import WaitMeter
from five.agent.learning.samples import Arrays
from five.agent.learning.segments import Segment
from five.clients.experience import ExperienceClient
from rapid.rpc.errors import MessageTooLarge

log = logging.getLogger(__name__)

# Observations that are mostly zero.
SPARSE = ("shared", "private")


def delta_encoded_arrays(layout: Layout) -> list[str]:
    """Arrays that a segment has as what changes from timestep to timestep: observations, most of which stand in the one
    before. Those in rows of an odd number of bytes travel as they are."""
    return [name for name, (shape, dtype) in layout.array_specs().items()
            if math.prod(shape) * np.dtype(dtype).itemsize % 2 == 0]


def assign_optimizers(identity: str, optimizers: int, most: int) -> list[int]:
    """Which optimizers the process of that id sends to: all, or ``most`` drawn by its id.

    Processes draw independently of each other, so their choices overlap everywhere: an optimizer that gets less than
    it could take is made up for by the processes that it shares with others.
    """
    everyone = list(range(optimizers))
    return everyone if optimizers <= most else random.Random(identity).sample(everyone, most)


class Sender:
    """A bounded queue of segments in front of the optimizers; whichever has room takes the next.

    Optimizers acknowledge at the pace of learning, and each client has a bounded number under way: once this queue
    is full as well, games stop in ``room``. What waits grows old, so the bound is small.
    """

    def __init__(self, clients: Sequence[ExperienceClient], max_unsent: int) -> None:
        self._clients = list(clients)
        self._max_unsent = max_unsent
        self._queue: asyncio.Queue[Segment[Arrays]] = asyncio.Queue()
        self._room = asyncio.Event()
        self._room.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._pushing = 0
        self.too_large = 0  # segments that no message holds, dropped
        self.throttled = WaitMeter()  # time that games stood still for want of room

    @property
    def unsent(self) -> int:
        """SegmentBuilder that no optimizer has taken yet."""
        return self._queue.qsize() + self._pushing + sum(client.unacknowledged for client in self._clients)

    @property
    def stale(self) -> int:
        """SegmentBuilder that optimizers dropped because the run's next epoch had begun."""
        return sum(client.stale for client in self._clients)

    def start(self) -> None:
        """Begin to send."""
        self._tasks = [asyncio.create_task(self._send(client)) for client in self._clients]

    async def wait_for_capacity(self) -> None:
        """Wait while the queue is full. Raises what ended the sending: segments that are refused for good."""
        if not self._room.is_set():
            with self.throttled:
                while not self._room.is_set():
                    self._raise_failure()
                    try:
                        await asyncio.wait_for(self._room.wait(), 1.0)
                    except TimeoutError:
                        continue
        self._raise_failure()

    def put(self, segment: Segment[Arrays]) -> None:
        """Queue a segment for sending. Never blocks; `room` does."""
        self._queue.put_nowait(segment)
        if self._queue.qsize() >= self._max_unsent:
            self._room.clear()

    async def drain(self, seconds: float) -> int:
        """Wait up to ``seconds`` for everything to be sent, then stop. Returns how many segments were left."""
        deadline = time.monotonic() + seconds
        while self._queue.qsize() + self._pushing and time.monotonic() < deadline:
            if all(task.done() for task in self._tasks):
                break
            await asyncio.sleep(0.02)
        for task in self._tasks:
            task.cancel()
        lost = self._pushing
        await asyncio.gather(*self._tasks, return_exceptions=True)
        left = max(deadline - time.monotonic(), 0.0)
        await asyncio.gather(*(client.close(left) for client in self._clients), return_exceptions=True)
        return self.unsent + lost

    async def _send(self, client: ExperienceClient) -> None:
        while True:
            segment = await self._queue.get()
            if self._queue.qsize() < self._max_unsent:
                self._room.set()
            self._pushing += 1
            try:
                await client.push(segment)
            except MessageTooLarge:
                self.too_large += 1
                log.exception("a segment is dropped")
            finally:
                self._pushing -= 1

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
