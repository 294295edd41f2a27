"""Rehearsals of plans: their requests, progress and results in the run's state.

A rehearsal is a fork of the run that learns separately (five.rehearsal), which needs a machine with the run's folder.
The controller only stores the request. The process that holds the run on one machine carries it out and reports its
progress here, and so does `five surgery rehearse`. Two keys that expire identify the processes: `Keys.rehearser` the
worker that accepts requests, and `Keys.rehearsing` the rehearsal in progress. A rehearsal without a process is
abandoned, and is shown as such even before that is stored.
"""

import json
import secrets
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.operations.document import OperatorDecision
from rapid.store.keys import Keys
from rapid.store.state import Json, RunState
from rapid.store.transaction import transaction

TABLE = "rehearsals"
MAX_RECORDS = 20
LEASE_MS = 15_000
MAX_VERSIONS, MAX_GAMES, MAX_MINUTES = 100_000, 10_000, 7 * 24 * 60


class RehearsalState(StrEnum):
    """Progress of a rehearsal."""

    WAITING = "waiting"  # no worker has accepted it yet
    PREPARING = "preparing"  # the fork is being created
    WARMING = "warming"
    LEARNING = "learning"
    PLAYING = "playing"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"  # its process, or the worker that should have accepted it, has ended


OPEN = frozenset({RehearsalState.WAITING, RehearsalState.PREPARING, RehearsalState.WARMING, RehearsalState.LEARNING,
                  RehearsalState.PLAYING})
WORKER = "*"  # in a set of holders: a worker accepts requests
HOLDER_DIED = "its process has ended unexpectedly: request it again"
WORKER_EXAMPLE: Json = {"host": "workstation", "pid": 4711}
EXAMPLE: Json = {
    "id": "rehearsal-20260101-121500-a1b2c3", "plan": "name: wider\nsteps: []\n", "digest": "4c0e2f1a" * 8,
    "name": "wider", "epoch": 1, "who": "ada", "by": "run", "reason": "", "asked_at": 1760000000.0,
    "scope": {"versions": 10, "games": 100, "minutes": 60.0}, "state": "done", "began_at": 1760000001.0,
    "ended_at": 1760001801.0, "fork": "laptop-wider", "first": 812, "warm": 817, "until": 827, "version": 828,
    "played": 100, "cancel": None, "error": "", "result": {
        "won": 51, "drawn": 4, "lost": 45, "score": 0.53, "low": 0.43, "high": 0.63, "worse": False}}


class RehearsalScope(BaseModel):
    """Size of a rehearsal."""

    model_config = ConfigDict(extra="forbid")

    versions: int = Field(10, ge=1, le=MAX_VERSIONS, strict=True, description="Versions to learn after the warm-up.")
    games: int = Field(100, ge=2, le=MAX_GAMES, strict=True, description="Games of the match, half of them on each "
                       "side; odd numbers are rounded up.")
    minutes: float = Field(60.0, gt=0, le=MAX_MINUTES, description="Maximum minutes for learning.")


class RehearsalResult(BaseModel):
    """Result of the match between the fork's last version and the transformed version before the plan."""

    won: int = Field(description="Games won by the fork.")
    drawn: int = Field(description="Games drawn.")
    lost: int = Field(description="Games lost.")
    score: float = Field(description="Mean score, a drawn game counting half.")
    low: float = Field(description="Lower end of the score's 95 % confidence interval, from pairs of games.")
    high: float = Field(description="Upper end of that interval.")
    worse: bool = Field(description="Whether the fork is worse than the version before the plan, with 95 % confidence.")


