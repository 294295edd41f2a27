"""Client of an optimizer's experience service: pushes segments, and resends unacknowledged ones after a loss."""

import asyncio
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc
import grpc.aio

from five.agent.learning.segments import Segment
from five.clients import wire
from five.clients.window import RequestWindow
from five.protos.v1 import experience_pb2
from rapid.config import RpcConfig
from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import CallToken, Secret
from rapid.rpc.channel import Channel, aio_channel, backoff
from rapid.rpc.errors import CallFailed, StatusCode, check_size, failure_of
from rapid.rpc.unary_client import require_addresses
from rapid.telemetry import tracing

if TYPE_CHECKING:
    from rapid.telemetry.tracing_export import Span

log = logging.getLogger(__name__)

METHOD = "five.v1.ExperienceService/Push"
ACCEPTED = experience_pb2.PUSH_VERDICT_ACCEPTED
DUPLICATE = experience_pb2.PUSH_VERDICT_DUPLICATE
TOO_OLD = experience_pb2.PUSH_VERDICT_TOO_OLD
STALE_EPOCH = experience_pb2.PUSH_VERDICT_STALE_EPOCH


class _PushedSegment(NamedTuple):
    """A segment's message: ``data`` is a serialized PushRequest. ``span`` ends with the acknowledgement."""

    segment_id: str
    data: bytes
    span: "Span | None"


