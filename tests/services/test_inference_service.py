import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import numpy as np
import pytest

from five.clients.inference import NEWEST, RESET, RESTORE, WANT_POLICY_DEBUG, WANT_STATE, InferenceClient
from five.protos.v1 import inference_pb2, inference_pb2_grpc
from rapid.rpc.errors import CallFailed
from tests.clients.tensor_sets import encode_set
from tests.services.counting import LAYOUT, STATE_SPECS, Versions, observations
from tests.services.inference_server import RPC, InferenceServer


@pytest.fixture
async def server() -> AsyncIterator[InferenceServer]:
    async with InferenceServer(Versions(0)) as s:
        yield s


def client(*servers: InferenceServer, layout: str = LAYOUT.hash) -> InferenceClient:
    return InferenceClient([s.address for s in servers], RPC, layout, sparse=("shared", "private"), epoch=1)


def ids(*sessions: int) -> Any:
    return np.array(sessions, np.int64)


async def one(c: InferenceClient, session: int, seen: float, flags: int = 0, **more: Any) -> Any:
    return await c.act(ids(session), ids(NEWEST), np.array([flags], np.uint8), observations(seen), **more)


async def test_steps_through_the_wire(server: InferenceServer) -> None:
    async with client(server) as c:
        first = await one(c, 1, 3.0, RESET | WANT_STATE)
        second = await one(c, 1, 1.0, WANT_STATE)
        assert first.values[0, 0] == 3.0 and second.values[0, 0] == 2.5
        assert first.states["count"].item() == 0.0 and second.states["count"].item() == 1.0
        assert second.auxiliary["net_worth_rank"].shape == (1, 1, 5)
        assert second.versions.tolist() == [0] and second.forward_us > 0
        info = await c.model()
        assert (info.newest_version, info.layout_hash, info.resident_versions) == (0, LAYOUT.hash, (0,))


async def test_policy_debug_is_returned_for_watched_sessions(server: InferenceServer) -> None:
    async with client(server) as c:
        await one(c, 2, 3.0, RESET)
        flags = np.array([RESET | WANT_STATE, WANT_POLICY_DEBUG, RESET | WANT_POLICY_DEBUG], np.uint8)
        seen = {name: np.concatenate([array] * 3) for name, array in observations(1.0).items()}
        answer = await c.act(ids(1, 2, 3), ids(NEWEST, NEWEST, NEWEST), flags, seen)
        assert answer.states["count"].shape[0] == 1 and answer.auxiliary["win_probability"].shape == (1, 1)
        assert answer.policy_debug["choice"].shape == (2, 1, 30)
        assert answer.policy_debug["win_probability"].shape == (2, 1)
        # The second session's second step, and the third's first.
        np.testing.assert_allclose(answer.policy_debug["choice"][:, 0, 0], [1 / 3, 1 / 2], rtol=1e-3)
        assert "aim" not in answer.policy_debug
        assert not (await one(c, 2, 3.0)).policy_debug


async def test_overlapping_requests_are_answered_in_order(server: InferenceServer) -> None:
    async with client(server) as c:
        answers = await asyncio.gather(*(one(c, 1, float(i), RESET if i == 0 else 0) for i in range(20)))
        trace = 0.0
        for i, answer in enumerate(answers):
            trace = 0.5 * trace + i
            assert answer.values[0, 0] == np.float32(trace)


async def test_two_clients_share_batches(server: InferenceServer) -> None:
    async with client(server) as a, client(server) as b:
        for i in range(10):
            x, y = await asyncio.gather(one(a, 1, i, RESET if i == 0 else 0), one(b, 2, 2 * i, RESET if i == 0 else 0))
            assert y.values[0, 0] == 2 * x.values[0, 0]


async def test_unknown_session_and_restore(server: InferenceServer) -> None:
    async with client(server) as c:
        assert (await one(c, 9, 1.0)).unknown_sessions.tolist() == [9]
        state = {name: np.full((1, *shape), 4, np.float32) for name, (shape, _) in STATE_SPECS.items()}
        assert (await one(c, 9, 1.0, RESTORE, states=state)).values[0, 0] == 3.0


