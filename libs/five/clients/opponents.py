"""Client of the opponents service: who plays the other side, and how games ended."""

from collections.abc import Sequence
from dataclasses import dataclass

from five.protos.v1 import opponents_pb2, opponents_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.fencing_epoch import require_same_epoch
from rapid.rpc.token import Token
from rapid.rpc.unary_client import UnaryClient

WON = opponents_pb2.GAME_OUTCOME_WON
LOST = opponents_pb2.GAME_OUTCOME_LOST
DRAWN = opponents_pb2.GAME_OUTCOME_DRAWN
SELF = -1  # as an opponent's version: the newest plays itself


@dataclass(frozen=True)
class Opponent:
    """Who plays a game's other side: version SELF, or a past version on side 0 (radiant) or 1."""

    version: int
    side: int


@dataclass(frozen=True)
class PoolMember:
    """A past version in the pool."""

    version: int
    quality: float
    probability: float
    games: int
    wins_against: int


class OpponentsClient:
    """Asks for opponents and reports results of games of the run's ``epoch``. Use within one asyncio loop."""

    def __init__(self, addresses: Sequence[str], config: RpcConfig, run: str, token: Token = None, *,
                 epoch: int) -> None:
        self._epoch = epoch
        self._caller = UnaryClient(addresses, opponents_pb2_grpc.OpponentServiceStub, "five.v1.OpponentService", config,
                              token)
        self._run = run

    async def assign(self, game_id: str) -> Opponent:
        """The opponent of a game; asked again, the same. Raises CallFailed."""
        answer = await self._caller.call(
            "AssignOpponent", lambda stub: stub.AssignOpponent,
            opponents_pb2.AssignOpponentRequest(run=self._run, game_id=game_id, epoch=self._epoch))
        require_same_epoch(self._epoch, answer.epoch, self._caller.service, "AssignOpponent")
        return Opponent(answer.version, answer.side)

    async def report(self, game_id: str, opponent_version: int, outcome: opponents_pb2.GameOutcome,
                     game_seconds: float) -> bool:
        """Reports how a game ended for the training agent. Returns False when it was counted before. Raises CallFailed,
        for which `rapid.rpc.fencing_epoch.is_stale` holds when the game's epoch is over: such a result never counts."""
        answer = await self._caller.call(
            "ReportResult", lambda stub: stub.ReportResult,
            opponents_pb2.ReportResultRequest(run=self._run, game_id=game_id, opponent_version=opponent_version,
                                              outcome=outcome, game_seconds=game_seconds, epoch=self._epoch))
        require_same_epoch(self._epoch, answer.epoch, self._caller.service, "ReportResult")
        return answer.counted

    async def pool(self) -> list[PoolMember]:
        """The past versions that may be assigned. Raises CallFailed."""
        answer = await self._caller.call("GetPool", lambda stub: stub.GetPool,
                                         opponents_pb2.GetPoolRequest(run=self._run))
        return [PoolMember(e.version, e.quality, e.probability, e.games, e.wins_against) for e in answer.entries]

    async def close(self) -> None:
        """Ends the connections."""
        await self._caller.close()
