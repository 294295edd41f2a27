"""Queue of segments that are sent to the optimizers."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Collection

import numpy as np

from dota.spaces import Layout
from five.agent.learning.pacing import WaitMeter
from five.agent.learning.samples import Arrays
from five.agent.learning.segments import Segment
from five.clients.experience import ExperienceClient
from rapid.rpc.errors import CallFailed, MessageTooLarge

log = logging.getLogger(__name__)

RELEASE_SECONDS = 60.0  # for the last acknowledgements of an optimizer that gets no more segments
# Observations that are mostly zero, sent in a sparse encoding.
SPARSE = ("shared", "private")


def delta_encoded_arrays(layout: Layout) -> list[str]:
    """Return the observations that segments delta-encode from step to step; most of them change little.

    Arrays whose rows have an odd number of bytes are sent unencoded.
    """
    return [name for name, (shape, dtype) in layout.array_specs().items()
            if math.prod(shape) * np.dtype(dtype).itemsize % 2 == 0]


class Sender:
    """Bounded queue of segments in front of the optimizers; the next optimizer with capacity takes a segment.

    Optimizers acknowledge at the pace of learning, and each client has a bounded window. When this queue is full too,
    games stop in `wait_for_capacity`. The bound is small because queued segments become stale.
    """

    def __init__(self, connect: Callable[[int], ExperienceClient], max_unsent: int) -> None:
        """Create a sender that sends nowhere until `assign`. ``connect`` returns the client of an optimizer's rank."""
        self._connect = connect
        self._max_unsent = max_unsent
        self._queue: asyncio.Queue[Segment[Arrays]] = asyncio.Queue()
        self._has_capacity = asyncio.Event()
        self._has_capacity.set()
        self._ending = False
        self._failure: BaseException | None = None
        self._clients: dict[int, ExperienceClient] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._released: dict[ExperienceClient, asyncio.Task[None]] = {}
        self._released_stale = 0
        self._pushing = 0
        self.unacknowledged = 0  # segments given up because a released optimizer did not acknowledge them
        self.too_large = 0  # segments dropped because they exceed rpc.max_message_bytes
        self.throttled = WaitMeter()  # time that games waited for capacity

    @property
    def ranks(self) -> set[int]:
        """Ranks of the optimizers that get segments."""
        return set(self._clients)

    @property
    def unsent(self) -> int:
        """Number of segments that no optimizer has acknowledged."""
        clients = (*self._clients.values(), *self._released)
        return self._queue.qsize() + self._pushing + sum(client.unacknowledged for client in clients)

    @property
    def stale(self) -> int:
        """Number of segments that optimizers dropped because the run is in another epoch."""
        clients = (*self._clients.values(), *self._released)
        return self._released_stale + sum(client.stale for client in clients)

    def assign(self, ranks: Collection[int]) -> None:
        """Send to the optimizers of these ranks from now on. The others keep the segments that they were sent."""
        for rank in self._clients.keys() - set(ranks):
            self._tasks.pop(rank).cancel()
            client = self._clients.pop(rank)
            self._released[client] = asyncio.create_task(self._release(client))
        for rank in ranks:
            if rank not in self._clients:
                self._clients[rank] = self._connect(rank)
                self._tasks[rank] = asyncio.create_task(self._send(self._clients[rank]))
                self._tasks[rank].add_done_callback(self._on_end)

    async def wait_for_capacity(self) -> None:
        """Wait while the queue is full. Raises the error that ended sending, such as a permanent refusal."""
        if not self._has_capacity.is_set():
            with self.throttled:
                while not self._has_capacity.is_set():  # another game may have taken it meanwhile
                    await self._has_capacity.wait()
        if self._failure is not None:
            raise self._failure

    def put(self, segment: Segment[Arrays]) -> None:
        """Queue a segment. Never blocks; `wait_for_capacity` does."""
        self._queue.put_nowait(segment)
        if self._queue.qsize() >= self._max_unsent and not self._ending:
            self._has_capacity.clear()

    def end_waits(self) -> None:
        """Let games continue that wait for capacity: they are about to end, and queue their last complete samples."""
        self._ending = True
        self._has_capacity.set()

    async def drain(self, seconds: float) -> int:
        """Send queued segments for up to ``seconds``, then stop; return the number left."""
        deadline = time.monotonic() + seconds
        while self._queue.qsize() + self._pushing and time.monotonic() < deadline:
            if all(task.done() for task in self._tasks.values()):
                break
            await asyncio.sleep(0.02)
        clients = (*self._clients.values(), *self._released)
        tasks = (*self._tasks.values(), *self._released.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        left = max(deadline - time.monotonic(), 0.0)
        await asyncio.gather(*(client.close(left) for client in clients), return_exceptions=True)
        return self.unsent

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
            except (asyncio.CancelledError, CallFailed):
                self._queue.put_nowait(segment)  # the client does not have it
                raise
            finally:
                self._pushing -= 1

    async def _release(self, client: ExperienceClient) -> None:
        """Disconnect from an optimizer once it has acknowledged its segments, or after `RELEASE_SECONDS`."""
        try:
            await client.close(RELEASE_SECONDS)
        except CallFailed as error:
            log.warning("optimizer released after a failure: %s", error)
        self.unacknowledged += client.unacknowledged
        self._released_stale += client.stale
        del self._released[client]

    def _on_end(self, sending: asyncio.Task[None]) -> None:
        """Record the error that ended sending, and let the games that wait for capacity raise it."""
        if not sending.cancelled():
            self._failure = sending.exception()
            self.end_waits()
