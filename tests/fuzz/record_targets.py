"""Targets of rows in Redis: JSON that other processes of the run wrote.

Rows are written to a real Redis and read by the store's own methods. A damaged row is refused as Corrupt or ValueError,
which readers handle; an unexpected exception would end a process.
"""

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import redis

from five.services.controller.console.sessions import _read as read_session
from five.services.controller.console.sessions import _row as session_row
from five.services.controller.http.idempotency import IdempotencyStore, StoredResponse, fingerprint
from five.services.controller.http.middleware import require_unicode
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import Role
from rapid.blobs import BlobStore, Ref
from rapid.config import StoreConfig
from rapid.store import events, fencing, lineage, series, state
from rapid.store.anneal import AnnealStore
from rapid.store.archive import parse_record
from rapid.store.blob_owner import BlobsOwned, claim_blobs
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.errors import Corrupt
from rapid.store.event_merger import checked_event
from rapid.store.faults import read_faults
from rapid.store.head_version import HeadVersion, HeadWatcher
from rapid.store.keys import Keys
from rapid.store.leases import Instance, Leases
from rapid.store.live_channel import LiveChannel
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.rendezvous import GroupRendezvous
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.schedules import ScheduleStore
from tests.fuzz.mutators import mutate_json
from tests.fuzz.service_targets import redis_url
from tests.fuzz.targets import Target, memory_folder

RUN = "rows"
DAMAGED = (ValueError, Corrupt)
RECORD = RunRecord(epoch=2, revision=3, game={"patch": "7.21d"}, model={"lstm": 8}, layout="a" * 16, chain=("b" * 64,))


@functools.cache
def client() -> redis.Redis:
    """Return the client of a Redis that ends with this process."""
    return redis.Redis.from_url(redis_url())


@functools.cache
def run_state() -> state.RunState:
    """Return the state of a run that exists."""
    return state.RunState(client(), RUN)


KEYS = Keys(RUN)
EMPTY_FOLDER = functools.cache(memory_folder)


def _text(value: Any) -> bytes:
    return json.dumps(value).encode()


def json_target(name: str, decode: Callable[[bytes], object], *valid: Any, decoders: tuple[str, ...] = (),
                refuses: tuple[type[BaseException], ...] = DAMAGED) -> Target:
    """Return a target of JSON text; ``valid`` are values or texts."""
    texts = [v if isinstance(v, bytes) else v.encode() if isinstance(v, str) else _text(v) for v in valid]
    return Target(name, "wire", decode, lambda: texts, refuses, decoders, mutate=mutate_json)


def same(value: Any, again: Any) -> None:
    """Require that a value equals its decoded encoding."""
    assert value == again, "a value changes when it is encoded again"


def run_record(data: bytes) -> None:
    """Decode a run's record; an accepted one survives encoding."""
    record = RunRecord.from_json(data)
    same(RunRecord.from_json(record.to_json()).to_json(), record.to_json())


def segment(data: bytes) -> None:
    """Decode a segment of the lineage; an accepted one survives encoding."""
    found = lineage.LineageSegment.of(5, data)
    same(lineage.LineageSegment.of(5, found.to_json()).to_json(), found.to_json())
    read = lineage.Lineage.read({b"5": data, b"0": data})
    try:
        read.ancestry(9)
    except ValueError:
        pass


def head(data: bytes) -> None:
    """Decode a head pointer, and read it with the record of an earlier release."""
    found = HeadVersion.parse(data)
    assert HeadVersion.parse(found.text()) == found
    client().set(KEYS.head, data)
    HeadWatcher(client(), KEYS).head()


def _hash(key: str, field: str, read: Callable[[], object]) -> Callable[[bytes], object]:
    def decode(data: bytes) -> None:
        client().delete(key)
        client().hset(key, field, data)  # type: ignore[arg-type]
        read()
    return decode


