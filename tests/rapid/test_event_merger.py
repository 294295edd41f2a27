"""Merge of services' events into the log: author, exactly once, and limits on what services send."""

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.embedded_redis import EmbeddedRedis
from rapid.store import acl, backup, event_merger, functions
from rapid.store.event_merger import EventMerger
from rapid.store.events import Event
from rapid.store.fencing import FencingToken
from rapid.store.keys import Keys
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.state import RunState
from tests.rapid.acl_servers import Servers

KEYS = Keys("r")
STREAM = KEYS.events_of("optimizer")


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def run(servers: Servers) -> Iterator[Servers]:
    servers.client(acl.ADMIN).flushall()
    servers.state("controller").create({"name": "r"}, "controller")
    servers.refusals()
    yield servers
    assert servers.refusals() == []


def merged(run: Servers, merger: EventMerger | None = None) -> list[Event]:
    """Merge under the controller's user, and return the log after the creation of the run."""
    (merger or EventMerger(run.client("controller"), "r")).merge()
    return run.state("controller").events.read(limit=100_000)[1:]


def append(run: Servers, *fields: str, user: str = "optimizer") -> str:
    identity: Any = run.client(user).execute_command("XADD", KEYS.events_of(user), "*", *fields)
    return str(identity.decode())


def test_events_of_services_appear_in_the_log(run: Servers) -> None:
    state = run.state("optimizer")
    state.events.append("optimizer-0", "optimizer.resumed", {"version": 7})
    fence = FencingToken("x", 1, None)
    state.fenced_write(fence, [state.event_command("optimizer-0", "checkpoint.committed", {"version": 8})], "it")
    table = ReplicatedTable(run.state("opponents"), "league", lambda rows, whole: None)
    table.update(lambda: {"version:0": [1]}, event=("opponents", "league.added", {"version": 0}))
    assert run.state("controller").events.read()[1:] == []
    found = merged(run)
    assert [(e.who, e.what, e.details) for e in found] == [
        ("opponents", "league.added", {"version": 0}), ("optimizer-0", "optimizer.resumed", {"version": 7}),
        ("optimizer-0", "checkpoint.committed", {"version": 8})]
    assert merged(run) == found and run.client("controller").xlen(STREAM) == 0


def test_merged_event_keeps_its_time(run: Servers) -> None:
    identity = append(run, "who", "optimizer", "what", "x", "details", "{}")
    time.sleep(0.05)
    (event,) = merged(run)
    assert event.at == int(identity.partition("-")[0]) / 1000 < int(event.id.partition("-")[0]) / 1000


def test_event_from_the_future_gets_the_time_of_the_merge(run: Servers) -> None:
    run.client("optimizer").xadd(STREAM, {"who": "optimizer", "what": "x", "details": "{}"}, id="9999999999999-0")
    (event,) = merged(run)
    assert abs(event.at - time.time()) < 5


@pytest.mark.parametrize(("claimed", "who", "details"), [
    ("optimizer", "optimizer", {}), ("optimizer-3", "optimizer-3", {}), ("", "optimizer", {}),
    ("operator", "optimizer", {"claimed_who": "operator"}), ("optimizers", "optimizer", {"claimed_who": "optimizers"}),
    ("a\x1b[2Jb", "optimizer", {"claimed_who": "a?[2Jb"}), ("x" * 9999, "optimizer", {"claimed_who": "x" * 128})])
def test_author_is_the_service_that_wrote_the_event(run: Servers, claimed: str, who: str, details: Any) -> None:
    append(run, "who", claimed, "what", "run.stopping", "details", "{}")
    assert [(e.who, e.details) for e in merged(run)] == [(who, details)]


@pytest.mark.parametrize("details", [
    "", "no JSON", "[1]", '{"x": NaN}', '{"x": "\\ud800"}', '{"x": 0x1}', "[" * 100_000, '{"x": 1' + "0" * 5000 + "}",
    json.dumps({"x": "y" * 20_000}), '{"x":' + "[" * 500 + "]" * 500 + "}"])
def test_unreadable_details_are_rejected(run: Servers, details: str) -> None:
    append(run, "who", "optimizer", "what", "x", "details", details)
    append(run, "other", "fields")
    first, second = merged(run)
    assert "rejected" in first.details and (second.who, second.what) == ("optimizer", "unnamed")


