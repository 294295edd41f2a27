"""The experience client against loopback servers that disconnect, stay away and push back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from five.agent.learning.segments import Segment
from five.clients import wire
from five.clients.experience import ACCEPTED, DUPLICATE, ExperienceClient
from five.local.cluster import free_ports
from five.protos.v1 import experience_pb2, experience_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed, MessageTooLarge, Unavailable
from tests.rapid.conftest import SECRET, at
from tests.waiting import eventually_async

LAYOUT = "0011223344556677"


class Buffer(experience_pb2_grpc.ExperienceServiceServicer):
    """Servicer that counts each segment once and acknowledges while its gate is open."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.arrived: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.break_after: int | None = None

    async def Push(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for request in request_iterator:
            wire.decode_set(request.tensors, LAYOUT)
            self.arrived.append(request.segment_id)
            verdict = DUPLICATE if request.segment_id in self.seen else ACCEPTED
            if verdict == ACCEPTED:
                self.seen.append(request.segment_id)
            if self.break_after is not None and len(self.arrived) >= self.break_after:
                self.break_after = None
                raise Unavailable("breaking off before the acknowledgement")
            await self.gate.wait()
            yield experience_pb2.PushResponse(segment_id=request.segment_id, verdict=verdict)


ADD_EXPERIENCE = experience_pb2_grpc.add_ExperienceServiceServicer_to_server


def segment(i: int, size: int = 10) -> Segment[Any]:
    return Segment({"x": np.full(size, i, np.float16), "y": np.full(2, i, np.float32)}, 1, 1.0, 2.0, 3, 4, 5,
                   created_at=6.0, segment_id=f"{i:032x}")


async def test_segments_arrive_once_in_order(start_server: Any, rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    server = await start_server(ADD_EXPERIENCE, buffer)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "rollout-0", SECRET, in_flight=3,
                                sparse=("x",), epoch=1) as client:
        for i in range(20):
            await client.push(segment(i))
            assert client.unacknowledged <= 3
        assert await client.flush(30)
        assert buffer.seen == [f"{i:032x}" for i in range(20)] == buffer.arrived
        assert client.verdicts == {ACCEPTED: 20} and client.resent == 0


async def test_segment_above_4_mb_is_sent(start_server: Any) -> None:
    """gRPC's default limit is 4 MB on both sides."""
    buffer, config = Buffer(), RpcConfig(deadline_seconds=10)
    server = await start_server(ADD_EXPERIENCE, buffer, config=config)
    async with ExperienceClient([at(server)], config, LAYOUT, "r", "rollout-0", SECRET, epoch=1) as client:
        noise = np.random.default_rng(0).random(9 << 17, np.float32)
        assert noise.nbytes > 4 << 20
        await client.push(Segment({"x": noise}, 1, 1.0, 2.0, 3, 4, 5))
        assert await client.flush(20)
    assert client.verdicts[ACCEPTED] == 1


async def test_full_window_blocks_push(start_server: Any, rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    buffer.gate.clear()
    server = await start_server(ADD_EXPERIENCE, buffer)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", SECRET, in_flight=2, epoch=1) as client:
        await client.push(segment(0))
        await client.push(segment(1))
        third = asyncio.create_task(client.push(segment(2)))
        await asyncio.sleep(0.3)
        assert not third.done() and client.unacknowledged == 2
        assert not await client.flush(0.1)
        buffer.gate.set()
        await asyncio.wait_for(third, 30)
        assert await client.flush(30)


async def test_unacknowledged_segments_are_resent_and_count_once(start_server: Any,
                                                                 rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    buffer.break_after = 5
    server = await start_server(ADD_EXPERIENCE, buffer)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", SECRET, in_flight=4, epoch=1) as client:
        for i in range(12):
            await client.push(segment(i))
        assert await client.flush(30)
        assert sorted(buffer.seen) == [f"{i:032x}" for i in range(12)]
        assert len(buffer.arrived) > 12 and client.resent >= 1
        assert client.verdicts[DUPLICATE] >= 1 and client.verdicts.total() == 12


async def test_segments_wait_for_a_late_optimizer(start_server: Any, rpc_config: RpcConfig) -> None:
    (port,) = free_ports(1)
    async with ExperienceClient([f"127.0.0.1:{port}"], rpc_config, LAYOUT, "r", "0", SECRET, in_flight=8,
                                epoch=1) as client:
        for i in range(5):
            await client.push(segment(i))
        await asyncio.sleep(0.3)
        buffer = Buffer()
        await start_server(ADD_EXPERIENCE, buffer, port=port)
        assert await client.flush(30)
        assert buffer.seen == [f"{i:032x}" for i in range(5)]


async def test_client_fails_over_to_another_optimizer(start_server: Any,
                                                      rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    server = await start_server(ADD_EXPERIENCE, buffer)
    config = rpc_config.model_copy(update={"deadline_seconds": 0.2})
    async with ExperienceClient(["127.0.0.1:1", at(server)], config, LAYOUT, "r", "0", SECRET,
                                failover_seconds=0.5, epoch=1) as client:
        await client.push(segment(0))
        assert await client.flush(30)
        assert buffer.seen == [f"{0:032x}"]


async def test_possibly_accepted_segments_are_not_sent_elsewhere(start_server: Any,
                                                                 rpc_config: RpcConfig) -> None:
    """A segment was accepted and its acknowledgement lost with the server; at another server it would count again."""
    taken, other = Buffer(), Buffer()
    taken.break_after = 1
    first, second = await start_server(ADD_EXPERIENCE, taken), await start_server(ADD_EXPERIENCE, other)
    config = rpc_config.model_copy(update={"deadline_seconds": 0.2})
    async with ExperienceClient([at(first), at(second)], config, LAYOUT, "r", "0", SECRET, in_flight=4,
                                failover_seconds=30.0, epoch=1) as client:
        taken.gate.clear()  # accepted and never answered
        await client.push(segment(0))
        await eventually_async(lambda: taken.arrived)
        client._failover_seconds = 0.3  # not before, or a slow machine would find no first server
        await first.stop(0)
        await eventually_async(lambda: client.abandoned)
        await client.push(segment(1))
        assert await client.flush(30)
    assert other.seen == [f"{1:032x}"] and client.abandoned == 1


async def test_push_raises_after_a_refusal(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_EXPERIENCE, Buffer())
    async with ExperienceClient([at(server)], rpc_config, "f" * 16, "r", "0", SECRET, in_flight=1, epoch=1) as client:
        await client.push(segment(0))
        with pytest.raises(CallFailed, match=f"ffffffffffffffff.*{LAYOUT}"):
            await asyncio.wait_for(client.push(segment(1)), 30)
        with pytest.raises(CallFailed):
            await client.flush(30)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", "wrong", epoch=1) as client:
        await client.push(segment(0))
        with pytest.raises(CallFailed, match="UNAUTHENTICATED"):
            await client.flush(30)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", SECRET, epoch=1) as client:
        with pytest.raises(MessageTooLarge, match="the segment has"):
            await client.push(segment(0, 1_000_000))
        await client.push(segment(1))
        assert await client.close(timeout=30)
