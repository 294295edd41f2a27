"""The state of a run: its status, documents (configuration, schedules), counters and tables.

Every change that someone decided goes into the event stream in the same transaction as the change itself.
"""

import json
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

import redis

from rapid.store import idle
from rapid.store.errors import FencedOut, IllegalTransition
from rapid.store.events import Events, event_fields
from rapid.store.fencing import Command, FencingToken, fenced_out, fenced_write
from rapid.store.head_version import HeadVersion, StagedVersion
from rapid.store.idle import ENROL, IdleReport
from rapid.store.keys import Keys
from rapid.store.leases import Instance, Lease, Leases
from rapid.store.lineage import Lineage, new_segment, read_lineage
from rapid.store.record import RunRecord
from rapid.store.tables import Table, transaction

Json = Any


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
# In these a pause holds: whoever plays or learns comes to rest and says so.
PAUSE_HOLDS = frozenset({Status.PAUSING, Status.PAUSED, Status.OPERATING})
# In these a run is over until somebody starts it again.
ENDED = frozenset({Status.STOPPING, Status.FAILED})


class RunStatus(NamedTuple):
    """A run's status, since when (seconds since the epoch), who set it and why. ``pause`` counts how often the run was
    asked to pause."""

    status: Status
    since: float
    who: str
    reason: str
    pause: int = 0


