"""A replicated table: replicas agree, no update is lost, and calls cost what changed."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store import replicated_table
from rapid.store.replicated_table import ReplicatedTable
from rapid.store.state import RunState
from tests.rapid.failing_redis import Breaking, socket_path


class Copy:
    """Replica of a table in one process."""

    def __init__(self, state: RunState, name: str = "pool") -> None:
        self.rows: dict[str, Any] = {}
        self.loads = 0
        self.table = ReplicatedTable(state, name, self.on_rows)

    def on_rows(self, rows: Mapping[str, Any], whole: bool) -> None:
        self.loads += whole
        self.rows = dict(rows) if whole else {**self.rows, **rows}
        self.rows = {name: row for name, row in self.rows.items() if row is not None}

    def seen(self) -> dict[str, Any]:
        self.table.refresh()
        return self.rows

    def add(self, name: str, amount: float = 1, once: str = "") -> bool:
        return self.table.update(lambda: {name: self.rows.get(name, 0) + amount}, once)


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    return RunState(database, "r")


def calls(database: redis.Redis, command: str) -> int:
    statistics: Any = database.info("commandstats")
    return int(statistics.get(f"cmdstat_{command}", {}).get("calls", 0))


def test_updates_reach_all_replicas(state: RunState) -> None:
    one, other = Copy(state), Copy(state)
    assert other.seen() == {}
    assert one.add("a") and other.add("a") and other.add("b")
    assert one.rows == {"a": 1}  # until it refreshes
    assert one.seen() == other.seen() == Copy(state).seen() == state.table("pool").all() == {"a": 2, "b": 1}
    assert one.table.update(lambda: {"a": None})
    assert other.seen() == state.table("pool").all() == {"b": 1}
    assert not one.table.update(lambda: None) and not one.table.update(lambda: {})
    assert Copy(state, "other").seen() == {}


def test_update_is_applied_once_by_any_process(state: RunState) -> None:
    one, other = Copy(state), Copy(state)
    assert one.add("a", once="game-1")
    assert not one.add("a", once="game-1") and not other.add("a", once="game-1")
    assert not Copy(state).add("a", once="game-1")
    assert other.add("a", once="game-2")
    assert one.seen() == {"a": 2}


def test_event_is_written_with_the_update(state: RunState) -> None:
    one = Copy(state)
    one.table.update(lambda: None, event=("t", "never", {}))
    one.table.update(lambda: {"a": 1}, event=("t", "pool.changed", {"x": 1}))
    assert [(e.what, e.details) for e in state.events.read()] == [("pool.changed", {"x": 1})]


def test_further_commands_run_in_the_same_step(state: RunState, database: redis.Redis) -> None:
    """They may depend on what the update writes, which is decided first."""
    one = Copy(state)
    made: list[int] = []

    def change() -> dict[str, Any]:
        made.append(len(made))
        return {"a": made[-1]}

    assert one.table.update(change, "game-1", also=lambda: [("SET", "mark", str(made[-1])), ("INCR", "count")])
    assert one.rows == {"a": 0} and database.mget("mark", "count") == [b"0", b"1"]
    assert not one.table.update(change, "game-1", also=lambda: [("INCR", "count")])
    assert not one.table.update(lambda: None, also=lambda: [("INCR", "count")])
    assert database.get("count") == b"1"
    assert Copy(state).seen() == one.seen() == {"a": 0} and one.loads == 1


def test_value_that_is_not_json_is_refused(state: RunState, database: redis.Redis) -> None:
    one = Copy(state)
    one.add("a")
    with pytest.raises(ValueError):
        one.table.update(lambda: {"a": 2, "b": [float("nan")]}, "game-1")
    assert one.rows == Copy(state).seen() == {"a": 1} and not state.table("pool").seen("game-1")


def test_no_update_is_lost_among_many_writers(state: RunState) -> None:
    copies = [Copy(state) for _ in range(4)]

    def work(copy: Copy, who: int) -> None:
        for i in range(25):
            copy.add("all")
            copy.add(f"own-{who}", once=f"{who}-{i}")
            copy.add("shared", once=f"shared-{i}")

    threads = [threading.Thread(target=work, args=(copy, i)) for i, copy in enumerate(copies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {"all": 100, "shared": 25, **{f"own-{i}": 25 for i in range(4)}}
    assert state.table("pool").all() == expected
    assert all(copy.seen() == expected for copy in copies)


def test_lost_connection_applies_an_update_once(state: RunState, redis_server: RunningRedis) -> None:
    """The connection is lost before the answer to each command in turn. Another replica writes between."""
    for at in range(1, 100):
        state.redis.flushall()
        breaking = Breaking(at, answer=True)
        one, other = Copy(RunState(breaking.client(socket_path(redis_server), retries=1), "r")), Copy(state)
        assert one.add("a") and other.add("b") and one.add("a")
        assert one.rows == other.seen() == state.table("pool").all() == {"a": 2, "b": 1}
        if not breaking.broken:
            break
    assert at > 8


def test_concurrent_write_is_not_overwritten(state: RunState) -> None:
    one, other = Copy(state), Copy(state)
    one.add("a")
    asked = 0

    def overtaken() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        if asked == 1:
            assert other.add("a", 10)
        return {"a": one.rows["a"] + 100}

    assert one.table.update(overtaken)
    assert asked > 1 and other.seen() == one.seen() == {"a": 111}


def test_call_reads_only_changes(state: RunState, database: redis.Redis) -> None:
    one, other = Copy(state), Copy(state)
    one.table.update(lambda: {str(i): i for i in range(1000)})
    other.seen()
    before, bytes_before = calls(database, "hgetall"), int(database.info("stats")["total_net_output_bytes"])
    for i in range(50):
        assert one.add(str(i)) and other.seen()[str(i)] == i + 1
    assert calls(database, "hgetall") == before
    assert int(database.info("stats")["total_net_output_bytes"]) - bytes_before < 100_000
    assert (one.loads, other.loads) == (1, 1)


def test_replica_behind_the_log_reloads_the_table(state: RunState, database: redis.Redis) -> None:
    one, other = Copy(state), Copy(state)
    one.add("a")
    assert other.seen() == {"a": 1}
    for _ in range(5):
        one.add("a")
    database.xtrim(state.keys.table_log("pool"), maxlen=3, approximate=False)
    assert other.seen() == {"a": 6} and other.loads == 2


def test_the_log_is_bounded(state: RunState, database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicated_table, "LOG_ENTRIES", 10)
    one = Copy(state)
    for _ in range(300):
        one.add("a")
    assert database.xlen(state.keys.table_log("pool")) < 250  # streams are trimmed by whole nodes of a hundred


def test_replica_follows_redis_back_after_lost_writes(state: RunState, database: redis.Redis) -> None:
    one, other = Copy(state), Copy(state)
    log, key = state.keys.table_log("pool"), state.keys.table("pool")
    one.add("a")
    saved = {name: database.dump(name) for name in (log, key)}
    one.add("a", once="lost")
    assert other.seen() == {"a": 2}
    for name, payload in saved.items():
        database.restore(name, 0, payload, replace=True)  # type: ignore[arg-type]
    database.zrem(state.keys.once("pool"), "lost")
    # Other writers have reached the same version meanwhile.
    third = Copy(state)
    third.add("b")
    assert one.seen() == other.seen() == {"a": 1, "b": 1}
    assert one.add("a", once="lost") and other.seen() == {"a": 2, "b": 1}
    database.flushall()
    assert one.seen() == {} and other.add("a") and one.seen() == {"a": 1}


def test_replica_notices_another_entry_of_the_same_id(state: RunState, database: redis.Redis) -> None:
    """A writer on a machine whose clock is behind repeats the id of a lost entry."""
    one, log = Copy(state), state.keys.table_log("pool")
    one.add("a")
    lost: Any = database.xrevrange(log, count=1)
    database.delete(log)
    database.xadd(log, {"rows": '{"b": 7}'}, id=lost[0][0])
    state.table("pool").update(lambda rows: {"a": None, "b": 7})
    assert one.seen() == {"b": 7} and one.loads == 2


@pytest.mark.parametrize("value", [41, 0, None])
def test_writer_without_log_is_not_overwritten(state: RunState, monkeypatch: pytest.MonkeyPatch, value: int | None
                                               ) -> None:
    """Such as the previous release during an upgrade."""
    one = Copy(state)
    one.add("a")
    state.table("pool").set("a", value)
    expected = (value or 0) + 1
    assert one.add("a") and one.seen() == {"a": expected}
    state.table("pool").set("b", 7)
    assert one.seen() == {"a": expected}
    monkeypatch.setattr(replicated_table, "RELOAD_SECONDS", -1.0)
    assert one.seen() == {"a": expected, "b": 7}


def test_table_without_log_is_adopted(state: RunState) -> None:
    state.table("pool").update(lambda rows: {"a": 1, "b": [0.5, 2]})
    one, other = Copy(state), Copy(state)
    assert one.seen() == other.seen() == {"a": 1, "b": [0.5, 2]}
    assert one.add("a") and other.seen() == {"a": 2, "b": [0.5, 2]}


def test_update_gives_up_after_repeated_conflicts(state: RunState) -> None:
    one, other = Copy(state), Copy(state)
    one.add("a")

    def overtaken() -> dict[str, Any]:
        other.add("a")
        return {"a": 0}

    with pytest.raises(redis.RedisError, match="100 concurrent changes"):
        one.table.update(overtaken)
    assert one.seen()["a"] > 100  # all updates of the other writer
