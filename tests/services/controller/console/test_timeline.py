"""The console's time line: which events it shows, as what, and how it reads on."""

import json
from typing import Any

import pytest
import redis

from five.services.controller.console import timeline as module
from five.services.controller.console.timeline import Timeline, schedule_event, timeline_event
from rapid.store.events import Event, Events
from rapid.store.series import Record, Series


@pytest.mark.parametrize(("what", "details", "kind", "label"), [
    ("run.created", {}, "start", "created"), ("run.starting", {}, "start", "starting"),
    ("run.pausing", {}, "pause", "pausing"), ("run.pausing", {"reason": "a look"}, "pause", "pausing: a look"),
    ("run.stopping", {"reason": ""}, "stop", "stopping"), ("run.failed", {"reason": "NaN"}, "failure", "failed: NaN"),
    ("run.restored", {}, "restart", "restored"),
    ("optimizer.resumed", {"reason": "x"}, "restart", "optimizer resumed from a checkpoint"),
    ("operation.failed", {"kind": "surgery", "plan": "wider", "reason": "x"}, "failure", "surgery failed: wider"),
    ("operation.failed", {}, "failure", "operation failed: "),
    ("events.lost", {"writer": "optimizer", "reason": "x"}, "failure",
     "events of optimizer lost before they were recorded"),
    ("run.cut_over", {"operation": "surgery-1", "plan": "wider", "name": "b"}, "surgery", "wider"),
    ("run.cut_over", {"operation": "surgery-1", "name": "b"}, "surgery", "b"),
    ("run.cut_over", {"operation": "surgery-1"}, "surgery", "surgery"), ("run.cut_over", {}, "surgery", "surgery"),
    ("run.cut_over", {"operation": "revert-2", "reason": "x"}, "revert", "revert"),
    ("run.cut_over", {"operation": "revert-2", "name": "before it"}, "revert", "before it"),
    ("anneal.made_the_game", {"anneal": "share"}, "anneal", "share: made the game"),
    ("anneal.paused", {"anneal": "share", "reason": "x"}, "anneal", "share: paused"),
    ("anneal.paused", {}, "anneal", "anneal: paused")])
def test_event_is_labelled(what: str, details: dict[str, Any], kind: str, label: str) -> None:
    found = timeline_event(Event("1-0", 12.5, "ada", what, details))
    assert found is not None and (found.kind, found.label) == (kind, label)
    assert (found.at, found.who, found.version) == (12.5, "ada", None)


@pytest.mark.parametrize("what", ["checkpoint.committed", "version.published", "run.running", "anneal", "annealed.x",
                                  "surgery.planned", "match.asked", ""])
def test_other_events_have_no_entry(what: str) -> None:
    assert timeline_event(Event("1-0", 1.0, "optimizer", what, {"version": 7})) is None


@pytest.mark.parametrize(("version", "shown"), [(0, 0), (250, 250), ("250", None), (None, None), (2.5, None)])
def test_entry_has_a_whole_version_or_none(version: Any, shown: int | None) -> None:
    found = timeline_event(Event("1-0", 1.0, "ada", "run.pausing", {"version": version}))
    assert found is not None and found.version == shown


def test_long_reason_is_cut() -> None:
    found = timeline_event(Event("1-0", 1.0, "ada", "run.failed", {"reason": "x" * 1000}))
    assert found is not None and found.label == f"failed: {'x' * 192}"


@pytest.mark.parametrize(("row", "label", "version"), [
    ({"name": "learning_rate", "after": {"ramps": [{"start": 5, "to": 1}, {"start": 300, "to": 1e-05}]}},
     "learning rate to 1e-05", 300),
    ({"name": "learning_rate", "after": {"ramps": [{"start": 5, "to": 1}, {"start": 300, "to": 2}, {"start": 9}]}},
     "learning rate to ?", 9),
    ({"name": "team_spirit", "after": {"ramps": [{"start": 7, "to": 0.5}]}, "reverts": "1-0"}, "team spirit restored",
     7),
    ({"name": "learning_rate", "after": {"unit": "hero_steps", "ramps": [{"start": 10**6, "to": 1}]}},
     "learning rate to 1", None),
    ({"name": "team_spirit", "after": {"ramps": []}}, "team spirit to ?", None),
    ({"name": "team_spirit", "after": {}}, "team spirit to ?", None), ({}, "schedule to ?", None)])
def test_schedule_change_shows_its_last_ramp(row: dict[str, Any], label: str, version: int | None) -> None:
    found = schedule_event(Record("1-0", 3.5, {**row, "who": "ada"} if row else row))
    assert (found.kind, found.label, found.version, found.at) == ("ramp", label, version, 3.5)
    assert found.who == ("ada" if row else "")


def schedule(to: int) -> dict[str, Any]:
    return {"name": "lr", "who": "ada", "after": {"ramps": [{"start": to, "length": 10, "to": to}]}, "before": {}}


def test_timeline_reads_on_in_order_of_time(redis_client: redis.Redis) -> None:
    events, series = Events(redis_client, "trial"), Series(redis_client, "trial")
    found = Timeline(events, series)

    def add_event(what: str, second: int) -> None:
        fields: Any = {"who": "ada", "what": what, "details": json.dumps({"version": second})}
        redis_client.xadd(events.appended_key, fields, id=f"{second}000-0")

    def add_schedule(second: int) -> None:
        redis_client.xadd(series.key("schedules"), {"v": json.dumps(schedule(second))}, id=f"{second}000-0")

    assert found.all() == []
    add_event("run.starting", 10)
    add_event("run.cut_over", 11)
    add_event("checkpoint.committed", 12)
    assert [entry.version for entry in found.all()] == [10, 11]
    add_schedule(13)
    assert [entry.version for entry in found.all()] == [10, 11, 13]
    add_schedule(15)
    add_event("run.pausing", 14)
    for _ in range(2):
        assert [(entry.kind, entry.version, entry.at) for entry in found.all()] == [
            ("start", 10, 10.0), ("surgery", 11, 11.0), ("ramp", 13, 13.0), ("pause", 14, 14.0), ("ramp", 15, 15.0)]


def test_timeline_has_the_newest_of_each_source(redis_client: redis.Redis) -> None:
    """Many changes of schedules do not displace the run's own events."""
    events, series = Events(redis_client, "trial"), Series(redis_client, "trial")
    events.append("ada", "run.starting")
    series.extend("schedules", [schedule(version) for version in range(5002)])
    found = Timeline(events, series).all()
    assert found[0].kind == "start" and len(found) == 5001
    assert [entry.version for entry in found[1:]] == list(range(2, 5002))


def test_events_are_read_page_by_page(redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EVENTS", 3)
    pipeline = redis_client.pipeline()
    for version in range(1500):
        pipeline.xadd(Events(redis_client, "trial").appended_key, {
            "who": "ada", "what": "run.pausing", "details": f'{{"version": {version}}}'})
    pipeline.execute()
    found = Timeline(Events(redis_client, "trial"), Series(redis_client, "trial"))
    assert [entry.version for entry in found.all()] == [1497, 1498, 1499]
