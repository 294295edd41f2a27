"""Route /v1/series: time series of a run."""

from enum import StrEnum
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import ContextDep, Viewer
from five.services.controller.http.paging import AfterId, BeforeId, Limit, Page, make_page, require_single_cursor

router = APIRouter(tags=["series"])
RENAMED = {"arm": "variant"}  # keys in records of earlier versions


class SeriesKind(StrEnum):
    """The available series."""

    VERSIONS = "versions"
    GAMES = "games"
    RATINGS = "ratings"
    MATCHES = "matches"


class SeriesRecord(BaseModel):
    """A record of a series."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "id": "1789000000000-0", "at": 1789000000.0, "values": {"version": 1204, "mu": 21.3, "sigma": 0.9}}]})

    id: str = Field(description="Its id; ids grow with time.")
    at: float = Field(description="Time, seconds since the epoch.")
    values: dict[str, Any] = Field(description="Its values, depending on the series.")


@router.get("/series/{kind}")
def series(caller: Viewer, context: ContextDep, kind: SeriesKind, limit: Limit = 100, after: AfterId = None,
           before: BeforeId = None) -> Page[SeriesRecord]:
    """Return the newest records of a series, newest first, or those before or after a cursor. The series hold one
    record per version, game, rating or match.
    """
    require_single_cursor(after, before)
    found = (context.series.following(kind, after, limit) if after else
             context.series.latest(kind, limit, before or ""))
    records = [SeriesRecord(id=r.id, at=r.at, values={RENAMED.get(key, key): value for key, value in r.values.items()})
               for r in found]
    return make_page(records, [r.id for r in found], limit, after, before)
