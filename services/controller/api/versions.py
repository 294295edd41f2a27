"""Published versions."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from rapid.store.errors import VersionMissing
from services.controller.api.dependencies import Here, Viewer
from services.controller.problems import Problem, responses

router = APIRouter(tags=["versions"])


@router.get("/versions")
def versions(caller: Viewer, here: Here, limit: Annotated[int, Query(ge=1, le=10_000)] = 100) -> list[dict[str, Any]]:
    """Published versions, newest first."""
    return [asdict(r) for r in reversed(here.store.records()[-limit:])]


@router.get("/versions/{version}", responses=responses(_404="That version was never published."))
def version(caller: Viewer, here: Here, version: int) -> dict[str, Any]:
    """A version's record and metadata."""
    record = here.store.record(version) if version >= 0 else None
    if record is None:
        raise Problem(404, f"version {version} was never published")
    try:
        meta: dict[str, Any] | None = here.store.fetch_meta(version)
    except VersionMissing:
        meta = None
    return {**asdict(record), "meta": meta}
