"""Matches of versions against bots and each other, on request."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from five.services.controller.games.matches import OPEN, Match, Matches, MatchRequest, MatchState, TooMany
from five.services.controller.http.dependencies import DryRun, Here, Operator, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, cut
from five.services.controller.http.problems import Problem, responses

router = APIRouter(tags=["matches"])
Identity = Annotated[str, Path(pattern=r"^m-[0-9a-f]{12}$", description="The match's id.")]
NONE = "There is no such match, or no longer."


def _missing(identity: str) -> Problem:
    return Problem(404, f"there is no match {identity!r}, or no longer; GET /v1/matches lists those there are")


@router.get("/matches")
def matches(caller: Viewer, here: Here, limit: Limit = 100, offset: Offset = 0) -> Slice[Match]:
    """Matches that were asked for, newest first."""
    return cut(Matches(here.state).all(), offset, limit)


@router.post("/matches", status_code=202, responses={
    200: {"description": "With dry_run: what would be asked for.", "model": Match},
    202: {"headers": {"Location": {"description": "Where to look how far it is.", "schema": {"type": "string"}}}},
    **responses(_409="This run has no evaluator.", _429="Too many matches wait already, or too many requests.")})
def play_match(caller: Operator, here: Here, body: MatchRequest, response: Response, dry_run: DryRun = False) -> Match:
    """Has the evaluator play a match, after those that wait already; 200 with dry_run."""
    if not here.evaluator:
        raise Problem(409, "this run has no evaluator (services.evaluator.enabled): nobody would play the match")
    try:
        match = Matches(here.state).ask(body, caller.name, dry_run)
    except TooMany as error:
        raise Problem(429, str(error), headers={"Retry-After": "60"}) from None
    if dry_run:
        response.status_code = 200
        return match
    response.headers["Location"] = f"/v1/matches/{match.id}"
    return match


@router.get("/matches/{identity}", responses=responses(_404=NONE))
def match(caller: Viewer, here: Here, identity: Identity) -> Match:
    """One match: how far it is, and how it went."""
    found = Matches(here.state).get(identity)
    if found is None:
        raise _missing(identity)
    return found


@router.post("/matches/{identity}/cancel", responses=responses(_404=NONE, _409="It is over."))
def cancel_match(caller: Operator, here: Here, identity: Identity, dry_run: DryRun = False) -> Match:
    """Ends a match that waits or is played; one that is cancelled already stays so."""
    kept = Matches(here.state)
    before = kept.get(identity)
    if before is None:
        raise _missing(identity)
    found: Match | None = before
    if before.state in OPEN:
        found = before.model_copy(update={"state": MatchState.CANCELLED}) if dry_run else \
            kept.move(identity, MatchState.CANCELLED)
    if found is None:
        raise _missing(identity)
    if found.state is not MatchState.CANCELLED:
        raise Problem(409, f"match {identity} is {found.state}: there is nothing to cancel")
    return found
