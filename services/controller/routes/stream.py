"""What happens in a run as it happens: server-sent events (WHATWG HTML, 9.2)."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple

import redis
from fastapi import APIRouter, Header, Request
from fastapi.responses import StreamingResponse

from five.services.controller.http.dependencies import Context, Here, Viewer
from five.services.controller.http.problems import Problem, responses

router = APIRouter(tags=["events"])
LOOK_SECONDS = 0.5
HEARTBEAT_SECONDS = 10.0
BATCH = 500  # of events, and of versions, that one look takes in
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
    """How far a client has read: the last event, and the last record of the series versions."""

    event: str
    version: str

    def __str__(self) -> str:
        return f"{self.event}~{self.version}"

def message(kind: str, data: Any, identity: str = "") -> str:
    """One message of the stream."""
    head = f"id: {identity}\n" if identity else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n"


class Reader:
    """What one client has not been told yet. Blocking."""

    def __init__(self, here: Context, cursor: Cursor | None) -> None:
        self._here = here
        self._cursor = cursor
        self._status: Any = None

    def look(self) -> Iterator[str]:
        """Messages for what is new; on the first look the status as it is. Raises redis.RedisError."""
        here = self._here
        if self._cursor is None:  # what happens from now on
            event, version = here.state.events.last(1), here.series.last("versions")
            self._cursor = Cursor(event[0].id if event else _FIRST, version.id if version else _FIRST)
        now = here.state.status()
        found: list[tuple[str, str, dict[str, Any]]] = [
            *((e.id, "event", e._asdict()) for e in here.state.events.read(self._cursor.event, BATCH)),
            *((r.id, "version", r._asdict()) for r in here.series.following("versions", self._cursor.version, BATCH))]
        found.sort(key=lambda item: tuple(map(int, item[0].split("-"))))
        for identity, kind, data in found:
            self._cursor = self._cursor._replace(**{kind: identity})
            yield message(kind, data, str(self._cursor))
        if now != self._status:
            self._status = now
            yield message("status", None if now is None else now._asdict())


async def follow(here: Context, request: Request, cursor: Cursor | None, also: Callable[[], Iterable[str]] = tuple
                 ) -> AsyncIterator[str]:
    """The stream's text, until the token holds no more, with the messages that each call of ``also`` has besides.
    Gives its place back at the end."""
    reader = Reader(here, cursor)
    still = request.state.still
    here.streams += 1
    try:
        yield "retry: 2000\n\n"
        heard = time.monotonic()
        while True:
            try:
                text = "".join(await asyncio.to_thread(lambda: [*reader.look(), *also()]))
            except redis.RedisError:
                text = ": the run's store does not answer\n\n" if time.monotonic() - heard > LOOK_SECONDS * 4 else ""
            if not text and time.monotonic() - heard >= HEARTBEAT_SECONDS:
                text = ": heartbeat\n\n"
            if text:
                heard = time.monotonic()
                yield text
            try:
                await asyncio.to_thread(still)  # one that was revoked ends its streams
            except redis.RedisError:
                pass  # nobody knows: it is asked again
            await asyncio.sleep(LOOK_SECONDS)
    except Problem:
        return
    finally:
        here.streams -= 1


@router.get("/stream", response_class=StreamingResponse, responses={
    200: {"description": "Messages as they come: `event` (as in /v1/events), `version` (as in /v1/series/versions), "
          "`status` (at the beginning and after each change), and comments as heartbeats.",
          "content": {"text/event-stream": {"schema": {"type": "string"}, "example": _EXAMPLE}}},
    **responses(_429="Too many clients read the stream already, or too many requests.")})
async def stream(caller: Viewer, here: Here, request: Request, last: Annotated[str | None, Header(
        alias="Last-Event-ID", max_length=100, description="Id of the last message that was seen: what has come since "
        "then is sent first. Without it the stream begins now.")] = None) -> StreamingResponse:
    """Events, status changes and new versions as they come (server-sent events)."""
    return begin(here, request, last)


def begin(here: Context, request: Request, last: str | None, also: Callable[[], Iterable[str]] = tuple
          ) -> StreamingResponse:
    """The answer that follows the run from ``last`` on. Raises Problem 422 for an invalid cursor, 429 when too many
    read streams."""
    cursor = None
    if last:
        match = _CURSOR.fullmatch(last)
        if match is None:
            raise Problem(422, "Last-Event-ID: give the id of a message of this stream", errors=[
                {"where": "header.Last-Event-ID", "what": "is no id of a message"}])
        cursor = Cursor(*match.groups())
    if here.streams >= here.limits.streams:
        raise Problem(429, f"{here.streams} clients read the stream, that is all there may be; GET /v1/events gives "
                      "the same by asking", headers={"Retry-After": "10"})
    return StreamingResponse(follow(here, request, cursor, also), media_type="text/event-stream",
                             headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
