"""Rehearsals of plans: who asked for one, how far it is and what came of it, in the run's state.

A rehearsal is a fork of the run that learns beside it (`five.cli.rehearsal`), which takes a machine with the run's
folder. The controller therefore only writes down what is asked for; who holds the run on one machine carries it out
(`five.cli.rehearser`) and writes here how far it is, and so does the command that somebody gives by hand. Two keys that
end by themselves say who is there: `Keys.rehearser` who would take a request, `Keys.rehearsing` which rehearsal is
being carried out. One that nobody stands behind any more is abandoned, and is shown as such whether or not somebody has
written it down.
"""

import json
import secrets
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.operations.document import Word
from rapid.store.keys import Keys
from rapid.store.state import Json, RunState

TABLE = "rehearsals"
KEPT = 20
LEASE_MS = 15_000
MAX_VERSIONS, MAX_GAMES, MAX_MINUTES = 100_000, 10_000, 7 * 24 * 60


class RehearsalState(StrEnum):
    """How far a rehearsal is."""

    WAITING = "waiting"  # nobody has taken it yet
    PREPARING = "preparing"  # the fork is made
    WARMING = "warming"
    LEARNING = "learning"
    PLAYING = "playing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"  # whoever carried it out is gone, or was to


OPEN = frozenset({RehearsalState.WAITING, RehearsalState.PREPARING, RehearsalState.WARMING, RehearsalState.LEARNING,
                  RehearsalState.PLAYING})
TAKER = "*"
LEFT = "the process that carried it out has died: start it again"
TAKES: Json = {"host": "workstation", "pid": 4711}
EXAMPLE: Json = {
    "id": "rehearsal-20260101-121500-a1b2c3", "plan": "name: wider\nsteps: []\n", "digest": "4c0e2f1a" * 8,
    "name": "wider", "epoch": 1, "who": "ada", "by": "run", "reason": "", "asked_at": 1760000000.0,
    "scope": {"versions": 10, "games": 100, "minutes": 60.0}, "state": "done", "began_at": 1760000001.0,
    "ended_at": 1760001801.0, "fork": "laptop-wider", "first": 812, "warm": 817, "until": 827, "version": 828,
    "played": 100, "cancel": None, "error": "", "result": {
        "won": 51, "drawn": 4, "lost": 45, "score": 0.53, "low": 0.43, "high": 0.63, "worse": False}}


class Scope(BaseModel):
    """How much is rehearsed."""

    model_config = ConfigDict(extra="forbid")

    versions: int = Field(10, ge=1, le=MAX_VERSIONS, strict=True, description="Versions to learn after the warm-up.")
    games: int = Field(100, ge=2, le=MAX_GAMES, strict=True, description="Games of the match, half of them on each "
                       "side; an odd number is made even.")
    minutes: float = Field(60.0, gt=0, le=MAX_MINUTES, description="Minutes for learning, after which it is given up.")


class RehearsalResult(BaseModel):
    """The match of the fork's last version against the version before the plan, brought through the plan."""

    won: int = Field(description="Games won by the fork.")
    drawn: int = Field(description="Games drawn.")
    lost: int = Field(description="Games lost.")
    score: float = Field(description="Mean score, draws as half a win.")
    low: float = Field(description="Lower end of the score's 95 % interval, from pairs of games.")
    high: float = Field(description="Upper end of it.")
    worse: bool = Field(description="Whether the fork is worse than the version before, with 95 % confidence.")


