"""The state of a run: its status, documents (configuration, schedules), counters and tables.

Every change that someone decided goes into the event stream in the same transaction as the change itself.
"""

import json
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import redis

from rapid.store.errors import IllegalTransition
from rapid.store.events import Events, event_fields
from rapid.store.keys import Keys
from rapid.store.leases import Instance, Lease, Leases

Json = Any
_TRIES = 100  # of an optimistic transaction that others keep overtaking
ONCE_SECONDS = 7 * 24 * 3600  # how long an update's identity is remembered


class Status(StrEnum):
    """What a run is doing."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    OPERATING = "operating"  # surgery
    WARMING = "warming"  # after surgery: playing, learning rate 0 while moments settle
    STOPPING = "stopping"
    FAILED = "failed"


TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.STARTING: frozenset({Status.RUNNING, Status.STOPPING, Status.FAILED}),
    Status.RUNNING: frozenset({Status.PAUSING, Status.STOPPING, Status.FAILED}),
    Status.PAUSING: frozenset({Status.PAUSED, Status.RUNNING, Status.STOPPING, Status.FAILED}),
    Status.PAUSED: frozenset({Status.RUNNING, Status.OPERATING, Status.STOPPING, Status.FAILED}),
    Status.OPERATING: frozenset({Status.WARMING, Status.PAUSED, Status.STOPPING, Status.FAILED}),
    Status.WARMING: frozenset({Status.RUNNING, Status.PAUSING, Status.STOPPING, Status.FAILED}),
    # A run that was stopped or has failed is started again.
    Status.STOPPING: frozenset({Status.STARTING, Status.FAILED}),
    Status.FAILED: frozenset({Status.STARTING, Status.STOPPING}),
}

# In these statuses services play and learn; in the others they idle.
ACTIVE = frozenset({Status.RUNNING, Status.WARMING})
# In these a run is over until somebody starts it again.
ENDED = frozenset({Status.STOPPING, Status.FAILED})


class RunStatus(NamedTuple):
    """A run's status, since when (seconds since the epoch), who set it and why."""

    status: Status
    since: float
    who: str
    reason: str


class RunState:
    """State of one run in Redis. Blocking; safe to share between threads."""

    def __init__(self, state: redis.Redis, run: str) -> None:
        self.redis = state
        self.run = run
        self.keys = Keys(run)
        self.events = Events(state, run)

    # Services.

    def lease(self, kind: str, identity: str, ttl_seconds: float, address: str = "",
              metrics_address: str = "") -> Lease:
        """A lease for a service instance, on from its first ``renew``."""
        return Lease(self.redis, self.run, kind, identity, ttl_seconds, address, metrics_address)

    def services(self, kind: str | None = None) -> list[Instance]:
        """Instances that are alive, of one kind or of all."""
        return Leases(self.redis, self.run).live(kind)

    # Status.

    def exists(self) -> bool:
        """Whether the run was ever created."""
        return bool(self.redis.exists(self.keys.status))

    def create(self, config: Mapping[str, Json], who: str) -> bool:
        """Makes the run, ``starting``, with its configuration; one that exists is left alone. Returns which."""
        def change(pipeline: Any) -> bool:
            if pipeline.exists(self.keys.status):
                return False
            pipeline.multi()
            self._put_status(pipeline, Status.STARTING, who, "created")
            pipeline.hset(self.keys.documents, "config", json.dumps(config, allow_nan=False))
            self._event(pipeline, who, "run.created", {})
            return True

        return bool(self._transaction(change, self.keys.status))

    def status(self) -> RunStatus | None:
        """The run's status; None when there is no such run."""
        text: Any = self.redis.get(self.keys.status)
        return None if text is None else _status(text)

    def transition(self, to: Status | str, who: str, reason: str = "") -> RunStatus:
        """Brings the run to a status and notes it as an event; a run that is there already stays as it is.

        Raises IllegalTransition naming what is possible, when the run cannot go there or does not exist.
        """
        try:
            target = Status(to)
        except ValueError:
            raise IllegalTransition(f"{to!r} is no status of a run; there are {', '.join(Status)}") from None
        if not who:
            raise ValueError("a transition needs who asks for it")

        def change(pipeline: Any) -> RunStatus:
            text = pipeline.get(self.keys.status)
            if text is None:
                raise IllegalTransition(f"there is no run {self.run!r}")
            now = _status(text)
            if now.status is target:
                pipeline.multi()
                return now
            if target not in TRANSITIONS[now.status]:
                possible = ", ".join(s for s in Status if s in TRANSITIONS[now.status])
                raise IllegalTransition(f"run {self.run!r} is {now.status}: it cannot go to {target}, only to "
                                        f"{possible}")
            pipeline.multi()
            result = self._put_status(pipeline, target, who, reason)
            self._event(pipeline, who, "run." + target, {"from": now.status, "reason": reason})
            return result

        result: RunStatus = self._transaction(change, self.keys.status)
        return result

    def _put_status(self, pipeline: Any, status: Status, who: str, reason: str) -> RunStatus:
        result = RunStatus(status, time.time(), who, reason)
        pipeline.set(self.keys.status, json.dumps(result._asdict()))
        pipeline.publish(self.keys.status_channel, status)
        return result

    # Documents: JSON values with a name, of which "config" and "schedules" are two.

    def document(self, name: str) -> Json:
        """A document; None when it was never written."""
        text: Any = self.redis.hget(self.keys.documents, name)
        return None if text is None else json.loads(text)

    def set_document(self, name: str, value: Json, who: str) -> None:
        """Writes a document and an event that holds it."""
        pipeline: Any = self.redis.pipeline(transaction=True)
        pipeline.hset(self.keys.documents, name, json.dumps(value, allow_nan=False))
        self._event(pipeline, who, f"{name}.set", {"value": value})
        pipeline.execute()

    def config(self) -> Json:
        """The run's configuration; None before it is created."""
        return self.document("config")

    def set_config(self, config: Mapping[str, Json], who: str) -> None:
        """Replaces the configuration."""
        self.set_document("config", config, who)

    def schedules(self) -> Json:
        """Schedules that were set while the run went on; None: the configuration's hold."""
        return self.document("schedules")

    def set_schedules(self, schedules: Mapping[str, Json], who: str) -> None:
        """Replaces the schedules."""
        self.set_document("schedules", schedules, who)

    # Counters.

    def add(self, **amounts: float) -> None:
        """Adds to counters; whole numbers stay whole."""
        pipeline: Any = self.redis.pipeline(transaction=True)
        for name, amount in amounts.items():
            if isinstance(amount, int):
                pipeline.hincrby(self.keys.counters, name, amount)
            else:
                pipeline.hincrbyfloat(self.keys.counters, name, amount)
        pipeline.execute()

    def count(self, name: str) -> int:
        """Adds one to a counter and returns what it has become: no two callers get the same number."""
        return int(self.redis.hincrby(self.keys.counters, name, 1))

    def counters(self) -> dict[str, float]:
        """All counters by name."""
        rows: Any = self.redis.hgetall(self.keys.counters)
        return {k.decode(): json.loads(v) for k, v in rows.items()}

    # Tables.

    def table(self, name: str) -> "Table":
        """A table of JSON values by field, for one part's own state (an opponent pool, ratings)."""
        return Table(self, name)

    def _event(self, pipeline: Any, who: str, what: str, details: dict[str, Json]) -> None:
        pipeline.xadd(self.keys.events, event_fields(who, what, details))

    def _transaction(self, change: Callable[[Any], Any], *watched: str) -> Any:
        """Runs ``change`` (reads, then multi, then writes) until nobody changed the watched keys meanwhile."""
        client: Any = self.redis
        with client.pipeline(transaction=True) as pipeline:
            for _ in range(_TRIES):
                try:
                    pipeline.watch(*watched)
                    result = change(pipeline)
                    pipeline.execute()
                    return result
                except redis.WatchError:
                    continue
                finally:
                    pipeline.reset()
        raise redis.RedisError(f"{', '.join(watched)}: others changed it {_TRIES} times in a row")


