"""Client of the opponents service: opponents of games, and results."""

from collections.abc import Sequence
from dataclasses import dataclass

from five.protos.v1 import opponents_pb2, opponents_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import CallToken, Secret
from rapid.rpc.fencing_epoch import require_same_epoch
from rapid.rpc.unary_client import UnaryClient

WON = opponents_pb2.GAME_OUTCOME_WON
LOST = opponents_pb2.GAME_OUTCOME_LOST
DRAWN = opponents_pb2.GAME_OUTCOME_DRAWN
SELF = -1  # opponent's version for self-play of the newest


@dataclass(frozen=True)
class Opponent:
    """The opponent of a game: version SELF, or a past version on side 0 (radiant) or 1."""

    version: int
    side: int


@dataclass(frozen=True)
class PoolMember:
    """A past version in the opponent pool."""

    version: int
    quality: float
    probability: float
    games: int
    wins_against: int


class OpponentsClient:
    """Requests opponents and reports results for games of the fencing epoch ``epoch``. Use it within one asyncio loop.
    """

    def __init__(self, addresses: Sequence[str], config: RpcConfig, run: str, secret: Secret = None, *,
                 epoch: int) -> None:
        self._epoch = epoch
        self._caller = UnaryClient(addresses, opponents_pb2_grpc.OpponentServiceStub, "five.v1.OpponentService", config,
                                   CallToken(secret, Audience.OPPONENTS))
        self._run = run

    async def assign(self, game_id: str) -> Opponent:
        """Return the opponent of a game, the same for repeated requests. Raise CallFailed."""
        answer = await self._caller.call(
            "AssignOpponent", lambda stub: stub.AssignOpponent,
            opponents_pb2.AssignOpponentRequest(run=self._run, game_id=game_id, epoch=self._epoch))
        require_same_epoch(self._epoch, answer.epoch, self._caller.service, "AssignOpponent")
        return Opponent(answer.version, answer.side)

    async def report(self, game_id: str, opponent_version: int, outcome: opponents_pb2.GameOutcome,
                     game_seconds: float, drawn_game_id: str = "") -> bool:
        """Report a game's result for the training agent. Return False when it was counted before.

        ``drawn_game_id``: the game for which the version was selected; empty: this one.

        Raises CallFailed. If `rapid.rpc.fencing_epoch.is_stale_epoch` accepts it, the game's epoch is over and the
        result never counts.
        """
        answer = await self._caller.call(
            "ReportResult", lambda stub: stub.ReportResult,
            opponents_pb2.ReportResultRequest(run=self._run, game_id=game_id, opponent_version=opponent_version,
                                              outcome=outcome, game_seconds=game_seconds, epoch=self._epoch,
                                              drawn_game_id=drawn_game_id))
        require_same_epoch(self._epoch, answer.epoch, self._caller.service, "ReportResult")
        return answer.counted

    async def pool(self) -> list[PoolMember]:
        """Return the past versions that may be assigned. Raise CallFailed."""
        answer = await self._caller.call("GetPool", lambda stub: stub.GetPool,
                                         opponents_pb2.GetPoolRequest(run=self._run))
        return [PoolMember(e.version, e.quality, e.probability, e.games, e.wins_against) for e in answer.entries]

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close()
