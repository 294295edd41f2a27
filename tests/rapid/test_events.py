"""The event log: order, paging, authors and times of events."""

import time
from typing import Any

import pytest
import redis

from rapid.embedded_redis import RunningRedis
from rapid.store.errors import Corrupt
from rapid.store.events import WRITERS, Events, event_fields
from rapid.store.keys import Keys
from tests.rapid.failing_redis import Breaking, socket_path


@pytest.fixture
def events(database: redis.Redis) -> Events:
    return Events(database, "r")


def test_event_is_read_as_it_was_appended(events: Events) -> None:
    first = events.append("ada", "run.paused", {"reason": "lunch", "at": [1, None]})
    second = events.append("bob", "run.resumed")
    found = events.read()
    assert [(e.id, e.who, e.what, e.details) for e in found] == [
        (first, "ada", "run.paused", {"reason": "lunch", "at": [1, None]}), (second, "bob", "run.resumed", {})]
    assert all(abs(e.at - time.time()) < 60 for e in found)


@pytest.mark.parametrize("answer", [False, True], ids=["before it is sent", "before its answer"])
def test_lost_connection_appends_an_event_once(events: Events, redis_server: RunningRedis, answer: bool) -> None:
    """The connection is lost at each command in turn."""
    for at in range(1, 100):
        breaking = Breaking(at, answer)
        made = Events(breaking.client(socket_path(redis_server), retries=1), "r").append("ada", f"e{at}")
        found = events.read()
        assert [e.what for e in found] == [f"e{i}" for i in range(1, at + 1)] and made in (found[-1].id, "")
        if not breaking.broken:
            break
    assert at > 2 and made


@pytest.mark.parametrize(("who", "what"), [("", "run.paused"), ("ada", ""), ("", "")])
def test_event_needs_author_and_name(events: Events, who: str, what: str) -> None:
    with pytest.raises(ValueError, match="needs who and what"):
        event_fields(who, what, {})
    with pytest.raises(ValueError, match="needs who and what"):
        events.append(who, what)
    assert events.read() == []


@pytest.mark.parametrize("details", [{"x": float("nan")}, {"x": [float("-inf")]}])
def test_details_that_are_not_json_are_refused(events: Events, details: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        events.append("ada", "run.paused", details)
    assert events.read() == []


def test_events_are_read_in_pages(events: Events) -> None:
    ids = [events.append("ada", f"e{i}") for i in range(5)]
    assert [e.id for e in events.read(limit=2)] == ids[:2]
    assert [e.id for e in events.read(after=ids[1], limit=2)] == ids[2:4]
    assert [e.id for e in events.read(after=ids[3])] == ids[4:] and events.read(after=ids[4]) == []
    assert [e.id for e in events.last(2)] == [ids[4], ids[3]]
    assert [e.id for e in events.last(9, before=ids[2])] == [ids[1], ids[0]]
    assert [e.id for e in events.last(1, before=ids[4])] == [ids[3]] and events.last(9, before=ids[0]) == []


@pytest.mark.parametrize("first", ["0", "0-0", "00-0"])
def test_nothing_precedes_the_first_id(events: Events, first: str) -> None:
    events.append("ada", "run.paused")
    assert events.last(9, before=first) == []


def test_hundred_newest_and_thousand_oldest_events_are_the_default(events: Events, database: redis.Redis) -> None:
    pipeline: Any = database.pipeline(transaction=False)
    for i in range(1001):
        pipeline.xadd(events.appended_key, event_fields("ada", f"e{i}", {}))
    pipeline.execute()
    assert [e.what for e in events.last()] == [f"e{i}" for i in range(1000, 900, -1)]
    assert [e.what for e in events.read()] == [f"e{i}" for i in range(1000)]


def test_services_with_a_stream_do_not_write_the_log(database: redis.Redis, events: Events) -> None:
    for writer in WRITERS:
        own = Events(database, "r", writer)
        own.append(writer, "something")
        assert own.read() == events.read() == [] and database.xlen(Keys("r").events_of(writer)) == 1
    for writer in ("", "controller", "rollout"):
        Events(database, "r", writer).append("ada", f"of {writer}")
    assert [e.what for e in events.read()] == ["of ", "of controller", "of rollout"]


def test_time_of_an_event_is_when_it_happened(database: redis.Redis, events: Events) -> None:
    """An event's own time if it has one, as merged events do, otherwise that of its id."""
    fields = event_fields("ada", "run.paused", {})
    database.xadd(Keys("r").events, fields, id="1700000000123-5")  # type: ignore[arg-type]
    database.xadd(Keys("r").events, {**fields, "at": "1600000000.250"}, id="1700000000123-6")  # type: ignore[dict-item]
    assert [(e.id, e.at) for e in events.read()] == [
        ("1700000000123-5", 1700000000.123), ("1700000000123-6", 1600000000.25)]
    assert [e.at for e in events.last()] == [1600000000.25, 1700000000.123]


def test_damaged_details_name_their_event(database: redis.Redis, events: Events) -> None:
    database.xadd(Keys("r").events, {"who": "ada", "what": "x", "details": "{"}, id="7-1")
    with pytest.raises(Corrupt, match="event 7-1 is damaged"):
        events.read()
