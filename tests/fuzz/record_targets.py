"""Targets of rows and documents in Redis: JSON that other processes of the run wrote.

Rows are written to a real Redis and read by the store's own methods. A damaged row is refused as Corrupt or ValueError,
which readers handle; an unexpected exception would end a process.
"""

import functools
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import redis

from dota.vec_game import STATS
from five.agent.anneal.document import Anneal, AnnealRamp
from five.agent.anneal.guard import Pair
from five.agent.anneal.pair_records import pair_key, pair_to_json, parse_pairs
from five.agent.anneal.variants import Variant
from five.agent.config import LeagueConfig
from five.agent.draft.evidence import DraftEvidence
from five.agent.model.schema import ModelSchema, TensorSpec
from five.agent.standings import FORMAT, FORMAT_ROW, RATED, Standing, parse_standings
from five.agent.surgery import AgentSpec, AppliedMigration, Plan
from five.services.controller.console.sessions import _read as read_session
from five.services.controller.console.sessions import _row as session_row
from five.services.controller.http.idempotency import IdempotencyStore, StoredResponse, fingerprint
from five.services.controller.http.problems import Problem
from five.services.controller.http.tokens import Role
from five.services.controller.operations.document import Operation, OperationKind, OperationRequest, new_operation
from five.services.controller.surgery.rehearsals import RehearsalWorker
from five.services.evaluator import match_progress
from five.services.evaluator.matches import Pairing, TeamPlayer
from five.services.opponents.pool import _league
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
from tests.fuzz.mutators import mutate_json, mutate_yaml
from tests.fuzz.service_targets import redis_url
from tests.fuzz.targets import Target, memory_folder
from tests.services.optimizer_cases import GAME, MODEL

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


def _json(name: str, decode: Callable[[bytes], object], *valid: Any, decoders: tuple[str, ...] = (),
          refuses: tuple[type[BaseException], ...] = DAMAGED) -> Target:
    """Return a target of JSON text; ``valid`` are values or texts."""
    texts = [v if isinstance(v, bytes) else v.encode() if isinstance(v, str) else _text(v) for v in valid]
    return Target(name, "wire", decode, lambda: texts, refuses, decoders, mutate=mutate_json)


def _of_tree(decode: Callable[[Any], object]) -> Callable[[bytes], object]:
    """Return a decoder of JSON values as a decoder of text; only valid JSON reaches it."""
    return lambda data: decode(_parsed(data))


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _same(value: Any, again: Any) -> None:
    assert value == again, "a value changes when it is encoded again"


def run_record(data: bytes) -> None:
    """Decode a run's record; an accepted one survives encoding."""
    record = RunRecord.from_json(data)
    _same(RunRecord.from_json(record.to_json()).to_json(), record.to_json())


def segment(data: bytes) -> None:
    """Decode a segment of the lineage; an accepted one survives encoding."""
    found = lineage.LineageSegment.of(5, data)
    _same(lineage.LineageSegment.of(5, found.to_json()).to_json(), found.to_json())
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


def match_rows(data: bytes) -> None:
    """Load a match's progress from its rows."""
    client().delete(KEYS.table(match_progress.TABLE))
    table = run_state().table(match_progress.TABLE)
    client().hset(KEYS.table(match_progress.TABLE), "m@1:0", data)  # type: ignore[arg-type]
    match_progress.load(table, "m@1", [Pairing(TeamPlayer("a", version=1), TeamPlayer("b", version=2), 0, number=0)])


def evidence(tree: Any) -> None:
    """Decode draft evidence; an accepted one survives encoding."""
    found = DraftEvidence.from_json(tree)
    _same(repr(DraftEvidence.from_json(found.to_json()).to_json()), repr(found.to_json()))
    found.calibration()


def anneal(tree: Any) -> None:
    """Decode an anneal's document; an accepted one survives encoding."""
    found = Anneal.model_validate(tree)
    _same(Anneal.model_validate(json.loads(found.model_dump_json())).model_dump_json(), found.model_dump_json())
    found.share(1000)


def standings(tree: Any) -> None:
    """Decode the rows of the ratings."""
    if isinstance(tree, dict):
        for standing in parse_standings(tree):
            assert standing.games >= 0


def model_schema(data: bytes) -> None:
    """Decode a model's schema; an accepted one survives encoding."""
    found = ModelSchema.from_json(data.decode("utf-8", "replace"))
    assert ModelSchema.from_json(found.to_json()).id == found.id


def agent_spec(data: bytes) -> None:
    """Decode an agent's specification; an accepted one survives encoding."""
    found = AgentSpec.from_json(data.decode("utf-8", "replace"))
    _same(AgentSpec.from_json(found.to_json()).to_json(), found.to_json())


def migration(data: bytes) -> None:
    """Decode an applied plan."""
    AppliedMigration.from_json(data.decode("utf-8", "replace"))


