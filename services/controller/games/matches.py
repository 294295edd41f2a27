"""Matches requested over REST: stored in the run's state, played one at a time by the evaluator."""

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
from rapid.rpc.errors import CallFailed
from rapid.store.errors import Corrupt
from rapid.store.state import RunState

log = logging.getLogger(__name__)
TABLE = "matches"
MAX_OPEN = 16  # waiting and playing matches
MAX_RECORDS = 200  # stored matches
MAX_ATTEMPTS = 60  # of a match whose evaluator or inference is unavailable
AGAINST = r"^(random|scripted|scripted-easy|scripted-hard|[0-9]{1,15})$"


class MatchState(StrEnum):
    """Progress of a match."""

    WAITING = "waiting"
    PLAYING = "playing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN_STATES = frozenset({MatchState.WAITING, MatchState.PLAYING})


class MatchRequest(BaseModel):
    """The players and settings of a match."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [
        {"version": -1, "against": "scripted", "games": 20, "seed": 7, "replay": True}]})

    version: int = Field(-1, ge=-1, le=2**53 - 1, strict=True, description="Version that plays; -1: the newest when "
                         "the match begins.")
    against: str = Field("scripted", pattern=AGAINST, description="random, scripted-easy, scripted, scripted-hard, or "
                         "a version's number.")
    games: int = Field(20, ge=1, le=1000, strict=True, description="Number of games, half of them on each side.")
    seed: int = Field(0, ge=0, le=2**53 - 1, strict=True, description="Seed of the games.")
    replay: bool = Field(False, strict=True, description="Whether the first game is recorded.")


class MatchOutcome(BaseModel):
    """Results of a match from the version's point of view."""

    version: int = Field(description="The version that played.")
    won: int = Field(description="Games won.")
    lost: int = Field(description="Games lost.")
    drawn: int = Field(description="Games drawn.")
    statistics: dict[str, float] = Field(description="Means over the games, by name.")
    opponent_statistics: dict[str, float] = Field(description="The opponent's.")
    mean_game_seconds: float = Field(description="Mean length of a game, seconds of game time.")
    replay_path: str = Field(description="Where the evaluator wrote the replay; '' without one.")


