"""What was decided in a run, when and by whom."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from services.controller.api.dependencies import Here, Viewer

router = APIRouter(tags=["events"])


@router.get("/events")
def events(caller: Viewer, here: Here, after: Annotated[str, Query(pattern=r"^(\d+-\d+)?$")] = "",
           limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[dict[str, Any]]:
    """Events after an id, oldest first; without one the newest, newest first."""
    found = here.state.events.read(after, limit) if after else here.state.events.last(limit)
    return [e._asdict() for e in found]
