"""What was decided in a run, when and by whom."""

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Here, Viewer
from five.services.controller.http.paging import AfterId, BeforeId, Limit, Page, page, require_one

router = APIRouter(tags=["events"])


class RunEvent(BaseModel):
    """Something that was decided."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "1789000000000-0", "at": 1789000000.0, "who": "ada", "what": "run.pausing",
        "details": {"from": "running", "reason": "a look at the replays"}}]})

    id: str = Field(description="Its id; ids grow with time.")
    at: float = Field(description="When, seconds since the epoch.")
    who: str = Field(description="Who: a token's name, or a part of the run.")
    what: str = Field(description="What was decided.")
    details: dict[str, Any] = Field(description="Its particulars; each kind of event has its own.")


@router.get("/events")
def events(caller: Viewer, here: Here, limit: Limit = 100, after: AfterId = None, before: BeforeId = None
           ) -> Page[RunEvent]:
    """The newest events, newest first; with a cursor those before or after it."""
    require_one(after, before)
    found = here.state.events.read(after, limit) if after else here.state.events.last(limit, before or "")
    return page([RunEvent.model_validate(e._asdict()) for e in found], [e.id for e in found], limit, after, before)
