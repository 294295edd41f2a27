"""Clients against real loopback servers that die, hang and come back."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from protos.five.v1 import (
    env_pb2,
    env_pb2_grpc,
    evaluator_pb2,
    evaluator_pb2_grpc,
    experience_pb2,
    experience_pb2_grpc,
    inference_pb2,
    inference_pb2_grpc,
    opponents_pb2,
    opponents_pb2_grpc,
)
from rapid import wire
from rapid.clients.environment import EnvironmentClient
from rapid.clients.evaluator import EvaluatorClient
from rapid.clients.experience import ACCEPTED, DUPLICATE, ExperienceClient, Segment
from rapid.clients.inference import NEWEST, REPLAY, RESET, RESTORE, WANT_STATE, InferenceClient
from rapid.clients.opponents import WON, OpponentsClient
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed, MessageTooLarge, StatusCode, Unavailable
from tests.rapid.conftest import TOKEN

LAYOUT = "0011223344556677"
H = 2


def at(server: Any) -> str:
    return f"127.0.0.1:{server.port}"


async def until(condition: Any, seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


# Inference.

class CountingInference(inference_pb2_grpc.InferenceServiceServicer):
    """A policy whose recurrent state counts a session's steps; the value it answers is that count."""

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
        wire.require(observations, {"x": ((3,), np.float16)}, n)
        unknown = [s for s, f in zip(sessions, flags, strict=True)
                   if s not in self.counts and not f & (RESET | RESTORE)]
        if unknown:
            return inference_pb2.ActResponse(request_id=request.request_id,
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
            states=wire.encode_set({"count": wanted}, LAYOUT), auxiliary=wire.encode_set({}, LAYOUT),
            queue_us=5, forward_us=6, reward_std=1.5)

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
    return rpc_config.model_copy(update={"deadline_seconds": 0.5, "reconnect_seconds": 4.0})


async def test_steps_carry_state_on_the_server(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_INFERENCE, CountingInference())
    async with InferenceClient([at(server)], rpc_config, LAYOUT, TOKEN, sparse=("x",)) as client:
        result = await step(client, [7, 9], RESET | WANT_STATE)
        assert result.values.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        assert result.states["count"].tolist() == [0, 0]
        assert result.actions.shape == (2, H, 6) and result.versions.tolist() == [1, 1]
        assert result.reward_std == 1.5 and result.queue_us == 5 and result.forward_us == 6
        assert result.unknown_sessions.size == 0 and result.auxiliary == {}
        assert (await step(client, [9])).values[0, 0] == 2
        assert (await client.model()).resident_versions == (0, 1)


async def test_many_requests_under_way_find_their_own_answers(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_INFERENCE, CountingInference())
    async with InferenceClient([at(server)], rpc_config, LAYOUT, TOKEN) as client:
        results = await asyncio.gather(*(step(client, [s] * (1 + s % 3), RESET) for s in range(100)))
        assert [len(r.values) for r in results] == [1 + s % 3 for s in range(100)]


async def test_a_lost_server_shows_as_unknown_sessions_and_restoring_goes_on(start_server: Any,
                                                                             fast: RpcConfig) -> None:
    first, second = CountingInference(1), CountingInference(2)
    one, two = await start_server(ADD_INFERENCE, first), await start_server(ADD_INFERENCE, second)
    async with InferenceClient([at(one), at(two)], fast, LAYOUT, TOKEN) as client:
        result = await step(client, [1, 2], RESET)
        for _ in range(3):
            result = await step(client, [1, 2])
        assert result.values[0, 0] == 4
        await one.stop(0)
        result = await step(client, [1, 2])
        assert result.unknown_sessions.tolist() == [1, 2] and result.values.size == 0
        result = await step(client, [1, 2], RESTORE, states={"count": np.array([4, 4], np.float32)})
        assert result.values[:, 0].tolist() == [5, 5] and result.versions.tolist() == [2, 2]
        assert client.target == at(two) and client.reconnections == 1


