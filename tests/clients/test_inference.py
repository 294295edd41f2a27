"""The inference client against loopback servers that die, hang and return."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from five.clients import wire
from five.clients.inference import NEWEST, REPLAY, RESET, RESTORE, WANT_STATE, InferenceClient
from five.local.cluster import free_ports
from five.protos.v1 import inference_pb2, inference_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.channel import Channel
from rapid.rpc.errors import CallFailed, MessageTooLarge, StatusCode
from tests.clients.tensor_sets import encode_set
from tests.rapid.conftest import SECRET, at
from tests.waiting import eventually_async

LAYOUT = "0011223344556677"
H = 2


class CountingInference(inference_pb2_grpc.InferenceServiceServicer):
    """Policy whose recurrent state counts a session's steps; its value is that count."""

    def __init__(self, version: int = 1) -> None:
        self.counts: dict[int, float] = {}
        self.version = version
        self.hang = False
        self.requests: list[Any] = []

    async def Act(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for request in request_iterator:
            self.requests.append(request)
            if self.hang:
                await asyncio.sleep(60)
            yield self.answer(request)

    def answer(self, request: Any) -> Any:
        observations = wire.decode_set(request.observations, LAYOUT)
        sessions = np.frombuffer(request.sessions, np.int64)
        flags = np.frombuffer(request.flags, np.uint8)
        n = len(sessions)
        wire.require_layout(observations, {"x": ((3,), np.float16)}, n)
        unknown = [s for s, f in zip(sessions, flags, strict=True)
                   if s not in self.counts and not f & (RESET | RESTORE)]
        if unknown:
            return inference_pb2.ActResponse(request_id=request.request_id, epoch=request.epoch,
                                             unknown_sessions=np.array(unknown, np.int64).tobytes())
        states = wire.decode_set(request.states, LAYOUT)["count"] if request.states.tensors else np.zeros(0)
        restored, before = iter(states), []
        for s, f in zip(sessions, flags, strict=True):
            self.counts[s] = 0.0 if f & RESET else float(next(restored)) if f & RESTORE else self.counts[s]
            before.append(self.counts[s])
            self.counts[s] += 1
        values = np.repeat(np.array([self.counts[s] for s in sessions], np.float32)[:, None], H, 1)
        wanted = np.array([b for b, f in zip(before, flags, strict=True) if f & WANT_STATE], np.float32)
        return inference_pb2.ActResponse(
            request_id=request.request_id, actions=np.full((n, H, 6), 3, np.int16).tobytes(),
            log_probabilities=np.full((n, H), -1, np.float32).tobytes(), values=values.tobytes(),
            versions=np.full(n, self.version, np.int64).tobytes(),
            states=encode_set({"count": wanted}, LAYOUT), auxiliary=encode_set({}, LAYOUT),
            queue_us=5, forward_us=6, reward_std=1.5, epoch=request.epoch)

    async def GetModel(self, request: Any, context: Any) -> Any:
        return inference_pb2.GetModelResponse(run="r", newest_version=self.version, layout_hash=LAYOUT,
                                              schema_id="s", resident_versions=[0, 1])


ADD_INFERENCE = inference_pb2_grpc.add_InferenceServiceServicer_to_server


def step(client: InferenceClient, sessions: list[int], flag: int = 0, **more: Any) -> Any:
    n = len(sessions)
    return client.act(np.array(sessions, np.int64), np.full(n, NEWEST), np.full(n, flag, np.uint8),
                      {"x": np.zeros((n, 3), np.float16)}, **more)


@pytest.fixture
def fast(rpc_config: RpcConfig) -> RpcConfig:
    return rpc_config.model_copy(update={"deadline_seconds": 0.5, "reconnect_seconds": 30.0})


async def test_server_keeps_state_between_steps(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_INFERENCE, CountingInference())
    async with InferenceClient([at(server)], rpc_config, LAYOUT, SECRET, sparse=("x",), epoch=1) as client:
        result = await step(client, [7, 9], RESET | WANT_STATE)
        assert result.values.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        assert result.states["count"].tolist() == [0, 0]
        assert result.actions.shape == (2, H, 6) and result.versions.tolist() == [1, 1]
        assert result.reward_std == 1.5 and result.queue_us == 5 and result.forward_us == 6
        assert result.unknown_sessions.size == 0 and result.auxiliary == {}
        assert (await step(client, [9])).values[0, 0] == 2
        assert (await client.model()).resident_versions == (0, 1)


async def test_concurrent_requests_get_their_own_responses(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_INFERENCE, CountingInference())
    async with InferenceClient([at(server)], rpc_config, LAYOUT, SECRET, epoch=1) as client:
        results = await asyncio.gather(*(step(client, [s] * (1 + s % 3), RESET) for s in range(100)))
        assert [len(r.values) for r in results] == [1 + s % 3 for s in range(100)]


@pytest.mark.parametrize("between_requests", [False, True])
async def test_lost_server_reports_unknown_sessions(start_server: Any, rpc_config: RpcConfig, between_requests: bool
                                                    ) -> None:
    first, second = CountingInference(1), CountingInference(2)
    one, two = await start_server(ADD_INFERENCE, first), await start_server(ADD_INFERENCE, second)
    async with InferenceClient([at(one), at(two)], rpc_config, LAYOUT, SECRET, epoch=1) as client:
        result = await step(client, [1, 2], RESET)
        for _ in range(3):
            result = await step(client, [1, 2])
        assert result.values[0, 0] == 4
        await one.stop(0)
        if between_requests:
            await eventually_async(lambda: client._stream is None or not client._stream.alive)
        result = await step(client, [1, 2])
        assert result.unknown_sessions.tolist() == [1, 2] and result.values.size == 0
        result = await step(client, [1, 2], RESTORE, states={"count": np.array([4, 4], np.float32)})
        assert result.values[:, 0].tolist() == [5, 5] and result.versions.tolist() == [2, 2]
        assert client.target == at(two) and client.connections == 2


async def test_requests_in_flight_when_the_server_dies(start_server: Any, fast: RpcConfig) -> None:
    """Whether the dead server stepped them is unknown: they are reported unknown, and those with RESET continue."""
    first, second = CountingInference(1), CountingInference(2)
    one, two = await start_server(ADD_INFERENCE, first), await start_server(ADD_INFERENCE, second)
    config = fast.model_copy(update={"deadline_seconds": 5.0})
    async with InferenceClient([at(one), at(two)], config, LAYOUT, SECRET, epoch=1) as client:
        await step(client, [1], RESET)
        first.hang = True
        stepping = asyncio.create_task(step(client, [1]))
        starting = asyncio.create_task(step(client, [3, 4], RESET))
        mixed = asyncio.create_task(client.act(
            np.array([1, 5], np.int64), np.full(2, NEWEST), np.array([0, RESET], np.uint8),
            {"x": np.zeros((2, 3), np.float16)}))
        await eventually_async(lambda: len(first.requests) == 2)
        await one.stop(0)
        assert (await stepping).unknown_sessions.tolist() == [1]
        assert (await starting).versions.tolist() == [2, 2]
        assert (await mixed).unknown_sessions.tolist() == [1]
        assert client.connections == 2


async def test_hanging_server_is_left_after_the_deadline(start_server: Any, rpc_config: RpcConfig, fast: RpcConfig
                                                         ) -> None:
    first, second = CountingInference(1), CountingInference(2)
    one, two = await start_server(ADD_INFERENCE, first), await start_server(ADD_INFERENCE, second)
    async with InferenceClient([at(one), at(two)], rpc_config, LAYOUT, SECRET, epoch=1) as client:
        await step(client, [1], RESET)
        first.hang = True
        client._config = fast  # the other steps have time on a slow machine
        assert (await step(client, [1])).unknown_sessions.tolist() == [1]
        client._config = rpc_config
        assert (await step(client, [1], RESET)).versions.tolist() == [2]


async def test_restarted_server_is_found_again(start_server: Any, fast: RpcConfig) -> None:
    server = await start_server(ADD_INFERENCE, CountingInference(1), port=free_ports(1)[0])
    async with InferenceClient([at(server)], fast, LAYOUT, SECRET, epoch=1) as client:
        await step(client, [1], RESET)
        await server.stop(0)
        asking = asyncio.create_task(step(client, [1]))
        await asyncio.sleep(0.4)
        await start_server(ADD_INFERENCE, CountingInference(5), port=server.port)
        assert (await asking).unknown_sessions.tolist() == [1]
        assert (await step(client, [1], RESET)).versions.tolist() == [5]


async def test_a_server_that_refuses_is_left_at_once(start_server: Any, rpc_config: RpcConfig,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """With another server; a client of one server waits for its start."""
    waits: list[bool] = []
    ready = Channel.ready

    async def recorded(channel: Channel, timeout: float, until_refused: bool = False) -> None:
        waits.append(until_refused)
        await ready(channel, timeout, until_refused)

    monkeypatch.setattr(Channel, "ready", recorded)
    server = await start_server(ADD_INFERENCE, CountingInference())
    async with InferenceClient(["127.0.0.1:1", at(server)], rpc_config, LAYOUT, SECRET, epoch=1) as client:
        assert (await step(client, [1], RESET)).values.shape == (1, H)
    assert waits[-1] and len(waits) <= 2
    async with InferenceClient([at(server)], rpc_config, LAYOUT, SECRET, epoch=1) as client:
        await step(client, [1], RESET)
    assert not waits[-1]


async def test_no_server_is_an_error_within_the_deadline(rpc_config: RpcConfig) -> None:
    config = rpc_config.model_copy(update={"deadline_seconds": 0.2, "reconnect_seconds": 0.6})
    async with InferenceClient(["127.0.0.1:1"], config, LAYOUT, SECRET, epoch=1) as client:
        async with asyncio.timeout(30):
            with pytest.raises(CallFailed, match="127.0.0.1:1") as caught:
                await step(client, [1], RESET)
        assert caught.value.may_retry


@pytest.mark.parametrize(("secret", "layout", "code", "says"), [
    ("wrong", LAYOUT, StatusCode.UNAUTHENTICATED, "FIVE_CALLER_SECRET_FILE"),
    (SECRET, "f" * 16, StatusCode.FAILED_PRECONDITION, f"ffffffffffffffff.*{LAYOUT}"),
])
async def test_refusals_are_not_retried(secret: str, layout: str, code: Any, says: str, start_server: Any,
                                        rpc_config: RpcConfig) -> None:
    servicer = CountingInference()
    server = await start_server(ADD_INFERENCE, servicer)
    async with InferenceClient([at(server)], rpc_config, layout, secret, epoch=1) as client:
        with pytest.raises(CallFailed, match=says) as caught:
            await step(client, [1], RESET)
        assert caught.value.code is code and servicer.counts == {}


async def test_invalid_request_is_refused_before_sending(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = CountingInference()
    server = await start_server(ADD_INFERENCE, servicer)
    async with InferenceClient([at(server)], rpc_config, LAYOUT, SECRET, epoch=1) as client:
        with pytest.raises(MessageTooLarge, match=r"request for actions has 2,0.* over the limit of 1,048,576"):
            await client.act(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.uint8),
                             {"x": np.ones((1, 1_000_000), np.float16)})
        with pytest.raises(ValueError, match="flags has 2 rows for 1 sessions"):
            await client.act(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(2, np.uint8), {})
        assert servicer.requests == []
        await step(client, [1], RESET)
        with pytest.raises(CallFailed, match="'x': float16"):
            await client.act(np.zeros(1, np.int64), np.zeros(1, np.int64), np.full(1, RESET, np.uint8),
                             {"x": np.zeros((1, 4), np.float16)})
        assert (await step(client, [1], RESET)).values[0, 0] == 1
    with pytest.raises(ValueError, match="list of addresses"):
        InferenceClient([], rpc_config, LAYOUT, epoch=1)


async def test_replayed_actions_are_sent(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = CountingInference()
    server = await start_server(ADD_INFERENCE, servicer)
    async with InferenceClient([at(server)], rpc_config, LAYOUT, SECRET, epoch=1) as client:
        actions = np.arange(H * 6, dtype=np.int16).reshape(1, H, 6)
        await step(client, [1], RESET | REPLAY, replayed_actions=actions)
        assert servicer.requests[0].replayed_actions == actions.tobytes()
