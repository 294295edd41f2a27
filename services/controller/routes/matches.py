"""Routes below /v1/matches: matches on request between versions and bots."""

from typing import Annotated

from fastapi import APIRouter, Path, Response

from five.services.controller.games.matches import (
    OPEN_STATES,
    MatchQueue,
    MatchRequest,
    MatchState,
    QueueFull,
    RequestedMatch,
)
from five.services.controller.http.dependencies import ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, make_slice
from five.services.controller.http.problems import Problem, responses

router = APIRouter(tags=["matches"])
Identity = Annotated[str, Path(pattern=r"^m-[0-9a-f]{12}$", description="The match's id.")]
NONE = "There is no such match."


def _not_found(identity: str) -> Problem:
    return Problem(404, f"match {identity!r} does not exist; GET /v1/matches lists all")


@router.get("/matches")
def matches(caller: Viewer, context: ContextDep, limit: Limit = 100, offset: Offset = 0) -> Slice[RequestedMatch]:
    """Return the requested matches, newest first."""
    return make_slice(MatchQueue(context.state).all(), offset, limit)


@router.post("/matches", status_code=202, responses={
    200: {"description": "With dry_run: the match that would be queued.", "model": RequestedMatch},
    202: {"headers": {"Location": {"description": "The match.", "schema": {"type": "string"}}}},
    **responses(_409="This run has no evaluator.", _429="Too many open matches or requests.")})
def play_match(caller: Operator, context: ContextDep, body: MatchRequest, response: Response,
               dry_run: DryRun = False) -> RequestedMatch:
    """Queue a match for the evaluator; 200 with dry_run."""
    if not context.evaluator:
        raise Problem(409, "this run has no evaluator to play matches: set services.evaluator.enabled")
    try:
        match = MatchQueue(context.state).add(body, caller.name, dry_run)
    except QueueFull as error:
        raise Problem(429, str(error), headers={"Retry-After": "60"}) from None
    if dry_run:
        response.status_code = 200
        return match
    response.headers["Location"] = f"/v1/matches/{match.id}"
    return match


@router.get("/matches/{identity}", responses=responses(_404=NONE))
def match(caller: Viewer, context: ContextDep, identity: Identity) -> RequestedMatch:
    """Return one match: its progress and results."""
    found = MatchQueue(context.state).get(identity)
    if found is None:
        raise _not_found(identity)
    return found


@router.post("/matches/{identity}/cancel", responses=responses(_404=NONE, _409="The match is over."))
def cancel_match(caller: Operator, context: ContextDep, identity: Identity, dry_run: DryRun = False) -> RequestedMatch:
    """Cancel a waiting or running match. Cancelling it again has no effect."""
    queue = MatchQueue(context.state)
    before = queue.get(identity)
    if before is None:
        raise _not_found(identity)
    found: RequestedMatch | None = before
    if before.state in OPEN_STATES:
        found = before.model_copy(update={"state": MatchState.CANCELLED}) if dry_run else \
            queue.transition(identity, MatchState.CANCELLED)
    if found is None:
        raise _not_found(identity)
    if found.state is not MatchState.CANCELLED:
        raise Problem(409, f"match {identity} is {found.state}: only a waiting or running match can be cancelled")
    return found
