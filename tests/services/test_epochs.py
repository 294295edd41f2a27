"""Requests of another fencing epoch at each service: refused with a reason, counted, and survived."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import redis

from dota.config import GameConfig
from five.agent.config import LeagueConfig
from five.agent.learning.segments import Segment
from five.clients.evaluator import EvaluatorClient, MatchResult
from five.clients.experience import ACCEPTED, STALE_EPOCH, ExperienceClient
from five.clients.inference import NEWEST, RESET, InferenceClient
from five.clients.opponents import WON, OpponentsClient
from five.local.cluster import free_ports
from five.protos.v1 import (
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
from five.services.evaluator.service import EvaluatorService
from five.services.opponents.pool import OpponentPool
from five.services.opponents.service import OpponentService
from five.services.optimizer.experience_service import ExperienceService, add_to_server
from five.services.optimizer.intake import Intake
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.rpc.fencing_epoch import REFUSED, is_stale_epoch, require_epoch
from rapid.rpc.server import RpcServer, serve
from rapid.store.state import RunState
from rapid.telemetry.metrics import snapshot
from tests.clients.tensor_sets import encode_set
from tests.services.counting import GAME as COUNTING_GAME
from tests.services.counting import LAYOUT as COUNTING_LAYOUT
from tests.services.counting import CountingGames, Versions, observations
from tests.services.inference_server import InferenceServer
from tests.services.optimizer_cases import LAYOUT, SAMPLE_SPECS, STEP_SPECS, UNROLL, intake, segment
from tests.services.test_dota_env import LAYOUT as GAMES_LAYOUT
from tests.services.test_dota_env import Server as GamesServer
from tests.services.test_rating_loop import loop as rating_loop
from tests.services.test_rollout import LENGTHS, check_recurrence, play
from tests.waiting import eventually_async

RPC = RpcConfig(require_token=False, deadline_seconds=5, backoff_seconds=0.02, max_backoff_seconds=0.1,
                reconnect_seconds=0.5, retries=1)
PATIENT = RPC.model_copy(update={"reconnect_seconds": 30.0})


def refused() -> dict[str, float]:
    """Return the number of refused messages by reason."""
    return {sample.labels["reason"]: sample.value for family in REFUSED.collect() for sample in family.samples
            if sample.name.endswith("_total")}


def test_the_rule() -> None:
    before = refused()
    require_epoch(3, 3)
    with pytest.raises(RuntimeError, match="at epoch 3, the request at 2"):
        require_epoch(3, 2)
    with pytest.raises(RuntimeError, match="at epoch 3, the request at 4: this server restarts soon"):
        require_epoch(3, 4)
    with pytest.raises(ValueError, match="epoch is missing"):
        require_epoch(3, 0)
    assert {reason: count - before[reason] for reason, count in refused().items()} == {
        "epoch": 1, "epoch_ahead": 1, "no_epoch": 1}


# ------------------------------------------------------------------------------------------------- segments


class Optimizer:
    """The optimizer's real intake in a fencing epoch, at a port that its successor can take over."""

    def __init__(self, epoch: int, active: Callable[[], bool] = lambda: True) -> None:
        self.intake: Intake = intake()
        self.servicer = ExperienceService("trial", LAYOUT.hash, UNROLL, STEP_SPECS, SAMPLE_SPECS, self.intake,
                                          epoch=epoch, active=active)
        self.rpc: RpcServer | None = None

    async def start(self, port: int = 0) -> str:
        self.rpc = await serve(f"127.0.0.1:{port}", [(add_to_server, self.servicer)], RPC)
        return f"127.0.0.1:{self.rpc.port}"

    async def stop(self) -> None:
        assert self.rpc is not None
        await self.rpc.stop(0)


def push(identity: str, epoch: int, layout: str = LAYOUT.hash) -> experience_pb2.PushRequest:
    return experience_pb2.PushRequest(segment_id=identity, run="trial", samples=2, reward_count=8, epoch=epoch,
                                      tensors=encode_set(segment(), layout))


def made() -> Segment:
    return Segment(segment(), 2, 1.0, 2.0, 8, 0, 0)