class Table:
    """Fields of JSON values with atomic updates."""

    def __init__(self, state: RunState, name: str) -> None:
        self._state = state
        self._name = name
        self._key = state.keys.table(name)

    def get(self, field: str) -> Json:
        """A field's value; None when it is not set."""
        text: Any = self._state.redis.hget(self._key, field)
        return None if text is None else json.loads(text)

    def all(self) -> dict[str, Json]:
        """All fields."""
        rows: Any = self._state.redis.hgetall(self._key)
        return {k.decode(): json.loads(v) for k, v in rows.items()}

    def set(self, field: str, value: Json) -> None:
        """Sets a field whatever it was; None removes it."""
        if value is None:
            self._state.redis.hdel(self._key, field)
        else:
            self._state.redis.hset(self._key, field, json.dumps(value, allow_nan=False))

    def compare_and_set(self, field: str, expected: Json, value: Json) -> bool:
        """Sets a field if it still has the expected value (None: is not set). Returns whether it did."""
        def change(rows: dict[str, Json]) -> dict[str, Json] | None:
            return {field: value} if rows.get(field) == expected else None

        return self.update(change)

    def seen(self, identity: str) -> bool:
        """Whether an update with ``once=identity`` was applied (in the last week)."""
        return bool(self._state.redis.exists(self._state.keys.once(self._name, identity)))

    def update(self, change: Callable[[dict[str, Json]], dict[str, Json] | None], once: str = "",
               event: "tuple[str, str, dict[str, Json]] | None" = None) -> bool:
        """Reads all fields, and writes what ``change`` makes of them as one atomic step.

        ``change`` gets all fields and returns those to set (None as a value removes one), or None to leave the table;
        it may be called again when another writer was faster. With ``once`` the update is applied at most once for
        that identity. ``event`` (who, what, details) is noted with it. Returns whether anything was applied.
        """
        state = self._state
        mark = state.keys.once(self._name, once)

        def attempt(pipeline: Any) -> bool:
            if once and pipeline.exists(mark):
                pipeline.multi()
                return False
            rows = {k.decode(): json.loads(v) for k, v in pipeline.hgetall(self._key).items()}
            changed = change(rows)
            pipeline.multi()
            if changed is None:
                return False
            for field, value in changed.items():
                if value is None:
                    pipeline.hdel(self._key, field)
                else:
                    pipeline.hset(self._key, field, json.dumps(value, allow_nan=False))
            if once:
                pipeline.set(mark, "1", ex=ONCE_SECONDS)
            if event:
                state._event(pipeline, *event)
            return True

        return bool(state._transaction(attempt, self._key, mark))


def _status(text: bytes) -> RunStatus:
    row = json.loads(text)
    return RunStatus(Status(row["status"]), float(row["since"]), row["who"], row["reason"])
