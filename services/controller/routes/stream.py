"""Route /v1/stream: events, versions and status changes as server-sent events (WHATWG HTML, 9.2)."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import redis
from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from five.services.controller.http.auth import Caller
from five.services.controller.http.dependencies import Context, ContextDep, Viewer
from five.services.controller.http.problems import Problem, responses
from five.services.controller.http.slots import ReleasingResponse

router = APIRouter(tags=["events"])
POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 10.0
BATCH = 500  # events, and versions, per poll
_CURSOR = re.compile(r"(\d{1,19}-\d{1,19})~(\d{1,19}-\d{1,19})")
_FIRST = "0-0"
_EXAMPLE = """retry: 2000

event: status
data: {"status":"running","since":1789000000.0,"who":"controller","reason":""}

id: 1789000000000-0~1789000001000-0
event: version
data: {"id":"1789000001000-0","at":1789000001.0,"values":{"version":1204}}

id: 1789000002000-0~1789000001000-0
event: event
data: {"id":"1789000002000-0","at":1789000002.0,"who":"ada","what":"run.pausing","details":{}}

: heartbeat
"""


class Cursor(NamedTuple):
    """A client's position: the last event, and the last record of the series versions."""

    event: str
    version: str

    def __str__(self) -> str:
        return f"{self.event}~{self.version}"


def message(kind: str, data: Any, identity: str = "") -> str:
    """Return one message of the stream."""
    head = f"id: {identity}\n" if identity else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


class StreamReader:
    """Reader of the messages that one client has not received. Blocking."""

    def __init__(self, context: Context, cursor: Cursor | None) -> None:
        self._context = context
        self._cursor = cursor
        self._status: Any = None

    def poll(self) -> Iterator[str]:
        """Yield new messages; at first also the current status. Raise redis.RedisError."""
        context = self._context
        if self._cursor is None:  # only new messages
            event, version = context.state.events.last(1), context.series.last("versions")
            self._cursor = Cursor(event[0].id if event else _FIRST, version.id if version else _FIRST)
        now = context.state.status()
        events = context.state.events.read(self._cursor.event, BATCH)
        versions = context.series.following("versions", self._cursor.version, BATCH)
        found: list[tuple[str, str, dict[str, Any]]] = [*((e.id, "event", e._asdict()) for e in events),
                                                        *((r.id, "version", r._asdict()) for r in versions)]
        found.sort(key=lambda item: tuple(map(int, item[0].split("-"))))
        for identity, kind, data in found:
            self._cursor = self._cursor._replace(**{kind: identity})
            yield message(kind, data, str(self._cursor))
        if now != self._status:
            self._status = now
            yield message("status", None if now is None else now._asdict())


async def stream_messages(context: Context, request: Request, cursor: Cursor | None,
                          extra: Callable[[], Iterable[str]] = tuple) -> AsyncIterator[str]:
    """Yield the stream's text until the caller is no longer valid, including the messages of each call of ``extra``."""
    reader = StreamReader(context, cursor)
    revalidate = request.state.revalidate

    def read() -> str:
        found = [*reader.poll()]
        try:
            found += extra()
        except redis.RedisError:
            if not found:  # what the reader has returned must be sent: it does not return it again
                raise
        return "".join(found)

    try:
        yield "retry: 2000\n\n"
        sent_at = time.monotonic()
        while True:
            try:
                text = await asyncio.to_thread(read)
            except redis.RedisError:
                text = ": the run's store does not answer\n\n" if time.monotonic() - sent_at > POLL_SECONDS * 4 else ""
            if not text and time.monotonic() - sent_at >= HEARTBEAT_SECONDS:
                text = ": heartbeat\n\n"
            if text:
                sent_at = time.monotonic()
                yield text
            try:
                await asyncio.to_thread(revalidate)  # revoking a token ends its streams
            except redis.RedisError:
                pass  # unknown while the store is unavailable; checked again
            await asyncio.sleep(POLL_SECONDS)
    except Problem:
        return


@router.get("/stream", response_class=StreamingResponse, responses={
    200: {"description": "Messages as they arrive: `event` (as in /v1/events), `version` (as in /v1/series/versions), "
          "`status` (first and after each change), and comments as heartbeats.",
          "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}}},
    **responses(_429="Too many open streams or requests.")})
async def stream(caller: Viewer, context: ContextDep, request: Request, last: Annotated[str | None, Header(
        alias="Last-Event-ID", max_length=100, description="Id of the last message received: later messages "
        "are sent first. Without it the stream begins now.")] = None) -> StreamingResponse:
    """Stream events, status changes and new versions (server-sent events)."""
    return start_stream(context, caller, request, last)


def start_stream(context: Context, caller: Caller, request: Request, last: str | None,
                 extra: Callable[[], Iterable[str]] = tuple) -> StreamingResponse:
    """Return the response that streams the run from ``last`` on. Raise Problem 422 for an invalid cursor, and 429 if
    too many streams are open.
    """
    cursor = None
    if last:
        match = _CURSOR.fullmatch(last)
        if match is None:
            raise Problem(422, "Last-Event-ID: expected the id of a message of this stream", errors=[
                {"where": "header.Last-Event-ID", "what": "not the id of a message"}])
        cursor = Cursor(*match.groups())
    slot = context.stream_slots.take(caller)
    return ReleasingResponse(stream_messages(context, request, cursor, extra), slot.release,
                             media_type="text/event-stream",
                             headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
