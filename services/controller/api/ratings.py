"""TrueSkill of versions, and win rates against bots."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from services.controller.api.dependencies import Here, Viewer
from services.controller.api.paging import Limit, Offset, Slice, cut

router = APIRouter(tags=["ratings"])
_PLAYER = "version-"


class RatingEntry(BaseModel):
    """A rated player."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "player": "version-1200", "version": 1200, "mu": 21.3, "sigma": 0.9, "games": 40, "reference": False}]})

    player: str = Field(description="A version, or a bot by its name.")
    version: int | None = Field(description="The version's number; null for a bot.")
    mu: float = Field(description="TrueSkill's mean.")
    sigma: float = Field(description="TrueSkill's standard deviation.")
    games: int | None = Field(description="Games that it was rated by; null: not known.")
    reference: bool = Field(description="Whether others are rated against it.")


class RatingPage(Slice[RatingEntry]):
    """Ratings, and how the version under test does against bots."""

    win_rates: dict[str, float] = Field(description="Share of the latest games won, by bot.")


def _number(player: str) -> int | None:
    number = player.removeprefix(_PLAYER)
    return int(number) if player.startswith(_PLAYER) and number.isdigit() else None


@router.get("/ratings")
def ratings(caller: Viewer, here: Here, limit: Limit = 100, offset: Offset = 0) -> RatingPage:
    """Rated versions, newest first, then bots."""
    rows = here.state.table("ratings").all()
    state, rates = rows.get("state") or {}, rows.get("win_rates") or {}
    references = state.get("references", {})
    found = {}
    for name, (mu, sigma) in references.items():
        found[name] = RatingEntry(player=name, version=_number(name), mu=mu, sigma=sigma, games=None, reference=True)
    for row in state.get("finished", []):
        name, skill = row["player"], row["skill"]
        found[name] = RatingEntry(player=name, version=_number(name), mu=skill["mu"], sigma=skill["sigma"],
                                  games=row["games"], reference=name in references)
    ordered = sorted(found.values(), key=lambda r: (r.version is None, -(r.version or 0), r.player))
    part = cut(ordered, offset, limit)
    return RatingPage(items=part.items, total=part.total, next=part.next,
                      win_rates={name: sum(s) / len(s) for name, s in rates.items() if s})