class Rehearsal(BaseModel):
    """A rehearsal of a plan on a fork of the run."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    id: str = Field(description="Its id.")
    plan: str = Field(description="The plan (YAML).")
    digest: str = Field(description="The plan's digest.")
    name: str = Field(description="The plan's name.")
    epoch: int = Field(description="The run's epoch when it was requested.")
    who: str = Field(description="Name of the requesting token.")
    by: str = Field(description="Executor: run, the process that holds the run on one machine; or command, "
                    "`five surgery rehearse`.")
    reason: str = Field("", description="Reason.")
    asked_at: float = Field(description="When it was requested, seconds since the epoch.")
    scope: RehearsalScope = Field(description="Its size.")
    state: RehearsalState = Field(RehearsalState.WAITING, description="Progress.")
    began_at: float | None = Field(None, description="When it began, seconds since the epoch.")
    ended_at: float | None = Field(None, description="When it ended, seconds since the epoch.")
    fork: str = Field("", description="The fork's name: a separate run next to the run's folder.")
    first: int | None = Field(None, description="The fork's first version.")
    warm: int | None = Field(None, description="The last version of its warm-up.")
    until: int | None = Field(None, description="The last version, which plays the match.")
    version: int | None = Field(None, description="The fork's newest version.")
    played: int = Field(0, description="Finished games of the match.")
    result: RehearsalResult | None = Field(None, description="Result of the match; null until it is done.")
    cancel: OperatorDecision | None = Field(None, description="The decision to cancel; null: none.")
    error: str = Field("", description="Error message.")

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self.state not in OPEN


class RehearsalWorker(BaseModel):
    """The process that accepts requests: the one that holds the run on one machine."""

    model_config = ConfigDict(json_schema_extra={"examples": [WORKER_EXAMPLE]})

    host: str = Field(description="The machine's name.")
    pid: int = Field(description="The process.")


class RehearsalInProgress(RuntimeError):
    """Another rehearsal is in progress; ``rehearsal`` is that one."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self.rehearsal = rehearsal
        super().__init__(f"rehearsal {rehearsal.id} of plan {rehearsal.name!r}, requested by {rehearsal.who}, is "
                         f"{rehearsal.state.value}, and only one can be in progress: wait for it or cancel it")


def new_rehearsal(plan: str, digest: str, name: str, epoch: int, who: str, scope: RehearsalScope,
                  by: str = "run", reason: str = "") -> Rehearsal:
    """Return a rehearsal that is not stored yet."""
    now = time.time()
    identity = f"rehearsal-{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{secrets.token_hex(3)}"
    return Rehearsal(id=identity, plan=plan, digest=digest, name=name, epoch=epoch, who=who, by=by, reason=reason,
                     asked_at=now, scope=scope)


def _row(rehearsal: Rehearsal) -> Json:
    return json.loads(rehearsal.model_dump_json())


