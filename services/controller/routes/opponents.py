"""Route /v1/opponents: the pool of past versions."""

from collections.abc import Sequence
from typing import Any

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
    table = context.state.table("league")
    texts = table.texts()
    names = sorted((name for name in texts if name.startswith(_VERSION)), key=_version, reverse=True)
    page = make_slice(names, offset, limit)
    return Slice(items=[_entry(name, table.parse(name, texts[name])) for name in page.items], total=page.total,
                 next=page.next)


def _version(name: str) -> int:
    return int(name.removeprefix(_VERSION))


def _entry(name: str, row: Sequence[Any]) -> OpponentEntry:
    return OpponentEntry(version=_version(name), quality=row[0], games=row[1], wins=row[2])
