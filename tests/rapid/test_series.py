"""Time series: records stay in order, are read in pages, and are capped."""

import time

import pytest
import redis

from rapid.store import functions
from rapid.store.errors import Corrupt
from rapid.store.fencing import FencingToken, fenced_write
from rapid.store.series import Series
from rapid.store.state import RunState


@pytest.fixture
def series(database: redis.Redis) -> Series:
    return Series(database, "r")


def versions(series: Series, **options: object) -> list[int]:
    return [record.values["version"] for record in series.read("versions", **options)]  # type: ignore[arg-type]


def test_series_are_read_in_order(series: Series) -> None:
    assert series.last("versions") is None and list(series.read("versions")) == []
    series.extend("versions", [{"version": i} for i in range(7)])
    series.append("games", {"seconds": 600.5})
    rows = list(series.read("versions"))
    assert [r.values["version"] for r in rows] == list(range(7))
    assert [r.values for r in series.read("games")] == [{"seconds": 600.5}]
    last = series.last("versions")
    assert last == rows[-1] and last.values == {"version": 6} and abs(last.at - time.time()) < 60


@pytest.mark.parametrize("page", [1, 2, 3, 6, 7, 8])
def test_pages_join_without_gap_or_repetition(series: Series, page: int) -> None:
    series.extend("versions", [{"version": i} for i in range(7)])
    assert versions(series, page=page) == list(range(7))
    first = next(series.read("versions"))
    assert versions(series, after=first.id, page=page) == list(range(1, 7))
    newest = series.last("versions")
    assert newest is not None and versions(series, after=newest.id, page=page) == []


def test_last_page_costs_no_further_call(series: Series, database: redis.Redis) -> None:
    def calls() -> int:
        statistics: dict[str, dict[str, int]] = database.info("commandstats")
        return statistics.get("cmdstat_xrange", {"calls": 0})["calls"]

    series.extend("versions", [{"version": i} for i in range(5)])
    before = calls()
    assert versions(series, page=3) == list(range(5)) and calls() == before + 2


def test_newest_records_are_read_backwards(series: Series) -> None:
    series.extend("versions", [{"version": i} for i in range(7)])
    rows = list(series.read("versions"))
    assert series.latest("versions", 3) == [rows[6], rows[5], rows[4]]
    assert series.latest("versions", 3, before=rows[2].id) == [rows[1], rows[0]]
    assert series.latest("versions", 1, before=rows[6].id) == [rows[5]]
    assert series.latest("versions", 9, before=rows[0].id) == []
    assert series.latest("games", 9) == []


@pytest.mark.parametrize("first", ["0", "0-0", "00-0"])
def test_nothing_precedes_the_first_id(series: Series, first: str) -> None:
    series.append("versions", {"version": 1})
    assert series.latest("versions", 9, before=first) == []


def test_following_records_are_read_forwards(series: Series) -> None:
    series.extend("versions", [{"version": i} for i in range(5)])
    rows = list(series.read("versions"))
    assert series.following("versions", "", 2) == rows[:2]
    assert series.following("versions", rows[1].id, 2) == rows[2:4]
    assert series.following("versions", rows[3].id, 9) == rows[4:] and series.following("versions", rows[4].id, 9) == []


def test_time_of_a_record_is_that_of_its_id(series: Series, database: redis.Redis) -> None:
    database.xadd(series.key("games"), {"v": '{"a": 1}'}, id="1700000000123-5")
    last = series.last("games")
    assert last is not None and last == ("1700000000123-5", 1700000000.123, {"a": 1})


def test_each_of_many_records_is_appended_once(series: Series) -> None:
    """Several calls' worth of records, some repeated in the same call and in another one."""
    records = [(f"v-{i % 430}", {"version": i}) for i in range(450)]
    assert series.extend_once("versions", records) == 430
    assert versions(series) == list(range(430))
    assert series.extend_once("versions", [*records, ("new", {"version": 999})]) == 1
    assert series.extend_once("versions", []) == 0
    assert versions(series) == [*range(430), 999]


def test_calls_of_many_records_are_bounded(series: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call blocks the server, so a large batch is split."""
    call, sizes = functions.call, []

    def counting(client: redis.Redis, function: str, keys: list[str], *arguments: str) -> int:
        sizes.append((len(arguments) - 2) // 2)
        return int(call(client, function, keys, *arguments))

    monkeypatch.setattr(functions, "call", counting)
    series.extend_once("versions", [(str(i), {"version": i}) for i in range(450)])
    assert sizes == [200, 200, 50]


def test_record_that_is_not_json_is_refused(series: Series, database: redis.Redis) -> None:
    good, bad = {"version": 1}, {"version": float("inf")}
    with pytest.raises(ValueError):
        series.extend("versions", [good, bad])
    with pytest.raises(ValueError):
        series.extend_once("versions", [("a", good), ("b", bad)])
    with pytest.raises(ValueError):
        series.append("versions", bad)
    assert versions(series) == []
    database.xadd(series.key("versions"), {"v": "{"})
    with pytest.raises(Corrupt, match="record .* is damaged"):
        series.last("versions")


@pytest.mark.parametrize("way", ["extend", "extend_once", "fenced write"])
def test_length_is_bounded(state: RunState, way: str) -> None:
    series = Series(state.redis, "r", length=10)
    records = [{"version": i} for i in range(400)]
    if way == "extend":
        series.extend("versions", records)
    elif way == "extend_once":
        series.extend_once("versions", [(str(i), record) for i, record in enumerate(records)])
    else:
        for start in (0, 200):
            fenced_write(state.redis, state.keys, FencingToken("me", 1, None),
                         [series.command("versions", record) for record in records[start:start + 200]], "the records")
    found = versions(series)
    assert 10 <= len(found) < 250, "streams are trimmed by whole nodes of a hundred"
    assert found == list(range(400 - len(found), 400))
