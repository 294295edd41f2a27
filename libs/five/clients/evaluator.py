"""Client of the evaluator: requested matches, and ratings."""

from collections.abc import Sequence
from dataclasses import dataclass

from five.protos.v1 import evaluator_pb2, evaluator_pb2_grpc
from rapid.config import RpcConfig
from rapid.rpc.access import Audience
from rapid.rpc.caller_secret import CallToken, Secret
from rapid.rpc.fencing_epoch import require_same_epoch
from rapid.rpc.unary_client import UnaryClient

NEWEST = -1
MATCH_SECONDS = 3600.0


@dataclass(frozen=True)
class MatchResult:
    """Results of ``version``; statistics are means over the games, by name."""

    version: int
    won: int
    lost: int
    drawn: int
    statistics: dict[str, float]
    opponent_statistics: dict[str, float]
    mean_game_seconds: float
    replay_path: str


@dataclass(frozen=True)
class Rating:
    """A rated player: TrueSkill mean and standard deviation."""

    name: str
    version: int
    mu: float
    sigma: float
    games: int
    reference: bool


class EvaluatorClient:
    """Client for matches and ratings. Use it within one asyncio loop.

    ``epoch`` is the run's fencing epoch of a match. None, for callers outside the run, means the evaluator's epoch.
    """

    def __init__(self, addresses: Sequence[str], config: RpcConfig, run: str, secret: Secret = None, *,
                 epoch: int | None = None) -> None:
        self._epoch = epoch
        self._caller = UnaryClient(addresses, evaluator_pb2_grpc.EvaluatorServiceStub, "five.v1.EvaluatorService",
                                   config, CallToken(secret, Audience.EVALUATOR))
        self._run = run

    async def play_match(self, version: int, against: str, games: int, seed: int = 0, replay: bool = False,
                         match: str = "", deadline: float = MATCH_SECONDS) -> MatchResult:
        """Play ``games`` games of ``version`` (NEWEST) against "random", a scripted bot or a version number.

        It takes as long as the games, at most ``deadline`` seconds. It is sent once: a broken connection does not
        replay finished games. A repeated request with the same ``match`` id continues after the games that have ended.
        Raises CallFailed, also when the run's next epoch begins; the match is then dropped, and may be requested again.
        """
        epoch = (await self._rated()).epoch if self._epoch is None else self._epoch
        m = await self._caller.call(
            "PlayMatch", lambda stub: stub.PlayMatch,
            evaluator_pb2.PlayMatchRequest(run=self._run, version=version, against=against, games=games, seed=seed,
                                           replay=replay, epoch=epoch, match=match), deadline,
            repeats=False)
        require_same_epoch(epoch, m.epoch, self._caller.service, "PlayMatch")
        names = list(m.statistic_names)
        return MatchResult(m.version, m.won, m.lost, m.drawn, dict(zip(names, m.statistics, strict=True)),
                           dict(zip(names, m.opponent_statistics, strict=True)), m.mean_game_seconds, m.replay_path)

    async def ratings(self) -> list[Rating]:
        """Return all rated players. Raise CallFailed."""
        return [Rating(r.name, r.version, r.mu, r.sigma, r.games, r.reference) for r in (await self._rated()).ratings]

    async def _rated(self) -> evaluator_pb2.GetRatingsResponse:
        return await self._caller.call("GetRatings", lambda stub: stub.GetRatings,
                                       evaluator_pb2.GetRatingsRequest(run=self._run))

    async def close(self) -> None:
        """Close the connections."""
        await self._caller.close()