def test_longest_details_and_deepest_value_are_kept(run: Servers) -> None:
    """16,384 bytes and 20 levels are allowed, one more of either is not."""
    for size in (16_384, 16_385):
        text = json.dumps({"x": "y" * (size - len('{"x": ""}'))})
        append(run, "who", "optimizer", "what", "x" * 200, "details", text)
    for levels in (20, 21):
        append(run, "what", "d", "details", '{"x":' + "[" * (levels - 1) + "]" * (levels - 1) + "}")
        append(run, "what", "d", "details", '{"x":' * levels + "1" + "}" * levels)
    found = merged(run)
    assert ["rejected" in event.details for event in found] == [False, True, False, False, True, True]
    assert found[1].details == {"rejected": "details of 16385 bytes, at most 16384 are allowed"}
    assert found[0].what == "x" * 128 and "at most 20 levels" in found[-1].details["rejected"]


def test_name_is_cut_before_it_is_decoded(run: Servers) -> None:
    """A character has at most 4 bytes, so 512 bytes suffice for 128 characters."""
    append(run, "who", "optimizer-" + "\U0001f600" * 300, "what", "\U0001f600" * 300, "details", "{}")
    (event,) = merged(run)
    assert event.what == "\U0001f600" * 128 and event.who == "optimizer-" + "\U0001f600" * 118


@pytest.mark.parametrize(("burst", "moved"), [
    (430, [1 + 2, 0, 0, 2, 1, 2]),  # 0, 0, 0, 256 - 430, 82 - 215, and a full burst again
    (431, [1 + 3, 0, 0, 1, 1, 3])])  # 1 - 215, the same, the same, 42 - 215, 83 - 215
def test_budget_limits_what_a_writer_adds(run: Servers, monkeypatch: pytest.MonkeyPatch, burst: int, moved: list[int]
                                          ) -> None:
    """An event has 9 + 4 + 2 + 100 bytes, and its batch 100 more: 215. A budget above 0 allows one more batch."""
    monkeypatch.setattr(event_merger, "BATCH", 1)
    monkeypatch.setattr(event_merger, "BURST_BYTES", burst)
    clock = Clock()
    merger = EventMerger(run.client("controller"), "r", clock)
    for _ in range(12):
        append(run, "who", "optimizer", "what", "four", "details", "{}")
    append(run, "who", "opponents", "what", "four", "details", "{}", user="opponents")
    counts = []
    for second in (0, 0, 0, 1, 2, 1000):
        clock.now = float(second)
        counts.append(merger.merge())
    assert counts == moved


def test_most_events_of_a_call_are_limited(run: Servers) -> None:
    client: Any = run.client("controller")
    keys = [KEYS.events, STREAM, KEYS.events_removed]
    texts = ["1-1", "optimizer", "x", "{}"]
    assert functions.call(client, "merge_events", keys, "optimizer", *texts * 200) == [0, 0]
    with pytest.raises(redis.ResponseError, match="more than 64 keys or 801 arguments"):
        functions.call(client, "merge_events", keys, "optimizer", *texts * 200, "x")


def test_backlog_of_exactly_the_limit_is_merged(run: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_merger, "MAX_BACKLOG", 5)
    for i in range(5):
        append(run, "who", "optimizer", "what", f"w{i}", "details", "{}")
    assert [e.what for e in merged(run)] == [f"w{i}" for i in range(5)]
    for i in range(5, 11):
        append(run, "who", "optimizer", "what", f"w{i}", "details", "{}")
    found = merged(run)[5:]
    assert [e.what for e in found] == ["w6", "w7", "w8", "w9", "w10", "events.lost"]
    assert found[-1].details == {"writer": "optimizer", "events": 1}


