"""Time series of a run."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from services.controller.api.dependencies import Here, Viewer

router = APIRouter(tags=["series"])


@router.get("/series/{kind}")
def series(caller: Viewer, here: Here, kind: Literal["versions", "games", "ratings", "matches"],
           after: Annotated[str, Query(pattern=r"^(\d+-\d+)?$")] = "",
           limit: Annotated[int, Query(ge=1, le=10_000)] = 1000) -> list[dict[str, Any]]:
    """Records of a time series after an id, oldest first."""
    out = []
    for record in here.series.read(kind, after or "-"):
        out.append({"id": record.id, "at": record.at, **record.values})
        if len(out) == limit:
            break
    return out
