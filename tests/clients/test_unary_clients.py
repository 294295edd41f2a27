"""Clients of unary services: opponents and evaluator."""

from typing import Any

import pytest

from five.clients.evaluator import EvaluatorClient
from five.clients.opponents import WON, OpponentsClient
from five.protos.v1 import evaluator_pb2, evaluator_pb2_grpc, opponents_pb2, opponents_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.errors import CallFailed, Unavailable
from tests.rapid.conftest import CLI_SECRET, SECRET, at


class Opponents(opponents_pb2_grpc.OpponentServiceServicer):
    def __init__(self) -> None:
        self.fail = 0
        self.reported: set[str] = set()

    async def AssignOpponent(self, request: Any, context: Any) -> Any:
        if self.fail:
            self.fail -= 1
            raise Unavailable("starting")
        return opponents_pb2.AssignOpponentResponse(version=12, side=1, epoch=request.epoch)

    async def ReportResult(self, request: Any, context: Any) -> Any:
        counted = request.game_id not in self.reported
        self.reported.add(request.game_id)
        return opponents_pb2.ReportResultResponse(counted=counted, epoch=request.epoch)

    async def GetPool(self, request: Any, context: Any) -> Any:
        return opponents_pb2.GetPoolResponse(entries=[opponents_pb2.PoolEntry(version=3, quality=0.5)])


async def test_opponents(start_server: Any, rpc_config: RpcConfig) -> None:
    servicer = Opponents()
    server = await start_server(opponents_pb2_grpc.add_OpponentServiceServicer_to_server, servicer)
    client = OpponentsClient(["127.0.0.1:1", at(server)], rpc_config, "r", SECRET, epoch=1)  # the first address is dead
    opponent = await client.assign("g")
    assert (opponent.version, opponent.side) == (12, 1)
    servicer.fail = 1
    assert (await client.assign("g")).version == 12
    assert await client.report("g", 12, WON, 60.0) and not await client.report("g", 12, WON, 60.0)
    await client.close()
    people = OpponentsClient([at(server)], rpc_config, "r", CLI_SECRET, epoch=1)
    assert (await people.pool())[0].version == 3
    await people.close()


async def test_evaluator(start_server: Any, rpc_config: RpcConfig) -> None:
    class Evaluator(evaluator_pb2_grpc.EvaluatorServiceServicer):
        async def PlayMatch(self, request: Any, context: Any) -> Any:
            if request.against == "nobody":
                raise ValueError("against: 'nobody' is not an opponent")
            return evaluator_pb2.PlayMatchResponse(
                epoch=request.epoch, won=3, lost=1, version=5, statistic_names=["last_hits"], statistics=[20.0],
                opponent_statistics=[4.0])

        async def GetRatings(self, request: Any, context: Any) -> Any:
            return evaluator_pb2.GetRatingsResponse(
                epoch=7, ratings=[evaluator_pb2.VersionRating(name="random", mu=0)])

    server = await start_server(evaluator_pb2_grpc.add_EvaluatorServiceServicer_to_server, Evaluator())
    client = EvaluatorClient([at(server)], rpc_config, "r", SECRET)
    result = await client.play_match(-1, "random", 4)
    assert (result.won, result.lost, result.statistics, result.opponent_statistics) == (
        3, 1, {"last_hits": 20.0}, {"last_hits": 4.0})
    with pytest.raises(CallFailed, match="'nobody' is not an opponent"):
        await client.play_match(-1, "nobody", 4)
    assert (await client.ratings())[0].name == "random"
    await client.close()
