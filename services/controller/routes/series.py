"""Time series of a run."""

from enum import StrEnum
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Here, Viewer
from five.services.controller.http.paging import AfterId, BeforeId, Limit, Page, page, require_one

router = APIRouter(tags=["series"])


class SeriesKind(StrEnum):
    """The series there are."""

    VERSIONS = "versions"
    GAMES = "games"
    RATINGS = "ratings"
    MATCHES = "matches"


class SeriesRecord(BaseModel):
    """One record of a series."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "1789000000000-0", "at": 1789000000.0, "values": {"version": 1204, "mu": 21.3, "sigma": 0.9}}]})

    id: str = Field(description="Its id; ids grow with time.")
    at: float = Field(description="When it was appended, seconds since the epoch.")
    values: dict[str, Any] = Field(description="Its values; each series has its own.")


@router.get("/series/{kind}")
def series(caller: Viewer, here: Here, kind: SeriesKind, limit: Limit = 100, after: AfterId = None,
           before: BeforeId = None) -> Page[SeriesRecord]:
    """The newest records of a series, newest first; with a cursor those before or after it. `versions` has one a
    version, `games` one a game, `ratings` one a rating, `matches` one a match."""
    require_one(after, before)
    found = (here.series.following(kind, after, limit) if after else
             here.series.latest(kind, limit, before or ""))
    return page([SeriesRecord.model_validate(r._asdict()) for r in found], [r.id for r in found], limit, after, before)
