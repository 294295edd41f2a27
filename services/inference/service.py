"""The gRPC servicer of inference, which validates and decodes every message before it is queued."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from five.clients import wire
from five.clients.inference import METHOD, REPLAY, RESTORE
from five.protos.v1 import inference_pb2, inference_pb2_grpc
from five.services.inference.batcher import Batcher
from five.services.inference.models import Models
from five.services.inference.requests import Reply, Request
from five.services.inference.sessions import StateSpecs
from rapid.packed_array import PackedArray
from rapid.rpc.errors import Unavailable
from rapid.rpc.fencing_epoch import require_epoch
from rapid.telemetry import tracing

Specs = Mapping[str, tuple[tuple[int, ...], npt.DTypeLike]]

ACTION_PARTS = 6
KNOWN_FLAGS = 0x7F
MAX_WANTED = 64
MAX_REQUESTS_OF_A_STREAM = 64  # read ahead; above it, the transport blocks the client


@dataclass(frozen=True)
class _Waiting:
    """A request that waits for its reply, of ``size`` bytes; ``received_ns`` in nanoseconds since 1970."""

    request_id: int
    reply: asyncio.Future[Reply]
    size: int
    traceparent: str
    received_ns: int


class _ReadAheadLimit:
    """Limit on the bytes of one stream's unanswered requests."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._below_limit = asyncio.Event()
        self._below_limit.set()

    def add(self, size: int) -> None:
        """Count a request that was read."""
        self._bytes += size
        if self._bytes >= self._most:
            self._below_limit.clear()

    def remove(self, size: int) -> None:
        """Remove a request that was answered from the count."""
        self._bytes -= size
        if self._bytes < self._most:
            self._below_limit.set()

    async def wait(self) -> None:
        """Wait until another request may be read."""
        await self._below_limit.wait()