def test_batches_return_the_oldest_events(run: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge of three full batches and a part of one keeps the order."""
    monkeypatch.setattr(event_merger, "BATCH", 2)
    for i in range(7):
        append(run, "who", "optimizer", "what", f"w{i}", "details", "{}")
    client: Any = run.client("controller")
    due, rows = functions.call(client, "pending_events", [STREAM, KEYS.events_removed], "optimizer", "1000000", "10",
                               "2")
    assert due == 1 and [fields[3] for _, fields in rows] == [b"w0", b"w1"]
    merger = EventMerger(client, "r")
    assert merger.merge() == 7 and merger.merge() == 0
    assert [e.what for e in merged(run)] == [f"w{i}" for i in range(7)]


def pending(run: Servers, most_bytes: int = 1_000_000, most: int = 10) -> tuple[int, int]:
    """Return whether the optimizer's events are due, and how many the call returns."""
    client: Any = run.client("controller")
    due, rows = functions.call(client, "pending_events", [STREAM, KEYS.events_removed], "optimizer", str(most_bytes),
                               str(most), "100")
    return due, len(rows)


def test_idle_writer_is_not_due(run: Servers) -> None:
    """Otherwise each turn of the controller writes for every writer."""
    assert pending(run) == (0, 0)
    append(run, "who", "optimizer", "what", "x", "details", "{}")
    assert pending(run) == (1, 1) and merged(run) != [] and pending(run) == (0, 0)
    run.client("optimizer").execute_command("DEL", STREAM)
    assert pending(run) == (1, 0), "lost events are due"


def test_full_redis_still_shortens_a_stream(run: Servers) -> None:
    """It frees memory, so that the merge succeeds later."""
    admin: Any = run.client(acl.ADMIN)
    for _ in range(8):
        append(run, "who", "optimizer", "what", "x", "details", "{}")
    before = admin.config_get("maxmemory")
    admin.config_set("maxmemory", "1")
    try:
        assert pending(run, most=5) == (1, 5) and admin.xlen(STREAM) == 5
        assert pending(run, most_bytes=1) == (1, 0) and admin.xlen(STREAM) == 0
    finally:
        admin.config_set("maxmemory", before["maxmemory"])


# Exactly once.


def stale_merge(run: Servers) -> int:
    """Repeat the merge of everything in the stream, as a controller does that read it before another one merged."""
    client: Any = run.client("controller")
    rows = client.xrange(STREAM)
    texts = [text for identity, fields in rows for text in event_merger.checked_event("optimizer", identity, fields)]
    EventMerger(client, "r").merge()
    return int(functions.call(client, "merge_events", [KEYS.events, STREAM, KEYS.events_removed], "optimizer",
                              *texts)[0])


def test_two_controllers_merge_each_event_once(run: Servers) -> None:
    for i in range(5):
        append(run, "who", "optimizer", "what", f"w{i}", "details", "{}")
    assert stale_merge(run) == 0
    assert [e.what for e in merged(run)] == [f"w{i}" for i in range(5)]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_crash_between_steps_loses_and_repeats_nothing(run: Servers, monkeypatch: pytest.MonkeyPatch, moment: str
                                                       ) -> None:
    """The controller dies between reading events and moving them, or before it learns that they were moved."""
    for i in range(3):
        append(run, "who", "optimizer", "what", f"w{i}", "details", "{}")
    call = functions.call

    def dying(client: Any, function: str, *arguments: Any) -> Any:
        if function == "merge_events" and moment == "before":
            raise redis.ConnectionError("killed")
        reply = call(client, function, *arguments)
        if function == "merge_events":
            raise redis.ConnectionError("killed")
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(functions, "call", dying)
        with pytest.raises(redis.ConnectionError, match="killed"):
            merged(run)
    assert [e.what for e in merged(run)] == ["w0", "w1", "w2"]


def test_killed_redis_merges_each_event_once(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "redis", append_only=True)
    client = redis.Redis.from_url(server.url)
    running = server.start()
    client.config_set("appendfsync", "always")  # otherwise a busy disk delays writes, which the kill would lose
    writer, log = RunState(client, "r", "optimizer").events, RunState(client, "r").events
    for i in range(6):
        writer.append("optimizer", f"w{i}")
        if i == 2:
            EventMerger(client, "r").merge()
    client.execute_command("BGREWRITEAOF")  # the counts of streams survive a rewritten file, too
    running.kill()
    with server.start():
        EventMerger(client, "r").merge()
        assert [e.what for e in log.read()] == [f"w{i}" for i in range(6)]


def test_backup_during_merges_has_each_event_once(database: redis.Redis) -> None:
    class Merging(redis.Redis):
        """A client whose server merges after each read of a whole key."""

        def dump(self, name: Any) -> Any:
            value = super().dump(name)
            EventMerger(database, "r").merge()
            return value

    state, file = RunState(database, "r"), io.BytesIO()
    state.create({}, "test")
    RunState(database, "r", "optimizer").events.append("optimizer", "w")
    backup.save(Merging.from_pool(database.connection_pool), "r", file)
    backup.load(database, file, "test", replace=True)
    EventMerger(database, "r").merge()
    assert [e.what for e in state.events.read()] == ["run.created", "run.restored", "w"]


# A compromised service.


def test_erased_events_are_reported(run: Servers) -> None:
    append(run, "who", "optimizer", "what", "kept", "details", "{}")
    merged(run)
    for i in range(3):
        append(run, "who", "optimizer", "what", f"erased-{i}", "details", "{}")
    run.client("optimizer").execute_command("XADD", STREAM, "MAXLEN", "1", "*", "who", "optimizer", "what", "last")
    found = [(e.who, e.what, e.details) for e in merged(run)]
    assert [what for _, what, _ in found] == ["kept", "last", "events.lost"]
    assert found[-1] == ("controller", "events.lost", {"writer": "optimizer", "events": 3})
    run.client("optimizer").execute_command("DEL", STREAM)
    assert merged(run)[-1].details == {"writer": "optimizer", "events": None}
    append(run, "who", "optimizer", "what", "again", "details", "{}")
    assert [e.what for e in merged(run)] == ["kept", "last", "events.lost", "events.lost", "again"]


def test_only_a_loss_is_a_warning(run: Servers, caplog: pytest.LogCaptureFixture) -> None:
    append(run, "who", "optimizer", "what", "kept", "details", "{}")
    merged(run)
    assert caplog.records == []
    run.client("optimizer").execute_command("XADD", STREAM, "MAXLEN", "0", "*", "who", "optimizer", "what", "x")
    merged(run)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    merged(run)
    assert len(caplog.records) == 1


def test_merge_after_an_erased_stream_reports_nothing_twice(run: Servers) -> None:
    append(run, "who", "optimizer", "what", "x", "details", "{}")
    run.client("optimizer").execute_command("XADD", STREAM, "MAXLEN", "0", "*", "who", "optimizer", "what", "y")
    for _ in range(3):
        assert [e.details["events"] for e in merged(run)] == [2]


def test_flood_is_bounded(run: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood fills neither the log nor its own stream, and another service's events come through."""
    monkeypatch.setattr(event_merger, "MAX_BACKLOG", 1500)
    clock, client = Clock(), run.client("controller")
    merger, flood = EventMerger(client, "r", clock), run.client("optimizer")
    fields = {"who": "optimizer", "what": "flood", "details": json.dumps({"x": "y" * 2000})}
    for second in range(5):
        clock.now = float(second)
        pipeline: Any = flood.pipeline(transaction=False)
        for _ in range(1000):
            pipeline.xadd(STREAM, fields)
        pipeline.execute()
        merger.merge()
        assert client.xlen(STREAM) <= 1500
    append(run, "who", "opponents", "what", "league.added", "details", "{}", user="opponents")
    log = merged(run, merger)
    allowed = event_merger.BURST_BYTES + 5 * event_merger.BYTES_PER_SECOND
    assert sum(len(json.dumps(e.details)) for e in log) < allowed + event_merger.BATCH * 2200
    assert log[-1].what == "league.added"
    # After an hour's credit more follow, with the number of lost events.
    clock.now = 3600.0
    log = merged(run, merger)
    lost = sum(e.details["events"] for e in log if e.what == "events.lost")
    assert lost == 5000 - sum(e.what == "flood" for e in log) - client.xlen(STREAM) > 0


def test_stream_that_is_too_large_is_removed_unread(run: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_merger, "MAX_BACKLOG_BYTES", 1 << 20)
    append(run, "who", "optimizer", "what", "x", "details", "y" * (2 << 20))
    assert [e.what for e in merged(run)] == ["events.lost"] and run.client("controller").xlen(STREAM) == 0


def test_full_redis_refuses_the_merge_as_a_whole(run: Servers) -> None:
    admin = run.client(acl.ADMIN)
    append(run, "who", "optimizer", "what", "x", "details", "{}")
    before: Any = admin.config_get("maxmemory")
    admin.config_set("maxmemory", "1")
    try:
        with pytest.raises(redis.RedisError, match="OOM|maxmemory"):
            merged(run)
    finally:
        admin.config_set("maxmemory", before["maxmemory"])
    assert [e.what for e in merged(run)] == ["x"]


def test_backlog_below_64_mebibytes_waits(run: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine events of 7 MiB behind a batch of small ones are not removed while the budget is used up."""
    monkeypatch.setattr(event_merger, "BURST_BYTES", 0)
    run.client(acl.ADMIN).eval("""local text = string.rep('y', 7 * 2^20 - 2^16)
        for i = 1, 100 do redis.call('XADD', KEYS[1], '*', 'what', 'x') end
        for i = 1, 9 do redis.call('XADD', KEYS[1], '*', 'what', 'y', 'details', text) end""", 1, STREAM)
    assert merged(run) == [] and run.client("controller").xlen(STREAM) == 109
