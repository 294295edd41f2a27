"""Deadlines of every client against a closed port, a silent socket, and a server that never answers."""

import asyncio
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import numpy as np
import pytest

from five import clients
from five.agent.learning.segments import Segment
from five.clients.environment import EnvironmentClient
from five.clients.evaluator import EvaluatorClient
from five.clients.experience import ExperienceClient
from five.clients.inference import NEWEST, RESET, InferenceClient
from five.clients.opponents import WON, OpponentsClient
from five.clients.play import PlayClient
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed

LAYOUT = "0011223344556677"
RPC = RpcConfig(deadline_seconds=0.3, retries=2, backoff_seconds=0.02, max_backoff_seconds=0.1, reconnect_seconds=0.6,
                require_token=False)
PATIENCE = 30.0  # far above the deadlines, far below waiting forever
LARGE = 8 << 20  # bytes: more than a connection transfers to a server that does not read


@pytest.fixture(params=["closed port", "silent socket", "hanging server"])
async def address(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    if request.param == "closed port":
        yield "127.0.0.1:1"
    elif request.param == "silent socket":
        async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(4096):
                pass
            writer.close()

        listener = await asyncio.start_server(swallow, "127.0.0.1", 0)
        yield f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        listener.close()
    else:
        server = grpc.aio.server()

        class Hangs(grpc.GenericRpcHandler):
            def service(self, details: Any) -> Any:
                async def never(request: Any, context: Any) -> bytes:
                    await asyncio.sleep(3600)
                    return b""

                async def silent(requests: Any, context: Any) -> AsyncIterator[bytes]:
                    await asyncio.sleep(3600)
                    yield b""

                if details.method.rsplit("/", 1)[1] in ("Play", "Act", "Push", "Join"):
                    return grpc.stream_stream_rpc_method_handler(silent)
                return grpc.unary_unary_rpc_method_handler(never)

        server.add_generic_rpc_handlers((Hangs(),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        yield f"127.0.0.1:{port}"
        await server.stop(0)


async def environment(address: str) -> None:
    client = EnvironmentClient(address, RPC, 2, LAYOUT, epoch=1)
    try:
        await client.open(2, 1)
    finally:
        await client.close()


async def inference(address: str) -> None:
    async with InferenceClient([address], RPC, LAYOUT, epoch=1) as client:
        await client.act(np.array([1], np.int64), np.array([NEWEST]), np.array([RESET], np.uint8),
                         {"x": np.zeros((1, 2), np.float16)})


async def large_environment(address: str) -> None:
    client = EnvironmentClient(address, RPC, 2, LAYOUT, epoch=1)
    try:
        await client.open(2, 1, "x" * LARGE)
    finally:
        await client.close()


async def large_inference(address: str) -> None:
    async with InferenceClient([address], RPC, LAYOUT, epoch=1) as client:
        await client.act(np.array([1], np.int64), np.array([NEWEST]), np.array([RESET], np.uint8),
                         {"x": np.zeros((1, LARGE // 2), np.float16)})


async def opponents(address: str) -> None:
    client = OpponentsClient([address], RPC, "r", epoch=1)
    try:
        await client.assign("g")
    finally:
        await client.close()


async def report(address: str) -> None:
    client = OpponentsClient([address], RPC, "r", epoch=1)
    try:
        await client.report("g", 1, WON, 60.0)
    finally:
        await client.close()


async def ratings(address: str) -> None:
    client = EvaluatorClient([address], RPC, "r")
    try:
        await client.ratings()
    finally:
        await client.close()


async def offer(address: str) -> None:
    client = PlayClient(address, RPC, "r")
    try:
        await client.offer()
    finally:
        await client.close()


async def join(address: str) -> None:
    client = PlayClient(address, RPC, "r")
    try:
        async for _ in client.join("g", "ada"):
            pass
    finally:
        await client.close()


@pytest.mark.parametrize("call", [environment, large_environment, inference, large_inference, opponents, report,
                                  ratings, offer, join])
async def test_call_ends_by_its_deadline(call: Callable[[str], Awaitable[None]], address: str) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(CallFailed, match="127.0.0.1"):
            await call(address)


async def test_flush_ends_by_its_timeout(address: str) -> None:
    async with asyncio.timeout(PATIENCE):
        client = ExperienceClient([address], RPC, LAYOUT, "r", "rollout-0", epoch=1)
        await client.push(Segment({"x": np.zeros(4, np.float32)}, 1, 0.0, 0.0, 4, 0, 0))
        assert not await client.flush(0.3)
        assert not await client.close(0.1)


def test_every_client_module_is_covered() -> None:
    tested = {"environment", "inference", "opponents", "experience", "evaluator", "play"}
    built_on_these = {"inference_pools"}
    without_calls = {"raw_tensor_set", "stream_write", "window", "wire"}
    assert {module.name for module in pkgutil.iter_modules(clients.__path__)} == tested | built_on_these | without_calls