class Rehearsal(BaseModel):
    """A plan on a fork of the run."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    id: str = Field(description="Its id.")
    plan: str = Field(description="The plan (YAML).")
    digest: str = Field(description="The plan's digest.")
    name: str = Field(description="The plan's name.")
    epoch: int = Field(description="The run's epoch when it was asked for.")
    who: str = Field(description="Who asked for it.")
    by: str = Field(description="Who carries it out: run, the process that holds the run on one machine; or command, "
                    "a `five surgery rehearse` of somebody's.")
    reason: str = Field("", description="Why.")
    asked_at: float = Field(description="When it was asked for, seconds since the epoch (1970).")
    scope: Scope = Field(description="How much is rehearsed.")
    state: RehearsalState = Field(RehearsalState.WAITING, description="How far it is.")
    began_at: float | None = Field(None, description="When somebody took it.")
    ended_at: float | None = Field(None, description="When it was over.")
    fork: str = Field("", description="The fork's name: a run of its own beside the run's folder.")
    first: int | None = Field(None, description="The version that the fork begins with.")
    warm: int | None = Field(None, description="The last version of its warm-up.")
    until: int | None = Field(None, description="The version up to which it learns, and which plays.")
    version: int | None = Field(None, description="The fork's newest version.")
    played: int = Field(0, description="Games of the match that have ended.")
    result: RehearsalResult | None = Field(None, description="How the match went, once it is done.")
    cancel: Word | None = Field(None, description="Who has cancelled it.")
    error: str = Field("", description="What went wrong.")

    @property
    def over(self) -> bool:
        """Whether nothing of it is still to come."""
        return self.state not in OPEN


class Rehearser(BaseModel):
    """Who takes requests: the process that holds the run on one machine."""

    model_config = ConfigDict(json_schema_extra={"examples": [TAKES]})

    host: str = Field(description="The machine's name.")
    pid: int = Field(description="The process.")


class Busy(RuntimeError):
    """Another rehearsal goes on; ``rehearsal`` is that one."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.rehearsal = rehearsal
        super().__init__(f"rehearsal {rehearsal.id} of plan {rehearsal.name!r}, asked for by {rehearsal.who}, is "
                         f"{rehearsal.state.value}; one at a time: wait for it or cancel it")


def new(plan: str, digest: str, name: str, epoch: int, who: str, scope: Scope, by: str = "run", reason: str = ""
        ) -> Rehearsal:
    """A rehearsal that nobody has written down yet."""
    now = time.time()
    identity = f"rehearsal-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(3)}"
    return Rehearsal(id=identity, plan=plan, digest=digest, name=name, epoch=epoch, who=who, by=by, reason=reason,
                     asked_at=now, scope=scope)


def _row(rehearsal: Rehearsal) -> Json:
    return json.loads(rehearsal.model_dump_json())


