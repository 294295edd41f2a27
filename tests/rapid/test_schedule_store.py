"""Changes of schedules are one atomic step with their history and event, and are fenced by epoch."""

import time
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store.errors import FencedOut
from rapid.store.record import RunRecord
from rapid.store.schedules import ScheduleEdit, ScheduleStore
from rapid.store.state import RunState
from tests.rapid.failing_redis import Breaking, socket_path


@pytest.fixture
def run(database: redis.Redis) -> RunState:
    made = RunState(database, "r")
    made.create({}, "test", RunRecord(revision=4, epoch=3))
    return made


@pytest.fixture
def store(run: RunState) -> ScheduleStore:
    return ScheduleStore(run)


def rate(value: float) -> Any:
    """Return an edit that sets one schedule and keeps the others."""
    def edit(document: Any) -> ScheduleEdit:
        before = (document or {}).get("learning_rate")
        return ScheduleEdit("learning_rate", {**(document or {"team_spirit": 0.3}), "learning_rate": value}, before,
                            value)

    return edit


def counts(run: RunState, store: ScheduleStore) -> tuple[Any, int, int]:
    """Return the document, and the numbers of history entries and events."""
    return run.schedules(), len(store.history(100)), len(run.events.last(100))


def test_change_writes_document_history_and_event(run: RunState, store: ScheduleStore) -> None:
    assert run.schedules() is None and store.history(10) == []
    first = store.change(rate(0.5), "ada", "a reason")
    second = store.change(rate(0.25), "bob", reverts=first)
    assert run.schedules() == {"team_spirit": 0.3, "learning_rate": 0.25}
    expected = {"name": "learning_rate", "who": "bob", "reason": "", "before": 0.5, "after": 0.25, "reverts": first,
                "epoch": 3}
    newest, oldest = store.history(10)
    assert (newest.id, newest.values) == (second, expected)
    assert oldest.values == {**expected, "who": "ada", "reason": "a reason", "before": None, "after": 0.5,
                             "reverts": None}
    event = run.events.last(1)[0]
    assert (event.who, event.what) == ("bob", "schedules.set")
    assert event.details == {key: value for key, value in expected.items() if key != "who"}


def test_lost_connection_applies_a_change_once(run: RunState, store: ScheduleStore, redis_server: RunningRedis
                                               ) -> None:
    """The connection is lost before the answer to each command in turn."""
    for at in range(1, 100):
        breaking = Breaking(at, answer=True)
        before = len(store.history(100))
        made = ScheduleStore(RunState(breaking.client(socket_path(redis_server), retries=1), "r")).change(
            rate(at / 100), "ada")
        found = store.find(made)
        assert found is not None and found.values["after"] == at / 100
        assert len(store.history(100)) == before + 1
        if not breaking.broken:
            break
    assert at > 4


@pytest.mark.parametrize("dry_run", [False, True])
def test_edit_of_nothing_and_dry_run_write_nothing(run: RunState, store: ScheduleStore, dry_run: bool) -> None:
    store.change(rate(0.5), "ada")
    before = counts(run, store)
    edit = rate(0.25) if dry_run else lambda document: None
    assert store.change(edit, "ada", dry_run=dry_run) == ""
    assert counts(run, store) == before


def test_change_decided_in_another_epoch_is_refused(run: RunState, store: ScheduleStore) -> None:
    before = counts(run, store)
    for epoch in (2, 4):
        with pytest.raises(FencedOut) as refused:
            store.change(rate(0.5), "ada", epoch=epoch)
        assert refused.value.reason == "epoch" and "a change of a schedule" in str(refused.value)
    assert counts(run, store) == before
    assert store.change(rate(0.5), "ada", epoch=3)
    run.redis.delete(run.keys.record)
    with pytest.raises(FencedOut):
        store.change(rate(0.5), "ada", epoch=3)
    assert store.change(rate(0.25), "ada") and store.history(1)[0].values["epoch"] == 0


def test_error_of_an_edit_reaches_the_caller(run: RunState, store: ScheduleStore) -> None:
    def fail(document: Any) -> ScheduleEdit:
        raise ValueError("out of range")

    before = counts(run, store)
    with pytest.raises(ValueError, match="out of range"):
        store.change(fail, "ada")
    with pytest.raises(ValueError):
        store.change(rate(float("nan")), "ada")
    assert counts(run, store) == before


@pytest.mark.parametrize("broken", ["document", "before", "after"])
def test_value_that_is_not_json_is_refused(run: RunState, store: ScheduleStore, broken: str) -> None:
    store.change(rate(0.5), "ada")
    before = counts(run, store)
    values = {"document": {"learning_rate": 0.25}, "before": 0.5, "after": 0.25, broken: float("inf")}
    with pytest.raises(ValueError):
        store.change(lambda document: ScheduleEdit("learning_rate", **values), "ada")
    assert counts(run, store) == before


def test_change_returns_the_id_of_its_history_entry(run: RunState, store: ScheduleStore) -> None:
    """The event has another one when the log is ahead of the clock."""
    run.redis.xadd(run.keys.events, {"who": "ada", "what": "x", "details": "{}"}, id="9999999999999-5")
    made = store.change(rate(0.5), "ada")
    assert [record.id for record in store.history(9)] == [made] and run.events.last(1)[0].id != made


def test_entry_has_the_time_of_its_id(run: RunState, store: ScheduleStore) -> None:
    made = store.change(rate(0.5), "ada")
    found = store.find(made)
    assert found == store.history(1)[0] and found.at == int(made.partition("-")[0]) / 1000


def test_concurrent_change_is_not_overwritten(run: RunState, store: ScheduleStore) -> None:
    seen: list[Any] = []

    def edit(document: Any) -> ScheduleEdit:
        seen.append(document)
        if len(seen) == 1:
            ScheduleStore(run).change(lambda other: ScheduleEdit("team_spirit", {"team_spirit": 0.9}, None, 0.9), "bob")
        return ScheduleEdit("learning_rate", {**(document or {}), "learning_rate": 0.5}, None, 0.5)

    store.change(edit, "ada")
    assert seen == [None, {"team_spirit": 0.9}]
    assert run.schedules() == {"team_spirit": 0.9, "learning_rate": 0.5}


def test_epoch_that_begins_during_a_change_refuses_it(run: RunState, store: ScheduleStore) -> None:
    def edit(document: Any) -> ScheduleEdit:
        run.redis.set(run.keys.record, RunRecord(revision=5, epoch=4).to_json())
        return ScheduleEdit("learning_rate", {}, None, 0.5)

    with pytest.raises(FencedOut):
        store.change(edit, "ada", epoch=3)
    assert run.schedules() is None


def test_history_is_read_in_pages_and_by_id(store: ScheduleStore) -> None:
    made = [store.change(rate(value), "ada") for value in (0.1, 0.2, 0.3)]
    assert [record.id for record in store.history(2)] == [made[2], made[1]]
    assert [record.id for record in store.history(10, before=made[2])] == [made[1], made[0]]
    found = store.find(made[1])
    assert found is not None and (found.id, found.values["after"]) == (made[1], 0.2)
    assert abs(found.at - time.time()) < 60
    milliseconds, _, number = made[2].partition("-")
    assert store.find(f"{milliseconds}-{int(number) + 1}") is None and store.find("1-0") is None
