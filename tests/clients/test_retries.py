"""Retries of calls, retry throttling, and limits of a server."""

import asyncio
import json
from typing import Any

import pytest

from five.clients.evaluator import EvaluatorClient
from five.clients.opponents import OpponentsClient
from five.protos.v1 import evaluator_pb2, evaluator_pb2_grpc, opponents_pb2, opponents_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.channel import channel_options
from rapid.rpc.errors import CallFailed, Unavailable
from rapid.rpc.retry_throttle import RetryThrottle
from tests.rapid.conftest import CLI_SECRET, SECRET, at

ADD_OPPONENTS = opponents_pb2_grpc.add_OpponentServiceServicer_to_server
ADD_EVALUATOR = evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server


def test_only_blocking_channels_use_grpc_retries() -> None:
    def policy(retries: bool) -> dict[str, Any]:
        options = dict(channel_options(RpcConfig(), retries=retries))
        assert options["grpc.enable_retries"] == retries
        found: dict[str, Any] = json.loads(options["grpc.service_config"])
        return found

    assert "retryPolicy" not in policy(False)["methodConfig"][0]
    assert policy(True)["methodConfig"][0]["retryPolicy"]["maxAttempts"] == 5
    assert policy(True)["retryThrottling"] == {"maxTokens": 10, "tokenRatio": 0.1}


class Away(opponents_pb2_grpc.OpponentServiceServicer):
    def __init__(self) -> None:
        self.asked = 0

    async def AssignOpponent(self, request: Any, context: Any) -> Any:
        self.asked += 1
        raise Unavailable("overloaded")


async def test_attempts_are_not_multiplied(start_server: Any, rpc_config: RpcConfig
                                                                         ) -> None:
    servicer = Away()
    server = await start_server(ADD_OPPONENTS, servicer)
    client = OpponentsClient([at(server)], rpc_config, "r", SECRET, epoch=1)
    with pytest.raises(CallFailed, match="overloaded"):
        await client.assign("g")
    assert servicer.asked == 1 + rpc_config.retries
    await client.close()


async def test_no_retries_while_most_calls_fail(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = Away()
    server = await start_server(ADD_OPPONENTS, servicer)
    client = OpponentsClient([at(server)], rpc_config, "r", SECRET, epoch=1)
    asked = []
    for _ in range(6):
        before = servicer.asked
        with pytest.raises(CallFailed):
            await client.assign("g")
        asked.append(servicer.asked - before)
    assert asked[0] == 3 and asked[-3:] == [1, 1, 1]  # each call is still attempted once
    await client.close()


class Present(opponents_pb2_grpc.OpponentServiceServicer):
    async def AssignOpponent(self, request: Any, context: Any) -> Any:
        return opponents_pb2.AssignOpponentResponse(version=12, epoch=request.epoch)


async def test_calls_leave_a_dead_address_without_retries(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_OPPONENTS, Present())
    config = rpc_config.model_copy(update={"retries": 0})
    client = OpponentsClient(["127.0.0.1:1", at(server)], config, "r", SECRET, epoch=1)
    # Calls that fail together at one address move to the next one, not past it.
    failed = await asyncio.gather(*(client.assign("g") for _ in range(2)), return_exceptions=True)
    assert [type(failure) for failure in failed] == [CallFailed] * 2
    assert [(await client.assign("g")).version for _ in range(3)] == [12] * 3
    await client.close()


def test_responses_restore_retries() -> None:
    throttle = RetryThrottle(max_tokens=4, token_ratio=0.5)
    assert throttle.allows
    throttle.failed()
    throttle.failed()
    assert not throttle.allows
    throttle.answered()
    assert throttle.allows
    for _ in range(100):
        throttle.answered()
    throttle.failed()
    assert throttle.allows  # tokens are capped


class Playing(evaluator_pb2_grpc.EvaluatorServiceServicer):
    """Servicer that plays until its response is to be lost."""

    def __init__(self) -> None:
        self.matches = 0

    async def PlayMatch(self, request: Any, context: Any) -> Any:
        self.matches += 1
        raise Unavailable("the connection broke while the games were played")

    async def GetRatings(self, request: Any, context: Any) -> Any:
        return evaluator_pb2.GetRatingsResponse(epoch=7)


async def test_match_is_sent_once(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = Playing()
    server = await start_server(ADD_EVALUATOR, servicer)
    client = EvaluatorClient([at(server)], rpc_config, "r", SECRET)
    with pytest.raises(CallFailed, match="connection broke"):
        await client.play_match(1, "random", 100)
    assert servicer.matches == 1
    await client.close()


async def test_match_finds_an_evaluator_at_another_address(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = Playing()
    server = await start_server(ADD_EVALUATOR, servicer)
    quick = rpc_config.model_copy(update={"deadline_seconds": 2.0})
    client = EvaluatorClient(["127.0.0.1:1", at(server)], quick, "r", SECRET, epoch=7)
    with pytest.raises(CallFailed, match="connection broke"):  # the first server got nothing
        await client.play_match(1, "random", 100)
    assert servicer.matches == 1
    await client.close()


async def test_server_limits_concurrent_calls(start_server: Any, rpc_config: RpcConfig) -> None:
    class Slow(opponents_pb2_grpc.OpponentServiceServicer):
        def __init__(self) -> None:
            self.inside = self.most = 0
            self.go = asyncio.Event()

        async def GetPool(self, request: Any, context: Any) -> Any:
            self.inside += 1
            self.most = max(self.most, self.inside)
            await self.go.wait()
            self.inside -= 1
            return opponents_pb2.GetPoolResponse()

    servicer = Slow()
    server = await start_server(ADD_OPPONENTS, servicer, config=rpc_config.model_copy(
        update={"max_concurrent_calls": 2}))
    client = OpponentsClient([at(server)], rpc_config, "r", CLI_SECRET, epoch=1)
    calls = [asyncio.create_task(client.pool()) for _ in range(6)]
    done, waiting = await asyncio.wait(calls, timeout=5, return_when=asyncio.FIRST_EXCEPTION)
    while len(done) < 4:
        more, waiting = await asyncio.wait(waiting, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert more
        done |= more
    assert servicer.most == 2
    assert all("RESOURCE_EXHAUSTED" in str(call.exception()) for call in done)
    servicer.go.set()
    assert [await call for call in waiting] == [[], []]
    await client.close()