class RunSnapshot(NamedTuple):
    """What services follow: the run's status and its record, read together. None: there is none."""

    status: RunStatus | None
    record: RunRecord | None


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

    def create(self, config: Mapping[str, Json], who: str, record: RunRecord | None = None) -> bool:
        """Makes the run, ``starting``, with its configuration and its record (without one: what the configuration's
        game and model are); one that exists is left alone. Returns which."""
        first = record or RunRecord(game=config.get("game", {}), model=config.get("model", {}))

        def change(pipeline: Any) -> bool:
            if pipeline.exists(self.keys.status):
                return False
            pipeline.multi()
            self._put_status(pipeline, RunStatus(Status.STARTING, time.time(), who, "created"))
            pipeline.hset(self.keys.documents, "config", json.dumps(config, allow_nan=False))
            pipeline.set(self.keys.record, first.to_json())
            pipeline.hset(self.keys.lineage, "0", new_segment(0, first, "run.created", who).to_json())
            self._event(pipeline, who, "run.created", {"epoch": first.epoch, "layout": first.layout})
            return True

        return bool(transaction(self.redis, change, self.keys.status))

    def status(self) -> RunStatus | None:
        """The run's status; None when there is no such run."""
        text: Any = self.redis.get(self.keys.status)
        return None if text is None else _status(text)

    def snapshot(self) -> RunSnapshot:
        """The run's status and record as they are at one moment."""
        status, record = cast(list[Any], self.redis.mget(self.keys.status, self.keys.record))
        return RunSnapshot(None if status is None else _status(status),
                        None if record is None else RunRecord.from_json(record))

    def transition(self, to: Status | str, who: str, reason: str = "", epoch: int | None = None,
                   dry_run: bool = False) -> RunStatus:
        """Brings the run to a status and notes it as an event; a run that is there already stays as it is. ``dry_run``
        only says what it would be.

        ``epoch`` is the one in which it was decided, if that matters. Raises IllegalTransition naming what is possible,
        when the run cannot go there or does not exist, FencedOut when it is in another epoch.
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
            if epoch is not None and epoch != self._epoch(pipeline.get(self.keys.record)):
                raise fenced_out(self.run, "epoch", FencingToken(who, epoch, None), f"going to {target}")
            now = _status(text)
            if now.status is target:
                pipeline.multi()
                return now
            if target not in TRANSITIONS[now.status]:
                possible = ", ".join(s for s in Status if s in TRANSITIONS[now.status])
                raise IllegalTransition(f"run {self.run!r} is {now.status}: it cannot go to {target}, only to "
                                        f"{possible}")
            pipeline.multi()
            pause = now.pause + (target is Status.PAUSING)
            result = RunStatus(target, time.time(), who, reason, pause)
            if dry_run:
                return result
            self._put_status(pipeline, result)
            if target is Status.PAUSING:
                pipeline.eval(ENROL, 2, *idle.enrol_arguments(self.keys, pause))
            self._event(pipeline, who, "run." + target, {"from": now.status, "reason": reason})
            return result

        result: RunStatus = transaction(self.redis, change, self.keys.status, self.keys.record)
        return result

    @staticmethod
    def _epoch(record: bytes | None) -> int:
        return 0 if record is None else RunRecord.from_json(record).epoch

    def _put_status(self, pipeline: Any, result: RunStatus) -> RunStatus:
        pipeline.set(self.keys.status, json.dumps(result._asdict()))
        pipeline.publish(self.keys.status_channel, result.status)
        return result

    def idle_report(self) -> IdleReport:
        """Who has come to rest in the present pause, and who is waited for."""
        return idle.idle_report(self.redis, self.run)

    # The record, and writing under an authority.

    def record(self) -> RunRecord | None:
        """The run's record; None when there is no run, or one of an earlier release that nobody has opened yet."""
        text: Any = self.redis.get(self.keys.record)
        return None if text is None else RunRecord.from_json(text)

    def lineage(self) -> Lineage:
        """Which versions came of which, and what each was made under."""
        return read_lineage(self.redis, self.keys.lineage)

    def adopt_record(self, record: RunRecord, who: str) -> bool:
        """Gives a run of an earlier release its record; one that has its own is left alone. Returns which."""
        def change(pipeline: Any) -> bool:
            if pipeline.exists(self.keys.record):
                return False
            pipeline.multi()
            pipeline.set(self.keys.record, record.to_json())
            pipeline.hset(self.keys.lineage, "0", new_segment(0, record, "record.adopted", who).to_json())
            self._event(pipeline, who, "record.adopted", {"epoch": record.epoch, "layout": record.layout})
            return True

        return bool(transaction(self.redis, change, self.keys.record))

    def set_record(self, before: RunRecord, after: RunRecord, who: str, what: str, details: dict[str, Json]) -> None:
        """Replaces the record within its epoch, with an event, if it is still ``before``. Services renew themselves.

        Raises ValueError when ``after`` is no next revision, FencedOut when the record has changed meanwhile.
        """
        if after.run_revision != (before.epoch, before.revision + 1):
            raise ValueError(f"the record at {after.run_revision} does not follow {before.run_revision} within an epoch")
        text: Any = self.redis.get(self.keys.head)
        stretch = new_segment(0 if text is None else HeadVersion.parse(text.decode()).version + 1, after, what, who)
        fenced_write(self.redis, self.keys, FencingToken(who, before.epoch, None),
              [("SET", self.keys.record, after.to_json()),
               ("HSET", self.keys.lineage, str(stretch.first), stretch.to_json()),
               self.event_command(who, what, {**details, "revision": after.revision})],
              what, {self.keys.record: self._text_of(before)})

    def _text_of(self, record: RunRecord) -> str:
        """The record as it is stored (an earlier release may have written it otherwise). Raises FencedOut when it is
        another one."""
        text: Any = self.redis.get(self.keys.record)
        if text is None or RunRecord.from_json(text) != record:
            raise fenced_out(self.run, "moved", FencingToken("", record.epoch, None), f"changing the record at {record.run_revision}")
        return str(text.decode())

    def fenced_write(self, authority: FencingToken, commands: Sequence[Command], what: str) -> None:
        """Runs Redis commands as one step under an authority. Raises FencedOut."""
        fenced_write(self.redis, self.keys, authority, commands, what)

    def event_command(self, who: str, what: str, details: dict[str, Json]) -> Command:
        """The command that notes an event, for ``fenced_write``."""
        fields = event_fields(who, what, details)
        return ("XADD", self.keys.events, "*", *(part for pair in fields.items() for part in pair))

    def cut_over(self, authority: FencingToken, staged: StagedVersion, before: RunRecord, after: RunRecord, to: Status, who: str,
                 details: dict[str, Json], expected: Status = Status.OPERATING, parent: int | None = None
                 ) -> FencingToken:
        """Begins the next epoch: head, version record, run record, status and an event change in one step in Redis, or
        nothing does. Returns the authority of the new epoch under the same lease. Repeating it changes nothing.

        ``parent`` is the version that the new one continues, where it is not the one before: a revert.
        Raises ValueError when ``after`` does not follow ``before`` into the next epoch, FencedOut when epoch, lease,
        record, head or status are no longer what it was decided on.
        """
        if after.run_revision != (before.epoch + 1, before.revision + 1) or authority.epoch != before.epoch:
            raise ValueError(f"the record at {after.run_revision} does not follow {before.run_revision} into the epoch after the token's "
                             f"({authority.epoch})")
        texts: Any = self.redis.mget(self.keys.status, self.keys.record, self.keys.head)
        status, record, head = (None if text is None else text.decode() for text in texts)
        next_authority = FencingToken(authority.holder, after.epoch, authority.fence)
        if record == after.to_json() and head == staged.head.text():
            return next_authority  # an earlier try went through, and its answer was lost
        now = None if status is None else _status(status)
        behind = head is None or HeadVersion.parse(head).version < staged.version
        if now is None or record is None or now.status is not expected or not behind or (
                RunRecord.from_json(record) != before):
            raise fenced_out(self.run, "moved", authority, f"the cut-over to epoch {after.epoch}")
        then = RunStatus(to, time.time(), who, str(details.get("reason", "")), now.pause)
        stretch = new_segment(staged.version, after, "run.cut_over", who, parent, str(details.get("operation", "")))
        commands: list[Command] = [
            ("HSET", self.keys.versions, str(staged.version), staged.record),
            ("SET", self.keys.head, staged.head.text()),
            ("SET", self.keys.record, after.to_json()),
            ("HSET", self.keys.lineage, str(staged.version), stretch.to_json()),
            ("SET", self.keys.status, json.dumps(then._asdict())),
            self.event_command(who, "run.cut_over", {
                **details, "epoch": after.epoch, "version": staged.version, "digest": staged.digest, "status": to}),
            ("PUBLISH", self.keys.heads_channel, staged.head.text()),
            ("PUBLISH", self.keys.status_channel, to)]
        try:
            fenced_write(self.redis, self.keys, authority, commands, f"the cut-over to epoch {after.epoch}",
                  {self.keys.status: status, self.keys.record: record, self.keys.head: head})
        except FencedOut:
            if self.record() != after:  # the same try, sent again by the connection, finds what it has done
                raise
        return next_authority

    # Documents: JSON values with a name, of which "config" and "schedules" are two.

    def document(self, name: str) -> Json:
        """A document; None when it was never written."""
        text: Any = self.redis.hget(self.keys.documents, name)
        return None if text is None else json.loads(text)

    def set_document(self, name: str, value: Json, who: str, authority: FencingToken | None = None) -> None:
        """Writes a document and an event that holds it; with an authority only if that holds, else FencedOut."""
        if authority is not None:
            self.fenced_write(authority, [("HSET", self.keys.documents, name, json.dumps(value, allow_nan=False)),
                                   self.event_command(who, f"{name}.set", {"value": value})], f"document {name}")
            return
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

    def table(self, name: str) -> Table:
        """A table of JSON values by field, for one part's own state (an opponent pool, ratings)."""
        return Table(self.redis, self.keys, name)

    def _event(self, pipeline: Any, who: str, what: str, details: dict[str, Json]) -> None:
        pipeline.xadd(self.keys.events, event_fields(who, what, details))


def _status(text: bytes | str) -> RunStatus:
    row = json.loads(text)
    return RunStatus(Status(row["status"]), float(row["since"]), row["who"], row["reason"], int(row.get("pause", 0)))