async def test_requests_under_way_when_the_server_dies(start_server: Any, fast: RpcConfig) -> None:
    """Whether the dead server stepped them is unknown: they come back as unknown, and those with a reset go on."""
    first, second = CountingInference(1), CountingInference(2)
    one, two = await start_server(ADD_INFERENCE, first), await start_server(ADD_INFERENCE, second)
    config = fast.model_copy(update={"deadline_seconds": 5.0})
    async with InferenceClient([at(one), at(two)], config, LAYOUT, TOKEN) as client:
        await step(client, [1], RESET)
        first.hang = True
        stepping = asyncio.create_task(step(client, [1]))
        starting = asyncio.create_task(step(client, [3, 4], RESET))
        mixed = asyncio.create_task(client.act(
            np.array([1, 5], np.int64), np.full(2, NEWEST), np.array([0, RESET], np.uint8),
            {"x": np.zeros((2, 3), np.float16)}))
        await until(lambda: len(first.requests) == 2)
        await one.stop(0)
        assert (await stepping).unknown_sessions.tolist() == [1]
        assert (await starting).versions.tolist() == [2, 2]
        assert (await mixed).unknown_sessions.tolist() == [1]
        assert client.reconnections == 1


async def test_a_server_that_hangs_is_left_after_the_deadline(start_server: Any, fast: RpcConfig) -> None:
    first, second = CountingInference(1), CountingInference(2)
    one, two = await start_server(ADD_INFERENCE, first), await start_server(ADD_INFERENCE, second)
    async with InferenceClient([at(one), at(two)], fast, LAYOUT, TOKEN) as client:
        await step(client, [1], RESET)
        first.hang = True
        assert (await step(client, [1])).unknown_sessions.tolist() == [1]
        assert (await step(client, [1], RESET)).versions.tolist() == [2]


async def test_a_server_that_restarts_at_its_address_is_found_again(start_server: Any, fast: RpcConfig) -> None:
    server = await start_server(ADD_INFERENCE, CountingInference(1))
    async with InferenceClient([at(server)], fast, LAYOUT, TOKEN) as client:
        await step(client, [1], RESET)
        await server.stop(0)
        asking = asyncio.create_task(step(client, [1]))
        await asyncio.sleep(0.4)
        await start_server(ADD_INFERENCE, CountingInference(5), port=server.port)
        assert (await asking).unknown_sessions.tolist() == [1]
        assert (await step(client, [1], RESET)).versions.tolist() == [5]


async def test_no_server_at_all_is_an_error_in_time(rpc_config: RpcConfig) -> None:
    config = rpc_config.model_copy(update={"deadline_seconds": 0.2, "reconnect_seconds": 0.6})
    async with InferenceClient(["127.0.0.1:1"], config, LAYOUT, TOKEN) as client:
        async with asyncio.timeout(3):
            with pytest.raises(CallFailed, match="127.0.0.1:1") as caught:
                await step(client, [1], RESET)
        assert caught.value.may_retry


@pytest.mark.parametrize(("token", "layout", "code", "says"), [
    ("wrong", LAYOUT, StatusCode.UNAUTHENTICATED, "FIVE_TOKEN"),
    (TOKEN, "f" * 16, StatusCode.FAILED_PRECONDITION, f"ffffffffffffffff.*{LAYOUT}"),
])
async def test_refusals_are_errors_not_retries(token: str, layout: str, code: Any, says: str, start_server: Any,
                                               rpc_config: RpcConfig) -> None:
    servicer = CountingInference()
    server = await start_server(ADD_INFERENCE, servicer)
    async with InferenceClient([at(server)], rpc_config, layout, token) as client:
        with pytest.raises(CallFailed, match=says) as caught:
            await step(client, [1], RESET)
        assert caught.value.code is code and servicer.counts == {}


