"""State of a run: status, documents (configuration, schedules), counters and tables.

Every decision goes into the event stream in the same transaction as its change.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

import redis

from rapid.blobs import Ref
from rapid.store import idle
from rapid.store.errors import FencedOut, IllegalTransition
from rapid.store.events import Events, event_fields
from rapid.store.fencing import Command, FencingToken, fenced_out, fenced_write
from rapid.store.head_version import HeadVersion, StagedVersion
from rapid.store.idle import IdleReport, PauseStart, begin_pause
from rapid.store.keys import Keys
from rapid.store.leases import Instance, Lease, Leases
from rapid.store.lineage import Lineage, new_segment, read_lineage
from rapid.store.record import RunRecord
from rapid.store.rows import decode_row, read_json
from rapid.store.tables import Table
from rapid.store.transaction import transaction

Json = Any


class Status(StrEnum):
    """Status of a run."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    OPERATING = "operating"  # surgery
    WARMING = "warming"  # after surgery: games are played and the learning rate is 0 while Adam's moments settle
    STOPPING = "stopping"
    STOPPED = "stopped"  # all services have ended or wait for the run to be resumed
    FAILED = "failed"


TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.STARTING: frozenset({Status.RUNNING, Status.STOPPING, Status.FAILED}),
    Status.RUNNING: frozenset({Status.PAUSING, Status.STOPPING, Status.FAILED}),
    Status.PAUSING: frozenset({Status.PAUSED, Status.RUNNING, Status.STOPPING, Status.FAILED}),
    Status.PAUSED: frozenset({Status.RUNNING, Status.OPERATING, Status.STOPPING, Status.FAILED}),
    Status.OPERATING: frozenset({Status.WARMING, Status.PAUSED, Status.STOPPING, Status.FAILED}),
    Status.WARMING: frozenset({Status.RUNNING, Status.PAUSING, Status.STOPPING, Status.FAILED}),
    # A stopped or failed run can be restarted.
    Status.STOPPING: frozenset({Status.STOPPED, Status.STARTING, Status.FAILED}),
    Status.STOPPED: frozenset({Status.STARTING, Status.FAILED}),
    Status.FAILED: frozenset({Status.STARTING, Status.STOPPING}),
}

# In these statuses services play and learn; in the others they idle.
ACTIVE = frozenset({Status.RUNNING, Status.WARMING})
# In these a pause holds: services that play or learn become idle and acknowledge it.
PAUSE_HOLDS = frozenset({Status.PAUSING, Status.PAUSED, Status.OPERATING})
# In these the run has ended until it is started again.
ENDED = frozenset({Status.STOPPING, Status.STOPPED, Status.FAILED})


class RunStatus(NamedTuple):
    """A run's status with its time (seconds since 1970), author and reason. ``pause`` counts the run's pauses."""

    status: Status
    since: float
    who: str
    reason: str
    pause: int = 0


class RunSnapshot(NamedTuple):
    """Status and record of a run, read together; None if missing."""

    status: RunStatus | None
    record: RunRecord | None


IDENTITY = "id"  # document with the run's unique id


def new_identity() -> str:
    """Return an id for a new run, which YAML does not take for a number."""
    return f"run-{secrets.token_hex(8)}"


