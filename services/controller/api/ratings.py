"""Ratings of a run."""

from typing import Any

from fastapi import APIRouter

from services.controller.api.dependencies import Here, Viewer

router = APIRouter(tags=["ratings"])


@router.get("/ratings")
def ratings(caller: Viewer, here: Here) -> dict[str, Any]:
    """Ratings as stored."""
    return dict(here.state.table("ratings").all())