class Rehearsals:
    """The rehearsals of one run. Every change is atomic. Methods raise redis.RedisError. Blocking."""

    def __init__(self, state: RunState) -> None:
        self._redis = state.redis
        self._table = state.table(TABLE)
        self._keys: Keys = state.keys

    def all(self) -> list[Rehearsal]:
        """Return the stored rehearsals, newest first. Those without a process are shown as abandoned."""
        before, rows = self._live_holders(), self._table.all()
        holders = before | self._live_holders()
        found = [_effective_state(Rehearsal.model_validate(row), holders) for row in rows.values()]
        return sorted(found, key=lambda r: (r.asked_at, r.id), reverse=True)

    def get(self, identity: str) -> Rehearsal | None:
        """Return a rehearsal by id, or None."""
        before, row = self._live_holders(), self._table.get(identity)
        return None if row is None else _effective_state(Rehearsal.model_validate(row), before | self._live_holders())

    def _live_holders(self) -> frozenset[str]:
        """Return the id of the rehearsal in progress, and WORKER if a worker accepts requests.

        Callers read it before and after a row, because a rehearsal may begin or end in between.
        """
        holder, worker = cast(list[bytes | None], self._redis.mget(self._keys.rehearsing, self._keys.rehearser))
        return frozenset([*([holder.decode()] if holder else []), *([WORKER] if worker else [])])

    def available_worker(self) -> RehearsalWorker | None:
        """Return the worker that accepts requests, or None."""
        text: Any = self._redis.get(self._keys.rehearser)
        return None if text is None else RehearsalWorker.model_validate_json(text)

    def begin(self, rehearsal: Rehearsal, dry_run: bool = False) -> Rehearsal:
        """Store a rehearsal with its event, and mark orphaned ones as abandoned; with ``dry_run`` only check. Raise
        RehearsalInProgress."""
        before = self._live_holders()

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            holders = before | self._live_holders()
            known = [_effective_state(Rehearsal.model_validate(row), holders) for row in rows.values()]
            for other in known:
                if not other.is_over and other.id != rehearsal.id:
                    raise RehearsalInProgress(other)
            if dry_run:
                return None
            known.sort(key=lambda r: (r.asked_at, r.id), reverse=True)
            left = {r.id: _row(r) for r in known if r.state is RehearsalState.ABANDONED}
            return {**left, rehearsal.id: _row(rehearsal), **dict.fromkeys(r.id for r in known[MAX_RECORDS - 1:])}

        self._table.update(change, event=(rehearsal.who, "rehearsal.asked", {
            "rehearsal": rehearsal.id, "plan": rehearsal.name, "digest": rehearsal.digest, "by": rehearsal.by,
            **rehearsal.scope.model_dump(), "reason": rehearsal.reason}))
        return rehearsal

    def change(self, identity: str, make: Callable[[Rehearsal], Rehearsal],
               event: tuple[str, str, dict[str, Json]] | None = None) -> Rehearsal | None:
        """Change a rehearsal; ``make`` may run several times and raises to refuse.

        Return it afterwards, or None if it does not exist. The event is appended if something changed.
        """
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

    def cancel(self, identity: str, decision: OperatorDecision) -> Rehearsal | None:
        """Cancel a rehearsal; a waiting one ends at once.

        Return it afterwards, unchanged if it was over or cancelled already; None if there is none.
        """
        before = self._live_holders()

        def cancelled(rehearsal: Rehearsal) -> Rehearsal:
            seen = _effective_state(rehearsal, before | self._live_holders())
            if seen.is_over or seen.cancel:
                return seen
            if seen.state is RehearsalState.WAITING:
                return seen.model_copy(update={"cancel": decision, "state": RehearsalState.CANCELLED,
                                               "ended_at": decision.at})
            return seen.model_copy(update={"cancel": decision})

        return self.change(identity, cancelled, (decision.who, "rehearsal.cancelled", {
            "rehearsal": identity, "reason": decision.reason}))

    def settle(self) -> None:
        """Store orphaned rehearsals as abandoned; called by a new worker."""
        before = self._live_holders()

        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            # Requests to the previous worker are orphaned as well.
            holders = (before | self._live_holders()) - {WORKER}
            known = (_effective_state(Rehearsal.model_validate(row), holders) for row in rows.values())
            left = {r.id: _row(r) for r in known if r.state is RehearsalState.ABANDONED and rows[r.id] != _row(r)}
            return left or None

        self._table.update(change)

    def announce(self, worker: RehearsalWorker) -> None:
        """Announce a worker for `LEASE_MS`."""
        self._redis.set(self._keys.rehearser, worker.model_dump_json(), px=LEASE_MS)

    def withdraw(self) -> None:
        """Withdraw the worker's announcement."""
        self._redis.delete(self._keys.rehearser)

    def hold(self, identity: str) -> bool:
        """Acquire or renew the lease of the rehearsal in progress. Return whether it is held."""
        key = self._keys.rehearsing

        def acquire(pipeline: Any) -> bool:
            holder = pipeline.get(key)
            pipeline.multi()
            if holder not in (None, identity.encode()):
                return False
            pipeline.set(key, identity, px=LEASE_MS)
            return True

        return bool(transaction(self._redis, self._keys, acquire, key))

    def release(self, identity: str) -> None:
        """Release the lease of a rehearsal, unless another one holds it."""
        key = self._keys.rehearsing

        def delete(pipeline: Any) -> None:
            holder = pipeline.get(key)
            pipeline.multi()
            if holder == identity.encode():
                pipeline.delete(key)

        transaction(self._redis, self._keys, delete, key)


def _effective_state(rehearsal: Rehearsal, holders: frozenset[str]) -> Rehearsal:
    """Return the rehearsal's effective state: abandoned if no process carries it out or would accept it."""
    waits = rehearsal.state is RehearsalState.WAITING
    if rehearsal.is_over or rehearsal.id in holders or (waits and WORKER in holders):
        return rehearsal
    error = "no worker has accepted it: the worker has ended" if waits else HOLDER_DIED
    return rehearsal.model_copy(update={"state": RehearsalState.ABANDONED, "error": error, "ended_at": None})
