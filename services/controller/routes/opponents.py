"""Route /v1/opponents: the pool of past versions."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import ContextDep, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, make_slice

router = APIRouter(tags=["opponents"])
_VERSION = "version:"  # prefix of the fields of table "league" (services.opponents.pool)


class OpponentEntry(BaseModel):
    """A past version in the pool."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "version": 1200, "quality": -0.25, "games": 44, "wins": 30}]})

    version: int = Field(description="Its number.")
    quality: float = Field(description="Its quality score: opponents are sampled by the softmax of their qualities.")
    games: int = Field(description="Games of the current agent against it.")
    wins: int = Field(description="Games that the current agent has won.")


@router.get("/opponents")
def opponents(caller: Viewer, context: ContextDep, limit: Limit = 100, offset: Offset = 0) -> Slice[OpponentEntry]:
    """Return the opponent pool, newest version first."""
    rows = context.state.table("league").all()
    pool = sorted((OpponentEntry(version=int(name.removeprefix(_VERSION)), quality=row[0], games=row[1], wins=row[2])
                   for name, row in rows.items() if name.startswith(_VERSION)), key=lambda o: -o.version)
    return make_slice(pool, offset, limit)
