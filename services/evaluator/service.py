"""RPC servicer of the evaluator: ratings, and matches on request."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import redis

from dota.config import GameConfig, RewardConfig
from dota.vec_game import BOTS, STATS, VecGame
from five.agent.standings import player_name, player_version
from five.protos.v1 import evaluator_pb2, evaluator_pb2_grpc
from five.services.evaluator import match_progress
from five.services.evaluator.cameras import Cameras
from five.services.evaluator.matches import Inference, Matches, Pairing, PairingResult, TeamPlayer
from five.services.evaluator.metrics import DROPPED
from five.services.evaluator.rating_loop import RatingLoop
from five.services.evaluator.recording import MatchRecorder, SpectatorRecordings, StoredRecordings
from five.services.evaluator.uploads import UploadQueue
from rapid.rpc.errors import CallFailed, Conflict, NotFound
from rapid.rpc.fencing_epoch import is_stale_epoch, require_epoch

log = logging.getLogger(__name__)
MAX_GAMES = 10_000
CONCURRENT = 16
PLAYERS = {name: TeamPlayer(name, int(controller)) for name, controller in BOTS.items()}


def player(name: str) -> TeamPlayer:
    """Return the bot of a name, or the version of a number. Raises ValueError that lists the bots."""
    if name in PLAYERS:
        return PLAYERS[name]
    if name.isdigit():
        return TeamPlayer(player_name(int(name)), version=int(name))
    raise ValueError(f"against {name!r}: allowed are a version's number and {', '.join(BOTS)}")


@dataclass
class EvaluatorService(evaluator_pb2_grpc.EvaluatorServiceServicer):
    """Servicer for one run in its fencing ``epoch``.

    ``inference`` creates a client for a match; ``replays`` is the folder of recordings; while ``paused`` returns True
    no game advances; ``playing`` holds the matches in progress; ``match_games`` persists the games of matches with an
    id; ``uploads`` stores recordings in ``stored``.
    """

    run: str
    game: GameConfig
    threads: int
    newest: Callable[[], int | None]
    inference: Callable[[], Inference]
    ratings: RatingLoop
    replays: Path
    epoch: int
    paused: Callable[[], bool] = lambda: False
    playing: set[Matches] = field(default_factory=set)
    stored: StoredRecordings | None = None
    rewards: RewardConfig = field(default_factory=RewardConfig)
    match_games: match_progress.ProgressTable | None = None
    uploads: UploadQueue = field(default_factory=UploadQueue)

    def _check(self, run: str) -> None:
        if run != self.run:
            raise ValueError(f"run {run!r}: this evaluator serves run {self.run!r}")

    async def PlayMatch(self, request: evaluator_pb2.PlayMatchRequest, context: Any
                        ) -> evaluator_pb2.PlayMatchResponse:
        """Play the games of a match, half on each side, all in the same epoch of the run.

        A repeated request with the same id plays only the games that have not ended.
        """
        self._check(request.run)
        require_epoch(self.epoch, request.epoch)
        if not 1 <= request.games <= MAX_GAMES:
            raise ValueError(f"games {request.games}: 1 to {MAX_GAMES} are allowed")
        version = request.version if request.version >= 0 else self.newest()
        opponent = player(request.against)
        before = await self._progress(request, version, opponent)
        version = version if before.version is None else before.version
        if version is None:
            raise NotFound("no version has been published yet")
        results = [before.results[number] for number in sorted(before.results)]
        if len(results) == request.games:
            return self._answer(version, results, before.replay)
        agent = TeamPlayer(player_name(version), version=version)
        pairings = iter([Pairing(agent, opponent, i % 2, number=i) for i in range(request.games)
                         if i not in before.results])
        # Not the seed of the first attempt, whose first games would be played and counted twice.
        games = VecGame(self.game, min(CONCURRENT, request.games - len(results)),
                        (request.seed + len(results)) % 2**64, self.threads)
        writes: list[asyncio.Future[None]] = []
        cameras = Cameras(games, self.run, self.rewards)
        recorder = MatchRecorder(
            games, cameras, self.replays / f"{agent.name}-{opponent.name}-{request.seed}.replay",
            None if self.stored is None else SpectatorRecordings(cameras, self.stored, self.replays), before.replay)

        def on_start(slot: int) -> None:
            pairing = matches.pairing(slot)
            if request.replay and pairing is not None:
                recorder.began(slot, pairing)

        def on_result(result: PairingResult) -> None:
            upload = recorder.ended(result.slot)
            if upload is not None:
                writes.append(asyncio.wrap_future(self.uploads.submit(upload.run, upload.discard)))
            results.append(result)
            writes.append(asyncio.create_task(self._store_game(request.match, version, result, recorder.path)))

        inference = self.inference()
        matches = Matches(games, inference, games.layout.heroes, cameras)
        self.playing.add(matches)
        try:
            await matches.play(lambda: next(pairings, None), on_result, self.paused, on_start=on_start)
        except CallFailed as failure:
            is_stale = is_stale_epoch(failure)
            DROPPED.labels("epoch" if is_stale else "lost").inc(matches.in_progress)
            if not is_stale:
                raise
            raise Conflict(f"the match was cancelled after {len(results)} of {request.games} games, because the run's "
                           f"next epoch began ({failure.details}); request it again") from failure
        finally:
            self.playing.discard(matches)
            cameras.drop()
            await asyncio.gather(inference.close(), *writes)
        return self._answer(version, results, recorder.path)

    async def _progress(self, request: evaluator_pb2.PlayMatchRequest, version: int | None,
                        opponent: TeamPlayer) -> match_progress.MatchProgress:
        """Return the match's progress; empty if the store is unavailable."""
        empty = match_progress.MatchProgress(None, {}, "")
        if self.match_games is None or not request.match:
            return empty
        agent = TeamPlayer("", version=-1 if version is None else version)
        pairings = [Pairing(agent, opponent, i % 2, number=i) for i in range(request.games)]
        try:
            found = await asyncio.to_thread(match_progress.load, self.match_games, self._identity(request.match),
                                            pairings)
        except redis.RedisError as error:
            log.warning("match %s starts from its first game, its progress cannot be read: %s", request.match, error)
            return empty
        if found.results:
            log.info("match %s resumes: %d of %d games had ended", request.match, len(found.results), request.games)
        return found

    def _identity(self, match: str) -> str:
        return f"{match}@{self.epoch}"  # games of another epoch do not count

    async def _store_game(self, match: str, version: int, result: PairingResult, path: str) -> None:
        if self.match_games is None or not match:
            return
        try:
            await asyncio.to_thread(match_progress.store, self.match_games, self._identity(match), version,
                                    result.pairing.number, result, path, time.time())
        except redis.RedisError as error:
            log.warning("a game of match %s is not stored: %s", match, error)

    def _answer(self, version: int, results: list[PairingResult], path: str) -> evaluator_pb2.PlayMatchResponse:
        scores = [r.score for r in results]
        return evaluator_pb2.PlayMatchResponse(
            won=scores.count(1.0), lost=scores.count(0.0), drawn=scores.count(0.5), version=version,
            statistic_names=STATS, statistics=np.mean([r.agent_statistics for r in results], axis=0).tolist(),
            opponent_statistics=np.mean([r.opponent_statistics for r in results], axis=0).tolist(),
            mean_game_seconds=float(np.mean([r.game_seconds for r in results])), replay_path=path,
            epoch=self.epoch)

    async def GetRatings(self, request: evaluator_pb2.GetRatingsRequest, context: Any
                         ) -> evaluator_pb2.GetRatingsResponse:
        """Return all ratings."""
        self._check(request.run)
        found = []
        for s in self.ratings.ladder.standings.values():
            version = player_version(s.player)
            found.append(evaluator_pb2.VersionRating(
                name=s.player, version=-1 if version is None else version, mu=s.mu, sigma=s.sigma, games=s.games,
                reference=s.reference))
        return evaluator_pb2.GetRatingsResponse(ratings=found, epoch=self.epoch)