def _value(key: str, read: Callable[[], object]) -> Callable[[bytes], object]:
    def decode(data: bytes) -> None:
        client().set(key, data)
        try:
            read()
        finally:
            client().delete(key)
    return decode


def lease(data: bytes) -> None:
    """List the live instances with one lease, and the acknowledgements of a pause."""
    key = KEYS.lease("rollout", "0")
    client().set(key, data)
    client().zadd(KEYS.leases("rollout"), {"0": 2.0**40})
    for instance in Leases(client(), RUN).live("rollout"):
        assert (instance.kind, instance.id) == ("rollout", "0")
    run_state().idle_report()


def acknowledgement(data: bytes) -> None:
    """Read an acknowledgement of a pause."""
    _pause()
    client().delete(KEYS.lease("rollout", "0"))
    client().set(KEYS.quiet("rollout", "0"), data)
    client().zadd(KEYS.quiet_names("rollout"), {"0": 1})
    try:
        run_state().idle_report()
    finally:
        client().delete(KEYS.quiet("rollout", "0"), KEYS.status, KEYS.record, KEYS.pause)


def _pause() -> None:
    client().set(KEYS.status, _text({"status": "paused", "since": 1.0, "who": "a", "reason": "", "pause": 2}))
    client().set(KEYS.record, RECORD.to_json())
    client().set(KEYS.pause, _text({"asked_at": 3.0}))


def status(data: bytes) -> None:
    """Read a run's status, alone and for the acknowledgements of its pause."""
    client().set(KEYS.status, data)
    try:
        run_state().snapshot()
        run_state().idle_report()
    finally:
        client().delete(KEYS.status)


def publisher(data: bytes) -> None:
    """Read the publisher's lease, for people and to acquire it."""
    client().set(KEYS.publisher, data)
    client().set(KEYS.record, RECORD.to_json())
    try:
        fencing.publisher_name(client(), RUN)
        fencing.PublisherLease(client(), RUN, "a", 5.0).acquire()
    finally:
        client().delete(KEYS.publisher, KEYS.record)


def rendezvous(data: bytes) -> None:
    """Join a group whose document is given."""
    key = KEYS.rendezvous("group")
    client().set(key, data)
    node = GroupRendezvous(client(), RUN, "group", "node-0", 1, 2, 5.0, 0.0)
    node.begin()
    node.join("localhost", 1)
    node.beat()


def stream_row(kind: str) -> Callable[[bytes], object]:
    """Return a decoder of an entry of the series or the events."""
    def decode(data: bytes) -> None:
        if kind == "events":
            client().delete(KEYS.events)
            client().xadd(KEYS.events, {"who": "a", "what": "b", "details": data})
            events.Events(client(), RUN).last()
        else:
            client().delete(KEYS.series("schedules"))
            client().xadd(KEYS.series("schedules"), {"v": data})
            found = series.Series(client(), RUN).last("schedules")
            assert found is not None
            ScheduleStore(run_state()).find(found.id)
    return decode


def merged_event(data: bytes) -> None:
    """Check an event that a service wrote: whatever it contains, the log gets an event of that service."""
    for fields in ({b"details": data}, {b"who": data, b"what": data, b"details": data}):
        event = checked_event("rollout", b"1-0", fields)
        assert event.who == "rollout" or event.who.startswith("rollout-")
        json.dumps(json.loads(event.details), allow_nan=False, ensure_ascii=False).encode()


def replicated(data: bytes) -> None:
    """Read a replicated table from its hash."""
    client().delete(KEYS.table("pool"))
    client().hset(KEYS.table("pool"), "a", data)  # type: ignore[arg-type]
    ReplicatedTable(run_state(), "pool", lambda rows, whole: None).refresh()


def blob_ref(data: bytes) -> None:
    """Read a name in the blob store."""
    blobs = BlobStore(str(EMPTY_FOLDER()))
    path = EMPTY_FOLDER() / "refs" / "trial" / "name"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    ref = blobs.ref("trial/name")
    assert blobs.ref("trial/name") == Ref(ref.digest, ref.size)


