"""Whole requests and responses of the opponents and evaluator clients, and the epochs that they require."""

from typing import Any

import pytest

from five.clients.evaluator import EvaluatorClient, MatchResult, Rating
from five.clients.opponents import DRAWN, Opponent, OpponentsClient, PoolMember
from five.protos.v1 import evaluator_pb2, evaluator_pb2_grpc, opponents_pb2, opponents_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed, Unavailable
from tests.rapid.conftest import CLI_SECRET, SECRET, at


class Opponents(opponents_pb2_grpc.OpponentServiceServicer):
    """Service that records requests and answers in ``epoch``."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.requests: list[Any] = []

    async def AssignOpponent(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        return opponents_pb2.AssignOpponentResponse(version=-1, side=0, epoch=self.epoch)

    async def ReportResult(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        return opponents_pb2.ReportResultResponse(counted=True, epoch=self.epoch)

    async def GetPool(self, request: Any, context: Any) -> Any:
        self.requests.append(request)
        return opponents_pb2.GetPoolResponse(entries=[opponents_pb2.PoolEntry(
            version=3, quality=0.5, probability=0.25, games=8, wins_against=2)])


class Evaluator(evaluator_pb2_grpc.EvaluatorServiceServicer):
    """Evaluator in ``epoch`` that records requested matches."""

    def __init__(self, epoch: int = 4) -> None:
        self.epoch = epoch
        self.matches: list[Any] = []
        self.rated = 0
        self.failures: list[Exception] = []

    async def PlayMatch(self, request: Any, context: Any) -> Any:
        self.matches.append(request)
        if self.failures:
            raise self.failures.pop()
        return evaluator_pb2.PlayMatchResponse(
            epoch=self.epoch, won=3, lost=2, drawn=1, version=5, statistic_names=["kills", "denies"],
            statistics=[1.0, 2.0], opponent_statistics=[3.0, 4.0], mean_game_seconds=600.0, replay_path="a/b")

    async def GetRatings(self, request: Any, context: Any) -> Any:
        self.rated += 1
        assert request.run == "r"
        return evaluator_pb2.GetRatingsResponse(epoch=self.epoch, ratings=[evaluator_pb2.VersionRating(
            name="version-5", version=5, mu=28.5, sigma=1.5, games=40, reference=True)])


@pytest.fixture
async def evaluator(start_server: Any, rpc_config: RpcConfig) -> Any:
    servicer = Evaluator()
    server = await start_server(evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server, servicer)
    yield servicer, lambda **options: EvaluatorClient([at(server)], rpc_config, "r", SECRET, **options)


async def test_requests_about_opponents_are_whole(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = Opponents(epoch=4)
    server = await start_server(opponents_pb2_grpc.add_OpponentServiceServicer_to_server, servicer)
    client = OpponentsClient([at(server)], rpc_config, "r", SECRET, epoch=4)
    assert await client.assign("game-1") == Opponent(-1, 0)
    assert await client.report("game-1", 7, DRAWN, 61.5)
    assigned, reported = servicer.requests
    assert (assigned.run, assigned.game_id, assigned.epoch) == ("r", "game-1", 4)
    assert (reported.run, reported.game_id, reported.opponent_version, reported.outcome, reported.game_seconds,
            reported.epoch) == ("r", "game-1", 7, DRAWN, 61.5, 4)
    await client.close()
    people = OpponentsClient([at(server)], rpc_config, "r", CLI_SECRET, epoch=4)
    assert await people.pool() == [PoolMember(3, 0.5, 0.25, 8, 2)]
    await people.close()


async def test_answer_of_another_epoch_about_opponents_is_refused(start_server: Any, rpc_config: RpcConfig) -> None:
    server = await start_server(opponents_pb2_grpc.add_OpponentServiceServicer_to_server, Opponents(epoch=5))
    client = OpponentsClient([at(server)], rpc_config, "r", SECRET, epoch=4)
    for call in (client.assign("game-1"), client.report("game-1", 7, DRAWN, 61.5)):
        with pytest.raises(CallFailed, match="the answer is of epoch 5, the request of 4"):
            await call
    await client.close()


async def test_match_is_whole_and_of_the_evaluators_epoch(evaluator: Any) -> None:
    servicer, connect = evaluator
    client = connect()
    assert await client.play_match(5, "scripted", 6, 9, True, "match-1") == MatchResult(
        5, 3, 2, 1, {"kills": 1.0, "denies": 2.0}, {"kills": 3.0, "denies": 4.0}, 600.0, "a/b")
    (request,) = servicer.matches
    assert (request.run, request.version, request.against, request.games, request.seed, request.replay, request.epoch,
            request.match) == ("r", 5, "scripted", 6, 9, True, 4, "match-1")
    assert await client.ratings() == [Rating("version-5", 5, 28.5, 1.5, 40, True)]
    await client.close()


async def test_caller_in_the_run_names_its_own_epoch(evaluator: Any) -> None:
    servicer, connect = evaluator
    client = connect(epoch=3)
    with pytest.raises(CallFailed, match="the answer is of epoch 4, the request of 3"):
        await client.play_match(5, "scripted", 6)
    assert servicer.matches[0].epoch == 3 and servicer.rated == 0
    await client.close()


async def test_match_is_sent_once(evaluator: Any) -> None:
    """A repeated request without an id would play all games again."""
    servicer, connect = evaluator
    servicer.failures = [Unavailable("the evaluator restarts")]
    client = connect()
    with pytest.raises(CallFailed, match="the evaluator restarts"):
        await client.play_match(5, "scripted", 6)
    assert len(servicer.matches) == 1
    await client.close()
