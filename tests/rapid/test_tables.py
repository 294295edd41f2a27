"""Tables of JSON values: atomic updates among concurrent writers, applied once, with their event."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store.errors import Corrupt
from rapid.store.keys import Keys
from rapid.store.state import RunState
from rapid.store.tables import Table, transaction
from tests.rapid.failing_redis import Breaking, socket_path

KEYS, NAN = Keys("r"), float("nan")


@pytest.fixture
def table(state: RunState) -> Table:
    return state.table("pool")


def events(state: RunState) -> list[tuple[str, str, Any]]:
    """Return the events after the fixture's."""
    return [(e.who, e.what, e.details) for e in state.events.read()[2:]]


# Transactions.


def test_transaction_returns_its_result(database: redis.Redis) -> None:
    def write(pipeline: Any) -> str:
        pipeline.multi()
        pipeline.set("a", 1)
        return "written"

    assert transaction(database, KEYS, write, "a") == "written" and database.get("a") == b"1"
    assert transaction(database, KEYS, lambda pipeline: pipeline.get("a"), "a") == b"1"


def test_function_as_result_gets_the_replies(database: redis.Redis) -> None:
    def write(pipeline: Any) -> Callable[[list[Any]], Any]:
        pipeline.multi()
        pipeline.rpush("list", "a", "b")
        pipeline.incr("count")
        return lambda replies: replies

    assert transaction(database, KEYS, write, "list") == [2, 1]
    assert transaction(database, KEYS, lambda pipeline: list, "list") == [], "nothing was written"


@pytest.mark.parametrize("watched", ["a", "b"])
def test_transaction_is_repeated_after_a_concurrent_change(database: redis.Redis, watched: str) -> None:
    tries = 0

    def write(pipeline: Any) -> int:
        nonlocal tries
        tries += 1
        seen = int(pipeline.get(watched) or 0)
        if tries < 3:
            database.incr(watched)
        pipeline.multi()
        pipeline.set("sum", seen)
        return seen

    assert transaction(database, KEYS, write, "a", "b") == 2
    assert tries == 3 and database.get("sum") == b"2"


def test_transaction_ignores_keys_that_it_does_not_watch(database: redis.Redis) -> None:
    def write(pipeline: Any) -> None:
        database.incr("other")
        pipeline.multi()
        pipeline.set("a", 1)

    transaction(database, KEYS, write, "a")
    assert database.get("other") == b"1" and database.get("a") == b"1"


def test_error_in_a_transaction_writes_nothing(database: redis.Redis) -> None:
    def fail(pipeline: Any) -> None:
        pipeline.multi()
        pipeline.set("a", 1)
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        transaction(database, KEYS, fail, "a")
    assert not database.exists("a")


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_lost_connection_applies_a_transaction_once(database: redis.Redis, redis_server: RunningRedis, answer: bool
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


def test_lost_replies_give_the_result_of_the_applied_attempt(database: redis.Redis, redis_server: RunningRedis) -> None:
    client = Breaking(3, answer=True).client(socket_path(redis_server), retries=1)  # after WATCH and GET
    results: list[str] = []

    def write(pipeline: Any) -> Callable[[list[Any] | None], Any]:
        pipeline.get("a")
        pipeline.multi()
        pipeline.rpush("list", "x")
        results.append(f"attempt {len(results)}")
        return lambda replies: (results[-1], replies)

    assert transaction(client, KEYS, write, "a") == ("attempt 0", None)
    assert transaction(client, KEYS, write, "a") == ("attempt 1", [2]) and database.llen("list") == 2


def test_attempt_that_arrives_late_is_not_repeated(database: redis.Redis, redis_server: RunningRedis) -> None:
    """The server executes an attempt of the lost connection while the next attempt reads."""
    client = Breaking(3, answer=False).client(socket_path(redis_server), retries=1)  # after WATCH and GET
    sent: list[str] = []

    def write(pipeline: Any) -> str:
        pipeline.get("a")
        if len(sent) == 1:
            (key,) = watched
            database.set(key, 0)
            database.rpush("list", "late")
        sent.append(f"attempt {len(sent)}")
        pipeline.multi()
        pipeline.rpush("list", "x")
        return sent[-1]

    watched: list[str] = []

    class Named(Keys):
        def applied(self, token: str) -> str:
            watched.append(super().applied(token))
            return watched[-1]

    assert transaction(client, Named("r"), write, "a") == "attempt 0"
    assert len(sent) == 2 and database.lrange("list", 0, -1) == [b"late"]


def test_keys_of_applied_transactions_expire(state: RunState, table: Table) -> None:
    table.update(lambda rows: None)
    before = set(state.redis.scan_iter(KEYS.applied("*")))
    table.update(lambda rows: {"a": 1})
    (key,) = set(state.redis.scan_iter(KEYS.applied("*"))) - before
    left: Any = state.redis.pttl(key)
    assert 500_000 < left <= 600_000


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