def blob_owner(data: bytes) -> None:
    """Claim blobs with an owner's record."""
    blobs = BlobStore(str(EMPTY_FOLDER()))
    blobs.replace_owner(RUN, data)
    claim_blobs(blobs, RUN, "mine")


def idempotency(data: bytes) -> None:
    """Repeat a request whose stored response is given."""
    store = IdempotencyStore(client(), RUN)
    client().flushdb()
    claim = store.claim("ada", "key", "f")
    client().set(claim.name, data)  # type: ignore[union-attr]
    answer = store.claim("ada", "key", "f")
    assert isinstance(answer, StoredResponse)


def parameters(data: bytes) -> None:
    """Read a version from the parameters in Redis, given its manifest."""
    store = ParameterStore(client(), client(), RUN, StoreConfig(archive_every=0), None)
    client().flushdb()
    store.publish(3, {"w": np.zeros(3, np.float32)}, {"reward_std": 1.0})
    digest = store.record(3).digest  # type: ignore[union-attr]
    client().set(KEYS.manifest(3, digest), data)
    store.fetch(3)
    store.fetch_meta(3)


def _manifest() -> bytes:
    store = ParameterStore(client(), client(), RUN, StoreConfig(archive_every=0), None)
    client().flushdb()
    store.publish(3, {"w": np.zeros(3, np.float32)}, {"reward_std": 1.0})
    found: Any = client().get(KEYS.manifest(3, store.record(3).digest))  # type: ignore[union-attr]
    return bytes(found)


INSTANCE = Instance("rollout", "0", "localhost:1", "", 1.0, 2.0, {"games": 3}, 1, 1, 0, "abc")
BLOB = {"digest": "a" * 64, "size": 3}