def plan(data: bytes) -> None:
    """Decode a plan and apply it to the specification of a small agent; an accepted one survives encoding."""
    found = Plan.from_yaml(data)
    assert Plan.from_yaml(found.to_yaml()).digest == found.digest
    spec = AgentSpec(GAME, MODEL)
    found.model_copy(update={"parent": spec.schema}).target(spec, 10**7)


def plans() -> list[bytes]:
    """Return plans with several kinds of steps."""
    parent = AgentSpec(GAME, MODEL).schema
    steps = ("{kind: grow_lstm, to: 16}", "{kind: game, values: {max_game_seconds: 900}}",
             "{kind: widen, layer: unit, to: 8}", "{kind: slots, slots: {allied_creeps: 3}}")
    return [f"name: wider\nparent: {parent}\nsteps:\n- {step}\nhold: true\nbounds: {{mean_kl: 0.1}}\n".encode()
            for step in steps]


def applied() -> bytes:
    """Return an applied plan."""
    return AppliedMigration(Plan.from_yaml(plans()[0]), AgentSpec(GAME, MODEL)).to_json().encode()


def operation(tree: Any) -> None:
    """Decode an operation's document."""
    Operation.model_validate(tree)


def _operation() -> Any:
    return json.loads(new_operation("check-1", OperationKind.CHECK, "ada", OperationRequest(name="a"), 1.0, "running"
                                    ).model_dump_json())


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


PAIR = Pair(Variant("old"), 3, 7, 0.5, (1.0, 0.0))
INSTANCE = Instance("rollout", "0", "localhost:1", "", 1.0, 2.0, {"games": 3}, 1, 1, 0, "abc")
STANDING = Standing("version-3", 1.0, 0.5, 1, 0.1, False, 0, {"random": [1, 2, 3]}, {"random": [0.5, 0.4, 0.6]})
BLOB = {"digest": "a" * 64, "size": 3}