async def test_what_cannot_be_sent_is_refused_before_it_is(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = CountingInference()
    server = await start_server(ADD_INFERENCE, servicer)
    async with InferenceClient([at(server)], rpc_config, LAYOUT, TOKEN) as client:
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
        InferenceClient([], rpc_config, LAYOUT)


async def test_replayed_actions_travel(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = CountingInference()
    server = await start_server(ADD_INFERENCE, servicer)
    async with InferenceClient([at(server)], rpc_config, LAYOUT, TOKEN) as client:
        actions = np.arange(H * 6, dtype=np.int16).reshape(1, H, 6)
        await step(client, [1], RESET | REPLAY, replayed_actions=actions)
        assert servicer.requests[0].replayed_actions == actions.tobytes()


# Experience.

class Buffer(experience_pb2_grpc.ExperienceServiceServicer):
    """Counts each segment once; acknowledges while its gate is open."""

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


def segment(i: int, size: int = 10) -> Segment:
    return Segment(1, {"x": np.full(size, i, np.float16), "y": np.full(2, i, np.float32)}, 1.0, 2.0, 3, 4, 5,
                   created_at=6.0, segment_id=f"{i:032x}")


async def test_segments_arrive_once_and_in_order(start_server: Any, rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    server = await start_server(ADD_EXPERIENCE, buffer)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "rollout-0", TOKEN, in_flight=3,
                                sparse=("x",)) as client:
        for i in range(20):
            await client.push(segment(i))
            assert client.unacknowledged <= 3
        assert await client.flush(5)
        assert buffer.seen == [f"{i:032x}" for i in range(20)] == buffer.arrived
        assert client.verdicts == {ACCEPTED: 20} and client.resent == 0


async def test_a_full_window_sets_the_pace(start_server: Any, rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    buffer.gate.clear()
    server = await start_server(ADD_EXPERIENCE, buffer)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", TOKEN, in_flight=2) as client:
        await client.push(segment(0))
        await client.push(segment(1))
        third = asyncio.create_task(client.push(segment(2)))
        await asyncio.sleep(0.3)
        assert not third.done() and client.unacknowledged == 2
        assert not await client.flush(0.1)
        buffer.gate.set()
        await asyncio.wait_for(third, 5)
        assert await client.flush(5)


async def test_what_was_not_acknowledged_is_sent_again_and_counts_once(start_server: Any,
                                                                       rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    buffer.break_after = 5
    server = await start_server(ADD_EXPERIENCE, buffer)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", TOKEN, in_flight=4) as client:
        for i in range(12):
            await client.push(segment(i))
        assert await client.flush(5)
        assert sorted(buffer.seen) == [f"{i:032x}" for i in range(12)]
        assert len(buffer.arrived) > 12 and client.resent >= 1
        assert client.verdicts[DUPLICATE] >= 1 and client.verdicts.total() == 12


async def test_segments_wait_for_an_optimizer_that_comes_later(start_server: Any, rpc_config: RpcConfig) -> None:
    placeholder = await start_server(ADD_EXPERIENCE, Buffer())
    await placeholder.stop(0)
    async with ExperienceClient([at(placeholder)], rpc_config, LAYOUT, "r", "0", TOKEN, in_flight=8) as client:
        for i in range(5):
            await client.push(segment(i))
        await asyncio.sleep(0.3)
        buffer = Buffer()
        await start_server(ADD_EXPERIENCE, buffer, port=placeholder.port)
        assert await client.flush(5)
        assert buffer.seen == [f"{i:032x}" for i in range(5)]


async def test_another_optimizer_is_taken_when_the_own_one_stays_away(start_server: Any,
                                                                      rpc_config: RpcConfig) -> None:
    buffer = Buffer()
    server = await start_server(ADD_EXPERIENCE, buffer)
    config = rpc_config.model_copy(update={"deadline_seconds": 0.2})
    async with ExperienceClient(["127.0.0.1:1", at(server)], config, LAYOUT, "r", "0", TOKEN,
                                failover_seconds=0.5) as client:
        await client.push(segment(0))
        assert await client.flush(5)
        assert buffer.seen == [f"{0:032x}"]


async def test_a_refusal_reaches_the_pusher(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_EXPERIENCE, Buffer())
    async with ExperienceClient([at(server)], rpc_config, "f" * 16, "r", "0", TOKEN, in_flight=1) as client:
        await client.push(segment(0))
        with pytest.raises(CallFailed, match=f"ffffffffffffffff.*{LAYOUT}"):
            await asyncio.wait_for(client.push(segment(1)), 5)
        with pytest.raises(CallFailed):
            await client.flush(5)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", "wrong") as client:
        await client.push(segment(0))
        with pytest.raises(CallFailed, match="UNAUTHENTICATED"):
            await client.flush(5)
    async with ExperienceClient([at(server)], rpc_config, LAYOUT, "r", "0", TOKEN) as client:
        with pytest.raises(MessageTooLarge, match="the segment has"):
            await client.push(segment(0, 1_000_000))
        await client.push(segment(1))
        assert await client.close(timeout=5)


# The environment.

class CountingGames(env_pb2_grpc.EnvServiceServicer):
    """Games that count their steps: the count is what is observed."""

    async def Play(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        counts = np.zeros(0, np.float32)
        async for request in request_iterator:
            kind = request.WhichOneof("kind")
            if kind == "create":
                if request.create.layout_hash != LAYOUT:
                    raise wire.LayoutMismatch(request.create.layout_hash, LAYOUT)
                counts = np.zeros(request.create.games, np.float32)
                games = np.arange(request.create.games)
            else:
                games = np.frombuffer(getattr(request, kind).games, np.int32)
                if games.size and games.max() >= counts.size:
                    raise ValueError(f"there is no game {games.max()}")
                counts[games] = counts[games] + 1 if kind == "step" else 0
            k = games.size
            shown = np.repeat(counts[games][:, None], 2, 1).astype(np.float16)
            yield env_pb2.PlayResponse(
                observations=wire.encode_set({"count": shown}, LAYOUT),
                signals=np.zeros((k, 2, H, 3), np.float32).tobytes(), winners=np.zeros(k, np.uint8).tobytes(),
                game_time=counts[games].tobytes(), statistics=np.ones((k, 2, H, 2), np.float32).tobytes(),
                statistic_names=["last_hits", "denies"], step_us=3)


ADD_ENV = env_pb2_grpc.add_EnvServiceServicer_to_server


def actions(k: int) -> np.ndarray:
    return np.zeros((k, 2, H, 6), np.int16)


async def test_games_on_a_server(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_ENV, CountingGames())
    async with EnvironmentClient(at(server), rpc_config, H, LAYOUT, TOKEN) as games:
        shown = await games.open(4, seed=1)
        assert shown.observations["count"].shape == (4, 2) and games.games == 4
        some, others = np.array([0, 2], np.int32), np.array([1, 3], np.int32)
        first, second = await asyncio.gather(games.step(some, actions(2)), games.step(others, actions(2)))
        assert first.game_time.tolist() == [1, 1] == second.game_time.tolist()
        assert first.signals.shape == (2, 2, H, 3) and first.winners.tolist() == [0, 0]
        assert first.statistics.shape == (2, 2, H, 2) and first.statistic_names == ("last_hits", "denies")
        assert (await games.step(some, actions(2))).observations["count"][0, 0] == 2
        reset = await games.reset(some[:1], np.zeros((1, 2), np.uint8))
        assert reset.game_time.tolist() == [0]
        with pytest.raises(ValueError, match=r"actions have shape \[1, 2, 2, 6\], expected \[2, 2, 2, 6\]"):
            await games.step(some, actions(1))
        with pytest.raises(CallFailed, match="there is no game 9") as caught:
            await games.step(np.array([9], np.int32), actions(1))
        assert caught.value.code is StatusCode.INVALID_ARGUMENT
        with pytest.raises(CallFailed):
            await games.step(some, actions(2))


async def test_games_are_lost_with_their_server(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_ENV, CountingGames())
    games = EnvironmentClient(at(server), rpc_config, H, LAYOUT, TOKEN)
    with pytest.raises(ValueError, match="call open first"):
        await games.step(np.zeros(1, np.int32), actions(1))
    await games.open(1, seed=1)
    await server.stop(0)
    with pytest.raises(CallFailed) as caught:
        await games.step(np.zeros(1, np.int32), actions(1))
    assert caught.value.may_retry
    await games.close()
    other = EnvironmentClient("127.0.0.1:1", rpc_config.model_copy(update={"deadline_seconds": 0.2}), H, LAYOUT)
    with pytest.raises(CallFailed, match="no server answers at 127.0.0.1:1"):
        await other.open(1, seed=1)
    await other.close()


async def test_games_of_another_layout_are_refused(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(ADD_ENV, CountingGames())
    async with EnvironmentClient(at(server), rpc_config, H, "f" * 16, TOKEN) as games:
        with pytest.raises(CallFailed, match=f"ffffffffffffffff.*{LAYOUT}"):
            await games.open(1, seed=1)


# Opponents and the evaluator.

class Opponents(opponents_pb2_grpc.OpponentServiceServicer):
    def __init__(self) -> None:
        self.fail = 0
        self.reported: set[str] = set()

    async def AssignOpponent(self, request: Any, context: Any) -> Any:
        if self.fail:
            self.fail -= 1
            raise Unavailable("starting")
        return opponents_pb2.AssignOpponentResponse(version=12, side=1)

    async def ReportResult(self, request: Any, context: Any) -> Any:
        counted = request.game_id not in self.reported
        self.reported.add(request.game_id)
        return opponents_pb2.ReportResultResponse(counted=counted)

    async def GetPool(self, request: Any, context: Any) -> Any:
        return opponents_pb2.GetPoolResponse(entries=[opponents_pb2.PoolEntry(version=3, quality=0.5)])


async def test_opponents(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = Opponents()
    server = await start_server(opponents_pb2_grpc.add_OpponentServiceServicer_to_server, servicer)
    client = OpponentsClient(["127.0.0.1:1", at(server)], rpc_config, "r", TOKEN)  # the first address is dead
    opponent = await client.assign("g")
    assert (opponent.version, opponent.side) == (12, 1)
    servicer.fail = 1
    assert (await client.assign("g")).version == 12
    assert await client.report("g", 12, WON, 60.0) and not await client.report("g", 12, WON, 60.0)
    assert (await client.pool())[0].version == 3
    await client.close()


async def test_evaluator(start_server: Any, rpc_config: RpcConfig) -> None:
    class Evaluator(evaluator_pb2_grpc.EvaluatorServiceServicer):
        async def PlayMatch(self, request: Any, context: Any) -> Any:
            if request.against == "nobody":
                raise ValueError("against: 'nobody' is no opponent")
            return evaluator_pb2.PlayMatchResponse(won=3, lost=1, version=5, statistic_names=["last_hits"],
                                                   statistics=[20.0], opponent_statistics=[4.0])

        async def GetRatings(self, request: Any, context: Any) -> Any:
            return evaluator_pb2.GetRatingsResponse(ratings=[evaluator_pb2.VersionRating(name="random", mu=0)])

    server = await start_server(evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server, Evaluator())
    client = EvaluatorClient([at(server)], rpc_config, "r", TOKEN)
    result = await client.play_match(-1, "random", 4)
    assert (result.won, result.lost, result.statistics, result.opponent_statistics) == (
        3, 1, {"last_hits": 20.0}, {"last_hits": 4.0})
    with pytest.raises(CallFailed, match="'nobody' is no opponent"):
        await client.play_match(-1, "nobody", 4)
    assert (await client.ratings())[0].name == "random"
    await client.close()
