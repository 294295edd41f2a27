"""Rehearsals of plans: asked for, followed, cancelled. Others carry them out: services.controller.rehearsals."""

import time
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import DryRun, Here, Operator, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, cut
from five.services.controller.http.problems import Problem, responses
from five.services.controller.operations.document import Word
from five.services.controller.routes.run import Reason
from five.services.controller.routes.surgery import NO_RUN, PLAN, PLAN_CHARACTERS, fitting, record_of
from five.services.controller.surgery.rehearsals import (
    EXAMPLE,
    TAKES,
    Busy,
    Rehearsal,
    Rehearsals,
    RehearsalState,
    Rehearser,
    Scope,
    new,
)

router = APIRouter(prefix="/surgery", tags=["surgery"])
Identity = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9-]+$", description="The rehearsal's id.")]
NONE = "There is no such rehearsal, or no longer."
NOT_NOW = "Nobody can rehearse, another rehearsal goes on, or the plan is stale."


class ToRehearse(Scope):
    """A plan to be rehearsed, and how much."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "plan": PLAN, "versions": 20, "games": 200, "minutes": 60.0}]})

    plan: str = Field(min_length=1, max_length=PLAN_CHARACTERS, description="The plan (YAML).")
    reason: str = Field("", max_length=500, description="Why; kept with the rehearsal.")


class RehearsalList(BaseModel):
    """The rehearsals that are kept, and who would take another."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "items": [EXAMPLE], "total": 1, "next": None, "rehearser": TAKES}]})

    items: list[Rehearsal] = Field(description="The items, newest first.")
    total: int = Field(description="Items of the whole list.")
    next: int | None = Field(description="Give it as `offset` to go on; null: that was all.")
    rehearser: Rehearser | None = Field(description="Who takes requests; null: nobody does, and the command is given "
                                        "by hand.")


def command_of(name: str, scope: Scope) -> str:
    """The command that does the same."""
    return (f"five surgery rehearse {name}.yaml --versions {scope.versions} --games {scope.games} "
            f"--minutes {scope.minutes:g}")


@router.post("/rehearse", status_code=202, responses={
    200: {"description": "With dry_run: what would be asked for.", "model": Rehearsal},
    202: {"headers": {"Location": {"description": "The rehearsal.", "schema": {"type": "string"}}}},
    **responses(_404=NO_RUN, _409=NOT_NOW)})
def rehearse_surgery(caller: Operator, here: Here, body: ToRehearse, response: Response, dry_run: DryRun = False
                     ) -> Rehearsal:
    """Has a plan rehearsed on a fork of the run by the process that holds the run on one machine (`five train`): 202
    and the rehearsal; 200 with dry_run. Where no process does, as in containers, it is refused, with the command to
    give."""
    record = record_of(here)
    request = fitting(record, body.plan)
    kept = Rehearsals(here.state)
    scope = Scope(versions=body.versions, games=body.games, minutes=body.minutes)
    if kept.rehearser() is None:
        raise Problem(409, "nobody of this run can start a fork of it: `five train` can, on the machine that it runs "
                           "on; services in containers cannot. Where `five train` holds a copy of the run: "
                           f"`{command_of(request.name, scope)}`", "no-rehearser",
                      command=command_of(request.name, scope))
    try:
        rehearsal = kept.begin(new(body.plan, request.digest, request.name, record.epoch, caller.name, scope,
                                   reason=body.reason), dry_run)
    except Busy as busy:
        raise Problem(409, str(busy), "rehearsal-under-way", rehearsal=busy.rehearsal.id) from None
    if dry_run:
        response.status_code = 200
    else:
        response.headers["Location"] = f"/v1/surgery/rehearsals/{rehearsal.id}"
    return rehearsal


@router.get("/rehearsals")
def rehearsals(caller: Viewer, here: Here, limit: Limit = 100, offset: Offset = 0) -> RehearsalList:
    """The newest rehearsals, of the command as well, newest first, and who would take another."""
    kept = Rehearsals(here.state)
    part: Slice[Rehearsal] = cut(kept.all(), offset, limit)
    return RehearsalList(**dict(part), rehearser=kept.rehearser())


@router.get("/rehearsals/{identity}", responses=responses(_404=NONE))
def rehearsal(caller: Viewer, here: Here, identity: Identity) -> Rehearsal:
    """One rehearsal: how far it is, and how it went."""
    return _found(Rehearsals(here.state).get(identity), identity)


@router.post("/rehearsals/{identity}/cancel", responses=responses(_404=NONE, _409="It is over."))
def cancel_rehearsal(caller: Operator, here: Here, identity: Identity, body: Reason | None = None,
                     dry_run: DryRun = False) -> Rehearsal:
    """Has a rehearsal end: at once where nobody has taken it, else whoever carries it out ends the fork and says so."""
    kept = Rehearsals(here.state)
    word = Word(who=caller.name, at=time.time(), reason=body.reason if body else "")
    before = _found(kept.get(identity), identity)
    if before.over and before.state is not RehearsalState.CANCELLED:
        raise Problem(409, f"rehearsal {identity} is {before.state.value}: there is nothing to cancel")
    return before if dry_run else _found(kept.cancel(identity, word), identity)


def _found(rehearsal: Rehearsal | None, identity: str) -> Rehearsal:
    if rehearsal is None:
        raise Problem(404, f"there is no rehearsal {identity!r}, or no longer; GET /v1/surgery/rehearsals lists them")
    return rehearsal