async def test_stale_segment_is_dropped_and_its_stream_continues() -> None:
    optimizer = Optimizer(2)
    address, before = await optimizer.start(), refused()
    counted = snapshot()["five_optimizer_received_segments_total"]
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            call = experience_pb2_grpc.ExperienceServiceStub(channel).Push()
            # The old epoch has another layout, which must not end the stream.
            for request in (push("a", 1, "feedfacefeedface"), push("b", 2), push("a", 1), push("a", 2)):
                await call.write(request)
            answers = [await call.read() for _ in range(4)]
    finally:
        await optimizer.stop()
    assert [a.verdict for a in answers] == [STALE_EPOCH, ACCEPTED, STALE_EPOCH, ACCEPTED]
    assert "epoch 2, the request at 1" in answers[0].reason and {a.epoch for a in answers} == {2}
    assert len(optimizer.intake.buffer) == 4 and optimizer.intake.pacer.received == 4
    assert refused()["epoch"] - before["epoch"] == 2
    assert snapshot()["five_optimizer_received_segments_total"] - counted == 4


async def test_the_client_counts_stale_segments_and_continues() -> None:
    optimizer = Optimizer(2)
    address = await optimizer.start()
    try:
        async with ExperienceClient([address], RPC, "feedfacefeedface", "trial", "rollout-0", in_flight=1,
                                    epoch=1) as client:
            for _ in range(3):
                await client.push(made())
            assert await client.flush(30) and client.stale == 3 and client.unacknowledged == 0
    finally:
        await optimizer.stop()
    assert len(optimizer.intake.buffer) == 0


async def test_newer_segment_waits_for_the_optimizers_restart() -> None:
    old, new, (port,) = Optimizer(1), Optimizer(2), free_ports(1)
    address, before = await old.start(port), refused()
    async with ExperienceClient([address], RPC, LAYOUT.hash, "trial", "rollout-0", in_flight=2, epoch=2) as client:
        await client.push(made())
        await eventually_async(lambda: refused()["epoch_ahead"] > before["epoch_ahead"])
        assert not await client.flush(0.2) and len(old.intake.buffer) == 0
        await old.stop()
        await new.start(port)
        assert await client.flush(30) and client.verdicts == {ACCEPTED: 1}
    assert len(new.intake.buffer) == 2
    await new.stop()


async def test_a_segment_without_an_epoch_is_malformed() -> None:
    optimizer = Optimizer(1)
    address = await optimizer.start()
    try:
        async with grpc.aio.insecure_channel(address) as channel:
            call = experience_pb2_grpc.ExperienceServiceStub(channel).Push(iter([push("a", 0)]))
            with pytest.raises(grpc.aio.AioRpcError, match="epoch is missing") as failure:
                await call.read()
        assert failure.value.code() is StatusCode.INVALID_ARGUMENT
    finally:
        await optimizer.stop()


async def test_in_a_pause_acknowledgements_do_not_wait_for_learning() -> None:
    """Rollouts are idle once all their segments are acknowledged, and nobody learns during a pause."""
    active = True
    optimizer = Optimizer(1, lambda: active)
    address = await optimizer.start()
    try:
        async with ExperienceClient([address], RPC, LAYOUT.hash, "trial", "0", in_flight=4, epoch=1) as client:
            for _ in range(12):
                await asyncio.wait_for(client.push(made()), 30)
                if not await client.flush(0.2):
                    break
            else:
                raise AssertionError("pacing never held an acknowledgement back")
            active = False
            assert await client.flush(30)
    finally:
        await optimizer.stop()


# ----------------------------------------------------------------------------------------------- team-steps


def act(client: InferenceClient) -> Any:
    return client.act(np.array([1], np.int64), np.array([NEWEST], np.int64), np.array([RESET], np.uint8),
                      observations(1.0))


