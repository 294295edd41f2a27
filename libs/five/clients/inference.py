"""Client of the inference service: one long stream with several requests in flight."""

import asyncio
import itertools
import math
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import numpy as np
import numpy.typing as npt

from five.clients import wire
from five.clients.stream_write import write
from five.protos.v1 import inference_pb2, inference_pb2_grpc
from rapid.config import RpcConfig
from rapid.packed_array import PackedRows
from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import CallToken, Secret
from rapid.rpc.channel import Channel, aio_channel, backoff
from rapid.rpc.errors import CallFailed, StatusCode, check_size, failure_from, failure_of
from rapid.rpc.fencing_epoch import require_same_epoch
from rapid.rpc.resolve import ServerAddress, resolve_servers
from rapid.rpc.unary_client import UnaryClient, require_addresses
from rapid.telemetry import tracing

Array = npt.NDArray[Any]
SERVICE = "five.v1.InferenceService"
METHOD = SERVICE + "/Act"
NEWEST = -1  # policy: always the newest version, also after later publishes

RESET = int(inference_pb2.SESSION_FLAG_RESET)
RESTORE = int(inference_pb2.SESSION_FLAG_RESTORE)
WANT_STATE = int(inference_pb2.SESSION_FLAG_WANT_STATE)
GREEDY = int(inference_pb2.SESSION_FLAG_GREEDY)
CLOSE = int(inference_pb2.SESSION_FLAG_CLOSE)
REPLAY = int(inference_pb2.SESSION_FLAG_REPLAY)
WANT_POLICY_DEBUG = int(inference_pb2.SESSION_FLAG_WANT_POLICY_DEBUG)

_EMPTY = np.zeros(0, np.int64)


@dataclass(frozen=True)
class ActResult:
    """The policy's output for n sessions.

    If ``unknown_sessions`` int64[] is not empty, nothing was evaluated and all arrays are empty: repeat the request
    with RESTORE for these sessions. Otherwise ``actions`` int16 [n, H, 6], ``log_probabilities`` and ``values`` float32
    [n, H], ``versions`` int64 [n]; ``states`` and ``auxiliary`` by name for the sessions with WANT_STATE,
    ``policy_debug`` for those with WANT_POLICY_DEBUG.
    """

    unknown_sessions: npt.NDArray[np.int64]
    actions: npt.NDArray[np.int16] = field(default_factory=lambda: np.zeros((0, 0, 0), np.int16))
    log_probabilities: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    values: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    versions: npt.NDArray[np.int64] = field(default_factory=lambda: _EMPTY)
    states: dict[str, Array] = field(default_factory=dict)
    auxiliary: dict[str, Array] = field(default_factory=dict)
    queue_us: int = 0
    forward_us: int = 0
    reward_std: float = 0.0
    seconds: float = 0.0  # from request to response
    policy_debug: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelInfo:
    """The model that a server serves."""

    run: str
    newest_version: int
    layout_hash: str
    schema_id: str
    resident_versions: tuple[int, ...]
    epoch: int


class _StreamLost(Exception):
    """The stream ended with the request in flight. Whether it was evaluated is unknown."""


