"""Tables of JSON values: atomic updates among concurrent writers, applied once, with their event."""

import threading
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store.errors import Corrupt
from rapid.store.state import RunState
from rapid.store.tables import Table
from tests.rapid.failing_redis import Breaking, socket_path

NAN = float("nan")


@pytest.fixture
def table(state: RunState) -> Table:
    return state.table("pool")


def events(state: RunState) -> list[tuple[str, str, Any]]:
    """Return the events after the fixture's."""
    return [(e.who, e.what, e.details) for e in state.events.read()[2:]]


# Fields.


def test_field_is_set_and_removed(state: RunState, table: Table) -> None:
    assert table.get("a") is None and table.all() == {}
    values: list[Any] = [0, "", False, [], {"x": [1, None]}]
    for value in values:
        table.set("a", value)
        assert table.get("a") == value and state.table("pool").all() == {"a": value}
    table.set("b", 1)
    table.set("a", None)
    assert table.get("a") is None and table.all() == {"b": 1}
    assert state.table("another").all() == {}


def test_damaged_field_is_named(state: RunState, table: Table) -> None:
    table.set("good", 1)
    state.redis.hset(state.keys.table("pool"), "bad", "{")
    assert table.get("good") == 1
    for use in (lambda: table.get("bad"), table.all, lambda: table.update(lambda rows: {"good": 2})):
        with pytest.raises(Corrupt, match="five:r:table:pool bad is damaged"):
            use()
    assert table.get("good") == 1


# Updates.


def test_update_sets_and_removes_fields(state: RunState, table: Table) -> None:
    table.update(lambda rows: {"a": 1, "b": [2], "c": False})
    assert table.update(lambda rows: {"a": None, "b": rows["b"] + [3]}) is True
    assert table.all() == {"b": [2, 3], "c": False} and events(state) == []


def test_update_without_a_change_writes_nothing(state: RunState, table: Table) -> None:
    table.set("a", 1)
    assert table.update(lambda rows: None, once="game-1", event=("t", "pool.changed", {})) is False
    assert table.all() == {"a": 1} and events(state) == [] and not table.seen("game-1")


def test_event_is_appended_with_the_update(state: RunState, table: Table) -> None:
    for _ in range(2):
        table.update(lambda rows: {"a": 1}, once="game-1", event=("ada", "pool.changed", {"x": 1}))
    assert events(state) == [("ada", "pool.changed", {"x": 1})]


def test_value_that_is_not_json_is_refused(state: RunState, table: Table) -> None:
    table.set("a", 1)
    with pytest.raises(ValueError):
        table.set("a", NAN)
    with pytest.raises(ValueError):
        table.update(lambda rows: {"a": 2, "b": {"x": NAN}}, once="game-1", event=("t", "pool.changed", {}))
    with pytest.raises(ValueError):
        table.update(lambda rows: {"a": 2}, once="game-1", event=("t", "pool.changed", {"x": NAN}))
    assert table.all() == {"a": 1} and events(state) == [] and not table.seen("game-1")


def test_update_sees_a_concurrent_write(state: RunState, table: Table) -> None:
    seen: list[Any] = []

    def add(rows: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(rows))
        if len(seen) == 1:
            state.table("pool").set("b", 5)
        return {"a": sum(rows.values())}

    assert table.update(add, event=("t", "pool.changed", {}))
    assert seen == [{}, {"b": 5}] and table.all() == {"a": 5, "b": 5} and len(events(state)) == 1


def test_update_that_another_process_applied_is_not_repeated(state: RunState, table: Table) -> None:
    """The other update records the identity and changes no field."""
    calls = 0

    def overtaken(rows: dict[str, Any]) -> dict[str, Any]:
        nonlocal calls
        calls += 1
        assert state.table("pool").update(lambda rows: {}, once="game-1")
        return {"a": 1}

    assert table.update(overtaken, once="game-1") is False
    assert calls == 1 and table.all() == {} and table.seen("game-1")


def test_identities_belong_to_their_table(state: RunState, table: Table) -> None:
    assert table.update(lambda rows: {"a": 1}, once="game-1") and not table.seen("game-2")
    other = state.table("another")
    assert not other.seen("game-1") and other.update(lambda rows: {"a": 1}, once="game-1")
    assert table.update(lambda rows: {"a": 2}) and table.update(lambda rows: {"a": 3}), "without an identity"
    assert table.get("a") == 3


def test_concurrent_updates_all_count(table: Table) -> None:
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


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_lost_connection_applies_an_update_once(database: redis.Redis, redis_server: RunningRedis, answer: bool
                                                ) -> None:
    """The connection is lost at each command in turn."""
    for at in range(1, 100):
        database.flushall()
        breaking = Breaking(at, answer)
        table = RunState(breaking.client(socket_path(redis_server), retries=1), "r").table("pool")
        for expected in (1, 2):
            assert table.update(lambda rows: {"n": rows.get("n", 0) + 1}, event=("t", "pool.changed", {}))
            assert RunState(database, "r").table("pool").all() == {"n": expected}
            assert len(RunState(database, "r").events.read()) == expected
        if not breaking.broken:
            break
    assert at > 6