class RequestedMatch(BaseModel):
    """A requested match."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "m-5f2c9a0b1d3e", "state": "waiting", "who": "ada", "asked_at": 1789000000.0, "began_at": None,
        "ended_at": None, "tries": 0, "request": {
            "version": -1, "against": "scripted", "games": 20, "seed": 7, "replay": True},
        "outcome": None, "error": None}]})

    id: str = Field(description="Its id.")
    state: MatchState = Field(description="Progress.")
    who: str = Field(description="Name of the token that requested it.")
    asked_at: float = Field(description="When it was requested, seconds since the epoch.")
    began_at: float | None = Field(None, description="When its last attempt began, seconds since the epoch.")
    ended_at: float | None = Field(None, description="When it ended, seconds since the epoch.")
    tries: int = Field(0, description="Number of attempts.")
    request: MatchRequest = Field(description="The request.")
    outcome: MatchOutcome | None = Field(None, description="Results; null until it is done.")
    error: str | None = Field(None, description="Last error.")


class QueueFull(ValueError):
    """Error of a match queue that holds the maximum number of open matches."""


class MatchQueue:
    """The matches of one run. Blocking and thread-safe."""

    def __init__(self, state: RunState) -> None:
        self._table = state.table(TABLE)

    def all(self) -> list[RequestedMatch]:
        """Return all stored matches, newest first."""
        found = [RequestedMatch.model_validate(row) for row in self._table.all().values()]
        return sorted(found, key=lambda m: (m.asked_at, m.id), reverse=True)

    def get(self, identity: str) -> RequestedMatch | None:
        """Return a match by id, or None."""
        row = self._table.get(identity)
        return None if row is None else RequestedMatch.model_validate(row)

    def add(self, request: MatchRequest, who: str, dry_run: bool = False) -> RequestedMatch:
        """Append a match to the queue; with ``dry_run`` only check that it would be accepted. Raise QueueFull."""
        match = RequestedMatch(id="m-" + ("0" * 12 if dry_run else secrets.token_hex(6)), state=MatchState.WAITING,
                               who=who, asked_at=time.time(), request=request)

        def change(rows: dict[str, Any]) -> dict[str, Any] | None:
            if match.id in rows:  # the write is repeated after a lost reply
                return None
            known = sorted((RequestedMatch.model_validate(row) for row in rows.values()), key=lambda m: m.asked_at)
            if sum(m.state in OPEN_STATES for m in known) >= MAX_OPEN:
                raise QueueFull(f"{MAX_OPEN} matches are open, the maximum: try again when one is done, or cancel one")
            if dry_run:
                return None
            over = [m.id for m in known if m.state not in OPEN_STATES]
            dropped = over[:max(len(known) + 1 - MAX_RECORDS, 0)]
            return {match.id: match.model_dump(mode="json"), **dict.fromkeys(dropped)}

        self._table.update(change, event=(who, "match.asked", {"id": match.id, **request.model_dump()}))
        return match

    def transition(self, identity: str, to: MatchState, **values: Any) -> RequestedMatch | None:
        """Change the state of an open match. Return the match afterwards, or None if it does not exist."""
        result: RequestedMatch | None = None

        def change(rows: dict[str, Any]) -> dict[str, Any] | None:
            nonlocal result
            if identity not in rows:
                return None
            result = RequestedMatch.model_validate(rows[identity])
            if result.state not in OPEN_STATES:
                return None
            ended = None if to in OPEN_STATES else time.time()
            result = result.model_copy(update={"state": to, "ended_at": ended, **values})
            return {identity: result.model_dump(mode="json")}

        self._table.update(change)
        return result


Play = Callable[[RequestedMatch], Awaitable[MatchResult]]


class MatchRunner:
    """Plays waiting matches, one at a time. An interrupted match continues after its finished games, which the
    evaluator stores under the match's id.
    """

    def __init__(self, matches: MatchQueue, play: Play, retry_seconds: float = 5.0, poll_seconds: float = 1.0) -> None:
        self._matches = matches
        self._play = play
        self._retry_seconds = retry_seconds
        self._poll_seconds = poll_seconds

    async def run(self, draining: Callable[[], bool]) -> None:
        """Play matches until the service drains; retry while the store is unavailable."""
        while not draining():
            try:
                waiting = [m for m in await asyncio.to_thread(self._matches.all) if m.state in OPEN_STATES]
                if waiting:
                    await self._play_match(waiting[-1])
                    continue
            except redis.RedisError as error:
                log.warning("matches are unreadable: %s", error)
            except (ValueError, Corrupt):
                # An invalid row, such as one of a later release, must not stop the controller.
                log.exception("matches are unreadable")
            await asyncio.sleep(self._poll_seconds)

    async def _play_match(self, match: RequestedMatch) -> None:
        begun = await asyncio.to_thread(self._matches.transition, match.id, MatchState.PLAYING, began_at=time.time(),
                                        tries=match.tries + 1)
        if begun is None or begun.state is not MatchState.PLAYING:
            return
        playing = asyncio.ensure_future(self._play(match))
        try:
            while not (await asyncio.wait({playing}, timeout=self._poll_seconds))[0]:
                try:
                    now = await asyncio.to_thread(self._matches.get, match.id)
                except redis.RedisError as error:  # a failover does not interrupt the games
                    log.warning("match %s continues, its state is unreadable: %s", match.id, error)
                    continue
                if now is None or now.state is not MatchState.PLAYING:
                    return  # cancelled
            outcome = MatchOutcome.model_validate(asdict(playing.result()))
            await asyncio.to_thread(self._matches.transition, match.id, MatchState.DONE, outcome=outcome, error=None)
        except CallFailed as error:
            away = error.may_retry and begun.tries < MAX_ATTEMPTS
            await asyncio.to_thread(self._matches.transition, match.id,
                                    MatchState.WAITING if away else MatchState.FAILED, error=str(error))
            if away:
                await asyncio.sleep(self._retry_seconds)
        except ValueError as error:  # an invalid result
            await asyncio.to_thread(self._matches.transition, match.id, MatchState.FAILED, error=str(error)[:500])
        finally:
            playing.cancel()