async def test_version_of_another_layout_is_refused_naming_both(server: InferenceServer) -> None:
    async with client(server, layout="feedfacefeedface") as c:
        with pytest.raises(CallFailed, match=f"feedfacefeedface.*{LAYOUT.hash}") as failure:
            await one(c, 1, 0.0, RESET)
        assert failure.value.code is grpc.StatusCode.FAILED_PRECONDITION


def _request(**changes: Any) -> inference_pb2.ActRequest:
    request = inference_pb2.ActRequest(
        request_id=1, epoch=1, sessions=ids(1).tobytes(), policies=ids(-1).tobytes(), flags=bytes([RESET]),
        observations=encode_set(observations(1.0), LAYOUT.hash))
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def _without_a_tensor() -> inference_pb2.ActRequest:
    request = _request()
    del request.observations.tensors[0]
    return request


def _cut_tensor() -> inference_pb2.ActRequest:
    request = _request()
    request.observations.tensors[0].data = request.observations.tensors[0].data[:-1]
    return request


@pytest.mark.parametrize(("make", "says"), [
    (lambda: _request(sessions=b"1234567"), "sessions"),
    (lambda: _request(policies=b""), "policies"),
    (lambda: _request(flags=bytes([128])), "flags"),
    (lambda: _request(flags=bytes([RESTORE])), "missing|layout"),
    (lambda: _request(flags=bytes([32])), "replayed_actions"),
    (lambda: _request(policies=ids(-5).tobytes()), "allowed are -1"),
    (lambda: _request(sessions=b"", policies=b"", flags=b""), "0 team-steps"),
    (_without_a_tensor, "shared"),
    (_cut_tensor, "bytes"),
])
async def test_a_malformed_message_is_refused_and_changes_nothing(
        server: InferenceServer, make: Callable[[], inference_pb2.ActRequest], says: str) -> None:
    async with client(server) as c:
        await one(c, 1, 8.0, RESET)
        async with grpc.aio.insecure_channel(server.address) as channel:
            call = inference_pb2_grpc.InferenceServiceStub(channel).Act(iter([make()]))
            with pytest.raises(grpc.aio.AioRpcError, match=says) as failure:
                await call.read()
        assert failure.value.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION)
        assert (await one(c, 1, 0.0)).values[0, 0] == 4.0


async def test_hot_swap_in_the_middle_of_a_stream(server: InferenceServer) -> None:
    async with client(server) as c:
        await one(c, 1, 1.0, RESET)
        server.versions.publish(1, reward_std=3.0)
        await asyncio.to_thread(server.models.refresh)
        answer = await one(c, 1, 2.0)
        assert answer.versions.tolist() == [1] and answer.values[0, 0] == 2.5 and answer.reward_std == 3.0


async def test_clients_must_wait_for_the_first_version() -> None:
    async with InferenceServer(Versions()) as s, client(s) as c:
        assert (await c.model()).newest_version == -1
        with pytest.raises(CallFailed, match="no version"):
            call = inference_pb2_grpc.InferenceServiceStub(grpc.aio.insecure_channel(s.address)).Act(iter([_request()]))
            try:
                await call.read()
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE
                raise CallFailed(error.code(), s.address, "Act", error.details() or "") from None


async def test_a_past_version_that_does_not_exist_is_not_found(server: InferenceServer) -> None:
    async with client(server) as c:
        with pytest.raises(CallFailed) as failure:
            await c.act(ids(1), ids(55), np.array([RESET], np.uint8), observations(1.0))
        assert failure.value.code is grpc.StatusCode.NOT_FOUND


async def test_session_continues_after_its_server_dies() -> None:
    versions = Versions(0)
    async with (InferenceServer(versions) as first, InferenceServer(versions) as second,
                client(first, second) as c):
        await one(c, 1, 4.0, RESET)
        handed = await one(c, 1, 1.0, WANT_STATE)
        await first.stop()
        assert (await one(c, 1, 1.0)).unknown_sessions.tolist() == [1]
        again = await one(c, 1, 1.0, RESTORE, states=handed.states)
        assert again.values.tolist() == handed.values.tolist()
