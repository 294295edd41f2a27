"""The stream's messages in order, and its comments on a clock of the test."""

import json
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis

from five.services.controller.http.dependencies import Context
from five.services.controller.http.problems import Problem
from five.services.controller.routes import stream
from five.services.controller.routes.stream import Cursor, StreamReader, stream_messages
from rapid.store.state import Status
from tests.services.controller.routes.conftest import Api
from tests.services.live_controller import problem


def read(reader: StreamReader) -> list[tuple[str, str, Any]]:
    """Return id, kind and data of the new messages."""
    found = []
    for message in reader.poll():
        fields = dict(line.split(": ", 1) for line in message.strip().split("\n"))
        found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


def test_stream_without_a_cursor_begins_now(context: Context) -> None:
    context.series.append("versions", {"version": 4})
    reader = StreamReader(context, None)
    ((identity, kind, data),) = read(reader)
    assert (identity, kind, data["status"], data["who"]) == ("", "status", "starting", "test")
    assert read(reader) == []
    event = context.state.events.append("ada", "noted", {"n": 1})
    ((identity, kind, data),) = read(reader)
    assert identity.startswith(f"{event}~") and kind == "event" and data["details"] == {"n": 1}


def test_stream_of_an_empty_store_begins_at_its_first_records(context: Context) -> None:
    context.state.redis.flushall()
    reader = StreamReader(context, None)
    assert read(reader) == []
    context.state.events.append("ada", "noted")
    context.series.append("versions", {"version": 0})
    assert [kind for _, kind, _ in read(reader)] == ["event", "version"]


def test_messages_are_ordered_by_time_across_kinds(context: Context) -> None:
    """Ids are compared as numbers: as text, 9-1 would be the last."""
    events = context.state.events.read()
    key = context.series.key("versions")
    context.series.append("versions", {"version": 1})
    ((_, row),) = context.state.redis.xrange(key)  # type: ignore[misc]
    context.state.redis.delete(key)
    for identity in ("9-1", "9-2", "9-10", "99999999999999-0"):
        context.state.redis.xadd(key, row, id=identity)
    messages = read(StreamReader(context, Cursor("0-0", "0-0")))
    last = events[-1].id
    assert [identity for identity, kind, _ in messages if kind == "version"] == [
        "0-0~9-1", "0-0~9-2", "0-0~9-10", f"{last}~99999999999999-0"]
    assert [kind for _, kind, _ in messages] == ["version"] * 3 + ["event"] * len(events) + ["version", "status"]
    again = read(StreamReader(context, Cursor(last, "9-2")))
    assert [identity for identity, kind, _ in again if kind != "status"] == [
        f"{last}~9-10", f"{last}~99999999999999-0"]


def test_status_is_sent_when_it_changes(context: Context) -> None:
    reader = StreamReader(context, None)
    read(reader)
    context.state.transition(Status.RUNNING, "ada")
    assert [data["status"] for _, kind, data in read(reader) if kind == "status"] == ["running"]
    context.state.redis.flushall()
    assert ("", "status", None) in read(reader), "the run was removed"


def test_an_invalid_cursor_is_refused(api: Api) -> None:
    for last in ("1-0", "1-0~", "~1-0", "1-0~1-0~1-0", "a-0~1-0", "1~1"):
        for path in ("/v1/stream", "/v1/console/stream"):
            refused = problem(api.ask("GET", path, headers={"Last-Event-ID": last}), 422, "invalid")
            assert refused["errors"][0]["where"] == "header.Last-Event-ID", last
    assert api.context.stream_slots.taken == 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A clock that advances by the stream's own interval of half a second at each poll."""
    found = SimpleNamespace(now=50.0)

    async def sleep(seconds: float) -> None:
        found.now += seconds

    async def to_thread(call: Any) -> Any:
        return call()

    monkeypatch.setattr(stream, "time", SimpleNamespace(monotonic=lambda: found.now))
    monkeypatch.setattr(stream, "asyncio", SimpleNamespace(sleep=sleep, to_thread=to_thread))
    yield found


def messages(context: Context, revalidate: Any = lambda: None, **extra: Any) -> AsyncIterator[str]:
    request: Any = SimpleNamespace(state=SimpleNamespace(revalidate=revalidate))
    return stream_messages(context, request, None, **extra)


async def test_idle_stream_comments_every_ten_seconds(context: Context, clock: SimpleNamespace) -> None:
    text = messages(context)
    assert await anext(text) == "retry: 2000\n\n" and (await anext(text)).startswith("event: status")
    begun = clock.now
    for beat in (1, 2):
        assert await anext(text) == ": heartbeat\n\n"
        assert clock.now - begun == 10.0 * beat


async def test_stream_reports_a_store_that_is_away(context: Context, clock: SimpleNamespace,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    text = messages(context)
    assert await anext(text) == "retry: 2000\n\n" and (await anext(text)).startswith("event: status")
    begun = clock.now
    read_status = context.state.status

    def fail() -> None:
        raise redis.ConnectionError("the store is restarting")

    monkeypatch.setattr(context.state, "status", fail)
    assert "store does not answer" in await anext(text)
    assert clock.now - begun == 2.5, "the first poll after more than two seconds"
    assert "store does not answer" in await anext(text)
    assert clock.now - begun == 5.0
    monkeypatch.setattr(context.state, "status", read_status)
    context.state.events.append("ada", "noted")
    assert "noted" in await anext(text)


async def test_messages_are_sent_although_a_part_fails(context: Context, clock: SimpleNamespace) -> None:
    """The store goes away between the two reads of one poll."""
    failures = [False, True, False]

    def part() -> list[str]:
        if failures.pop(0):
            raise redis.ConnectionError("the store is restarting")
        return ["part"]

    text = messages(context, extra=part)
    assert await anext(text) == "retry: 2000\n\n" and (await anext(text)).endswith("part")
    context.state.transition(Status.RUNNING, "ada")
    told = await anext(text)
    assert "run.running" in told and "event: status" in told and "part" not in told
    assert await anext(text) == "part"


async def test_stream_ends_with_its_caller_only(context: Context, clock: SimpleNamespace) -> None:
    answers: list[Exception | None] = [None, redis.ConnectionError("the store is restarting"), None,
                                       Problem(401, "revoked")]
    parts = iter(["a", "b", "c", "d", "e"])

    def revalidate() -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    text = [part async for part in messages(context, revalidate, extra=lambda: [next(parts)])]
    assert text[0] == "retry: 2000\n\n" and text[1].startswith("event: status") and text[1].endswith("a")
    assert text[2:] == ["b", "c", "d"] and answers == []