class _Stream:
    """A connection with requests and responses matched by id."""

    def __init__(self, channel: Channel, until: float) -> None:
        self._channel = channel
        self.until = until  # loop time at which the servers are resolved again
        self._call = channel.stream(METHOD, inference_pb2.ActResponse)(metadata=channel.metadata)
        self._pending: dict[int, asyncio.Future[inference_pb2.ActResponse]] = {}
        self._writing = asyncio.Lock()
        self.target = channel.target
        self.alive = True
        self._reader = asyncio.get_running_loop().create_task(self._read())

    @property
    def busy(self) -> bool:
        """Whether a response is pending."""
        return bool(self._pending)

    async def ask(self, request_id: int, request: bytes, deadline: float) -> inference_pb2.ActResponse:
        """Return the response to a serialized ActRequest of that id.

        Raises _StreamLost when the stream ends or the deadline passes, CallFailed when the request is refused.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[inference_pb2.ActResponse] = loop.create_future()
        self._pending[request_id] = future
        # A request without a response means that the server is stuck, so the whole stream is closed.
        timer = loop.call_later(deadline, self._end, _StreamLost(f"no response within {deadline:g} s"))
        try:
            async with self._writing:
                if self.alive:
                    await write(self._call, request)
            return await future
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError) as error:
            # The call ended during the write; the reader task has the reason.
            await asyncio.wait({self._reader}, timeout=1.0)
            if future.done():
                return future.result()
            self._end(_StreamLost(str(error)))
            raise _StreamLost(str(error)) from None
        finally:
            timer.cancel()
            self._pending.pop(request_id, None)
            if future.done() and not future.cancelled():
                future.exception()  # retrieved, so that asyncio does not log it

    async def _read(self) -> None:
        reason: Exception = _StreamLost("the server ended the stream")
        try:
            while True:
                answer = await self._call.read()
                if answer is grpc.aio.EOF:  # type: ignore[attr-defined]
                    code = await self._call.code()
                    if code is not StatusCode.OK:
                        reason = failure_from(code, await self._call.details(), self.target, METHOD)
                    break
                future = self._pending.get(answer.request_id)
                if future is not None and not future.done():
                    future.set_result(answer)
        except grpc.aio.AioRpcError as error:
            reason = failure_of(error, self.target, METHOD)
        except asyncio.CancelledError:
            reason = _StreamLost("the stream was closed")
        except Exception as error:  # every waiter on this stream must learn of it
            reason = _StreamLost(f"{type(error).__name__}: {error}")
        self._end(reason)

    def _end(self, reason: Exception) -> None:
        if not self.alive:
            return
        self.alive = False
        if isinstance(reason, CallFailed) and reason.may_retry:
            reason = _StreamLost(str(reason))
        for future in self._pending.values():
            if not future.done():
                future.set_exception(reason)
        self._call.cancel()
        self._reader.cancel()

    async def close(self) -> None:
        self._end(_StreamLost("the stream was closed"))
        await self._channel.close()


class InferenceClient:
    """Requests actions from one of several servers, and stays with it while it responds.

    An address may be a name of many servers; clients with different ``first`` use different ones. Use it within one
    asyncio loop, with any number of ``act`` in flight. ``sparse`` names the float16 observations that are mostly zero.
    With ``moves`` the stream may change to another server when the servers of a name change
    (``rpc.stream_max_seconds``); the caller must then rebuild sessions reported unknown. ``name`` is the name in the
    servers' certificates, if it differs from the address. ``epoch`` is the run's fencing epoch.
    """

    def __init__(self, addresses: Sequence[str], config: RpcConfig, layout_hash: str, secret: Secret = None,
                 sparse: Collection[str] = (), zstd: bool = False, first: int = 0, moves: bool = False, *,
                 name: str = "", epoch: int) -> None:
        self._epoch = epoch
        self._name = name
        self._addresses = require_addresses(addresses, SERVICE)
        self._config = config
        self._token = token = CallToken(secret, Audience.INFERENCE)
        self._layout_hash = layout_hash
        self._sparse = frozenset(sparse)
        self._zstd = zstd
        self._ids = itertools.count(1)
        self._at = first
        self._moves = moves
        self._dialled = self._addresses[first % len(self._addresses)]
        self._servers: list[ServerAddress] = []  # of the last name resolution
        self._stream: _Stream | None = None
        self._connecting = asyncio.Lock()
        self._closed = False
        self._caller = UnaryClient(self._addresses, inference_pb2_grpc.InferenceServiceStub, SERVICE, config, token,
                                   name)
        self.connections = 0

    @property
    def target(self) -> str:
        """The last dialled address."""
        return self._dialled

    @tracing.client_call(METHOD)
    async def act(self, sessions: npt.NDArray[np.int64], policies: npt.NDArray[np.int64],
                  flags: npt.NDArray[np.uint8], observations: Mapping[str, Array | PackedRows],
                  states: Mapping[str, Array] | None = None,
                  replayed_actions: npt.NDArray[np.int16] | None = None,
                  reconnect_seconds: float = math.inf) -> ActResult:
        """Step n sessions: int64[n] ids, int64[n] versions (NEWEST), uint8[n] flags, arrays with leading n.

        ``observations`` named ``sparse`` may be packed already. ``states`` are those of the sessions with RESTORE,
        ``replayed_actions`` int16 [m, H, 6] those of the sessions with REPLAY, in their order. When the server is lost
        during the request, a request whose sessions all carry RESET or RESTORE is repeated. For any other request the
        remaining sessions are reported unknown, because the lost server may or may not have stepped them.

        Raises CallFailed when the request is refused, or no server is found within ``rpc.reconnect_seconds``, and at
        most ``reconnect_seconds``; MessageTooLarge or ValueError before anything is sent.
        """
        n = sessions.size
        named: dict[str, Array | PackedRows] = {"policies": policies, "flags": flags, **observations}
        for name, array in named.items():
            if len(array) != n:
                raise ValueError(f"{name} has {len(array)} rows for {n} sessions")
        message = inference_pb2.ActRequest(
            request_id=next(self._ids), sessions=np.asarray(sessions, np.int64).tobytes(),
            policies=np.asarray(policies, np.int64).tobytes(), flags=np.asarray(flags, np.uint8).tobytes(),
            epoch=self._epoch, traceparent=tracing.traceparent())
        if states:
            wire.fill_tensor_set(message.states, states, self._layout_hash)
        if replayed_actions is not None:
            message.replayed_actions = np.asarray(replayed_actions, np.int16).tobytes()
        request = wire.serialize_with_set(message, "observations", observations, self._layout_hash, self._sparse,
                                          self._zstd)
        check_size("the request for actions", len(request), self._config.max_message_bytes)

        loop = asyncio.get_running_loop()
        started = loop.time()
        if self._moves and not (np.asarray(flags) & (RESTORE | REPLAY)).any():
            await self._move()
        stateful = (np.asarray(flags) & (RESET | RESTORE)) == 0
        end = started + min(self._config.reconnect_seconds, reconnect_seconds)
        pauses: Iterator[float] | None = None
        while True:
            stream = await self._connected(end)
            try:
                answer = await stream.ask(message.request_id, request, self._config.deadline_seconds)
            except _StreamLost as lost:
                await self._drop(stream)
                if stateful.any():
                    return ActResult(np.asarray(sessions, np.int64)[stateful])
                if loop.time() >= end:
                    raise CallFailed(StatusCode.UNAVAILABLE, stream.target, METHOD, str(lost)) from None
                # The first retry is immediate; later ones back off.
                if pauses is None:
                    pauses = backoff(self._config)
                else:
                    await asyncio.sleep(next(pauses))
                continue
            except CallFailed:
                await self._drop(stream)
                raise
            require_same_epoch(self._epoch, answer.epoch, stream.target, METHOD)
            try:
                return self._result(answer, n, loop.time() - started)
            except ValueError as error:
                raise CallFailed(StatusCode.INTERNAL, stream.target, METHOD, f"its response is malformed: {error}"
                                 ) from None

    def _result(self, answer: inference_pb2.ActResponse, n: int, seconds: float) -> ActResult:
        unknown = np.frombuffer(answer.unknown_sessions, np.int64)
        if unknown.size:
            return ActResult(unknown, seconds=seconds)
        log_probabilities = answer.log_probabilities
        heroes = len(log_probabilities) // (4 * n) if n else 0
        shape = (n, heroes)
        return ActResult(
            _EMPTY, wire.decode_bytes("actions", answer.actions, np.int16, (*shape, 6)),
            wire.decode_bytes("log_probabilities", log_probabilities, np.float32, shape),
            wire.decode_bytes("values", answer.values, np.float32, shape),
            wire.decode_bytes("versions", answer.versions, np.int64, (n,)),
            wire.decode_set(answer.states, None), wire.decode_set(answer.auxiliary, None),
            answer.queue_us, answer.forward_us, answer.reward_std, seconds, wire.decode_set(answer.policy_debug, None))

    async def model(self, wanted: Sequence[int] = ()) -> ModelInfo:
        """Return the model that the servers serve. Raise CallFailed.

        ``wanted`` are past versions to be loaded where memory allows; they are loaded once ``resident_versions`` has
        them.
        """
        m = await self._caller.call("GetModel", lambda stub: stub.GetModel,
                                    inference_pb2.GetModelRequest(wanted_versions=wanted))
        return ModelInfo(m.run, m.newest_version, m.layout_hash, m.schema_id, tuple(m.resident_versions), m.epoch)

    async def _connected(self, end: float) -> _Stream:
        loop = asyncio.get_running_loop()
        async with self._connecting:
            pauses = backoff(self._config)
            while True:
                if self._closed:
                    raise CallFailed(StatusCode.CANCELLED, self.target, METHOD, "the client is closed")
                if self._stream is not None and self._stream.alive:
                    return self._stream
                if self._stream is not None:  # it ended between two requests: its server is gone
                    await self._drop(self._stream)
                server = await self._server()
                self._dialled = server.address
                channel = aio_channel(server.address, self._config, self._token, server.name or self._name)
                try:
                    await channel.ready(min(self._config.deadline_seconds, max(end - loop.time(), 0.05), 5.0),
                                        until_refused=len(self._servers) > 1)
                    self._stream = _Stream(channel, loop.time() + self._random_lifetime())
                    self.connections += 1
                    return self._stream
                except TimeoutError as error:
                    await channel.close()
                    if loop.time() >= end:
                        raise CallFailed(StatusCode.UNAVAILABLE, self.target, METHOD, str(error)) from None
                    self._at += 1
                    await asyncio.sleep(next(pauses))

    async def _server(self) -> ServerAddress:
        """Return the server that this client's stream belongs to now."""
        self._servers = await resolve_servers(self._addresses, self._servers)
        return self._servers[self._at % len(self._servers)]

    def _random_lifetime(self) -> float:
        """Return a random lifetime of a stream, after which its servers are resolved again."""
        most = self._config.stream_max_seconds
        return random.uniform(most / 2, most) if most else math.inf

    async def _move(self) -> None:
        """Close an expired stream that belongs to another server now; the next request opens one there."""
        stream, now = self._stream, asyncio.get_running_loop().time()
        if stream is None or not stream.alive or stream.busy or now < stream.until:
            return
        stream.until = now + self._random_lifetime()
        if (await self._server()).address != stream.target and not stream.busy and self._stream is stream:
            self._stream = None
            await stream.close()

    async def _drop(self, stream: _Stream) -> None:
        """Leave a stream; the next request uses the next address."""
        if self._stream is stream:
            self._stream = None
            self._at += 1
        await stream.close()

    async def close(self) -> None:
        """Close the stream. Requests in flight fail."""
        self._closed = True
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.close()
        await self._caller.close()

    async def __aenter__(self) -> "InferenceClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