TARGETS = [
    json_target("run-record", run_record, RECORD.to_json(), RunRecord().to_json(),
                decoders=("rapid/store/record.py:RunRecord.from_json",)),
    json_target("lineage-segment", segment, lineage.new_segment(5, RECORD, "run.created", "ada").to_json(),
                decoders=("rapid/store/lineage.py:LineageSegment.of",)),
    json_target("head-version", head, b"3:" + b"a" * 64, b"3",
                decoders=("rapid/store/head_version.py:HeadWatcher.head",)),
    json_target("version-record", lambda data: parse_record(3, data),
                {"digest": "a" * 64, "bytes": 12, "created_at": 3.5, "blob": "b" * 64, "blob_bytes": 30,
                 "warming": True}, decoders=("rapid/store/archive.py:parse_record",)),
    Target("parameters-manifest", "wire", parameters, lambda: [_manifest()], (*DAMAGED, LookupError), (
        "rapid/store/redis_contents.py:RedisContents.manifest", "rapid/store/redis_contents.py:RedisContents.read"),
           mutate=mutate_json),
    json_target("checkpoint-row", _hash(KEYS.checkpoints, "3", lambda: CheckpointIndex(client(), RUN).all()),
                {"name": "a", "ref": BLOB, "epoch": 1, "fence": 2, "at": 3.5},
                decoders=("rapid/store/checkpoint_index.py:CheckpointIndex.all",)),
    json_target("lease", lease, INSTANCE._asdict(), decoders=("rapid/store/leases.py:Leases.live",)),
    json_target("acknowledgement", acknowledgement, {"pause": 2, "epoch": 2, "quiet": True, "life": "abc", "at": 3.5},
                {"pause": 2, "quiet": True, "gone": True, "at": 3.5}, decoders=("rapid/store/idle.py:idle_report",)),
    json_target("run-status", status, {"status": "paused", "since": 1.0, "who": "a", "reason": "", "pause": 0},
                decoders=("rapid/store/state.py:_status", "rapid/store/state.py:RunState.snapshot")),
    json_target("publisher-lease", publisher,
                {"holder": "a#b", "process": json.dumps(["", 1, "2", "3"]), "since": 1.0, "released": False,
                 "fence": 1, "until": 9e15}, refuses=(*DAMAGED, redis.RedisError, RuntimeError, LookupError),
                decoders=("rapid/store/fencing.py:PublisherLease.acquire", "rapid/store/fencing.py:publisher_name")),
    json_target("rendezvous", rendezvous,
                {"round": 1, "order": ["node-1"], "members": {}, "waiting": {}, "changed": 3, "host": "localhost",
                 "port": 3}, refuses=(*DAMAGED, redis.RedisError),
                decoders=("rapid/store/rendezvous.py:GroupRendezvous.join",)),
    json_target("series-record", stream_row("series"), {"version": 3, "loss": 0.5},
                decoders=("rapid/store/series.py:_record", "rapid/store/schedules.py:ScheduleStore.find")),
    json_target("event", stream_row("events"), {"reason": "a"}, decoders=("rapid/store/events.py:_event",)),
    json_target("service-event", merged_event, {"reason": "a"}, b"{}", refuses=(),
                decoders=("rapid/store/event_merger.py:_details",)),
    json_target("document", _hash(KEYS.documents, "config", lambda: run_state().document("config")), {"name": "trial"},
                decoders=("rapid/store/state.py:RunState.document",)),
    json_target("counter", _hash(KEYS.counters, "games", lambda: run_state().counters()), b"3", b"2.5",
                decoders=("rapid/store/state.py:RunState.counters",)),
    json_target("faults", _hash(KEYS.documents, "faults", lambda: read_faults(run_state())), {"rollout-0": "exit 1"},
                decoders=("rapid/store/faults.py:read_faults",)),
    json_target("table", _hash(KEYS.table("t"), "a", lambda: run_state().table("t").all()), {"a": [1, 2.5]},
                decoders=("rapid/store/tables.py:Table.parse",)),
    json_target("replicated-table", replicated, [0.5, 3, 2],
                decoders=("rapid/store/replicated_table.py:ReplicatedTable._load",
                          "rapid/store/replicated_table.py:ReplicatedTable._apply")),
    json_target("watched-games", _value(KEYS.watched, lambda: LiveChannel(client(), RUN).watched()),
                {"games": ["ab" * 8], "sources": ["rollout/0"], "headers": []},
                decoders=("rapid/store/live_channel.py:LiveChannel.watched",)),
    json_target("anneal-row", _value(KEYS.anneal, lambda: AnnealStore(run_state()).read()), {"id": "a"},
                decoders=("rapid/store/anneal.py:AnnealStore.read",
                          "rapid/store/anneal.py:AnnealStore.change.attempt")),
    json_target("session", read_session, session_row("a" * 64, Role.VIEWER),
                decoders=("five/services/controller/console/sessions.py:_read",)),
    json_target("idempotency", idempotency,
                {"fingerprint": "f", "status": 200, "headers": [["a", "b"]], "body": "YQ=="},
                refuses=(*DAMAGED, Problem), decoders=(
                    "five/services/controller/http/idempotency.py:IdempotencyStore.claim",)),
    json_target("idempotency-body", lambda data: fingerprint("POST", "/v1/pause", b"", data), {"reason": "a"},
                decoders=("five/services/controller/http/idempotency.py:fingerprint",)),
    json_target("request-body", require_unicode, {"reason": "a"}, r'{"reason": "\ud83d\ude00"}',
                refuses=(Problem,),
                decoders=("five/services/controller/http/middleware.py:require_unicode",)),
    json_target("blob-ref", blob_ref, BLOB, decoders=("rapid/blobs.py:BlobStore.ref",)),
    json_target("blob-owner", blob_owner, {"run_id": "mine", "since": 1.0}, {"run_id": "other", "since": 1.0},
                refuses=(*DAMAGED, BlobsOwned), decoders=("rapid/store/blob_owner.py:claim_blobs",)),
]
