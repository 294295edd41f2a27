"""State of a run: legal transitions, events of decisions, atomic updates."""

import threading
import time

import pytest
import redis

from rapid.embedded_redis import EmbeddedRedis
from rapid.store.errors import IllegalTransition
from rapid.store.series import Series
from rapid.store.state import TRANSITIONS, RunState, Status
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


def test_counters_keep_whole_numbers_whole(state: RunState) -> None:
    state.add(games=2, seconds=1.5)
    state.add(games=3, seconds=0.25)
    counters = state.counters()
    assert counters == {"games": 5, "seconds": 1.75} and isinstance(counters["games"], int)
    state.add(games=2**40)
    assert state.counters()["games"] == 2**40 + 5


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


def test_tables(state: RunState) -> None:
    table = state.table("pool")
    assert table.all() == {} and table.get("3") is None
    table.set("3", {"quality": 0.5})
    assert table.update(lambda rows: {"3": {"quality": 0.4}} if rows["3"] == {"quality": 0.5} else None)
    assert not table.update(lambda rows: {"3": {"quality": 0.3}} if rows["3"] == {"quality": 0.5} else None)
    table.set("4", 1)
    assert table.all() == {"3": {"quality": 0.4}, "4": 1}
    table.set("4", None)
    assert table.update(lambda rows: {"3": None, "5": len(rows)}, event=("t", "pool.changed", {"x": 1}))
    assert table.all() == {"5": 1} and state.events.last(1)[0].what == "pool.changed"
    assert not table.update(lambda rows: None)
    assert state.table("other").all() == {}


def test_an_update_is_applied_once(state: RunState) -> None:
    table = state.table("pool")

    def won(rows: dict) -> dict:
        return {"games": (rows.get("games") or 0) + 1}

    assert not table.seen("game-1")
    assert table.update(won, once="game-1")
    assert not table.update(won, once="game-1", event=("t", "never", {}))
    assert table.update(won, once="game-2")
    assert table.get("games") == 2 and table.seen("game-1")
    assert [e.what for e in state.events.read()] == ["run.created"]


def test_concurrent_updates_all_count(state: RunState) -> None:
    table = state.table("pool")

    def work(worker: int) -> None:
        for i in range(20):
            # Every result is reported twice, as after a lost response.
            for _ in range(2):
                table.update(lambda rows: {"n": (rows.get("n") or 0) + 1}, once=f"{worker}-{i}")

    threads = [threading.Thread(target=work, args=(w,)) for w in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert table.get("n") == 80


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
    lease = state.lease("rollout", "0", ttl_seconds=0.2, address="h:1", metrics_address="h:2")
    assert state.services() == []
    lease.renew({"steps": 5})
    state.lease("inference", "1", 30.0).renew()
    found = state.services("rollout")
    assert [(i.kind, i.id, i.address, i.metrics_address, i.stats) for i in found] == [
        ("rollout", "0", "h:1", "h:2", {"steps": 5})]
    assert abs(found[0].beaten_at - time.time()) < 5
    assert [i.kind for i in state.services()] == ["inference", "rollout"]
    eventually(lambda: state.services("rollout") == [])
    lease.renew()
    lease.release()
    assert state.services("rollout") == []


def test_series_are_read_in_order(database: redis.Redis) -> None:
    series = Series(database, "r")
    assert series.last("versions") is None
    series.extend("versions", [{"version": i} for i in range(7)])
    series.append("games", {"seconds": 600.5})
    rows = list(series.read("versions", page=3))
    assert [r.values["version"] for r in rows] == list(range(7))
    assert [r.values["version"] for r in series.read("versions", after=rows[4].id)] == [5, 6]
    last = series.last("versions")
    assert last is not None and last.values == {"version": 6} and abs(last.at - time.time()) < 5


def test_state_survives_a_kill_of_its_redis(tmp_path) -> None:
    server = EmbeddedRedis(tmp_path / "state", append_only=True)
    running = server.start()
    state = RunState(redis.Redis.from_url(server.url), "r")
    state.create({"seed": 1}, "t")
    state.transition("running", "t")
    state.table("pool").update(lambda rows: {"1": 0.5}, once="g")
    time.sleep(1.2)  # appendfsync everysec; a kill of the process loses no written data
    running.kill()
    with server.start():
        again = RunState(redis.Redis.from_url(server.url), "r")
        now = again.status()
        assert now is not None and now.status is Status.RUNNING
        assert again.table("pool").get("1") == 0.5 and again.table("pool").seen("g")
        assert [e.what for e in again.events.read()] == ["run.created", "run.running"]
