"""Streams of the inference service: what is read ahead, what a disconnect drops, and requests for past versions."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from five.clients.inference import REPLAY, RESET
from five.protos.v1 import inference_pb2
from five.services.inference.service import MAX_WANTED, InferenceService
from rapid.config import TracingConfig
from rapid.telemetry import tracing
from tests.clients.tensor_sets import encode_set
from tests.services.counting import HEROES, LAYOUT, STATE_SPECS, Versions, observations
from tests.services.inference_server import InferenceServer
from tests.telemetry.otlp_receiver import ReceivedSpan, receiving
from tests.waiting import eventually_async

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NBYTES = sum(array.nbytes for array in observations(0.0).values())  # of one request


def request(number: int, session: int, seen: float = 1.0, flags: int = RESET, **changes: Any) -> Any:
    return inference_pb2.ActRequest(
        request_id=number, epoch=1, sessions=np.array([session], np.int64).tobytes(),
        policies=np.array([-1], np.int64).tobytes(), flags=bytes([flags]),
        observations=encode_set(observations(seen), LAYOUT.hash), **changes)


def requests_of(number: int, *sessions: int) -> Any:
    """Return one request for the first step of several sessions."""
    rows = len(sessions)
    return inference_pb2.ActRequest(
        request_id=number, epoch=1, sessions=np.array(sessions, np.int64).tobytes(),
        policies=np.full(rows, -1, np.int64).tobytes(), flags=bytes([RESET] * rows),
        observations=encode_set(observations(*np.arange(rows, dtype=float)), LAYOUT.hash))


def seconds(span: ReceivedSpan) -> float:
    return (span.span.end_time_unix_nano - span.span.start_time_unix_nano) / 1e9


class Served:
    """A service without gRPC whose requests the test sends one by one."""

    def __init__(self, server: InferenceServer, read_ahead: int = 1 << 30) -> None:
        self.server = server
        self.service = InferenceService("test", "schema", LAYOUT.hash, LAYOUT.array_specs(), STATE_SPECS, HEROES,
                                        server.models, server.batcher, epoch=1, read_ahead=read_ahead)
        self.read = 0

    async def stream(self, *requests: Any) -> AsyncIterator[Any]:
        for one in requests:
            self.read += 1
            yield one

    def act(self, *requests: Any) -> Any:
        return self.service.Act(self.stream(*requests), None)


@pytest.fixture
async def waiting() -> AsyncIterator[InferenceServer]:
    """Server whose batches wait for a stream that never asks."""
    async with InferenceServer(Versions(0), queue_delay_seconds=600.0) as server:
        server.batcher.open_stream(77)
        yield server


@pytest.mark.parametrize(("read_ahead", "read"), [(NBYTES, 1), (NBYTES + 1, 2), (3 * NBYTES, 3), (1, 1), (1 << 30, 6)])
async def test_unanswered_bytes_of_a_stream_are_limited(waiting: InferenceServer, read_ahead: int, read: int) -> None:
    """A stream always reads one request, and more as answers are sent."""
    served = Served(waiting, read_ahead)
    answers = served.act(*(request(i, i) for i in range(6)))
    first = asyncio.create_task(anext(answers))
    await eventually_async(lambda: served.read >= read)
    await asyncio.sleep(0.05)
    assert served.read == read
    waiting.batcher.close_stream(77)
    ids = [(await asyncio.wait_for(first, 30)).request_id, *[answer.request_id async for answer in answers]]
    assert ids == list(range(6)) and served.read == 6


async def test_answer_frees_only_its_own_bytes_of_the_limit(waiting: InferenceServer) -> None:
    """The second request alone exceeds the limit. The third is read after the second is answered."""
    served = Served(waiting, 2 * NBYTES)
    answers = served.act(request(0, 0), requests_of(1, 1, 2, 3), request(2, 4))
    first = asyncio.create_task(anext(answers))
    await eventually_async(lambda: served.read == 2)
    waiting.batcher.close_stream(77)
    assert (await asyncio.wait_for(first, 30)).request_id == 0
    await asyncio.sleep(0.02)
    assert served.read == 2
    assert [answer.request_id async for answer in answers] == [1, 2]


async def test_disconnected_client_leaves_no_work(waiting: InferenceServer) -> None:
    served = Served(waiting)
    answers = served.act(*(request(i, i) for i in range(4)))
    first = asyncio.create_task(anext(answers))
    await eventually_async(lambda: served.read == 4 and not waiting.batcher.idle)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await answers.aclose()
    await eventually_async(lambda: waiting.batcher.idle)
    assert len(waiting.table) == 0


async def test_disconnect_ends_the_read_of_the_next_request(waiting: InferenceServer) -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[Any]:
        try:
            yield request(0, 0)
            await asyncio.Event().wait()
        finally:
            ended.set()

    first = asyncio.create_task(anext(Served(waiting).service.Act(endless(), None)))
    await eventually_async(lambda: not waiting.batcher.idle)
    assert not ended.is_set()
    first.cancel()
    await asyncio.wait_for(ended.wait(), 30)


async def test_number_of_requests_read_ahead_is_limited(waiting: InferenceServer) -> None:
    """64 are queued; one more waits for its answer, and one for a free place."""
    served = Served(waiting)
    first = asyncio.create_task(anext(served.act(*(request(i, i) for i in range(80)))))
    await eventually_async(lambda: served.read >= 66)
    await asyncio.sleep(0.05)
    assert served.read == 66
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)


async def test_closed_stream_is_not_waited_for() -> None:
    async with InferenceServer(Versions(0), queue_delay_seconds=600.0) as server:
        served = Served(server)
        (answer,) = [a async for a in served.act(request(3, 1))]
        assert (answer.request_id, answer.epoch, len(answer.unknown_sessions)) == (3, 1, 0)
        (other,) = [a async for a in served.act(request(4, 1, flags=0))]  # alone: the first stream has ended
        assert np.frombuffer(other.values, np.float32).tolist() == [1.5]


async def test_error_follows_the_answers_before_it() -> None:
    async with InferenceServer(Versions(0)) as server:
        answers = Served(server).act(request(1, 1), request(2, 1, flags=128), request(3, 1))
        assert (await anext(answers)).request_id == 1
        with pytest.raises(ValueError, match="flags: 0x80 has unknown bits; allowed are those of 0x7f"):
            await anext(answers)


@pytest.mark.parametrize(("flags", "changes", "says"), [
    (RESET | REPLAY, {"replayed_actions": np.full((1, HEROES, 6), -1, np.int16).tobytes()}, "-1: parts of an action"),
    (RESET, {"states": encode_set({"count": np.zeros((1, HEROES, 1), np.float32)}, LAYOUT.hash)},
     "states: sent, but no session has the flag RESTORE"),
    (RESET, {"replayed_actions": bytes(12)}, "replayed_actions")])
async def test_parts_without_their_flag_are_refused(flags: int, changes: dict[str, Any], says: str) -> None:
    async with InferenceServer(Versions(0)) as server:
        with pytest.raises(ValueError, match=says):
            await anext(Served(server).act(request(1, 1, flags=flags, **changes)))
        assert len(server.table) == 0


@pytest.mark.parametrize("rows", [7, 8, 16])
async def test_request_has_a_row_for_each_session(rows: int) -> None:
    seen = np.arange(rows, dtype=float)
    async with InferenceServer(Versions(0)) as server:
        (answer,) = [a async for a in Served(server).act(requests_of(5, *range(rows)))]
    assert np.frombuffer(answer.values, np.float32).tolist() == seen.tolist()


async def test_replayed_zero_is_an_action() -> None:
    async with InferenceServer(Versions(0)) as server:
        replayed = np.zeros((1, HEROES, 6), np.int16).tobytes()
        (answer,) = [a async for a in Served(server).act(request(1, 1, flags=RESET | REPLAY,
                                                                 replayed_actions=replayed))]
        assert answer.actions == replayed


async def test_requested_past_versions_are_loaded() -> None:
    async with InferenceServer(Versions(0, 3, 9)) as server:
        service = Served(server).service
        wanted = inference_pb2.GetModelRequest(wanted_versions=[0, 3])
        first = await service.GetModel(wanted, None)
        assert (first.run, first.newest_version, first.layout_hash, first.schema_id, first.epoch) == (
            "test", 9, LAYOUT.hash, "schema", 1)
        await eventually_async(lambda: server.models.resident == [0, 3, 9])
        assert list((await service.GetModel(wanted, None)).resident_versions) == [0, 3, 9]


@pytest.mark.parametrize(("versions", "allowed"), [
    (list(range(MAX_WANTED)), True), (list(range(MAX_WANTED + 1)), False), ([0], True), ([3, -1], False), ([], True)])
async def test_number_of_requested_versions_is_limited(versions: list[int], allowed: bool) -> None:
    async with InferenceServer(Versions(0)) as server:
        service = Served(server).service
        asked = inference_pb2.GetModelRequest(wanted_versions=versions)
        if allowed:
            assert (await service.GetModel(asked, None)).newest_version == 0
        else:
            with pytest.raises(ValueError, match=f"at most {MAX_WANTED} numbers from 0 are allowed"):
                await service.GetModel(asked, None)


async def test_traced_request_has_a_span_of_each_stage() -> None:
    """The spans follow each other, and last as long as the answer says."""
    with receiving() as receiver:
        tracing.start_tracing(TracingConfig(endpoint=receiver.endpoint, sampled_steps=1.0), "trial", "all", "0")
        try:
            async with InferenceServer(Versions(0), queue_delay_seconds=0.02) as server:
                server.batcher.open_stream(77)  # a stream that never asks, so that the request waits 20 ms
                began = time.time_ns()
                (answer,) = [a async for a in Served(server).act(request(3, 1, traceparent=TRACEPARENT))]
                ended = time.time_ns()
                _ = [a async for a in Served(server).act(request(4, 2))]  # not traced
        finally:
            await asyncio.to_thread(tracing.stop_tracing)
    assert len(receiver.spans) == 4
    (call,), (queue,), (batch,), (forward,) = (receiver.named(name) for name in (
        "five.v1.InferenceService/Act", "queue", "batch", "forward pass"))
    assert (call.kind, call.trace, call.parent) == ("server", *TRACEPARENT.split("-")[1:3])
    assert (queue.parent, batch.parent, forward.parent) == (call.id, call.id, batch.id)
    assert seconds(queue) == answer.queue_us / 1e6 >= 0.02
    assert seconds(forward) == answer.forward_us / 1e6 > 0
    times = [began, call.span.start_time_unix_nano, batch.span.start_time_unix_nano,
             forward.span.start_time_unix_nano, batch.span.end_time_unix_nano, ended]
    assert times == sorted(times)
    assert queue.span.end_time_unix_nano == batch.span.start_time_unix_nano
    assert call.span.end_time_unix_nano == batch.span.end_time_unix_nano


async def test_traced_request_of_an_unknown_session_has_no_batch() -> None:
    with receiving() as receiver:
        tracing.start_tracing(TracingConfig(endpoint=receiver.endpoint, sampled_steps=1.0), "trial", "all", "0")
        try:
            async with InferenceServer(Versions(0)) as server:
                (answer,) = [a async for a in Served(server).act(request(3, 9, flags=0, traceparent=TRACEPARENT))]
        finally:
            await asyncio.to_thread(tracing.stop_tracing)
    assert (answer.request_id, np.frombuffer(answer.unknown_sessions, np.int64).tolist(), answer.epoch) == (3, [9], 1)
    assert [span.name for span in receiver.spans] == ["five.v1.InferenceService/Act"]
