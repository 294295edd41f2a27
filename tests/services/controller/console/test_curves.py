"""Curves: bounded points, preserved spikes, gaps, and incremental reads."""

import math

import numpy as np
import pytest
import redis

from five.services.controller.console.curves import MAX_RECORDS, Columns, Curves, downsample, gaps, numeric_fields
from rapid.store.series import Record, Series


def records(count: int, step: float = 1.0) -> Columns:
    columns = Columns()
    for n in range(count):
        columns.append(
            Record(
                f"{n}-0",
                1000.0 + n * step,
                {"version": n, "wave": math.sin(n / 50), "sparse": 1.0}
                if n % 2
                else {"version": n, "wave": math.sin(n / 50)},
            )
        )
    return columns


def test_every_number_of_a_record_has_a_path() -> None:
    found = dict(
        numeric_fields(
            {
                "mu": 3,
                "ok": True,
                "who": "a",
                "win_rates": {"scripted": 0.5},
                "bounds": {"scripted": [0.4, 0.6]},
                "histogram": [1, 2, 3],
                "one": [1],
                "names": ["a", 1],
                "won": {"by": {"radiant": 2, "surrender": False}},
                "none": None,
            }
        )
    )
    assert found == {"mu": 3.0, "win_rates/scripted": 0.5, "bounds/scripted/0": 0.4, "bounds/scripted/1": 0.6,
                     "won/by/radiant": 2.0}


def test_few_records_are_returned_unchanged() -> None:
    found = downsample(records(50), ["version", "wave", "nothing"], 100, None, None)
    assert found["fields"]["version"]["mean"] == list(range(50)) and found["at"][0] == 1000.0
    assert "nothing" not in found["fields"] and "low" not in found["fields"]["wave"]


def test_downsampling_keeps_spikes() -> None:
    columns = records(20_000)
    columns.column("wave")[12_345] = 40.0
    found = downsample(columns, ["wave", "sparse"], 200, None, None)
    wave = found["fields"]["wave"]
    assert len(found["at"]) <= 200 and len(wave["mean"]) == len(wave["low"]) == len(wave["high"]) == len(found["at"])
    assert max(wave["high"]) == 40.0 and found["at"] == sorted(found["at"])
    # A mean of the right stretch, and of those that are there alone.
    assert wave["mean"][0] == pytest.approx(np.mean(np.sin(np.arange(100) / 50)), abs=0.02)
    assert set(found["fields"]["sparse"]["mean"]) == {1.0}


def test_range_includes_one_point_beyond_each_end() -> None:
    found = downsample(records(1000), ["version"], 500, 1100.0, 1200.0)
    assert found["fields"]["version"]["mean"] == list(range(99, 202))
    assert (found["first"], found["last"]) == (1000.0, 1999.0)


def test_range_without_records_is_a_gap() -> None:
    columns = records(30, step=2.0)
    columns.append(Record("9-0", 1000.0 + 29 * 2 + 600, {"version": 30}))
    assert downsample(columns, ["version"], 100, None, None)["gaps"] == [(1058.0, 1658.0)]


def test_the_oldest_records_are_dropped_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("five.services.controller.console.curves.MAX_RECORDS", 2000)
    assert [records(count).length for count in (2000, 2001, 2002)] == [2000, 2001, 1601], "a fifth is dropped at once"
    columns = records(20_000)
    assert 1500 < columns.length <= 2001 and columns.column("version")[-1] == 19_999
    assert np.all(np.diff(columns.column("version")) == 1) and MAX_RECORDS > 200_000


def test_numbers_have_six_digits_and_versions_all() -> None:
    columns = Columns()
    columns.append(Record("1-0", 1.23456, {"version": 123_456_789, "steps": 123_456_789, "loss": math.inf}))
    found = downsample(columns, ["version", "steps", "loss"], 10, None, None)
    assert {name: field["mean"] for name, field in found["fields"].items()} == {
        "version": [123_456_789], "steps": [123_457_000], "loss": [None]}
    assert found["at"] == [1.235]


def test_series_without_records_is_empty() -> None:
    assert downsample(Columns(), ["version"], 10, None, None) == {
        "total": 0, "first": None, "last": None, "names": [], "gaps": [], "at": [], "fields": {}}


def test_point_summarizes_its_interval() -> None:
    """Intervals are equally long, whatever they hold. One without records has no point, one without values None."""
    columns = Columns()
    for at, values in ((0.0048, {"loss": 1}), (1.0, {"loss": 4}), (2.0, {}), (6.0, {}), (7.0, {}), (18.0, {"loss": 7}),
                       (20.0, {"loss": -3})):
        columns.append(Record("1-0", 100.0 + at, values))
    found = downsample(columns, ["loss"], 4, None, None)
    assert found["at"] == [101.002, 106.5, 119.0] and found["total"] == 7
    assert found["fields"] == {"loss": {"mean": [2.5, None, 2.0], "low": [1.0, None, -3.0], "high": [4.0, None, 7.0]}}
    assert downsample(columns, ["loss"], 7, None, None)["fields"]["loss"] == {"mean": [1, 4, None, None, None, 7, -3]}


