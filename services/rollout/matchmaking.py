"""Matchmaking: choice of the next game in a slot, report of its result, and the record of the game."""

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dota.rewards import SIGNALS
from five.clients.inference import NEWEST
from five.clients.opponents import DRAWN, LOST, WON, Opponent
from five.protos.v1 import opponents_pb2
from five.services.rollout.anneal_assignment import NO_ANNEAL, GameVariant
from five.services.rollout.env_slots import SideAssignment
from five.services.rollout.past_opponent import PastOpponent
from rapid.critical_tasks import CriticalTasks
from rapid.rpc.errors import CallFailed
from rapid.rpc.fencing_epoch import is_stale_epoch

log = logging.getLogger(__name__)

DRAW = 3
ASSIGN_SECONDS = 2.0  # a game waits at most so long for its opponent
RETRY_SECONDS = 1.0  # between two requests to an opponents service that failed
UNAVAILABLE_SECONDS = 10.0  # after a wait without an answer no game waits for so long
REPORTED = {"won": WON, "lost": LOST, "drawn": DRAWN}
PREFETCHED_MATCHES = 2


@dataclass(frozen=True)
class Match:
    """A game to be played. ``opponent`` -1 is the newest version itself, otherwise a past version on ``side``.

    ``bot`` names a scripted bot that plays ``side`` instead. ``drawn_by``: the game for which ``opponent`` was
    sampled; empty: this one.
    """

    game_id: str
    opponent: int = NEWEST
    side: int = 0
    bot: str | None = None
    drawn_by: str = ""

    @property
    def seats(self) -> SideAssignment:
        """The two sides of the game. Against a past version or a bot, only the other side learns."""
        if self.bot is None and self.opponent == NEWEST:
            return SideAssignment((NEWEST, NEWEST), (True, True), (True, True))
        learner = tuple(side != self.side for side in (0, 1))
        policies = tuple(NEWEST if learns else self.opponent for learns in learner)
        acting = learner if self.bot is not None else (True, True)
        return SideAssignment((policies[0], policies[1]), (acting[0], acting[1]), (learner[0], learner[1]))


class Opponents(Protocol):
    """The opponents service (five.clients.opponents.OpponentsClient)."""

    async def assign(self, game_id: str) -> Opponent: ...

    async def report(self, game_id: str, opponent_version: int, outcome: opponents_pb2.GameOutcome,
                     game_seconds: float, drawn_game_id: str = "") -> bool: ...


