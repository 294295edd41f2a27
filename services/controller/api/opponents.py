"""The opponent pool of a run."""

from typing import Any

from fastapi import APIRouter

from services.controller.api.dependencies import Here, Viewer

router = APIRouter(tags=["opponents"])


@router.get("/opponents")
def opponents(caller: Viewer, here: Here) -> dict[str, Any]:
    """The opponent pool as stored."""
    return dict(here.state.table("league").all())
