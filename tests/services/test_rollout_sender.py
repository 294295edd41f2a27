"""Sender: segments wait at the pace of learning, are drained at shutdown and never lost silently."""

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import grpc
import numpy as np
import pytest

from five.agent.learning.samples import Arrays
from five.agent.learning.segments import Segment
from five.clients.experience import ExperienceClient
from five.protos.v1 import experience_pb2, experience_pb2_grpc
from five.services.rollout.sender import Sender, delta_encoded_arrays
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed
from rapid.rpc.server import RpcServer, serve
from tests.services.optimizer_cases import LAYOUT
from tests.waiting import eventually_async

RPC = RpcConfig(require_token=False, deadline_seconds=2, backoff_seconds=0.02, max_backoff_seconds=0.1,
                max_message_mebibytes=1)


class Optimizer(experience_pb2_grpc.ExperienceServiceServicer):
    """Acknowledges segments while ``learning`` is set, ``capacity`` of them at most, with a verdict."""

    def __init__(self) -> None:
        self.learning = asyncio.Event()
        self.capacity = 1 << 30
        self.verdict = experience_pb2.PUSH_VERDICT_ACCEPTED
        self.taken: list[experience_pb2.PushRequest] = []
        self.refuses = False
        self.rpc: RpcServer | None = None

    async def Push(self, request_iterator: AsyncIterator[experience_pb2.PushRequest], context: Any
                   ) -> AsyncIterator[experience_pb2.PushResponse]:
        async for request in request_iterator:
            if not self.refuses:
                await self.learning.wait()
            if self.refuses:
                raise ValueError("this optimizer learns another run")
            while len(self.taken) >= self.capacity:
                await asyncio.sleep(0.01)
            self.taken.append(request)
            yield experience_pb2.PushResponse(segment_id=request.segment_id, verdict=self.verdict)

    async def __aenter__(self) -> "Optimizer":
        self.rpc = await serve("127.0.0.1:0", [(experience_pb2_grpc.add_ExperienceServiceServicer_to_server, self)],
                               RPC)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self.rpc is not None
        await self.rpc.stop(0)

    @property
    def address(self) -> str:
        assert self.rpc is not None
        return f"127.0.0.1:{self.rpc.port}"


def segment(number: int, values: int = 4) -> Segment[Arrays]:
    return Segment({"shared": np.full((4, values), number + 1, np.float16), "versions": np.arange(4, dtype=np.int32)},
                   1, 1.0, 2.0, 4, number, number)


def sender(*optimizers: Optimizer, max_unsent: int = 3, in_flight: int = 2) -> Sender:
    clients = [ExperienceClient([o.address], RPC, "layout", "run", "rollout-0", None, in_flight, ("shared",), epoch=1)
               for o in optimizers]
    s = Sender(clients.__getitem__, max_unsent)
    s.assign(range(len(optimizers)))
    return s


async def blocked(s: Sender) -> bool:
    try:
        await asyncio.wait_for(s.wait_for_capacity(), 0.15)
    except TimeoutError:
        return True
    return False


async def drained(s: Sender) -> int:
    """Drain with a long limit. Draining must end once nothing is left to send."""
    return await asyncio.wait_for(s.drain(300.0), 60.0)


async def test_full_queue_pauses_games() -> None:
    async with Optimizer() as o:
        s = sender(o)
        for number in range(2 + 1 + 3):  # a window of 2, one waiting for the window, 3 in the queue
            assert not await blocked(s)
            s.put(segment(number))
            await asyncio.sleep(0.05)
        assert await blocked(s) and s.unsent >= 5
        o.learning.set()
        await asyncio.wait_for(s.wait_for_capacity(), 30.0)
        assert await drained(s) == 0
        assert sorted(r.newest_version for r in o.taken) == list(range(6))
        assert len({r.segment_id for r in o.taken}) == 6
        first = o.taken[0]
        assert (first.run, first.rollout, first.samples, first.reward_square_sum) == ("run", "rollout-0", 1, 2.0)
        assert first.created_at > 1e9


