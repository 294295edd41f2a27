"""The pool of past versions that games are played against."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import Here, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, cut

router = APIRouter(tags=["opponents"])
_VERSION = "version:"  # of the fields of table "league" (services.opponents.pool)


class OpponentEntry(BaseModel):
    """A past version in the pool."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "version": 1200, "quality": -0.25, "games": 44, "wins": 30}]})

    version: int = Field(description="Its number.")
    quality: float = Field(description="How hard it still is; it is drawn by the softmax of qualities.")
    games: int = Field(description="Games of the current agent against it.")
    wins: int = Field(description="How many of them the current agent has won.")


@router.get("/opponents")
def opponents(caller: Viewer, here: Here, limit: Limit = 100, offset: Offset = 0) -> Slice[OpponentEntry]:
    """The opponent pool, newest version first."""
    rows = here.state.table("league").all()
    pool = sorted((OpponentEntry(version=int(name.removeprefix(_VERSION)), quality=row[0], games=row[1], wins=row[2])
                   for name, row in rows.items() if name.startswith(_VERSION)), key=lambda o: -o.version)
    return cut(pool, offset, limit)