class Matchmaker:
    """Prefetches matches and reports results until the service acknowledges them.

    While the opponents service is unavailable, games are self-play of the newest version, so learning continues.
    """

    def __init__(self, opponents: Opponents, bots: Sequence[str], rng: np.random.Generator) -> None:
        self._opponents = opponents
        self._bots = list(bots)
        self._rng = rng
        self._matches: asyncio.Queue[Match] = asyncio.Queue(PREFETCHED_MATCHES)
        self._reports: asyncio.Queue[tuple[Match, str, float]] = asyncio.Queue(4096)
        self._tasks: list[asyncio.Task[None]] = []
        self._unavailable_until = 0.0
        self.unassigned = 0
        self.stale = 0  # results refused because their epoch ended

    def start(self, critical_tasks: CriticalTasks | None = None) -> None:
        """Start requesting opponents and reporting results, as critical tasks where ``critical_tasks`` is given."""
        self._tasks = [asyncio.create_task(self._assign(), name="opponent-prefetch"),
                       asyncio.create_task(self._report(), name="result-reports")]
        if critical_tasks is not None:
            for task in self._tasks:
                critical_tasks.watch(task)

    async def close(self) -> None:
        """Stop. Unreported results are lost with the process."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def next(self, past: PastOpponent | None = None, scripted_fraction: float = 0.0,
                   scripted_bot: float = -1.0) -> Match:
        """Return the next game of a group that plays against ``past``; None: against any assigned version.

        A share ``scripted_fraction`` of the games is against the bot at the position ``scripted_bot``; between two
        positions against either, and below 0 against any.
        """
        match = await self._next(scripted_fraction, scripted_bot)
        if past is None or match.opponent == NEWEST:
            return match
        version = past.assign(match.opponent, match.game_id)
        self.unassigned += version == NEWEST
        return replace(match, opponent=version, drawn_by=past.drawn_by)

    def _choose_bot(self, position: float) -> str:
        if position < 0:
            return str(self._rng.choice(self._bots))
        return self._bots[min(int(position + self._rng.random()), len(self._bots) - 1)]

    async def _next(self, scripted_fraction: float, scripted_bot: float) -> Match:
        if self._rng.random() < scripted_fraction:
            return Match(new_game_id(), NEWEST, int(self._rng.integers(2)), self._choose_bot(scripted_bot))
        if not self._matches.empty():
            return self._matches.get_nowait()
        if time.monotonic() >= self._unavailable_until:
            try:
                return await asyncio.wait_for(self._matches.get(), ASSIGN_SECONDS)
            except TimeoutError:
                # Later games do not wait, or the group would stop once for each of its slots.
                self._unavailable_until = time.monotonic() + UNAVAILABLE_SECONDS
        self.unassigned += 1
        return Match(new_game_id())

    def report_result(self, match: Match, outcome: str, game_seconds: float) -> None:
        """Queue a result for the report if the league counts it, which is so for games against past versions."""
        if match.bot is not None or match.opponent == NEWEST:
            return
        if self._reports.full():
            log.warning("result dropped, queue full game=%s queued=%d",
                        match.game_id, self._reports.qsize())
            return
        self._reports.put_nowait((match, outcome, game_seconds))

    async def _assign(self) -> None:
        while True:
            game_id = new_game_id()
            try:
                opponent = await self._opponents.assign(game_id)
            except Exception as error:
                log.warning("no opponent available, playing self-play: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            await self._matches.put(Match(game_id, opponent.version, opponent.side))

    async def _report(self) -> None:
        while True:
            match, outcome, seconds = await self._reports.get()
            while True:
                try:
                    await self._opponents.report(match.game_id, match.opponent, REPORTED[outcome], seconds,
                                                 match.drawn_by)
                    break
                except Exception as error:
                    if isinstance(error, CallFailed) and is_stale_epoch(error):
                        self.stale += 1
                        log.warning("result dropped game=%s: %s", match.game_id, error)
                        break
                    log.warning("result not reported, retrying game=%s: %s", match.game_id, error)
                    await asyncio.sleep(RETRY_SECONDS)


def new_game_id() -> str:
    """Return 16 random bytes as hexadecimal digits."""
    return secrets.token_hex(16)


def side_outcomes(winner: int) -> tuple[str, str]:
    """Return the outcome for Radiant and Dire. ``winner``: 1 Radiant, 2 Dire, 3 a draw."""
    if winner == DRAW:
        return "drawn", "drawn"
    return ("won", "lost") if winner == 1 else ("lost", "won")


@dataclass
class GameRecord:
    """Data collected about a running game.

    Attributes:
        match: the game.
        earned: float64 [2, H, signals], weighted rewards.
        variant: of an anneal.
        lineup: int16 [2, H], heroes by their number in the registry.
        predicted: by side, the policy's win probability at its first observation (mean over its heroes).
        start_seconds: game time of the snapshot from which the game began; None if it began at its beginning.
        began: monotonic seconds.
    """

    match: Match
    earned: npt.NDArray[np.float64]
    variant: GameVariant = NO_ANNEAL
    lineup: npt.NDArray[np.int16] | None = None
    predicted: list[float | None] = field(default_factory=lambda: [None, None])
    start_seconds: float | None = None
    began: float = field(default_factory=time.monotonic)

    def finish(self, winner: int, game_seconds: float, version: int, statistics: npt.NDArray[np.float32],
               names: Sequence[str]) -> dict[str, Any]:
        """Return a finished game's record for the run's series, as JSON values. Means are over the heroes that learn.

        A game without a winner (0) was cut before its end. Statistics are of whole games: one that began in the middle
        has none.
        ``statistics`` float32 [2, H, n] has one column for each of ``names``.
        """
        trains = np.array(self.match.seats.trains)
        learner = int(np.argmax(trains))
        mean = statistics[trains].mean(axis=(0, 1), dtype=np.float64)
        earned = self.earned[trains].mean(axis=(0, 1))
        against: Mapping[str, Any] = {"opponent": self.match.opponent}
        if self.match.bot is not None:
            against = {"opponent": self.match.bot}
        seen: dict[str, Any] = {} if self.lineup is None else {"lineup": self.lineup.tolist()}
        if self.start_seconds is not None:
            seen["start_seconds"] = round(self.start_seconds, 1)
            names = ()
        if None not in self.predicted:
            seen["win_probability"] = [round(p, 4) for p in self.predicted if p is not None]
        annealed = {"variant": self.variant.name, "anneal": self.variant.trial} if self.variant.name else {}
        return {
            "game": self.match.game_id, "version": version, **against, **annealed, **seen,
            "outcome": "cut" if winner == 0 else "selfplay" if trains.all() else side_outcomes(winner)[learner],
            "winner": ("", "radiant", "dire", "draw")[winner],
            "game_seconds": round(float(game_seconds), 1), "wall_seconds": round(time.monotonic() - self.began, 1),
            "statistics": {name: round(float(value), 3) for name, value in zip(names, mean, strict=bool(names))},
            "rewards": {name: round(float(value), 4) for name, value in zip(SIGNALS, earned, strict=True)},
        }
