"""Route /v1/ratings: TrueSkill ratings of versions, and results against bots."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from five.agent.standings import Standing, player_version
from five.services.controller.http.dependencies import ContextDep, Viewer
from five.services.controller.http.paging import MAX_SAFE_INTEGER, Limit, Page, make_page, require_single_cursor

router = APIRouter(tags=["ratings"])
AfterPosition = Annotated[int | None, Query(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER,
                                            description="Return ratings after this version, oldest first; bots "
                                            "have positions below 0.")]
BeforePosition = Annotated[int | None, Query(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER,
                                             description="Return ratings before this version, newest first, then "
                                             "bots.")]


class Score(BaseModel):
    """A player's results against another one in its rated games."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "won": 12, "drawn": 8, "lost": 20, "score": 0.4, "low": 0.26, "high": 0.55}]})

    won: int = Field(description="Games won.")
    drawn: int = Field(description="Games drawn.")
    lost: int = Field(description="Games lost.")
    score: float = Field(description="Share of the games won, a draw being half.")
    low: float = Field(description="Lower end of the score's 95 % interval.")
    high: float = Field(description="Upper end of the score's 95 % interval.")


class RatingEntry(BaseModel):
    """A rated player."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "player": "version-1200", "version": 1200, "mu": 21.3, "sigma": 0.9, "games": 40, "aborted": 0,
        "reference": False, "draw_probability": 0.18, "against": {"scripted": {
            "won": 12, "drawn": 8, "lost": 20, "score": 0.4, "low": 0.26, "high": 0.55}}}]})

    player: str = Field(description="A version, or a bot by its name.")
    version: int | None = Field(description="The version's number; null for a bot.")
    mu: float = Field(description="TrueSkill's mean; random play is 0.")
    sigma: float = Field(description="TrueSkill's standard deviation, including that of the references.")
    games: int = Field(description="Number of games of the rating.")
    aborted: int = Field(description="Assigned games that could not be played.")
    reference: bool = Field(description="Whether other players are rated against it.")
    draw_probability: float = Field(description="Share of draws between equal players, estimated for this rating.")
    against: dict[str, Score] = Field(description="Results of the games, by opponent.")


def _entry(standing: Standing) -> RatingEntry:
    against = {}
    for name, (won, drawn, lost) in standing.results.items():
        score, low, high = standing.scores[name]
        against[name] = Score(won=won, drawn=drawn, lost=lost, score=score, low=low, high=high)
    return RatingEntry(
        player=standing.player, version=player_version(standing.player), mu=standing.mu,
        sigma=standing.sigma, games=standing.games, aborted=standing.aborted, reference=standing.reference,
        draw_probability=standing.draw_probability, against=against)


@router.get("/ratings")
def ratings(caller: Viewer, context: ContextDep, limit: Limit = 100, after: AfterPosition = None,
            before: BeforePosition = None) -> Page[RatingEntry]:
    """Return the rated versions, newest first, then bots, whose positions are negative."""
    require_single_cursor(after, before)
    ordered = context.ratings.ordered()
    if after is not None:
        found = [one for one in ordered if one[0] > after][-limit:][::-1]
    else:
        found = [one for one in ordered if before is None or one[0] < before][:limit]
    cursors = (None if c is None else str(c) for c in (after, before))
    positions = [str(position) for position, _ in found]
    return make_page([_entry(standing) for _, standing in found], positions, limit, *cursors)
