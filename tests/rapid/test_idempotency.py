"""Repeated changes are applied once, at a bounded cost."""

import pytest
import redis

from rapid.store import idempotency
from rapid.store.fencing import FencingToken, fenced_write
from rapid.store.series import Series
from rapid.store.state import RunState
from tests.rapid.failing_redis import Breaking


@pytest.fixture
def state(database: redis.Redis) -> RunState:
    run = RunState(database, "r")
    run.create({}, "test")
    return run


def games(state: RunState) -> list[str]:
    return [record.values["game"] for record in Series(state.redis, "r").read("games")]


def test_repeated_record_is_appended_once(state: RunState) -> None:
    series = Series(state.redis, "r")
    records = [(name, {"game": name}) for name in ("a", "b")]
    assert series.extend_once("games", records) == 2
    assert series.extend_once("games", [*records, ("c", {"game": "c"})]) == 1
    assert games(state) == ["a", "b", "c"]


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_broken_connection_counts_each_game_once(
        state: RunState, redis_server: object, answer: bool) -> None:
    path = redis_server.url.removeprefix("unix://").partition("?")[0]  # type: ignore[attr-defined]
    breaking = Breaking(1, answer)
    Series(breaking.client(path, retries=1), "r").extend_once("games", [("a", {"game": "a"}), ("b", {"game": "b"})])
    assert breaking.broken and games(state) == ["a", "b"]
    breaking = Breaking(1, answer)
    Series(breaking.client(path, retries=1), "r").append("games", {"game": "c"})
    assert breaking.broken and games(state) == ["a", "b", "c"]


def test_fenced_write_appends_a_record_once(state: RunState) -> None:
    series, fencing_token = Series(state.redis, "r"), FencingToken("me", 1, None)
    for _ in range(2):
        fenced_write(state.redis, state.keys, fencing_token, [series.once_command("versions", "7", {"version": 7})],
                     "the record")
    assert [r.values for r in series.read("versions")] == [{"version": 7}]


def test_idempotency_keys_are_bounded(state: RunState, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "MAX_KEYS", 10)
    table = state.table("league")
    for i in range(50):
        assert table.update(lambda rows: {"n": (rows.get("n") or 0) + 1}, once=f"game-{i}")
    assert state.redis.zcard(state.keys.once("league")) == 10
    assert table.seen("game-49") and table.seen("game-40") and not table.seen("game-39")
    series = Series(state.redis, "r")
    for i in range(50):
        series.extend_once("games", [(f"game-{i}", {"game": i})])
    assert state.redis.zcard(state.keys.once_in("games")) == 10 and series.extend_once("games", [("game-49", {})]) == 0


def test_idempotency_keys_ignore_the_clock(state: RunState, monkeypatch: pytest.MonkeyPatch
                                                                   ) -> None:
    monkeypatch.setattr(idempotency, "MAX_KEYS", 3)
    table, series, fencing_token = state.table("league"), Series(state.redis, "r"), FencingToken("me", 1, None)
    for i, now in enumerate((2000.0, 2001.0, 2002.0, 1000.0, 1001.0)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        for _ in range(2):  # repeated after a lost response
            table.update(lambda rows: {"n": (rows.get("n") or 0) + 1}, once=f"game-{i}")
            series.extend_once("games", [(f"game-{i}", {"game": f"game-{i}"})])
            fenced_write(state.redis, state.keys, fencing_token,
                         [series.once_command("versions", str(i), {"version": i})], "it")
    assert table.get("n") == 5 and games(state) == [f"game-{i}" for i in range(5)]
    assert [r.values["version"] for r in series.read("versions")] == list(range(5))


def test_newest_hundred_thousand_changes_are_remembered(state: RunState) -> None:
    table, database = state.table("league"), state.redis
    database.eval("for i = 1, 99999 do redis.call('ZADD', KEYS[1], i, i) end", 1, state.keys.once("league"))
    assert table.update(lambda rows: {"n": 1}, once="new") and table.seen("1")
    assert table.update(lambda rows: {"n": 2}, once="newer")
    assert not table.seen("1") and table.seen("2") and table.seen("new") and table.seen("newer")
    assert database.zcard(state.keys.once("league")) == 100_000


def test_identities_are_recorded_in_their_order(state: RunState) -> None:
    table = state.table("league")
    for identity in ("z", "a", "m"):
        table.update(lambda rows: {}, once=identity)
        table.update(lambda rows: {}, once="z")  # a repeated change does not become the newest
    assert state.redis.zrange(state.keys.once("league"), 0, -1) == [b"z", b"a", b"m"]