async def test_inference_refuses_older_and_delays_newer_epochs() -> None:
    async with InferenceServer(Versions(0), epoch=2) as server:
        async with InferenceClient([server.address], PATIENT, "feedfacefeedface", epoch=1) as behind:
            with pytest.raises(CallFailed, match="at epoch 2, the request at 1") as failure:
                await act(behind)
            assert failure.value.code is StatusCode.FAILED_PRECONDITION and is_stale_epoch(failure.value)
            assert (await behind.model()).epoch == 2
        async with InferenceClient([server.address], RPC, COUNTING_LAYOUT.hash, epoch=3) as ahead:
            with pytest.raises(CallFailed, match="at epoch 2, the request at 3") as failure:
                await act(ahead)
            assert failure.value.code is StatusCode.UNAVAILABLE and not is_stale_epoch(failure.value)
            assert ahead.connections < 30  # it was queried in pauses
        async with InferenceClient([server.address], PATIENT, COUNTING_LAYOUT.hash, epoch=2) as level:
            assert (await act(level)).versions.tolist() == [0]
    with pytest.raises(ValueError, match="epoch is missing"):
        require_epoch(1, inference_pb2.ActRequest().epoch)


async def test_response_from_another_epoch_is_ignored() -> None:
    class Careless(inference_pb2_grpc.InferenceServiceServicer):
        async def Act(self, request_iterator: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
            async for request in request_iterator:
                yield inference_pb2.ActResponse(request_id=request.request_id, versions=np.int64(0).tobytes())

    rpc = await serve("127.0.0.1:0", [(inference_pb2_grpc.add_InferenceServiceServicer_to_server, Careless())], RPC)
    async with InferenceClient([f"127.0.0.1:{rpc.port}"], PATIENT, COUNTING_LAYOUT.hash, epoch=1) as client:
        with pytest.raises(CallFailed, match="answer is of epoch 0"):
            await act(client)
    await rpc.stop(0)


async def test_outdated_rollout_waits_for_its_restart() -> None:
    """Inference restarts first: games wait, and nothing that was played is lost or wrong."""
    games, tasks = CountingGames(LENGTHS), []  # type: ignore[var-annotated]
    async with InferenceServer(Versions(0), port=free_ports(1)[0]) as server:

        async def back() -> None:
            await asyncio.sleep(0.4)
            await server.renew(1)

        async def renew() -> None:
            await server.renew(2)
            tasks.append(asyncio.create_task(back()))

        done = await play(games, 30, [server], {12: renew})
        await tasks[0]
    assert games.steps == 30 and done.group.progress.abandoned_games == 0
    assert done.group.progress.recoveries >= 1
    assert check_recurrence(done.segments, LENGTHS) > 100


# -------------------------------------------------------------------------------------------- unary services


async def test_opponents_service_ignores_other_epochs(redis_client: redis.Redis) -> None:
    pool = OpponentPool(RunState(redis_client, "trial"), LeagueConfig(), seed=0)
    pool.on_version(0)
    rpc = await serve("127.0.0.1:0", [(opponents_pb2_grpc.add_OpponentServiceServicer_to_server,
                                       OpponentService("trial", pool, epoch=2))], RPC)
    address, before = f"127.0.0.1:{rpc.port}", refused()
    clients = {epoch: OpponentsClient([address], RPC, "trial", epoch=epoch) for epoch in (1, 2, 3)}
    for epoch, code in ((1, StatusCode.FAILED_PRECONDITION), (3, StatusCode.UNAVAILABLE)):
        with pytest.raises(CallFailed, match=f"at epoch 2, the request at {epoch}") as failure:
            await clients[epoch].assign("g")
        assert failure.value.code is code and is_stale_epoch(failure.value) == (epoch == 1)
        with pytest.raises(CallFailed):
            await clients[epoch].report("g", 0, WON, 60.0)
    assert pool.league().opponents[0].games == 0
    assert (await clients[2].assign("g")).side in (0, 1) and await clients[2].report("g", 0, WON, 60.0)
    with pytest.raises(ValueError, match="epoch is missing"):
        await OpponentService("trial", pool, epoch=2).AssignOpponent(
            opponents_pb2.AssignOpponentRequest(run="trial", game_id="g"), None)
    after = refused()
    assert after["epoch"] - before["epoch"] == 2 and after["epoch_ahead"] - before["epoch_ahead"] >= 4  # tried again
    for client in clients.values():
        await client.close()
    await rpc.stop(0)


async def test_games_belong_to_the_newest_requesting_epoch() -> None:
    async with GamesServer() as server:
        async with server.client(epoch=2) as older, server.client(epoch=3) as newer, server.client(epoch=2) as late:
            assert (await older.open(1, 0)).winners.tolist() == [0]
            await newer.open(1, 0)
            with pytest.raises(CallFailed, match="at epoch 3, the request at 2") as failure:
                await late.open(1, 0)
            assert is_stale_epoch(failure.value)
            # Those that have begun end with their stream: their segments are refused where they count.
            await older.step(np.zeros(1, np.int32), np.zeros((1, 2, 1, 6), np.int16))
        create = env_pb2.CreateGames(games=1, layout_hash=GAMES_LAYOUT.hash)
        async with grpc.aio.insecure_channel(server.address) as channel:
            call = env_pb2_grpc.EnvServiceStub(channel).Play(iter([env_pb2.PlayRequest(create=create)]))
            with pytest.raises(grpc.aio.AioRpcError, match="epoch is missing"):
                await call.read()


async def test_games_of_a_restored_run_may_have_an_older_epoch() -> None:
    """The run's processes ended, and with them all games, but the server did not."""
    async with GamesServer() as server:
        async with server.client(epoch=3) as lost:
            await lost.open(1, 0)
        await eventually_async(lambda: server.servicer.games == 0)
        async with server.client(epoch=0) as unknown:
            with pytest.raises(CallFailed, match="epoch is missing"):
                await unknown.open(1, 0)
        async with server.client(epoch=2) as restored, server.client(epoch=1) as older:
            await restored.open(1, 0)
            with pytest.raises(CallFailed, match="at epoch 2, the request at 1"):
                await older.open(1, 0)


# The counting server's layout; four seconds, which decide nothing.
GAME = GameConfig(mode="1v1_mid", heroes_per_team=1, hero_pool=["nevermore"], max_game_seconds=4.0, start_seconds=0.0,
                  neutrals=False, roshan=False, runes=False, observation=COUNTING_GAME.observation)


async def match(address: str, epoch: int | None) -> MatchResult:
    client = EvaluatorClient([address], RPC, "trial", epoch=epoch)
    try:
        return await client.play_match(3, "random", 4)
    finally:
        await client.close()


async def test_a_match_is_dropped_when_the_next_epoch_begins(redis_client: redis.Redis,
                                                             tmp_path: Path) -> None:
    ratings = rating_loop(redis_client)
    async with InferenceServer(Versions(3), epoch=2, port=free_ports(1)[0]) as server:
        servicer = EvaluatorService(
            "trial", GAME, 1, lambda: 3,
            lambda: InferenceClient([server.address], RPC, COUNTING_LAYOUT.hash, epoch=2), ratings, tmp_path, 2)
        rpc = await serve("127.0.0.1:0", [(evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server, servicer)], RPC)
        address, dropped = f"127.0.0.1:{rpc.port}", snapshot()["five_evaluator_dropped_games_total"]
        for epoch, code in ((1, StatusCode.FAILED_PRECONDITION), (3, StatusCode.UNAVAILABLE)):
            with pytest.raises(CallFailed, match=f"at epoch 2, the request at {epoch}") as failure:
                await match(address, epoch)
            assert failure.value.code is code
        for epoch in (2, None):  # None: whatever the evaluator is at
            assert (await match(address, epoch)).drawn == 4

        async def renew() -> None:
            while not (servicer.playing and server.builder.created[0].calls):
                await asyncio.sleep(0.001)
            await server.renew(3)

        server.builder.created[0].calls.clear()
        renewing = asyncio.create_task(renew())
        with pytest.raises(CallFailed, match="after 0 of 4 games.*request it again") as failure:
            await match(address, 2)
        assert failure.value.code is StatusCode.FAILED_PRECONDITION and not servicer.playing
        await renewing
        assert snapshot()["five_evaluator_dropped_games_total"] - dropped == 4
        with pytest.raises(ValueError, match="epoch is missing"):
            await servicer.PlayMatch(evaluator_pb2.PlayMatchRequest(run="trial", games=1, against="random"), None)
        await rpc.stop(0)
    assert not ratings.ladder.standings and ratings.series.last("ratings") is None