@pytest.mark.parametrize(("start", "end", "first", "last"), [
    (None, None, 0, 9), (3.0, 5.0, 2, 6), (2.5, 5.5, 2, 6), (None, 5.0, 0, 6), (3.0, None, 2, 9), (0.0, 9.0, 0, 9),
    (-5.0, -1.0, 0, 0), (20.0, 30.0, 9, 9)])
def test_range_is_selected_by_time(start: float | None, end: float | None, first: int, last: int) -> None:
    found = downsample(records(10), ["version"], 100, None if start is None else 1000 + start,
                       None if end is None else 1000 + end)
    assert found["fields"]["version"]["mean"] == list(range(first, last + 1)) and found["total"] == last + 1 - first
    assert (found["first"], found["last"]) == (1000.0, 1009.0), "of the whole series"


def test_unknown_columns_are_ignored_above_the_limit() -> None:
    columns = Columns()
    columns.append(Record("1-0", 1.0, {f"field-{n:03}": n for n in range(250)}))
    columns.append(Record("2-0", 2.0, {"field-249": 1, "field-199": 5, "other": 3}))
    assert columns.names() == [f"field-{n:03}" for n in range(200)]
    assert columns.column("field-199").tolist() == [199, 5] and np.isnan(columns.column("other")).all()
    assert len(columns.column("other")) == 2 and np.isnan(columns.column("field-000")[1])


@pytest.mark.parametrize(("at", "found"), [
    ([0, 1, 100], []), ([0, 1, 2, 100], [(2, 100)]), ([0, 1, 2, 17, 18], []), ([0, 1, 2, 17.5, 18.5], [(2, 17.5)]),
    ([0, 10, 20, 80, 90], []), ([0, 10, 20, 81, 91], [(20, 81)]), ([0, 99, 100, 101, 102, 203], [(0, 99), (102, 203)])])
def test_gap_is_six_usual_intervals_and_15_seconds(at: list[float], found: list[tuple[float, float]]) -> None:
    assert gaps(np.array(at, float)) == found


def test_the_newest_gaps_are_sent() -> None:
    steps = np.tile([1.0, 1.0, 100.0], 250)
    found = gaps(np.append(0.0, np.cumsum(steps)))
    assert len(found) == 200 and found[0] == (5102.0, 5202.0) and found[-1] == (25400.0, 25500.0)


def test_curves_read_on_and_are_shared(redis_client: redis.Redis) -> None:
    series = Series(redis_client, "trial")
    for n in range(5):
        redis_client.xadd(series.key("versions"), {"v": f'{{"version": {n}}}'}, id=f"{n + 1}000-0")
    curves = Curves(series)
    first = curves.curves("versions", ["version"], 100)
    assert first["fields"]["version"]["mean"] == [0, 1, 2, 3, 4]
    assert curves.curves("versions", ["version"], 100) is first
    assert curves.curves("versions", ["version"], 2)["fields"]["version"]["mean"] == [0.5, 3.0]
    assert curves.curves("versions", ["version"], 100, 1.5, 2.5)["fields"]["version"]["mean"] == [0, 1, 2]
    series.append("games", {"seconds": 7.5})
    games = curves.curves("games", ["seconds", "version"], 100)
    assert games["fields"] == {"seconds": {"mean": [7.5]}}
    series.append("versions", {"version": 5})
    assert curves.curves("versions", ["version"], 100)["fields"]["version"]["mean"] == [0, 1, 2, 3, 4, 5]
    assert curves.curves("games", ["seconds", "version"], 100) is games
    assert [len(curves._results[kind]) for kind in ("versions", "games")] == [1, 1], "older results are dropped"


def test_many_requested_ranges_leave_few_results(redis_client: redis.Redis) -> None:
    series = Series(redis_client, "trial")
    series.append("versions", {"version": 1})
    series.append("games", {"seconds": 7.5})
    curves = Curves(series)
    games, whole = curves.curves("games", ["seconds"], 100), curves.curves("versions", ["version"], 100)
    for start in range(1000):
        curves.curves("versions", ["version"], 100, float(start))
        assert curves.curves("versions", ["version"], 100) is whole, "a used result stays"
    assert len(curves._results["versions"]) == 32
    assert curves.curves("games", ["seconds"], 100) is games