class InferenceService(inference_pb2_grpc.InferenceServiceServicer):
    """gRPC servicer that decodes requests, submits them to the batcher, and answers each stream in order.

    ``observation_specs`` and ``state_specs`` give shape and dtype of each array of one team-step and of one team's
    state. ``heroes`` is H. ``epoch`` is the epoch of the run that this process serves. ``read_ahead`` limits the bytes
    of a stream's unanswered requests; one request is always read.
    """

    def __init__(self, run: str, schema_id: str, layout_hash: str, observation_specs: Specs, state_specs: StateSpecs,
                 heroes: int, models: Models, batcher: Batcher, *, epoch: int, read_ahead: int) -> None:
        self._epoch = epoch
        self._read_ahead = read_ahead
        self._run = run
        self._schema = schema_id
        self._layout = layout_hash
        self._observations = dict(observation_specs)
        self._states: Specs = {name: (tuple(shape), np.float32) for name, (shape, _) in state_specs.items()}
        self._heroes = heroes
        self._models = models
        self._batcher = batcher
        self._streams = itertools.count()

    async def GetModel(self, request: inference_pb2.GetModelRequest, context: Any) -> inference_pb2.GetModelResponse:
        """Return what is served (newest_version -1: no version yet), and begin to load ``wanted_versions``."""
        wanted = list(request.wanted_versions)
        if len(wanted) > MAX_WANTED or any(version < 0 for version in wanted):
            raise ValueError(f"wanted_versions: {wanted[:5]} ...: at most {MAX_WANTED} numbers from 0 are allowed")
        for version in wanted:
            self._models.want(version)
        newest = self._models.newest
        return inference_pb2.GetModelResponse(
            run=self._run, newest_version=-1 if newest is None else newest, layout_hash=self._layout,
            schema_id=self._schema, resident_versions=self._models.resident,
            epoch=self._epoch)

    async def Act(self, request_iterator: AsyncIterator[inference_pb2.ActRequest], context: Any
                  ) -> AsyncIterator[inference_pb2.ActResponse]:
        """Serve one stream of a client.

        A bad request or one of an older epoch ends it with INVALID_ARGUMENT or FAILED_PRECONDITION. A request of a
        newer epoch ends it with UNAVAILABLE.
        """
        stream = next(self._streams)
        waiting: asyncio.Queue[_Waiting | BaseException | None] = asyncio.Queue(MAX_REQUESTS_OF_A_STREAM)
        ahead = _ReadAheadLimit(self._read_ahead)
        reader = asyncio.create_task(self._read(request_iterator, stream, waiting, ahead))
        self._batcher.open_stream(stream)
        try:
            while (item := await waiting.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                reply = await item.reply
                ahead.remove(item.size)
                response = self._encode(item.request_id, reply)
                if item.traceparent:
                    _trace(item, reply)
                yield response
        finally:
            self._batcher.close_stream(stream)
            reader.cancel()
            # The client disconnected: its unanswered requests need not be computed.
            while not waiting.empty():
                left = waiting.get_nowait()
                if isinstance(left, _Waiting):
                    left.reply.cancel()

    async def _read(self, requests: AsyncIterator[inference_pb2.ActRequest], stream: int,
                    waiting: asyncio.Queue[_Waiting | BaseException | None], ahead: _ReadAheadLimit) -> None:
        try:
            async for message in requests:
                received_ns = time.time_ns()
                # Check this first, because a message of another epoch may have another layout.
                require_epoch(self._epoch, message.epoch)
                if self._models.newest is None:
                    raise Unavailable("no version has been published yet: the optimizer publishes the first")
                request = self._decode(message, stream)
                size = request.nbytes
                ahead.add(size)
                future = self._batcher.submit(request)
                await waiting.put(_Waiting(message.request_id, asyncio.wrap_future(future), size, message.traceparent,
                                           received_ns))
                await ahead.wait()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            await waiting.put(error)
            return
        await waiting.put(None)

    def _decode(self, message: inference_pb2.ActRequest, stream: int) -> Request:
        if len(message.sessions) % 8:
            raise ValueError(f"sessions: {len(message.sessions)} bytes are not whole int64 values")
        n = len(message.sessions) // 8
        self._batcher.require_size(n)  # before memory is allocated for them
        sessions = wire.decode_bytes("sessions", message.sessions, np.int64, (n,))
        policies = wire.decode_bytes("policies", message.policies, np.int64, (n,))
        flags = wire.decode_bytes("flags", message.flags, np.uint8, (n,))
        if n and int(flags.max()) > KNOWN_FLAGS:
            raise ValueError(f"flags: {int(flags.max()):#x} has unknown bits; allowed are those of {KNOWN_FLAGS:#x}")
        observations: Mapping[str, npt.NDArray[Any] | PackedArray] = (
            wire.decode_packed_set if self._batcher.takes_packed else wire.decode_set)(
            message.observations, self._layout, wire.layout_bytes(self._observations, n))
        wire.require_layout(observations, self._observations, n)
        restored = int(np.count_nonzero(flags & RESTORE))
        states = None
        if restored:
            states = wire.decode_set(message.states, self._layout, wire.layout_bytes(self._states, restored))
            wire.require_layout(states, self._states, restored)
        elif message.states.tensors:
            raise ValueError("states: sent, but no session has the flag RESTORE")
        played = int(np.count_nonzero(flags & REPLAY))
        replayed = wire.decode_bytes("replayed_actions", message.replayed_actions, np.int16,
                                     (played, self._heroes, ACTION_PARTS))
        if played and int(replayed.min()) < 0:
            raise ValueError(f"replayed_actions: {int(replayed.min())}: parts of an action must be 0 or more")
        return Request(sessions.tolist(), policies, flags, observations, states, replayed if played else None, stream)

    def _encode(self, request_id: int, reply: Reply) -> inference_pb2.ActResponse:
        if reply.unknown:
            return inference_pb2.ActResponse(
                request_id=request_id, unknown_sessions=np.array(reply.unknown, np.int64).tobytes(), epoch=self._epoch)
        response = inference_pb2.ActResponse(
            request_id=request_id, actions=reply.actions.tobytes(), log_probabilities=reply.log_probabilities.tobytes(),
            values=reply.values.tobytes(), versions=reply.versions.tobytes(), queue_us=reply.queue_us,
            forward_us=reply.forward_us, reward_std=reply.reward_std, epoch=self._epoch)
        if reply.states:
            wire.fill_tensor_set(response.states, reply.states, self._layout)
        if reply.auxiliary:
            wire.fill_tensor_set(response.auxiliary, reply.auxiliary, self._layout)
        if reply.policy_debug:
            wire.fill_tensor_set(response.policy_debug, reply.policy_debug, self._layout)
        return response


def _trace(request: _Waiting, reply: Reply) -> None:
    """Trace a request that was answered now: its time in the queue, its batch, and the batch's forward pass."""
    now = time.time_ns()
    call = tracing.record(METHOD, request.traceparent, request.received_ns, now, "server")
    if reply.closed_ns:  # 0 if nothing was evaluated
        tracing.record("queue", call, reply.closed_ns - reply.queue_us * 1000, reply.closed_ns)
        batch = tracing.record("batch", call, reply.closed_ns, now)
        tracing.record("forward pass", batch, reply.launched_ns, reply.launched_ns + reply.forward_us * 1000)
