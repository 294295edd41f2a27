"""What the console's pages are made of: one stream of everything that changes, curves, and marks on the time line.

None of it is part of the documented API: it changes with the pages. Scripts read /v1/stream, /v1/series and the rest.
"""

import json
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from five.services.controller.console.bottleneck import bottleneck
from five.services.controller.console.curves import KINDS
from five.services.controller.console.timeline import Mark
from five.services.controller.http.auth import Caller
from five.services.controller.http.dependencies import Context, Here, Viewer
from five.services.controller.http.problems import Problem
from five.services.controller.operations.store import OperationStore
from five.services.controller.routes.anneal import anneal
from five.services.controller.routes.opponents import opponents
from five.services.controller.routes.ratings import ratings
from five.services.controller.routes.revert import branches
from five.services.controller.routes.run import overview
from five.services.controller.routes.services import ServiceInstance
from five.services.controller.routes.stream import begin
from five.services.controller.surgery.rehearsals import Rehearsals

router = APIRouter(prefix="/console", tags=["console"], include_in_schema=False)
SLOW_SECONDS = 5.0  # between two looks at what moves all the time, or is large
LARGEST = 1000  # rows of a list that is sent whole


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value


def _none_without(make: Callable[[], Any]) -> Any:
    """What is there, or None where the API answers that there is nothing."""
    try:
        return make()
    except Problem as problem:
        if problem.status != 404:
            raise
        return None


def _rehearsals(kept: Rehearsals) -> dict[str, Any]:
    """Rehearsals without the plans' texts, and who would take another."""
    return {"rehearser": _plain(kept.rehearser()),
            "items": [r.model_dump(mode="json", exclude={"plan"}) for r in kept.all()]}


def quick_parts(here: Context, caller: Caller) -> dict[str, str]:
    """What is looked at every second, by name, as JSON. Raises redis.RedisError."""
    live = here.leases.live()
    newest = here.series.last("versions")
    return {name: json.dumps(_plain(value), separators=(",", ":")) for name, value in {
        "overview": _none_without(lambda: overview(here)),
        "bottleneck": bottleneck(live, newest.values if newest else {}),
        "operations": OperationStore(here.state).all()[:20],
        "rehearsals": _rehearsals(Rehearsals(here.state)),
        "anneal": _none_without(lambda: anneal(caller, here)),
        "build": here.site.build}.items()}


def slow_parts(here: Context, caller: Caller) -> dict[str, str]:
    """What is looked at every few seconds, by name, as JSON. Raises redis.RedisError."""
    return {name: json.dumps(_plain(value), separators=(",", ":")) for name, value in {
        "services": [ServiceInstance.model_validate(i._asdict()) for i in here.leases.live()],
        "league": opponents(caller, here, LARGEST, 0),
        "ratings": ratings(caller, here, LARGEST),
        "branches": branches(caller, here, LARGEST, 0)}.items()}


class Parts:
    """What one client has of the parts, and what it lacks. Blocking."""

    def __init__(self, here: Context, caller: Caller) -> None:
        self._here = here
        self._caller = caller
        self._sent: dict[str, str] = {}
        self._slow_at = 0.0

    def look(self) -> Iterator[str]:
        """Messages for the parts that have changed, all of them on the first look. Raises redis.RedisError."""
        here = self._here
        parts = here.quick.get(lambda: quick_parts(here, self._caller))
        now = time.monotonic()
        if now - self._slow_at >= SLOW_SECONDS:
            self._slow_at = now
            parts = {**parts, **here.slow.get(lambda: slow_parts(here, self._caller))}
        for name, text in parts.items():
            if self._sent.get(name) != text:
                self._sent[name] = text
                yield f"event: {name}\ndata: {text}\n\n"


@router.get("/stream")
async def console_stream(caller: Viewer, here: Here, request: Request, last: Annotated[str | None, Header(
        alias="Last-Event-ID", max_length=100)] = None) -> StreamingResponse:
    """Everything that the console shows, as it changes, on one connection: the messages of /v1/stream, and parts."""
    return begin(here, request, last, Parts(here, caller).look)


@router.get("/curves/{kind}")
def curves(caller: Viewer, here: Here, kind: str, fields: Annotated[str, Query(max_length=4000)],
           points: Annotated[int, Query(ge=10, le=4000)] = 400,
           start: Annotated[float | None, Query(alias="from")] = None,
           end: Annotated[float | None, Query(alias="to")] = None) -> dict[str, Any]:
    """Curves of some fields, comma-separated, of so many points at most."""
    if kind not in KINDS:
        raise Problem(404, f"there are no curves of {kind!r}; there are {', '.join(KINDS)}")
    return here.curves.curves(kind, sorted(set(fields.split(","))), points, start, end)


@router.get("/marks")
def marks(caller: Viewer, here: Here) -> list[Mark]:
    """What is marked on the time line, oldest first."""
    return here.marks.all()

