"""Queue of segments that are sent to the optimizers."""

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

# Observations that are mostly zero, sent in a sparse encoding.
SPARSE = ("shared", "private")


def delta_encoded_arrays(layout: Layout) -> list[str]:
    """Return the observations that segments delta-encode from step to step; most of them change little.

    Arrays whose rows have an odd number of bytes are sent unencoded.
    """
    return [name for name, (shape, dtype) in layout.array_specs().items()
            if math.prod(shape) * np.dtype(dtype).itemsize % 2 == 0]


def assign_optimizers(identity: str, optimizers: int, most: int) -> list[int]:
    """Return the ranks that a process sends to: all, or ``most`` sampled by its id.

    Processes sample independently and their choices overlap, so load balances across all optimizers.
    """
    everyone = list(range(optimizers))
    return everyone if optimizers <= most else random.Random(identity).sample(everyone, most)


class Sender:
    """Bounded queue of segments in front of the optimizers; the next optimizer with capacity takes a segment.

    Optimizers acknowledge at the pace of learning, and each client has a bounded window. When this queue is full too,
    games stop in `wait_for_capacity`. The bound is small because queued segments become stale.
    """

    def __init__(self, clients: Sequence[ExperienceClient], max_unsent: int) -> None:
        self._clients = list(clients)
        self._max_unsent = max_unsent
        self._queue: asyncio.Queue[Segment[Arrays]] = asyncio.Queue()
        self._has_capacity = asyncio.Event()
        self._has_capacity.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._pushing = 0
        self.too_large = 0  # segments dropped because they exceed rpc.max_message_bytes
        self.throttled = WaitMeter()  # time that games waited for capacity

    @property
    def unsent(self) -> int:
        """Number of segments that no optimizer has acknowledged."""
        return self._queue.qsize() + self._pushing + sum(client.unacknowledged for client in self._clients)

    @property
    def stale(self) -> int:
        """Number of segments that optimizers dropped because the run is in another epoch."""
        return sum(client.stale for client in self._clients)

    def start(self) -> None:
        """Start sending."""
        self._tasks = [asyncio.create_task(self._send(client)) for client in self._clients]

    async def wait_for_capacity(self) -> None:
        """Wait while the queue is full. Raises the error that ended sending, such as a permanent refusal."""
        if not self._has_capacity.is_set():
            with self.throttled:
                while not self._has_capacity.is_set():
                    self._raise_failure()
                    try:
                        await asyncio.wait_for(self._has_capacity.wait(), 1.0)
                    except TimeoutError:
                        continue
        self._raise_failure()

    def put(self, segment: Segment[Arrays]) -> None:
        """Queue a segment. Never blocks; `wait_for_capacity` does."""
        self._queue.put_nowait(segment)
        if self._queue.qsize() >= self._max_unsent:
            self._has_capacity.clear()

    async def drain(self, seconds: float) -> int:
        """Send queued segments for up to ``seconds``, then stop; return the number left."""
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
                self._has_capacity.set()
            self._pushing += 1
            try:
                await client.push(segment)
            except MessageTooLarge:
                self.too_large += 1
                log.exception("segment dropped")
            finally:
                self._pushing -= 1

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise task.exception()  # type: ignore[misc]