class ExperienceClient:
    """Pushes segments of the fencing epoch ``epoch`` to an optimizer, at most ``in_flight`` of them unacknowledged.

    A full window makes ``push`` wait, so learning sets the pace. Use it within one asyncio loop, as ``async with``. The
    client stays with its first address through losses of the connection. It moves to the next address only when no
    server responds for ``failover_seconds``. Unanswered segments are then given up (``abandoned``): the old server may
    have accepted them, and servers do not share what they accepted.

    ``changes`` names arrays sent as row-to-row changes within each ``period`` of rows (a sample's timesteps).
    ``sparse`` names other arrays that are mostly zero. ``zstd`` compresses all.
    """

    def __init__(self, addresses: Sequence[str], config: RpcConfig, layout_hash: str, run: str, rollout: str,
                 secret: Secret = None, in_flight: int = 4, sparse: Collection[str] = (), zstd: bool = False,
                 first: int = 0, failover_seconds: float = 30.0, *, epoch: int, changes: Collection[str] = (),
                 period: int = 0) -> None:
        if in_flight < 1:
            raise ValueError("in_flight must be at least 1")
        self._addresses = require_addresses(addresses, "five.v1.ExperienceService")
        self._config = config
        self._layout_hash = layout_hash
        self._run = run
        self._rollout = rollout
        self._token = CallToken(secret, Audience.OPTIMIZER)
        self._epoch = epoch
        self._sparse = frozenset(sparse)
        self._zstd = zstd
        self._changes = frozenset(changes)
        self._period = period
        self._at = first % len(self._addresses)
        self._failover_seconds = failover_seconds
        self._window = RequestWindow(in_flight)
        self._unacked: OrderedDict[str, _PushedSegment] = OrderedDict()
        self._fresh: asyncio.Queue[_PushedSegment] = asyncio.Queue()
        self._idle = asyncio.Event()
        self._idle.set()
        self._failure: CallFailed | None = None
        self._failed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.verdicts: Counter[int] = Counter()
        self.resent = 0
        self.abandoned = 0  # which the previous server may have counted
        self._sent: set[str] = set()  # unacknowledged ids sent to the current server
        self.bytes_sent = 0

    @property
    def stale(self) -> int:
        """Segments dropped because the run's next epoch had begun."""
        return self.verdicts[STALE_EPOCH]

    @property
    def unacknowledged(self) -> int:
        """Segments in flight."""
        return len(self._unacked)

    def start(self) -> None:
        """Start sending. Call it within the loop."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run_forever())

    async def push(self, segment: Segment[Any]) -> None:
        """Queue a segment once the window has room.

        Raises CallFailed once the server has refused a segment permanently, MessageTooLarge for a segment over the
        limit.
        """
        self.start()
        span = tracing.begin(METHOD, segment.traceparent, "client")
        request = experience_pb2.PushRequest(
            segment_id=segment.segment_id, run=self._run, rollout=self._rollout, samples=segment.samples,
            reward_sum=segment.reward_sum, reward_square_sum=segment.reward_square_sum,
            reward_count=segment.reward_count, oldest_version=segment.oldest_version,
            newest_version=segment.newest_version, created_at=segment.created_at, epoch=self._epoch,
            variant=segment.variant, traceparent="" if span is None else span.traceparent)
        data = wire.serialize_with_set(request, "tensors", segment.arrays, self._layout_hash, self._sparse, self._zstd,
                                       self._changes, self._period)
        check_size("the segment", len(data), self._config.max_message_bytes)
        await self._window.acquire()
        pushed = self._unacked[segment.segment_id] = _PushedSegment(segment.segment_id, data, span)
        self._idle.clear()
        self._fresh.put_nowait(pushed)

    async def flush(self, timeout: float) -> bool:
        """Wait until everything is acknowledged. Return False after ``timeout`` seconds."""
        try:
            await asyncio.wait_for(self._unless_failed(self._idle.wait()), timeout)
        except TimeoutError:
            return False
        return True

    async def close(self, timeout: float = 0.0) -> bool:
        """End the stream after at most ``timeout`` seconds of flushing. Return whether everything was acknowledged."""
        done = not self._unacked
        if not done and timeout > 0 and self._failure is None:
            done = await self.flush(timeout)
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        return done

    async def __aenter__(self) -> "ExperienceClient":
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _unless_failed(self, waiting: Any) -> None:
        """Wait for ``waiting`` or for the client's failure, whichever is first."""
        loop = asyncio.get_running_loop()
        if self._failure is None:
            tasks = [loop.create_task(waiting), loop.create_task(self._failed.wait())]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
        else:
            waiting.close()
        if self._failure is not None:
            raise self._failure

    async def _run_forever(self) -> None:
        loop = asyncio.get_running_loop()
        pauses = backoff(self._config)
        reached_at = loop.time()
        while True:
            target = self._addresses[self._at]
            channel = aio_channel(target, self._config, self._token)
            acknowledged = self.verdicts.total()
            try:
                await channel.ready(min(self._config.deadline_seconds, 5.0))
                await self._exchange(channel)
                failure = CallFailed(StatusCode.UNAVAILABLE, target, METHOD, "the server ended the stream")
            except TimeoutError as error:
                failure = CallFailed(StatusCode.UNAVAILABLE, target, METHOD, str(error))
            except grpc.aio.AioRpcError as error:
                failure = failure_of(error, target, METHOD)
            except Exception as error:  # pushers must not wait forever after a bug here
                log.exception("segment push failed")
                failure = CallFailed(StatusCode.INTERNAL, target, METHOD, f"{type(error).__name__}: {error}")
            finally:
                await channel.close()
            if self.verdicts.total() > acknowledged:
                pauses, reached_at = backoff(self._config), loop.time()
            if not failure.may_retry:
                self._failure = failure
                self._failed.set()
                self._window.fail(failure)
                log.error("segments refused: %s", failure)
                return
            if loop.time() - reached_at > self._failover_seconds and len(self._addresses) > 1:
                self._at = (self._at + 1) % len(self._addresses)
                reached_at = loop.time()
                self._abandon()
            log.warning("waiting for the optimizer segments=%d: %s", len(self._unacked), failure)
            await asyncio.sleep(next(pauses))

    def _abandon(self) -> None:
        """Give up unanswered segments before the client moves to another server, where they must not count again."""
        for identity in self._sent:
            del self._unacked[identity]
            self.abandoned += 1
            self._window.release()
        if self._sent:
            log.warning("optimizer is gone, its unacknowledged segments are dropped segments=%d", len(self._sent))
        self._sent.clear()
        if not self._unacked:
            self._idle.set()

    async def _exchange(self, channel: Channel) -> None:
        """Send unacknowledged segments, then new ones, until the stream ends."""
        again = list(self._unacked.values())
        self.resent += len(again) - self._fresh.qsize()
        self._fresh = asyncio.Queue()

        async def requests() -> AsyncIterator[bytes]:
            for request in again:
                self.bytes_sent += len(request.data)
                self._sent.add(request.segment_id)
                yield request.data
            fresh = self._fresh
            while True:
                request = await fresh.get()
                self.bytes_sent += len(request.data)
                self._sent.add(request.segment_id)
                yield request.data

        call = channel.stream(METHOD, experience_pb2.PushResponse)(requests(), metadata=channel.metadata)
        try:
            async for answer in call:
                pushed = self._unacked.pop(answer.segment_id, None)
                if pushed is None:
                    continue
                if pushed.span is not None:
                    pushed.span.end()
                self._sent.discard(answer.segment_id)
                self.verdicts[answer.verdict] += 1
                if answer.verdict in (TOO_OLD, STALE_EPOCH):
                    log.info("segment dropped id=%s: %s", answer.segment_id, answer.reason)
                self._window.release()
                if not self._unacked:
                    self._idle.set()
        finally:
            call.cancel()
