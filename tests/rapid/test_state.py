"""State of a run: legal transitions, events of decisions, atomic updates."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store import idle
from rapid.store.errors import FencedOut, IllegalTransition
from rapid.store.record import RunRecord
from rapid.store.state import TRANSITIONS, RunState, Status
from tests.rapid.failing_redis import Breaking, socket_path
from tests.waiting import eventually


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    state = RunState(database, "r")
    assert state.create({"name": "r", "seed": 1}, "the test")
    return state


def test_run_is_created_once(state: RunState) -> None:
    assert not state.create({"name": "r", "seed": 2}, "another")
    assert state.exists() and state.config() == {"name": "r", "seed": 1}
    now = state.status()
    assert now is not None and now.status is Status.STARTING and now.who == "the test"
    assert [e.what for e in state.events.read()] == ["run.created"]


def test_run_status_transitions(state: RunState) -> None:
    path = ["running", "pausing", "paused", "operating", "warming", "running", "stopping", "stopped", "starting"]
    for to in path:
        state.transition(to, "someone", f"to {to}")
    now = state.status()
    assert now is not None and now.status is Status.STARTING and now.reason == "to starting"
    events = state.events.read()
    assert [e.what for e in events] == ["run.created", *(f"run.{to}" for to in path)]
    assert events[2].who == "someone" and events[2].details == {"from": "running", "reason": "to pausing"}
    assert [e.id for e in state.events.last(2)] == [events[-1].id, events[-2].id]
    assert state.events.read(after=events[-2].id) == [events[-1]]


def test_unlisted_transitions_are_refused(database: redis.Redis) -> None:
    for start in Status:
        for to in Status:
            database.flushall()
            state = RunState(database, "r")
            state.create({}, "t")
            database.set(state.keys.status, f'{{"status": "{start}", "since": 0, "who": "t", "reason": ""}}')
            before = len(state.events.read())
            if to in TRANSITIONS[start]:
                assert state.transition(to, "t").status is to
            elif to is start:
                state.transition(to, "t")
                assert len(state.events.read()) == before
            else:
                with pytest.raises(IllegalTransition, match=f"run 'r' is {start}: it cannot go to {to}, only to"):
                    state.transition(to, "t")
                now = state.status()
                assert now is not None and now.status is start and len(state.events.read()) == before


@pytest.mark.parametrize("to", ["running", "stopping"])
def test_transition_decided_in_another_epoch_is_refused(database: redis.Redis, to: str) -> None:
    state = RunState(database, "r")
    state.create({}, "t", RunRecord(revision=5, epoch=3))
    before = state.status()
    for epoch in (2, 4):
        with pytest.raises(FencedOut, match=f"going to {to} is refused: the run has left epoch {epoch}") as refused:
            state.transition(to, "t", epoch=epoch)
        assert refused.value.reason == "epoch" and state.status() == before
    assert state.transition(to, "t", epoch=3).status == to


def test_run_without_record_is_in_epoch_0(state: RunState) -> None:
    """A run of an earlier release that was not opened yet."""
    state.redis.delete(state.keys.record)
    with pytest.raises(FencedOut):
        state.transition("running", "t", epoch=1)
    assert state.transition("running", "t", epoch=0).status is Status.RUNNING
    assert state.transition("pausing", "t").pause == 1


def test_dry_run_returns_the_result_and_changes_nothing(state: RunState) -> None:
    state.transition("running", "t")
    before, events = state.status(), state.events.read()
    for to, pause in (("pausing", 1), ("stopping", 0), ("running", 0)):
        result = state.transition(to, "ada", "why", dry_run=True)
        assert (result.status, result.pause) == (to, pause)
    with pytest.raises(IllegalTransition, match="cannot go to warming"):
        state.transition("warming", "ada", dry_run=True)
    assert state.status() == before and state.events.read() == events


def test_only_pausing_begins_a_pause(state: RunState) -> None:
    path = {"running": 0, "pausing": 1, "paused": 1, "operating": 1, "warming": 1}
    assert {to: state.transition(to, "t").pause for to in path} == path
    assert [state.transition(to, "t").pause for to in ("pausing", "running", "pausing")] == [2, 2, 3]


def test_status_of_an_earlier_release_has_no_pause(state: RunState) -> None:
    state.redis.set(state.keys.status, '{"status": "running", "since": 5, "who": "ada", "reason": "why"}')
    assert state.status() == (Status.RUNNING, 5.0, "ada", "why", 0)
    assert state.transition("pausing", "t").pause == 1


@pytest.mark.parametrize("other", ["pausing", "stopping"])
def test_pause_is_decided_again_after_a_concurrent_change(state: RunState, monkeypatch: pytest.MonkeyPatch, other: str
                                                          ) -> None:
    begin_pause, calls = idle.begin_pause, []

    def overtaken(*arguments: Any) -> bool:
        calls.append(arguments)
        if len(calls) == 1:
            state.transition(other, "bob")
        return begin_pause(*arguments)

    state.transition("running", "t")
    monkeypatch.setattr("rapid.store.state.begin_pause", overtaken)
    if other == "pausing":
        assert state.transition("pausing", "ada").who == "bob"
    else:
        with pytest.raises(IllegalTransition, match="is stopping"):
            state.transition("pausing", "ada")
    now = state.status()
    assert now is not None and (now.status, now.who) == (other, "bob") and now.pause == (other == "pausing")
    assert [e.what for e in state.events.last(2)] == [f"run.{other}", "run.running"]


def test_invalid_arguments_are_refused(state: RunState, database: redis.Redis) -> None:
    with pytest.raises(IllegalTransition, match="'flying' is not a status.*running"):
        state.transition("flying", "t")
    with pytest.raises(IllegalTransition, match="run 'other' does not exist"):
        RunState(database, "other").transition("running", "t")
    with pytest.raises(ValueError, match="who"):
        state.transition("running", "")
    with pytest.raises(ValueError):
        state.set_document("x", float("nan"), "t")
    assert RunState(database, "other").status() is None


def test_documents_and_their_events(state: RunState) -> None:
    assert state.schedules() is None
    state.set_document("schedules", {"learning_rate": [[0, 5e-5]]}, "operator")
    assert state.schedules() == {"learning_rate": [[0, 5e-5]]}
    event = state.events.last(1)[0]
    assert (event.who, event.what) == ("operator", "schedules.set")
    assert event.details == {"value": {"learning_rate": [[0, 5e-5]]}}
    state.set_config({"name": "r", "seed": 3}, "operator")
    assert state.config()["seed"] == 3


def test_document_that_is_not_json_is_refused(state: RunState) -> None:
    with pytest.raises(ValueError):
        state.set_document("progress", {"loss": float("nan")}, "optimizer")
    assert state.document("progress") is None and len(state.events.read()) == 1
    with pytest.raises(ValueError):
        RunState(state.redis, "other").create({"seed": float("inf")}, "t")
    assert not RunState(state.redis, "other").exists()


def test_document_and_its_event_are_written_in_one_step(state: RunState) -> None:
    def transactions() -> int:
        statistics: Any = state.redis.info("commandstats")
        return int(statistics.get("cmdstat_exec", {"calls": 0})["calls"])

    before = transactions()
    state.set_document("schedules", {}, "ada")
    assert transactions() == before + 1


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_lost_connection_writes_a_document_once(state: RunState, redis_server: RunningRedis, answer: bool) -> None:
    """The connection is lost at each command in turn."""
    for at in range(1, 100):
        breaking = Breaking(at, answer)
        broken = RunState(breaking.client(socket_path(redis_server), retries=1), "r")
        broken.set_document("progress", at, "ada")
        assert state.document("progress") == at
        assert [e.details["value"] for e in state.events.read()[1:]] == list(range(1, at + 1))
        if not breaking.broken:
            break
    assert at > 2


def test_every_run_has_an_identity_of_its_own(state: RunState) -> None:
    other = RunState(state.redis, "other")
    assert other.identity() is None
    other.create({}, "t")
    first, second = state.identity(), other.identity()
    assert first and second and first != second
    state.ensure_identity()
    assert state.identity() == first
    state.redis.hdel(state.keys.documents, "id")
    state.ensure_identity()
    assert state.identity() not in (None, first, second)


def test_counter_values_are_unique(state: RunState) -> None:
    numbers: list[int] = []

    def take() -> None:
        numbers.extend(state.count("starts") for _ in range(50))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 201)) and state.counters() == {"starts": 200}


def test_only_one_of_two_transitions_wins(state: RunState) -> None:
    state.transition("running", "t")
    outcomes: list[str] = []

    def go(to: str) -> None:
        try:
            state.transition(to, to)
            outcomes.append(to)
        except IllegalTransition:
            outcomes.append("refused")

    state.transition("pausing", "t")
    threads = [threading.Thread(target=go, args=(to,)) for to in ("paused", "stopping")]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    now = state.status()
    assert now is not None and now.status is Status.STOPPING  # paused -> stopping is legal, stopping -> paused is not
    assert outcomes.count("refused") <= 1


def test_leases_expire(state: RunState) -> None:
    lease = state.lease("rollout", "0", ttl_seconds=60.0, address="h:1", metrics_address="h:2")
    assert state.services() == []
    lease.renew({"steps": 5})
    state.lease("inference", "1", 30.0).renew()
    found = state.services("rollout")
    assert [(i.kind, i.id, i.address, i.metrics_address, i.stats) for i in found] == [
        ("rollout", "0", "h:1", "h:2", {"steps": 5})]
    assert abs(found[0].beaten_at - time.time()) < 5
    assert [i.kind for i in state.services()] == ["inference", "rollout"]
    short = state.lease("rollout", "1", ttl_seconds=0.05)
    short.renew()
    eventually(lambda: [i.id for i in state.services("rollout")] == ["0"])
    short.renew()
    for ended in (lease, short):
        ended.release()
    assert state.services("rollout") == []


def test_state_survives_a_kill_of_its_redis(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "state", append_only=True)
    running = server.start()
    client = redis.Redis.from_url(server.url)
    client.config_set("appendfsync", "always")  # otherwise a busy disk delays writes, which the kill would lose
    state = RunState(client, "r")
    state.create({"seed": 1}, "t")
    state.transition("running", "t")
    state.table("pool").update(lambda rows: {"1": 0.5}, once="g")
    running.kill()
    with server.start():
        again = RunState(redis.Redis.from_url(server.url), "r")
        now = again.status()
        assert now is not None and now.status is Status.RUNNING
        assert again.table("pool").get("1") == 0.5 and again.table("pool").seen("g")
        assert [e.what for e in again.events.read()] == ["run.created", "run.running"]