class RunState:
    """State of one run in Redis. Blocking; safe to share between threads.

    ``writer`` is the kind of service that appends events.
    """

    def __init__(self, state: redis.Redis, run: str, writer: str = "") -> None:
        self.redis = state
        self.run = run
        self.keys = Keys(run)
        self.events = Events(state, run, writer)

    # Services.

    def lease(self, kind: str, identity: str, ttl_seconds: float, address: str = "",
              metrics_address: str = "") -> Lease:
        """Return a lease for a service instance. It starts with its first ``renew``."""
        return Lease(self.redis, self.run, kind, identity, ttl_seconds, address, metrics_address)

    def services(self, kind: str | None = None) -> list[Instance]:
        """Return the live instances, of one kind or of all."""
        return Leases(self.redis, self.run).live(kind)

    # Status.

    def exists(self) -> bool:
        """Return whether the run was ever created."""
        return bool(self.redis.exists(self.keys.status))

    def create(self, config: Mapping[str, Json], who: str, record: RunRecord | None = None) -> bool:
        """Create the run in status ``starting`` with its configuration and record. Return False for an existing run.

        The default record holds the configuration's game and model.
        """
        first = record or RunRecord(game=config.get("game", {}), model=config.get("model", {}))

        def change(pipeline: Any) -> bool:
            if pipeline.exists(self.keys.status):
                return False
            pipeline.multi()
            self._put_status(pipeline, RunStatus(Status.STARTING, time.time(), who, "created"))
            pipeline.hset(self.keys.documents, "config", json.dumps(config, allow_nan=False))
            pipeline.hset(self.keys.documents, IDENTITY, json.dumps(new_identity()))
            pipeline.set(self.keys.record, first.to_json())
            pipeline.hset(self.keys.lineage, "0", new_segment(0, first, "run.created", who).to_json())
            self._event(pipeline, who, "run.created", {"epoch": first.epoch, "layout": first.layout})
            return True

        return bool(transaction(self.redis, self.keys, change, self.keys.status))

    def identity(self) -> str | None:
        """Return the unique id that tells this run from others of its name; None for a run of an earlier release."""
        found = self.document(IDENTITY)
        return None if found is None else str(found)

    def ensure_identity(self) -> None:
        """Give a run of an earlier release its id."""
        def change(pipeline: Any) -> None:
            if not pipeline.hexists(self.keys.documents, IDENTITY):
                pipeline.multi()
                pipeline.hset(self.keys.documents, IDENTITY, json.dumps(new_identity()))

        transaction(self.redis, self.keys, change, self.keys.documents)

    def status(self) -> RunStatus | None:
        """Return the run's status; None when there is no such run."""
        text: Any = self.redis.get(self.keys.status)
        return None if text is None else _status(text)

    def snapshot(self) -> RunSnapshot:
        """Return the run's status and record of one moment."""
        status, record = cast(list[Any], self.redis.mget(self.keys.status, self.keys.record))
        return RunSnapshot(None if status is None else _status(status),
                           None if record is None else RunRecord.from_json(record))

    def transition(self, to: Status | str, who: str, reason: str = "", epoch: int | None = None,
                   dry_run: bool = False) -> RunStatus:
        """Change the run's status and append an event. A run that has the status already stays unchanged.

        ``dry_run`` only returns the result. ``epoch`` is the epoch in which the change was decided, if that matters.
        Raises IllegalTransition naming the possible statuses, also when the run does not exist, and FencedOut when the
        run is in another epoch.
        """
        try:
            target = Status(to)
        except ValueError:
            raise IllegalTransition(f"{to!r} is not a status; use one of {', '.join(Status)}") from None
        if not who:
            raise ValueError("a transition needs its author (who)")

        def change(pipeline: Any) -> RunStatus:
            text, record = pipeline.mget(self.keys.status, self.keys.record)
            if text is None:
                raise IllegalTransition(f"run {self.run!r} does not exist")
            if epoch is not None and epoch != self._epoch(record):
                raise fenced_out(self.run, "epoch", FencingToken(who, epoch, None), f"going to {target}")
            now = _status(text)
            if now.status is target:
                pipeline.multi()
                return now
            if target not in TRANSITIONS[now.status]:
                possible = ", ".join(s for s in Status if s in TRANSITIONS[now.status])
                raise IllegalTransition(f"run {self.run!r} is {now.status}: it cannot go to {target}, only to "
                                        f"{possible}")
            pause = now.pause + (target is Status.PAUSING)
            result = RunStatus(target, time.time(), who, reason, pause)
            what, details = "run." + target, {"from": now.status, "reason": reason}
            if target is Status.PAUSING and not dry_run:
                start = PauseStart(text, record, json.dumps(result._asdict()), target, pause,
                                   event_fields(who, what, details))
                if not begin_pause(self.redis, self.keys, start):
                    raise redis.WatchError
                return result
            pipeline.multi()
            if dry_run:
                return result
            self._put_status(pipeline, result)
            self._event(pipeline, who, what, details)
            return result

        result: RunStatus = transaction(self.redis, self.keys, change, self.keys.status, self.keys.record)
        return result

    @staticmethod
    def _epoch(record: bytes | None) -> int:
        return 0 if record is None else RunRecord.from_json(record).epoch

    def _put_status(self, pipeline: Any, result: RunStatus) -> RunStatus:
        pipeline.set(self.keys.status, json.dumps(result._asdict()))
        pipeline.publish(self.keys.status_channel, result.status)
        return result

    def idle_report(self) -> IdleReport:
        """Return which instances are idle in the current pause, and which are waited for."""
        return idle.idle_report(self.redis, self.run)

    # The record, and writes under a fencing token.

    def record(self) -> RunRecord | None:
        """Return the run's record; None without a run, or for a run of an earlier release that was not opened yet."""
        text: Any = self.redis.get(self.keys.record)
        return None if text is None else RunRecord.from_json(text)

    def lineage(self) -> Lineage:
        """Return the lineage of the run's versions."""
        return read_lineage(self.redis, self.keys.lineage)

    def adopt_record(self, record: RunRecord, who: str) -> bool:
        """Give a run of an earlier release its record. Return False for a run that has one."""
        def change(pipeline: Any) -> bool:
            if pipeline.exists(self.keys.record):
                return False
            pipeline.multi()
            pipeline.set(self.keys.record, record.to_json())
            pipeline.hset(self.keys.lineage, "0", new_segment(0, record, "record.adopted", who).to_json())
            self._event(pipeline, who, "record.adopted", {"epoch": record.epoch, "layout": record.layout})
            return True

        return bool(transaction(self.redis, self.keys, change, self.keys.record))

    def set_record(self, before: RunRecord, after: RunRecord, who: str, what: str, details: dict[str, Json]) -> None:
        """Replace the record within its epoch, with an event, if it still equals ``before``. Services then restart.

        Raises ValueError when ``after`` is not the next revision, FencedOut when the record has changed meanwhile.
        """
        if after.run_revision != (before.epoch, before.revision + 1):
            raise ValueError(f"the record at {after.run_revision} does not follow {before.run_revision} "
                             "within an epoch")
        text: Any = self.redis.get(self.keys.head)
        segment = new_segment(0 if text is None else HeadVersion.parse(text.decode()).version + 1, after, what, who)
        fenced_write(self.redis, self.keys, FencingToken(who, before.epoch, None),
                     [("SET", self.keys.record, after.to_json()),
                      ("HSET", self.keys.lineage, str(segment.first), segment.to_json()),
                      self.event_command(who, what, {**details, "revision": after.revision})],
                     what, {self.keys.record: self._text_of(before)})

    def _text_of(self, record: RunRecord) -> str:
        """Return the record's stored text, which an earlier release may have formatted otherwise. Raise FencedOut when
        it differs."""
        text: Any = self.redis.get(self.keys.record)
        if text is None or RunRecord.from_json(text) != record:
            raise fenced_out(self.run, "moved", FencingToken("", record.epoch, None),
                             f"changing the record at {record.run_revision}")
        return str(text.decode())

    def fenced_write(self, fencing_token: FencingToken, commands: Sequence[Command], what: str) -> None:
        """Run Redis commands in one step under a fencing token. Raise FencedOut."""
        fenced_write(self.redis, self.keys, fencing_token, commands, what)

    def event_command(self, who: str, what: str, details: dict[str, Json]) -> Command:
        """Return the command that appends an event, for ``fenced_write``."""
        fields = event_fields(who, what, details)
        return ("XADD", self.events.appended_key, "*", *(part for pair in fields.items() for part in pair))

    def cut_over(self, fencing_token: FencingToken, staged: StagedVersion, before: RunRecord, after: RunRecord,
                 to: Status, who: str, details: dict[str, Json], expected: Status = Status.OPERATING,
                 parent: int | None = None, checkpoint: Ref | None = None) -> FencingToken:
        """Begin the next epoch: change head, version record, run record and status, and append an event, in one atomic
        step.

        Returns the token of the new epoch under the same lease. A repeated call changes nothing. ``parent`` is the
        version that the new one continues, if it is not the previous one: a revert, which continues from
        ``checkpoint``. Raises ValueError when ``after`` does not follow ``before`` into the next epoch, FencedOut when
        epoch, lease, record, head or status have changed.
        """
        if after.run_revision != (before.epoch + 1, before.revision + 1) or fencing_token.epoch != before.epoch:
            raise ValueError(f"the record at {after.run_revision} does not follow {before.run_revision} into the epoch "
                             f"after the token's ({fencing_token.epoch})")
        texts: Any = self.redis.mget(self.keys.status, self.keys.record, self.keys.head)
        status, record, head = (None if text is None else text.decode() for text in texts)
        next_token = FencingToken(fencing_token.holder, after.epoch, fencing_token.fence)
        if record == after.to_json() and head == staged.head.text():
            return next_token  # an earlier attempt succeeded, and its response was lost
        now = None if status is None else _status(status)
        behind = head is None or HeadVersion.parse(head).version < staged.version
        if now is None or record is None or now.status is not expected or not behind or (
                RunRecord.from_json(record) != before):
            raise fenced_out(self.run, "moved", fencing_token, f"the cut-over to epoch {after.epoch}")
        then = RunStatus(to, time.time(), who, str(details.get("reason", "")), now.pause)
        segment = new_segment(staged.version, after, "run.cut_over", who, parent, str(details.get("operation", "")),
                              checkpoint)
        commands: list[Command] = [
            ("HSET", self.keys.versions, str(staged.version), staged.record),
            ("SET", self.keys.head, staged.head.text()),
            ("SET", self.keys.record, after.to_json()),
            ("HSET", self.keys.lineage, str(staged.version), segment.to_json()),
            ("SET", self.keys.status, json.dumps(then._asdict())),
            self.event_command(who, "run.cut_over", {
                **details, "epoch": after.epoch, "version": staged.version, "digest": staged.digest, "status": to}),
            ("PUBLISH", self.keys.heads_channel, staged.head.text()),
            ("PUBLISH", self.keys.status_channel, to)]
        try:
            fenced_write(self.redis, self.keys, fencing_token, commands, f"the cut-over to epoch {after.epoch}",
                         {self.keys.status: status, self.keys.record: record, self.keys.head: head})
        except FencedOut:
            if self.record() != after:  # an attempt of an earlier call may have arrived late
                raise
        return next_token

    # Documents: named JSON values, such as "config" and "schedules".

    def document(self, name: str) -> Json:
        """Return a document; None when it was never written."""
        text: Any = self.redis.hget(self.keys.documents, name)
        return None if text is None else read_json(text, f"{self.keys.documents} {name}")

    def set_document(self, name: str, value: Json, who: str) -> None:
        """Write a document and an event with its value."""
        def change(pipeline: Any) -> None:
            pipeline.multi()
            pipeline.hset(self.keys.documents, name, json.dumps(value, allow_nan=False))
            self._event(pipeline, who, f"{name}.set", {"value": value})

        transaction(self.redis, self.keys, change)

    def config(self) -> Json:
        """The run's configuration; None before it is created."""
        return self.document("config")

    def set_config(self, config: Mapping[str, Json], who: str) -> None:
        """Replace the configuration."""
        self.set_document("config", config, who)

    def schedules(self) -> Json:
        """Return the schedules set while the run continues; None: the configuration's are in force."""
        return self.document("schedules")

    # Counters.

    def count(self, name: str) -> int:
        """Increment a counter and return its value. No two callers get the same number, and a number is skipped when
        its reply is lost."""
        return int(self.redis.hincrby(self.keys.counters, name, 1))

    def counters(self) -> dict[str, float]:
        """Return all counters by name."""
        rows: Any = self.redis.hgetall(self.keys.counters)
        return {k.decode(): read_json(v, f"{self.keys.counters} {k.decode()}") for k, v in rows.items()}

    # Tables.

    def table(self, name: str) -> Table:
        """Return a table of JSON values by field, for one part's own state (an opponent pool, ratings)."""
        return Table(self.redis, self.keys, name, self.events.appended_key)

    def _event(self, pipeline: Any, who: str, what: str, details: dict[str, Json]) -> None:
        pipeline.xadd(self.events.appended_key, event_fields(who, what, details))


def _status(text: bytes | str) -> RunStatus:
    return decode_row(text, "the run's status", lambda row: RunStatus(
        Status(row["status"]), float(row["since"]), row["who"], row["reason"], int(row.get("pause", 0))))
