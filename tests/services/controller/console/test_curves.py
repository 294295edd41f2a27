"""Curves and timeline marks: bounded points, preserved spikes, gaps, and incremental reads."""

import math

import numpy as np
import pytest
import redis

from five.services.controller.console.curves import MAX_RECORDS, Columns, Curves, downsample, numeric_fields
from five.services.controller.console.timeline import Timeline, timeline_event
from rapid.store.events import Event, Events
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
                "none": None,
            }
        )
    )
    assert found == {"mu": 3.0, "win_rates/scripted": 0.5, "bounds/scripted/0": 0.4, "bounds/scripted/1": 0.6}


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
    columns = records(20_000)
    assert 1500 < columns.length <= 2001 and columns.column("version")[-1] == 19_999
    assert np.all(np.diff(columns.column("version")) == 1) and MAX_RECORDS > 200_000


def test_large_numbers_of_versions_stay_whole() -> None:
    columns = Columns()
    columns.append(Record("1-0", 1.0, {"version": 123_456_789}))
    assert downsample(columns, ["version"], 10, None, None)["fields"]["version"]["mean"] == [123_456_789]


def test_curves_read_on_and_are_shared(redis_client: redis.Redis) -> None:
    series = Series(redis_client, "trial")
    series.extend("versions", [{"version": n} for n in range(5)])
    curves = Curves(series)
    first = curves.curves("versions", ["version"], 100)
    assert first["fields"]["version"]["mean"] == [0, 1, 2, 3, 4]
    assert curves.curves("versions", ["version"], 100) is first
    series.append("versions", {"version": 5})
    assert curves.curves("versions", ["version"], 100)["fields"]["version"]["mean"] == [0, 1, 2, 3, 4, 5]


def test_timeline_marks_selected_events_only(redis_client: redis.Redis) -> None:
    events, series = Events(redis_client, "trial"), Series(redis_client, "trial")
    events.append("ada", "run.cut_over", {"operation": "surgery-1", "plan": "wider", "version": 250})
    events.append("ada", "run.cut_over", {"operation": "revert-1", "to_version": 9, "version": 260})
    events.append("optimizer", "checkpoint.committed", {"version": 7})
    marks = Timeline(events, series)
    assert [(m.kind, m.label, m.version) for m in marks.all()] == [("surgery", "wider", 250), ("revert", "revert", 260)]
    series.append(
        "schedules",
        {
            "name": "learning_rate",
            "who": "ada",
            "after": {"initial": 1.0, "ramps": [{"start": 300, "length": 10, "to": 1e-5}]},
            "before": {},
        },
    )
    events.append("grace", "run.pausing", {"reason": "a look"})
    assert {(m.kind, m.who) for m in marks.all()[2:]} == {("ramp", "ada"), ("pause", "grace")}
    events.append("controller", "events.lost", {"writer": "optimizer", "events": 3})
    assert ("failure", "events of optimizer lost before they were recorded") in [(m.kind, m.label) for m in marks.all()]
    assert timeline_event(Event("1-0", 1.0, "optimizer", "version.published", {})) is None
