"""Channels and servers over a real loopback connection: tokens, limits, errors, health, TLS, retries."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from queue import Queue
from typing import Any

import grpc
import grpc.aio
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from five.clients import wire
from five.clients.inference import RESET, InferenceClient
from five.protos.v1 import inference_pb2, inference_pb2_grpc, opponents_pb2, opponents_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import CallToken, derive_token
from rapid.rpc.channel import aio_channel, backoff, channel
from rapid.rpc.errors import (
    CallFailed,
    Conflict,
    Exhausted,
    LayoutMismatch,
    MessageTooLarge,
    NotFound,
    Unavailable,
    check_size,
    failure_from,
    failure_of,
    status_of,
)
from rapid.rpc.health import CHECK, SERVING, is_serving
from rapid.rpc.security import token_metadata
from rapid.rpc.server import serve
from rapid.rpc.unary_client import UnaryClient
from rapid.store.errors import IllegalTransition, VersionMissing
from tests.clients.tensor_sets import encode_set
from tests.clients.test_inference import ADD_INFERENCE, CountingInference, step
from tests.clients.test_inference import LAYOUT as COUNTING_LAYOUT
from tests.rapid.conftest import CLI_SECRET, SECRET, known_callers

LAYOUT = "00112233aabbccdd"
CODE = grpc.StatusCode


class Inference(inference_pb2_grpc.InferenceServiceServicer):
    """Servicer that returns the request's contents, or fails as configured."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.calls = 0

    async def Act(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for request in request_iterator:
            arrays = wire.decode_set(request.observations, LAYOUT)
            if self.error is not None:
                raise self.error
            total = sum(float(a.sum()) for a in arrays.values())
            yield inference_pb2.ActResponse(request_id=request.request_id, values=np.float32(total).tobytes(),
                                            epoch=request.epoch)

    async def GetModel(self, request: Any, context: Any) -> Any:
        self.calls += 1
        if self.error is not None:
            error, self.error = self.error, None if isinstance(self.error, Unavailable) else self.error
            raise error
        return inference_pb2.GetModelResponse(run="r", newest_version=7)


class Writing(inference_pb2_grpc.InferenceServiceServicer):
    """Streaming method that is a coroutine and writes to its context."""

    async def Act(self, request_iterator: AsyncIterator[Any], context: Any) -> None:  # type: ignore[override]
        async for request in request_iterator:
            if not request.sessions:
                raise ValueError("no sessions")
            await context.write(inference_pb2.ActResponse(request_id=request.request_id))


ADD = inference_pb2_grpc.add_InferenceServiceServicer_to_server


@pytest.fixture
def servicer() -> Inference:
    return Inference()


def stub_of(port: int, config: RpcConfig, secret: str | None = SECRET) -> tuple[Any, Any, Any]:
    connection = aio_channel(f"127.0.0.1:{port}", config, CallToken(secret, Audience.INFERENCE))
    return connection, inference_pb2_grpc.InferenceServiceStub(connection.grpc), connection.metadata


def unary_client(port: int, config: RpcConfig) -> UnaryClient[Any]:
    return UnaryClient([f"127.0.0.1:{port}"], inference_pb2_grpc.InferenceServiceStub, "inference", config,
                       CallToken(SECRET, Audience.INFERENCE))


def request(array: np.ndarray, layout: str = LAYOUT) -> Any:
    return inference_pb2.ActRequest(request_id=1, observations=encode_set({"x": array}, layout))


async def act(stub: Any, metadata: Any, message: Any) -> Any:
    call = stub.Act(metadata=metadata)
    try:
        await call.write(message)
        answer = await call.read()
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        answer = grpc.aio.EOF
    if answer is grpc.aio.EOF:
        if await call.details() == "Internal error from Core":  # the refusal met the write; clients retry that
            return await act(stub, metadata, message)
        raise CallFailed(await call.code(), "here", "Act", await call.details())
    call.cancel()
    return answer


async def test_call_and_stream_succeed(start_server: Any, servicer: Inference, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)
    connection, stub, metadata = stub_of(server.port, rpc_config)
    assert (await stub.GetModel(inference_pb2.GetModelRequest(), metadata=metadata, timeout=30)).newest_version == 7
    answer = await act(stub, metadata, request(np.arange(4, dtype=np.float32)))
    assert np.frombuffer(answer.values, np.float32)[0] == 6
    await connection.close()


OWN = derive_token(SECRET, Audience.INFERENCE)


@pytest.mark.parametrize("token", [None, "wrong", OWN + "x", OWN[:-1], "Bearer " + OWN, SECRET,
                                   derive_token(SECRET, Audience.OPTIMIZER)])
async def test_wrong_token_is_refused(
        token: str | None, start_server: Any, servicer: Inference, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)
    connection, stub, _ = stub_of(server.port, rpc_config, None)
    metadata = token_metadata(token)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GetModel(inference_pb2.GetModelRequest(), metadata=metadata, timeout=30)
    assert caught.value.code() is CODE.UNAUTHENTICATED
    assert "FIVE_CALLER_SECRET_FILE" in (caught.value.details() or "")
    assert SECRET not in str(caught.value)
    with pytest.raises(CallFailed) as stream:
        await act(stub, metadata, request(np.zeros(1, np.float32)))
    assert stream.value.code is CODE.UNAUTHENTICATED
    assert servicer.calls == 0
    await connection.close()


@pytest.mark.parametrize(("error", "code", "says"), [
    (ValueError("k is negative"), CODE.INVALID_ARGUMENT, "k is negative"),
    (LayoutMismatch("aa", "bb"), CODE.FAILED_PRECONDITION, "aa.*bb"),
    (NotFound("no such run"), CODE.NOT_FOUND, "no such run"),
    (Conflict("the run is paused"), CODE.FAILED_PRECONDITION, "paused"),
    (Exhausted("too many sessions"), CODE.RESOURCE_EXHAUSTED, "sessions"),
    (IllegalTransition("cannot"), CODE.FAILED_PRECONDITION, "cannot"),
    (VersionMissing("version 3"), CODE.NOT_FOUND, "version 3"),
    (NotImplementedError("later"), CODE.UNIMPLEMENTED, "later"),
    (PermissionError("viewer"), CODE.PERMISSION_DENIED, "viewer"),
])
async def test_exceptions_become_status_codes(error: Exception, code: Any, says: str, start_server: Any,
                                              servicer: Inference, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)
    connection, stub, metadata = stub_of(server.port, rpc_config)
    servicer.error = error
    with pytest.raises(grpc.aio.AioRpcError, match=says) as caught:
        await stub.GetModel(inference_pb2.GetModelRequest(), metadata=metadata, timeout=30)
    assert caught.value.code() is code
    servicer.error = error
    with pytest.raises(CallFailed, match=says) as stream:
        await act(stub, metadata, request(np.zeros(1, np.float32)))
    assert stream.value.code is code
    await connection.close()


async def test_internal_errors_hide_their_message(start_server: Any, servicer: Inference,
                                                  rpc_config: RpcConfig, caplog: Any) -> None:
    server = await start_server(ADD, servicer)
    connection, stub, metadata = stub_of(server.port, rpc_config)
    servicer.error = KeyError("secret detail")
    with caplog.at_level(logging.ERROR), pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub.GetModel(inference_pb2.GetModelRequest(), metadata=metadata, timeout=30)
    assert caught.value.code() is CODE.INTERNAL
    assert "KeyError" in (caught.value.details() or "") and "secret" not in (caught.value.details() or "")
    assert "secret detail" in caplog.text and "GetModel" in caplog.text
    await connection.close()


async def test_streaming_coroutine_is_guarded(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, Writing())
    connection, stub, metadata = stub_of(server.port, rpc_config)
    call = stub.Act(metadata=metadata)
    await call.write(inference_pb2.ActRequest(request_id=4, sessions=b"12345678"))
    assert (await call.read()).request_id == 4
    with pytest.raises(CallFailed, match="no sessions") as caught:
        await act(stub, metadata, inference_pb2.ActRequest(request_id=5))
    assert caught.value.code is CODE.INVALID_ARGUMENT
    with pytest.raises(CallFailed, match="FIVE_CALLER_SECRET_FILE"):
        await act(stub, None, inference_pb2.ActRequest(request_id=5, sessions=b"12345678"))
    await connection.close()


async def test_malformed_tensors_and_other_layouts_are_refused(
        start_server: Any, servicer: Inference, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)
    connection, stub, metadata = stub_of(server.port, rpc_config)
    with pytest.raises(CallFailed, match=f"{'f' * 16}.*{LAYOUT}") as caught:
        await act(stub, metadata, request(np.zeros(3, np.float32), "f" * 16))
    assert caught.value.code is CODE.FAILED_PRECONDITION
    broken = request(np.zeros(3, np.float32))
    broken.observations.tensors[0].data = b"1234567"
    with pytest.raises(CallFailed, match=r"'x': 7 bytes where shape \[3\] of float32 needs 12") as caught:
        await act(stub, metadata, broken)
    assert caught.value.code is CODE.INVALID_ARGUMENT
    # The server continues.
    assert await act(stub, metadata, request(np.zeros(3, np.float32)))
    await connection.close()


async def test_oversized_message_names_size_and_limit(start_server: Any, servicer: Inference,
                                                      rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)
    big = request(np.zeros(600_000, np.float32))
    with pytest.raises(MessageTooLarge, match=r"the request has 2,416,384 bytes, over the limit of 1,048,576"):
        check_size("the request", 2_400_000, rpc_config.max_message_bytes)
    # A client with a higher limit than the server's.
    connection, stub, metadata = stub_of(server.port, rpc_config.model_copy(update={"max_message_mebibytes": 64}))
    with pytest.raises(CallFailed) as caught:
        await act(stub, metadata, big)
    assert caught.value.code is CODE.RESOURCE_EXHAUSTED
    error = grpc.aio.AioRpcError(caught.value.code, grpc.aio.Metadata(), grpc.aio.Metadata(), caught.value.details)
    assert "2,400,0" in str(failure_of(error, "here", "Act")) and "1,048,576" in str(failure_of(error, "here", "Act"))
    assert "rpc.max_message_mebibytes" in str(failure_of(error, "here", "Act"))
    assert await act(stub, metadata, request(np.zeros(3, np.float32)))
    await connection.close()


async def test_health_needs_no_token_and_follows_the_server(start_server: Any, servicer: Inference,
                                                            rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)
    target = f"127.0.0.1:{server.port}"
    assert server.services == ("five.v1.InferenceService",)
    assert await asyncio.to_thread(is_serving, target, rpc_config)
    assert await asyncio.to_thread(is_serving, target, rpc_config, "five.v1.InferenceService")
    await server.set_serving(False)
    assert not await asyncio.to_thread(is_serving, target, rpc_config)
    await server.set_serving(True)
    assert await asyncio.to_thread(is_serving, target, rpc_config)
    await server.stop(0)
    assert not await asyncio.to_thread(is_serving, target, rpc_config)


async def test_health_is_answered_before_its_request_is_read(start_server: Any, servicer: Inference,
                                                             rpc_config: RpcConfig) -> None:
    """So checks that send nothing keep nobody out. Watch, whose streams would last, is not offered."""
    server = await start_server(ADD, servicer, config=rpc_config.model_copy(update={"max_concurrent_calls": 1}))
    connection, stub, metadata = stub_of(server.port, rpc_config)
    check: Any = connection.grpc.stream_unary(CHECK, response_deserializer=health_pb2.HealthCheckResponse.FromString)

    async def silence() -> AsyncIterator[bytes]:
        await asyncio.sleep(60)
        yield b""

    answers = await asyncio.gather(*(check(silence(), timeout=10) for _ in range(8)))
    assert [answer.status for answer in answers] == [SERVING] * 8
    assert (await stub.GetModel(inference_pb2.GetModelRequest(), metadata=metadata, timeout=30)).newest_version == 7
    probes: Any = health_pb2_grpc.HealthStub(connection.grpc)  # type: ignore[arg-type]
    for carried in (metadata, None):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await probes.Watch(health_pb2.HealthCheckRequest(), metadata=carried, timeout=30).read()
        assert caught.value.code() is CODE.UNIMPLEMENTED
    await connection.close()


async def test_server_needs_its_callers_by_default(rpc_config: RpcConfig) -> None:
    with pytest.raises(ValueError, match="FIVE_CALLERS_FILE or rpc.callers_file"):
        await serve("127.0.0.1:0", [(ADD, Inference())], rpc_config)
    server = await serve("127.0.0.1:0", [(ADD, Inference())], rpc_config.model_copy(update={"require_token": False}))
    connection, stub, _ = stub_of(server.port, rpc_config, None)
    assert await stub.GetModel(inference_pb2.GetModelRequest(), timeout=30)
    await connection.close()
    await server.stop(0)


async def test_port_in_use_is_an_os_error(start_server: Any, servicer: Inference) -> None:
    server = await start_server(ADD, servicer)
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        await start_server(ADD, Inference(), port=server.port)


async def test_calls_are_retried_until_a_server_responds(start_server: Any, servicer: Inference,
                                                         rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)

    async def ask(client: UnaryClient[Any], deadline: float | None = None) -> Any:
        return await client.call("GetModel", lambda stub: stub.GetModel, inference_pb2.GetModelRequest(), deadline)

    client = unary_client(server.port, rpc_config)
    servicer.error = Unavailable("loading")
    assert (await ask(client)).newest_version == 7
    assert servicer.calls == 2
    servicer.error = ValueError("never")
    with pytest.raises(CallFailed, match="never") as caught:
        await ask(client)
    assert servicer.calls == 3 and not caught.value.may_retry
    await client.close()
    client = unary_client(1, rpc_config)
    started = asyncio.get_running_loop().time()
    with pytest.raises(CallFailed, match="GetModel at 127.0.0.1:1.*no server responds") as caught:
        await ask(client, deadline=1.0)
    assert caught.value.may_retry
    assert asyncio.get_running_loop().time() - started < 4.5, "less than the configured deadline"
    await client.close()


def test_silent_server_ends_in_deadline_exceeded(rpc_config: RpcConfig) -> None:
    async def scenario() -> None:
        class Stuck(opponents_pb2_grpc.OpponentServiceServicer):
            async def GetPool(self, request: Any, context: Any) -> Any:
                await asyncio.sleep(60)

        add = opponents_pb2_grpc.add_OpponentServiceServicer_to_server
        server = await serve("127.0.0.1:0", [(add, Stuck())], rpc_config, known_callers(Audience.OPPONENTS))
        client = UnaryClient([f"127.0.0.1:{server.port}"], opponents_pb2_grpc.OpponentServiceStub, "opponents",
                             rpc_config, CallToken(CLI_SECRET, Audience.OPPONENTS))
        with pytest.raises(CallFailed) as caught:
            await client.call("GetPool", lambda stub: stub.GetPool, opponents_pb2.GetPoolRequest(), 0.3)
        assert caught.value.code is CODE.DEADLINE_EXCEEDED
        await client.close()
        await server.stop(0)

    asyncio.run(scenario())


async def test_blocking_channel_carries_the_token(start_server: Any, servicer: Inference,
                                                  rpc_config: RpcConfig) -> None:
    server = await start_server(ADD, servicer)

    def call(secret: str) -> int:
        token = CallToken(secret, Audience.INFERENCE)
        with channel(f"127.0.0.1:{server.port}", rpc_config, token) as connection:
            stub: Any = inference_pb2_grpc.InferenceServiceStub(connection)  # type: ignore[arg-type]
            return int(stub.GetModel(inference_pb2.GetModelRequest(), timeout=30).newest_version)

    assert await asyncio.to_thread(call, SECRET) == 7
    with pytest.raises(grpc.RpcError, match="UNAUTHENTICATED"):
        await asyncio.to_thread(call, "wrong")


def test_call_interrupted_while_sending_may_be_retried() -> None:
    assert failure_from(CODE.INTERNAL, "Internal error from Core", "t", "m").may_retry
    assert not failure_from(CODE.INTERNAL, "internal error (KeyError); the server's log has the details", "t",
                            "m").may_retry


def test_pauses_double_to_their_maximum_with_jitter() -> None:
    config = RpcConfig(backoff_seconds=0.1, max_backoff_seconds=1.0)
    pauses = backoff(config)
    for expected in (0.1, 0.2, 0.4, 0.8, 1.0, 1.0):
        assert expected / 2 <= next(pauses) <= expected


def test_redis_errors_map_to_unavailable() -> None:
    import redis
    assert status_of(redis.ConnectionError("refused"))[0] is CODE.UNAVAILABLE
    assert status_of(redis.TimeoutError("slow"))[0] is CODE.UNAVAILABLE
    assert status_of(redis.ResponseError("WRONGTYPE"))[0] is CODE.INTERNAL


def test_stop_with_open_streams_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """The loop ends right after the server, as a service's does."""
    listening: Queue[int] = Queue()
    open_stream, over = threading.Event(), threading.Event()

    async def play_server() -> None:
        server = await serve("127.0.0.1:0", [(ADD_INFERENCE, CountingInference())], RpcConfig(require_token=False))
        listening.put(server.port)
        await asyncio.to_thread(open_stream.wait, 20)
        await server.stop(0.1)

    async def play_client(port: int) -> None:
        async with InferenceClient([f"127.0.0.1:{port}"], RpcConfig(), COUNTING_LAYOUT, epoch=1) as client:
            await step(client, [1], RESET)
            open_stream.set()
            await asyncio.to_thread(over.wait, 20)

    thread = threading.Thread(target=lambda: asyncio.run(play_client(listening.get(timeout=20))))
    thread.start()
    asyncio.run(play_server())
    over.set()
    thread.join()
    assert open_stream.is_set() and [r for r in caplog.records if r.levelname in ("WARNING", "ERROR")] == []
