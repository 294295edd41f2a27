"""Matches on request: asked for through REST, kept in the run's state, played one after another by the evaluator."""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from enum import StrEnum
from typing import Any

import redis
from pydantic import BaseModel, ConfigDict, Field

from five.clients.evaluator import MatchResult
from rapid.rpc.errors import CallFailed, StatusCode
from rapid.store.state import RunState

log = logging.getLogger(__name__)
TABLE = "matches"
MAX_WAITING = 16  # matches that wait at once
MAX_KEPT = 200  # matches that are remembered
MAX_TRIES = 60  # of a match whose evaluator is away
AGAINST = r"^(random|scripted|scripted-easy|scripted-hard|[0-9]{1,15})$"


class MatchState(StrEnum):
    """How far a match is."""

    WAITING = "waiting"
    PLAYING = "playing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = frozenset({MatchState.WAITING, MatchState.PLAYING})


class MatchRequest(BaseModel):
    """Who plays whom."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"version": -1, "against": "scripted", "games": 20, "seed": 7, "replay": True}]})

    version: int = Field(-1, ge=-1, le=2**53 - 1, strict=True, description="Which version; -1: the newest when it is "
                         "played.")
    against: str = Field("scripted", pattern=AGAINST, description="random, scripted-easy, scripted, scripted-hard, or "
                         "a version's number.")
    games: int = Field(20, ge=1, le=1000, strict=True, description="Games; half of them on each side.")
    seed: int = Field(0, ge=0, le=2**53 - 1, strict=True, description="Seed of the games.")
    replay: bool = Field(False, strict=True, description="Whether the first game is recorded.")


class MatchOutcome(BaseModel):
    """How the games went for the version."""

    version: int = Field(description="The version that played.")
    won: int = Field(description="Games won.")
    lost: int = Field(description="Games lost.")
    drawn: int = Field(description="Games drawn.")
    statistics: dict[str, float] = Field(description="Means over the games, by name.")
    opponent_statistics: dict[str, float] = Field(description="The opponent's.")
    mean_game_seconds: float = Field(description="Mean length of a game, seconds of game time.")
    replay_path: str = Field(description="Where the evaluator wrote the replay; '' without one.")


class Match(BaseModel):
    """A match that was asked for."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "m-5f2c9a0b1d3e", "state": "waiting", "who": "ada", "asked_at": 1789000000.0, "began_at": None,
        "ended_at": None, "tries": 0, "request": {
            "version": -1, "against": "scripted", "games": 20, "seed": 7, "replay": True},
        "outcome": None, "error": None}]})

    id: str = Field(description="Its id.")
    state: MatchState = Field(description="How far it is.")
    who: str = Field(description="Whose token asked for it.")
    asked_at: float = Field(description="When, seconds since the epoch.")
    began_at: float | None = Field(None, description="When its last try began.")
    ended_at: float | None = Field(None, description="When it was done, had failed or was cancelled.")
    tries: int = Field(0, description="How often it was begun.")
    request: MatchRequest = Field(description="What was asked for.")
    outcome: MatchOutcome | None = Field(None, description="How it went, once it is done.")
    error: str | None = Field(None, description="What went wrong last.")


class TooMany(ValueError):
    """More matches wait than may."""


class Matches:
    """The matches of one run. Blocking; safe to share between threads."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(TABLE)

    def all(self) -> list[Match]:
        """All that are remembered, newest first."""
        found = [Match.model_validate(row) for row in self._table.all().values()]
        return sorted(found, key=lambda m: (m.asked_at, m.id), reverse=True)

    def get(self, identity: str) -> Match | None:
        """The match of that id."""
        row = self._table.get(identity)
        return None if row is None else Match.model_validate(row)

    def ask(self, request: MatchRequest, who: str, dry_run: bool = False) -> Match:
        """Puts a match at the end of those that wait; ``dry_run`` only says whether it would be. Raises TooMany."""
        match = Match(id="m-" + ("0" * 12 if dry_run else secrets.token_hex(6)), state=MatchState.WAITING, who=who,
                      asked_at=time.time(), request=request)

        def change(rows: dict[str, Any]) -> dict[str, Any] | None:
            known = sorted((Match.model_validate(row) for row in rows.values()), key=lambda m: m.asked_at)
            if sum(m.state in OPEN for m in known) >= MAX_WAITING:
                raise TooMany(f"{MAX_WAITING} matches wait already; ask again when one is done")
            if dry_run:
                return None
            over = [m.id for m in known if m.state not in OPEN]
            return {match.id: match.model_dump(mode="json"), **dict.fromkeys(over[:max(len(known) + 1 - MAX_KEPT, 0)])}

        self._table.update(change, event=(who, "match.asked", {"id": match.id, **request.model_dump()}))
        return match

    def move(self, identity: str, to: MatchState, **values: Any) -> Match | None:
        """Brings an open match to a state. Returns it as it is now; None when there is no such match."""
        result: Match | None = None

        def change(rows: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal result
            if identity not in rows:
                return None
            result = Match.model_validate(rows[identity])
            if result.state not in OPEN:
                return None
            ended = None if to in OPEN else time.time()
            result = result.model_copy(update={"state": to, "ended_at": ended, **values})
            return {identity: result.model_dump(mode="json")}

        self._table.update(change)
        return result


Play = Callable[[Match], Awaitable[MatchResult]]


class MatchPlayer:
    """Plays what waits, one match at a time. A match that a controller left behind, or whose evaluator went away,
    goes on from the games that had ended: those are kept under its id (services.evaluator.kept)."""

    def __init__(self, matches: Matches, play: Play, pause_seconds: float = 5.0, look_seconds: float = 1.0) -> None:
        self._matches = matches
        self._play = play
        self._pause_seconds = pause_seconds
        self._look_seconds = look_seconds

    async def run(self, draining: Callable[[], bool]) -> None:
        """Until the service drains. A store that is away is waited for."""
        while not draining():
            try:
                waiting = [m for m in await asyncio.to_thread(self._matches.all) if m.state in OPEN]
                if waiting:
                    await self._one(waiting[-1])
                    continue
            except redis.RedisError as error:
                log.warning("matches cannot be read: %s", error)
            await asyncio.sleep(self._look_seconds)

    async def _one(self, match: Match) -> None:
        begun = await asyncio.to_thread(self._matches.move, match.id, MatchState.PLAYING, began_at=time.time(),
                                        tries=match.tries + 1)
        if begun is None or begun.state is not MatchState.PLAYING:
            return
        playing = asyncio.ensure_future(self._play(match))
        try:
            while not (await asyncio.wait({playing}, timeout=self._look_seconds))[0]:
                now = await asyncio.to_thread(self._matches.get, match.id)
                if now is None or now.state is not MatchState.PLAYING:
                    return  # cancelled
            outcome = MatchOutcome.model_validate(asdict(playing.result()))
            await asyncio.to_thread(self._matches.move, match.id, MatchState.DONE, outcome=outcome, error=None)
        except CallFailed as error:
            away = error.code is StatusCode.UNAVAILABLE and begun.tries < MAX_TRIES
            await asyncio.to_thread(self._matches.move, match.id,
                                    MatchState.WAITING if away else MatchState.FAILED, error=str(error))
            if away:
                await asyncio.sleep(self._pause_seconds)
        except ValueError as error:  # an answer that cannot be kept
            await asyncio.to_thread(self._matches.move, match.id, MatchState.FAILED, error=str(error)[:500])
        finally:
            playing.cancel()
