"""Route /v1/events: decisions in a run, with time and author."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import ContextDep, Viewer
from five.services.controller.http.paging import AfterId, BeforeId, Limit, Page, make_page, require_single_cursor

router = APIRouter(tags=["events"])


class RunEvent(BaseModel):
    """An event of the run."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "1789000000000-0", "at": 1789000000.0, "who": "ada", "what": "run.pausing",
        "details": {"from": "running", "reason": "a look at the replays"}}]})

    id: str = Field(description="Its id; ids grow with time.")
    at: float = Field(description="Time, seconds since the epoch.")
    who: str = Field(description="Author: a token's name, or a service.")
    what: str = Field(description="Kind of event.")
    details: dict[str, Any] = Field(description="Details, depending on the kind.")


@router.get("/events")
def events(caller: Viewer, context: ContextDep, limit: Limit = 100, after: AfterId = None, before: BeforeId = None
           ) -> Page[RunEvent]:
    """Return the newest events, newest first, or those before or after a cursor."""
    require_single_cursor(after, before)
    found = context.state.events.read(after, limit) if after else context.state.events.last(limit, before or "")
    return make_page([RunEvent.model_validate(e._asdict()) for e in found], [e.id for e in found], limit, after, before)