async def test_slow_optimizer_leaves_segments_to_others() -> None:
    async with Optimizer() as slow, Optimizer() as quick:
        quick.learning.set()
        s = sender(slow, quick)
        for number in range(12):
            await s.wait_for_capacity()
            s.put(segment(number))
            await asyncio.sleep(0.01)
        await eventually_async(lambda: len(quick.taken) >= 9)
        assert not slow.taken
        slow.learning.set()
        assert await drained(s) == 0
        assert len(quick.taken) + len(slow.taken) == 12


@pytest.mark.parametrize("segments", [1, 6])
async def test_drain_times_out_and_counts_unsent_segments(segments: int) -> None:
    """They are in the window, in front of it, or in the queue."""
    async with Optimizer() as o:
        s = sender(o)
        for number in range(segments):
            s.put(segment(number))
        assert await asyncio.wait_for(s.drain(0.1), 30.0) == segments


async def test_drain_does_not_wait_without_an_optimizer() -> None:
    async with Optimizer() as o:
        s = sender(o)
        s.assign([])
        s.put(segment(0))
        assert await drained(s) == 1


@pytest.mark.parametrize("segments", [1, 2, 3])
async def test_refused_segments_are_counted_as_unsent(segments: int) -> None:
    """The first is refused; the others wait for the window or in the queue. None is lost silently."""
    async with Optimizer() as o:
        s = sender(o, in_flight=1)
        for number in range(segments):
            s.put(segment(number))
        await asyncio.sleep(0.05)
        draining = asyncio.create_task(drained(s))
        await asyncio.sleep(0.05)
        o.refuses = True
        o.learning.set()
        assert await draining == segments


async def test_refusal_by_a_released_optimizer_does_not_end_the_games() -> None:
    async with Optimizer() as old, Optimizer() as new:
        s = sender(old, new, in_flight=1)
        s.assign([0])
        s.put(segment(0))
        await asyncio.sleep(0.05)
        s.assign([1])
        assert s.unsent == 1
        old.refuses = True
        old.learning.set()
        await eventually_async(lambda: s.unsent == 0 and s.unacknowledged == 1)
        new.learning.set()
        s.put(segment(1))
        await asyncio.wait_for(s.wait_for_capacity(), 30.0)
        assert await drained(s) == 0 and len(new.taken) == 1


async def test_permanent_refusal_ends_the_games() -> None:
    async with Optimizer() as o:
        o.refuses = True
        s = sender(o, in_flight=1)
        with pytest.raises(CallFailed, match="another run") as failure:
            for number in range(20):
                await s.wait_for_capacity()
                s.put(segment(number))
                await asyncio.sleep(0.02)
        assert failure.value.code is grpc.StatusCode.INVALID_ARGUMENT
        await s.drain(0.0)


async def test_too_large_segment_is_dropped() -> None:
    async with Optimizer() as o:
        o.learning.set()
        s = sender(o)
        s.put(segment(0, values=200_000))
        s.put(segment(1))
        assert await drained(s) == 0
        assert s.too_large == 1 and [r.newest_version for r in o.taken] == [1]


async def test_released_optimizer_keeps_its_segments_and_gets_no_more() -> None:
    async with Optimizer() as old, Optimizer() as new:
        s = sender(old, new, in_flight=1)
        s.assign([0])
        for number in range(3):  # one in flight, one waiting for the window, one in the queue
            s.put(segment(number))
        await asyncio.sleep(0.2)
        s.assign([1])
        assert s.ranks == {1} and s.unsent == 3
        new.learning.set()
        await eventually_async(lambda: len(new.taken) == 2 and s.unsent == 1)
        assert sorted(r.newest_version for r in new.taken) == [1, 2]
        old.learning.set()
        assert await drained(s) == 0
        assert [r.newest_version for r in old.taken] == [0]