class Rehearsals:
    """The rehearsals of one run. Every change is one atomic step; raises redis.RedisError. Blocking."""

    def __init__(self, state: RunState) -> None:
        self._redis = state.redis
        self._table = state.table(TABLE)
        self._keys: Keys = state.keys

    def all(self) -> list[Rehearsal]:
        """All that are kept, newest first; those that nobody carries out any more as abandoned."""
        before, rows = self._there(), self._table.all()
        there = before | self._there()
        found = [_seen(Rehearsal.model_validate(row), there) for row in rows.values()]
        return sorted(found, key=lambda r: (r.asked_at, r.id), reverse=True)

    def get(self, identity: str) -> Rehearsal | None:
        """One of them; None when there is none of that name."""
        before, row = self._there(), self._table.get(identity)
        return None if row is None else _seen(Rehearsal.model_validate(row), before | self._there())

    def _there(self) -> frozenset[str]:
        """Which rehearsal is being carried out, and TAKER where somebody would take one. Looked at before and after a
        row: one that begins or ends in between has somebody behind it at one of the two."""
        holder, taker = cast(list[bytes | None], self._redis.mget(self._keys.rehearsing, self._keys.rehearser))
        return frozenset([*([holder.decode()] if holder else []), *([TAKER] if taker else [])])

    def rehearser(self) -> Rehearser | None:
        """Who takes requests now."""
        text: Any = self._redis.get(self._keys.rehearser)
        return None if text is None else Rehearser.model_validate_json(text)

    def begin(self, rehearsal: Rehearsal, dry_run: bool = False) -> Rehearsal:
        """Writes a rehearsal down, with its event, and what was left behind as abandoned; ``dry_run`` only says whether
        it would be. Raises Busy."""
        before = self._there()

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            there = before | self._there()
            known = [_seen(Rehearsal.model_validate(row), there) for row in rows.values()]
            for other in known:
                if not other.over and other.id != rehearsal.id:
                    raise Busy(other)
            if dry_run:
                return None
            known.sort(key=lambda r: (r.asked_at, r.id), reverse=True)
            left = {r.id: _row(r) for r in known if r.state is RehearsalState.ABANDONED}
            return {**left, rehearsal.id: _row(rehearsal), **dict.fromkeys(r.id for r in known[KEPT - 1:])}

        self._table.update(change, event=(rehearsal.who, "rehearsal.asked", {
            "rehearsal": rehearsal.id, "plan": rehearsal.name, "digest": rehearsal.digest, "by": rehearsal.by,
            **rehearsal.scope.model_dump(), "reason": rehearsal.reason}))
        return rehearsal

    def change(self, identity: str, make: Callable[[Rehearsal], Rehearsal],
               event: tuple[str, str, dict[str, Json]] | None = None) -> Rehearsal | None:
        """Changes one as it stands; ``make`` may be asked again, and raises to refuse. Returns it as it is then; None
        when there is none of that name. The event is noted where something changed."""
        result: Rehearsal | None = None

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            nonlocal result
            if identity not in rows:
                return None
            before = Rehearsal.model_validate(rows[identity])
            result = make(before)
            return None if result == before else {identity: _row(result)}

        self._table.update(change, event=event)
        return result

    def cancel(self, identity: str, word: Word) -> Rehearsal | None:
        """Has one end; one that nobody has taken yet is over at once. Returns it as it is then, unchanged where it is
        over or was cancelled already; None when there is none of that name."""
        before = self._there()

        def cancelled(rehearsal: Rehearsal) -> Rehearsal:
            seen = _seen(rehearsal, before | self._there())
            if seen.over or seen.cancel:
                return seen
            if seen.state is RehearsalState.WAITING:
                return seen.model_copy(update={"cancel": word, "state": RehearsalState.CANCELLED, "ended_at": word.at})
            return seen.model_copy(update={"cancel": word})

        return self.change(identity, cancelled, (word.who, "rehearsal.cancelled", {
            "rehearsal": identity, "reason": word.reason}))

    def settle(self) -> None:
        """Writes down as abandoned what nobody carries out any more; for whoever comes to take requests."""
        before = self._there()

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            # Nor does anybody take what was asked of the one before.
            there = (before | self._there()) - {TAKER}
            known = (_seen(Rehearsal.model_validate(row), there) for row in rows.values())
            left = {r.id: _row(r) for r in known if r.state is RehearsalState.ABANDONED and rows[r.id] != _row(r)}
            return left or None

        self._table.update(change)

    def announce(self, rehearser: Rehearser) -> None:
        """Says who takes requests, for some seconds."""
        self._redis.set(self._keys.rehearser, rehearser.model_dump_json(), px=LEASE_MS)

    def withdraw(self) -> None:
        """Nobody takes requests any more."""
        self._redis.delete(self._keys.rehearser)

    def hold(self, identity: str) -> bool:
        """Says that a rehearsal is being carried out, for some seconds. Returns whether it is the only one."""
        key = self._keys.rehearsing
        if self._redis.set(key, identity, px=LEASE_MS, nx=True):
            return True
        holder: Any = self._redis.get(key)
        if (holder or b"").decode() != identity:
            return False
        self._redis.set(key, identity, px=LEASE_MS)
        return True

    def release(self, identity: str) -> None:
        """It is carried out no more."""
        holder: Any = self._redis.get(self._keys.rehearsing)
        if (holder or b"").decode() == identity:
            self._redis.delete(self._keys.rehearsing)


def _seen(rehearsal: Rehearsal, there: frozenset[str]) -> Rehearsal:
    """A rehearsal as it is: abandoned where nobody carries it out, or would take it."""
    waits = rehearsal.state is RehearsalState.WAITING
    if rehearsal.over or rehearsal.id in there or (waits and TAKER in there):
        return rehearsal
    error = "nobody has taken it: the process that was to has ended" if waits else LEFT
    return rehearsal.model_copy(update={"state": RehearsalState.ABANDONED, "error": error, "ended_at": None})