TARGETS = [
    _json("run-record", run_record, RECORD.to_json(), RunRecord().to_json(),
          decoders=("rapid/store/record.py:RunRecord.from_json",)),
    _json("lineage-segment", segment, lineage.new_segment(5, RECORD, "run.created", "ada").to_json(),
          decoders=("rapid/store/lineage.py:LineageSegment.of",)),
    _json("head-version", head, b"3:" + b"a" * 64, b"3",
          decoders=("rapid/store/head_version.py:HeadWatcher.head",)),
    _json("version-record", lambda data: parse_record(3, data), {
        "digest": "a" * 64, "bytes": 12, "created_at": 3.5, "blob": "b" * 64, "blob_bytes": 30, "warming": True},
        decoders=("rapid/store/archive.py:parse_record",)),
    Target("parameters-manifest", "wire", parameters, lambda: [_manifest()], (*DAMAGED, LookupError), (
        "rapid/store/parameters.py:ParameterStore._manifest", "rapid/store/parameters.py:ParameterStore._from_redis"),
           mutate=mutate_json),
    _json("checkpoint-row", _hash(KEYS.checkpoints, "3", lambda: CheckpointIndex(client(), RUN).all()),
          {"name": "a", "ref": BLOB, "epoch": 1, "fence": 2, "at": 3.5},
          decoders=("rapid/store/checkpoint_index.py:CheckpointIndex.all",)),
    _json("lease", lease, INSTANCE._asdict(), decoders=("rapid/store/leases.py:Leases.live",)),
    _json("acknowledgement", acknowledgement, {"pause": 2, "epoch": 2, "quiet": True, "life": "abc", "at": 3.5},
          {"pause": 2, "quiet": True, "gone": True, "at": 3.5}, decoders=("rapid/store/idle.py:idle_report",)),
    _json("run-status", status, {"status": "paused", "since": 1.0, "who": "a", "reason": "", "pause": 0},
          decoders=("rapid/store/state.py:_status", "rapid/store/state.py:RunState.snapshot")),
    _json("publisher-lease", publisher, {"holder": "a#b", "process": json.dumps(["", 1, "2", "3"]), "since": 1.0,
                                         "released": False, "fence": 1, "until": 9e15}, refuses=(
        *DAMAGED, redis.RedisError, RuntimeError, LookupError),
          decoders=("rapid/store/fencing.py:PublisherLease.acquire", "rapid/store/fencing.py:publisher_name")),
    _json("rendezvous", rendezvous, {"round": 1, "order": ["node-1"], "members": {}, "waiting": {}, "changed": 3,
                                     "host": "localhost", "port": 3}, refuses=(*DAMAGED, redis.RedisError),
          decoders=("rapid/store/rendezvous.py:GroupRendezvous.join",)),
    _json("series-record", stream_row("series"), {"version": 3, "loss": 0.5},
          decoders=("rapid/store/series.py:_record", "rapid/store/schedules.py:ScheduleStore.find")),
    _json("event", stream_row("events"), {"reason": "a"}, decoders=("rapid/store/events.py:_event",)),
    _json("service-event", merged_event, {"reason": "a"}, b"{}", refuses=(),
          decoders=("rapid/store/event_merger.py:_details",)),
    _json("document", _hash(KEYS.documents, "config", lambda: run_state().document("config")), {"name": "trial"},
          decoders=("rapid/store/state.py:RunState.document",)),
    _json("counter", _hash(KEYS.counters, "games", lambda: run_state().counters()), b"3", b"2.5",
          decoders=("rapid/store/state.py:RunState.counters",)),
    _json("faults", _hash(KEYS.documents, "faults", lambda: read_faults(run_state())), {"rollout-0": "exit 1"},
          decoders=("rapid/store/faults.py:read_faults",)),
    _json("table", _hash(KEYS.table("t"), "a", lambda: run_state().table("t").all()), {"a": [1, 2.5]},
          decoders=("rapid/store/tables.py:Table.get", "rapid/store/tables.py:Table._parsed")),
    _json("replicated-table", replicated, [0.5, 3, 2],
          decoders=("rapid/store/replicated_table.py:ReplicatedTable._load",
                    "rapid/store/replicated_table.py:ReplicatedTable._apply")),
    _json("watched-games", _value(KEYS.watched, lambda: LiveChannel(client(), RUN).watched()),
          {"games": ["ab" * 8], "sources": ["rollout/0"], "headers": []},
          decoders=("rapid/store/live_channel.py:LiveChannel.watched",)),
    _json("anneal-document", _of_tree(anneal),
          Anneal(id="a", overrides={"patch": "7.21d"}, base=0, began=0, ramp=AnnealRamp(start=0, length=4)
                 ).model_dump_json()),
    _json("anneal-row", _value(KEYS.anneal, lambda: AnnealStore(run_state()).read()), {"id": "a"},
          decoders=("rapid/store/anneal.py:AnnealStore.read", "rapid/store/anneal.py:AnnealStore.change.attempt")),
    _json("guard-pairs", _of_tree(lambda tree: isinstance(tree, dict) and parse_pairs(tree, "a/1")),
          {pair_key("a/1", Variant("old"), 3): pair_to_json(PAIR)}),
    _json("league-rows", _of_tree(lambda tree: isinstance(tree, dict) and _league(LeagueConfig(), tree)),
          {"version:3": [0.5, 3, 2], "last_added": 3}),
    _json("standings", _of_tree(standings), {FORMAT_ROW: FORMAT, f"{RATED}version-3": asdict(STANDING)}),
    _json("match-progress", match_rows, {"version": 3, "score": 1.0, "seconds": 30.5, "at": 3.5, "replay": "",
                                         "agent": [1.5] * len(STATS), "opponent": [2.5] * len(STATS)}),
    _json("draft-evidence", _of_tree(evidence), DraftEvidence(("lion", "sven")).to_json()),
    _json("operation", _of_tree(operation), _operation()),
    _json("rehearsal-worker", RehearsalWorker.model_validate_json, {"host": "a", "pid": 3},
          decoders=("five/services/controller/surgery/rehearsals.py:Rehearsals.available_worker",)),
    _json("session", read_session, session_row("a" * 64, Role.VIEWER),
          decoders=("five/services/controller/console/sessions.py:_read",)),
    _json("idempotency", idempotency, {"fingerprint": "f", "status": 200, "headers": [["a", "b"]], "body": "YQ=="},
          refuses=(*DAMAGED, Problem), decoders=(
              "five/services/controller/http/idempotency.py:IdempotencyStore.claim",)),
    _json("idempotency-body", lambda data: fingerprint("POST", "/v1/pause", b"", data), {"reason": "a"},
          decoders=("five/services/controller/http/idempotency.py:fingerprint",)),
    _json("model-schema", model_schema, ModelSchema((TensorSpec("w", (3, 4), "float32"),), "a" * 16, MODEL).to_json(),
          decoders=("five/agent/model/schema.py:ModelSchema.from_json",)),
    _json("agent-spec", agent_spec, AgentSpec(GAME, MODEL).to_json(),
          decoders=("five/agent/surgery/spec.py:AgentSpec.from_json",
                    "five/services/controller/surgery/plans.py:_schema_of")),
    _json("applied-plan", migration, applied(),
          decoders=("five/agent/surgery/chain.py:AppliedMigration.from_json",)),
    Target("plan", "files", plan, plans, decoders=(
        "five/agent/surgery/plan.py:Plan.from_yaml", "five/agent/surgery/strict_yaml.py:parse_yaml",
        "five/services/controller/surgery/plans.py:read_plan"), mutate=mutate_yaml),
    _json("blob-ref", blob_ref, BLOB, decoders=("rapid/blobs.py:BlobStore.ref",)),
    _json("blob-owner", blob_owner, {"run_id": "mine", "since": 1.0}, {"run_id": "other", "since": 1.0},
          refuses=(*DAMAGED, BlobsOwned), decoders=("rapid/store/blob_owner.py:claim_blobs",)),
]
