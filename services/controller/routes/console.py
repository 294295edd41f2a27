"""Routes below /v1/console for the console's pages: one stream of all changes, curves, and time-line events.

They are not part of the documented API and change with the pages. Scripts use /v1/stream, /v1/series and others.
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from five.services.controller.console.bottleneck import bottleneck
from five.services.controller.console.curves import KINDS
from five.services.controller.console.timeline import TimelineEvent
from five.services.controller.http.auth import Caller
from five.services.controller.http.dependencies import Context, ContextDep, Viewer
from five.services.controller.http.problems import Problem
from five.services.controller.routes.anneal import anneal
from five.services.controller.routes.opponents import opponents
from five.services.controller.routes.ratings import ratings
from five.services.controller.routes.revert import branches
from five.services.controller.routes.run import overview
from five.services.controller.routes.services import ServiceInstance
from five.services.controller.routes.stream import start_stream
from five.services.controller.surgery.rehearsals import Rehearsals

router = APIRouter(prefix="/console", tags=["console"], include_in_schema=False)
SLOW_INTERVAL_SECONDS = 5.0  # between refreshes of parts that change often or are large
MAX_ROWS = 1000  # maximum number of rows of a list


def _to_json(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_to_json(v) for v in value]
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _none_if_missing(compute: Callable[[], Any]) -> Any:
    """Return the value, or None if the API answers 404."""
    try:
        return compute()
    except Problem as problem:
        if problem.status != 404:
            raise
        return None


def _rehearsals(kept: Rehearsals) -> dict[str, Any]:
    """Return the rehearsals without their plans' texts, and the available worker."""
    return {"worker": _to_json(kept.available_worker()),
            "items": [r.model_dump(mode="json", exclude={"plan"}) for r in kept.all()]}


def fast_parts(context: Context, caller: Caller) -> dict[str, str]:
    """Return the parts that are refreshed every second, by name, as JSON. Raise redis.RedisError."""
    live = context.leases.live()
    newest = context.series.last("versions")
    return {name: json.dumps(_to_json(value), separators=(",", ":")) for name, value in {
        "overview": _none_if_missing(lambda: overview(context)),
        "bottleneck": bottleneck(live, newest.values if newest else {}),
        "operations": context.operations.all()[:20],
        "rehearsals": _rehearsals(Rehearsals(context.state)),
        "anneal": _none_if_missing(lambda: anneal(caller, context)),
        "build": context.site.build}.items()}


def slow_parts(context: Context, caller: Caller) -> dict[str, str]:
    """Return the parts that are refreshed every few seconds, by name, as JSON. Raise redis.RedisError."""
    return {name: json.dumps(_to_json(value), separators=(",", ":")) for name, value in {
        "services": [ServiceInstance.model_validate(i._asdict()) for i in context.leases.live()],
        "league": opponents(caller, context, MAX_ROWS, 0),
        "ratings": ratings(caller, context, MAX_ROWS),
        "branches": branches(caller, context, MAX_ROWS, 0)}.items()}


class ConsoleParts:
    """The parts that one client has received. Blocking."""

    def __init__(self, context: Context, caller: Caller) -> None:
        self._context = context
        self._caller = caller
        self._sent: dict[str, str] = {}
        self._slow_at = -math.inf

    def poll(self) -> Iterator[str]:
        """Yield a message for each changed part, all parts at first, and a heartbeat at each refresh of the slow parts.

        Raise redis.RedisError.
        """
        context = self._context
        parts = context.fast_parts_cache.get(lambda: fast_parts(context, self._caller))
        now = time.monotonic()
        if now - self._slow_at >= SLOW_INTERVAL_SECONDS:
            self._slow_at = now
            parts = {**parts, **context.slow_parts_cache.get(lambda: slow_parts(context, self._caller))}
            # An event, which scripts of the page receive: they do not see the stream's comments.
            yield "event: heartbeat\ndata: null\n\n"
        for name, text in parts.items():
            if self._sent.get(name) != text:
                self._sent[name] = text
                yield f"event: {name}\ndata: {text}\n\n"


@router.get("/stream")
async def console_stream(caller: Viewer, context: ContextDep, request: Request, last: Annotated[str | None, Header(
        alias="Last-Event-ID", max_length=100)] = None) -> StreamingResponse:
    """Stream everything that the console shows: the messages of /v1/stream, and parts."""
    return start_stream(context, caller, request, last, ConsoleParts(context, caller).poll)


@router.get("/curves/{kind}")
def curves(caller: Viewer, context: ContextDep, kind: str, fields: Annotated[str, Query(max_length=4000)],
           points: Annotated[int, Query(ge=10, le=4000)] = 400,
           start: Annotated[float | None, Query(alias="from")] = None,
           end: Annotated[float | None, Query(alias="to")] = None) -> dict[str, Any]:
    """Return the curves of some fields (comma-separated) with at most ``points`` points."""
    if kind not in KINDS:
        raise Problem(404, f"series {kind!r}: allowed are {', '.join(KINDS)}")
    return context.curves.curves(kind, sorted(set(fields.split(","))), points, start, end)


@router.get("/timeline")
def timeline_events(caller: Viewer, context: ContextDep) -> list[TimelineEvent]:
    """Return the events of the time line, oldest first."""
    return context.timeline.all()

