"""RPC servicer of the opponent pool."""

import asyncio
from typing import Any

from five.protos.v1 import opponents_pb2, opponents_pb2_grpc
from five.services.opponents.metrics import ASSIGNED, REPORTED, show_pool
from five.services.opponents.pool import OpponentPool
from rapid.rpc.fencing_epoch import require_epoch

SELF = -1
OUTCOMES = {opponents_pb2.GAME_OUTCOME_WON, opponents_pb2.GAME_OUTCOME_LOST, opponents_pb2.GAME_OUTCOME_DRAWN}
MAX_ID = 128


class OpponentService(opponents_pb2_grpc.OpponentServiceServicer):
    """Assigns opponents and accepts results of games in the fencing epoch ``epoch``."""

    def __init__(self, run: str, pool: OpponentPool, *, epoch: int) -> None:
        self._epoch = epoch
        self._run = run
        self._pool = pool

    def _check(self, run: str, game_id: str | None = None) -> None:
        if run != self._run:
            raise ValueError(f"run {run!r}: this service serves run {self._run!r}")
        if game_id is not None and not 1 <= len(game_id) <= MAX_ID:
            raise ValueError(f"game_id has {len(game_id)} characters: it must have 1 to {MAX_ID}")

    async def AssignOpponent(self, request: opponents_pb2.AssignOpponentRequest, context: Any
                             ) -> opponents_pb2.AssignOpponentResponse:
        """Return the opponent of a game."""
        self._check(request.run, request.game_id)
        require_epoch(self._epoch, request.epoch)
        match = await asyncio.to_thread(self._pool.assign, request.game_id)
        ASSIGNED.labels("latest" if match.past is None else "past").inc()
        # The league's side is the current agent's; the message says which one the opponent plays.
        return opponents_pb2.AssignOpponentResponse(version=SELF if match.past is None else match.past,
                                                    side=1 - match.side, epoch=self._epoch)

    async def ReportResult(self, request: opponents_pb2.ReportResultRequest, context: Any
                           ) -> opponents_pb2.ReportResultResponse:
        """Record the result of a game."""
        self._check(request.run, request.game_id)
        self._check(request.run, request.drawn_game_id or request.game_id)
        require_epoch(self._epoch, request.epoch)
        if request.outcome not in OUTCOMES:
            raise ValueError("outcome is missing: won, lost or drawn, seen from the training agent")
        if request.opponent_version < 0:
            return opponents_pb2.ReportResultResponse(counted=False, epoch=self._epoch)
        won = request.outcome == opponents_pb2.GAME_OUTCOME_WON
        counted = await asyncio.to_thread(self._pool.report, request.game_id, request.opponent_version, won,
                                          request.drawn_game_id)
        REPORTED.labels(opponents_pb2.GameOutcome.Name(request.outcome).removeprefix("GAME_OUTCOME_").lower()).inc()
        return opponents_pb2.ReportResultResponse(counted=counted, epoch=self._epoch)

    async def GetPool(self, request: opponents_pb2.GetPoolRequest, context: Any) -> opponents_pb2.GetPoolResponse:
        """Return the pool with its qualities and probabilities."""
        self._check(request.run)
        league = await asyncio.to_thread(self._pool.league)
        chances = league.probabilities()
        show_pool(chances)
        return opponents_pb2.GetPoolResponse(entries=[
            opponents_pb2.PoolEntry(version=o.version, quality=o.quality, probability=chances[o.version],
                                    games=o.games, wins_against=o.wins) for o in league.opponents])