async def test_released_optimizer_that_is_gone_does_not_keep_the_rollout_busy(monkeypatch: pytest.MonkeyPatch
                                                                              ) -> None:
    monkeypatch.setattr("five.services.rollout.sender.RELEASE_SECONDS", 0.2)
    async with Optimizer() as gone, Optimizer() as new:
        s = sender(gone, new, in_flight=1)
        s.assign([0])
        s.put(segment(0))
        await asyncio.sleep(0.2)
        s.assign([1])
        await eventually_async(lambda: s.unsent == 0 and s.unacknowledged == 1)
        assert await drained(s) == 0


async def test_games_about_to_end_do_not_wait_for_capacity() -> None:
    async with Optimizer() as o:
        s = sender(o, max_unsent=1, in_flight=1)
        for number in range(3):
            s.put(segment(number))
            await asyncio.sleep(0.05)
        waiting = asyncio.create_task(s.wait_for_capacity())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        s.end_waits()
        await asyncio.wait_for(waiting, 30.0)
        s.put(segment(3))  # the last complete samples, although the queue is full
        await asyncio.wait_for(s.wait_for_capacity(), 30.0)
        o.learning.set()
        assert await drained(s) == 0
        assert sorted(r.newest_version for r in o.taken) == [0, 1, 2, 3]


async def test_capacity_returns_only_below_the_bound() -> None:
    """Three of four queued segments are left, which is still too many."""
    async with Optimizer() as o:
        s = sender(o, max_unsent=3, in_flight=1)
        for number in range(6):  # one in flight, one waiting for the window, four in the queue
            s.put(segment(number))
        await asyncio.sleep(0.1)
        assert await blocked(s)
        o.capacity = 1
        o.learning.set()
        await eventually_async(lambda: s.unsent == 5)
        assert await blocked(s)
        o.capacity = 2
        await eventually_async(lambda: s.unsent == 4)
        await asyncio.wait_for(s.wait_for_capacity(), 30.0)
        o.capacity = 100
        assert await drained(s) == 0


async def test_time_without_capacity_is_counted() -> None:
    async with Optimizer() as o:
        s = sender(o, max_unsent=1, in_flight=1)
        await s.wait_for_capacity()
        assert s.throttled.seconds == 0.0
        for number in range(3):
            s.put(segment(number))
            await asyncio.sleep(0.05)
        assert await blocked(s)
        assert s.throttled.seconds > 0.1
        o.learning.set()
        await drained(s)


async def test_refusal_reaches_games_that_wait_for_capacity() -> None:
    """They would wait forever for an optimizer that has refused everything."""
    async with Optimizer() as o:
        s = sender(o, max_unsent=1, in_flight=1)
        for number in range(3):
            s.put(segment(number))
            await asyncio.sleep(0.05)
        waiting = asyncio.create_task(s.wait_for_capacity())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        o.refuses = True
        o.learning.set()
        with pytest.raises(CallFailed, match="another run"):
            await asyncio.wait_for(waiting, 30.0)
        await s.drain(0.0)


async def test_segments_dropped_in_another_epoch_stay_counted_after_a_release() -> None:
    async with Optimizer() as old, Optimizer() as new:
        for optimizer in (old, new):
            optimizer.learning.set()
            optimizer.verdict = experience_pb2.PUSH_VERDICT_STALE_EPOCH
        s = sender(old, new)
        s.assign([0])
        for number in range(2):
            s.put(segment(number))
        await eventually_async(lambda: s.stale == 2)
        s.assign([1])
        s.put(segment(2))
        await eventually_async(lambda: s.stale == 3 and s.unsent == 0 and not s._released)
        assert await drained(s) == 0


def test_observations_are_delta_encoded() -> None:
    names = delta_encoded_arrays(LAYOUT)
    assert {"shared", "private", "shared_ids", "private_ids", "available", "target_mask"} <= set(names)
    odd = {name: spec for name, spec in LAYOUT.array_specs().items() if name not in names}
    assert all(math.prod(shape) * np.dtype(dtype).itemsize % 2 for shape, dtype in odd.values())
