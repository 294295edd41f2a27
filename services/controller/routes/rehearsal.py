"""Routes for rehearsals of plans below /v1/surgery. The controller stores requests; a worker carries them out
(services.controller.surgery.rehearsals)."""

import time
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from five.services.controller.http.dependencies import ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, make_slice
from five.services.controller.http.problems import Problem, responses
from five.services.controller.operations.document import OperatorDecision
from five.services.controller.routes.run import Reason
from five.services.controller.routes.surgery import NO_RUN, PLAN, PLAN_CHARACTERS, fit_plan, require_record
from five.services.controller.surgery.rehearsals import (
    EXAMPLE,
    WORKER_EXAMPLE,
    Rehearsal,
    RehearsalInProgress,
    Rehearsals,
    RehearsalScope,
    RehearsalState,
    RehearsalWorker,
    new_rehearsal,
)

router = APIRouter(prefix="/surgery", tags=["surgery"])
Identity = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9-]+$", description="The rehearsal's id.")]
NONE = "There is no such rehearsal."
NOT_NOW = "No worker is available, another rehearsal is in progress, or the plan is stale."


class RehearsalRequest(RehearsalScope):
    """A plan to rehearse, and the size of the rehearsal."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{
        "plan": PLAN, "versions": 20, "games": 200, "minutes": 60.0}]})

    plan: str = Field(min_length=1, max_length=PLAN_CHARACTERS, description="The plan (YAML).")
    reason: str = Field("", max_length=500, description="Reason; stored with the rehearsal.")


class RehearsalList(BaseModel):
    """The stored rehearsals and the available worker."""

    model_config = ConfigDict(json_schema_extra={"examples": [{
        "items": [EXAMPLE], "total": 1, "next": None, "worker": WORKER_EXAMPLE}]})

    items: list[Rehearsal] = Field(description="The items, newest first.")
    total: int = Field(description="Number of items in the whole list.")
    next: int | None = Field(description="`offset` of the next page; null: none.")
    worker: RehearsalWorker | None = Field(
        description="The worker that accepts requests; null: none, so use the command line.")


def command_of(name: str, scope: RehearsalScope) -> str:
    """Return the equivalent command line."""
    return (f"five surgery rehearse {name}.yaml --versions {scope.versions} --games {scope.games} "
            f"--minutes {scope.minutes:g}")


@router.post("/rehearse", status_code=202, responses={
    200: {"description": "With dry_run: the rehearsal that would be requested.", "model": Rehearsal},
    202: {"headers": {"Location": {"description": "The rehearsal.", "schema": {"type": "string"}}}},
    **responses(_404=NO_RUN, _409=NOT_NOW)})
def rehearse_surgery(caller: Operator, context: ContextDep, body: RehearsalRequest, response: Response,
                     dry_run: DryRun = False) -> Rehearsal:
    """Rehearse a plan on a fork of the run, in the `five train` process: 202 and the rehearsal; 200 with dry_run.

    Without such a process, as in containers, the request is refused with the equivalent command.
    """
    record = require_record(context)
    request = fit_plan(record, body.plan)
    store = Rehearsals(context.state)
    scope = RehearsalScope(versions=body.versions, games=body.games, minutes=body.minutes)
    if store.available_worker() is None:
        raise Problem(409, "no rehearsal worker is available: only `five train` can fork the run, on its own machine; "
                           "services in containers cannot. On a machine with the run's folder, use: "
                           f"`{command_of(request.name, scope)}`", "no-rehearsal-worker",
                      command=command_of(request.name, scope))
    try:
        rehearsal = store.begin(new_rehearsal(body.plan, request.digest, request.name, record.epoch, caller.name, scope,
                                              reason=body.reason), dry_run)
    except RehearsalInProgress as busy:
        raise Problem(409, str(busy), "rehearsal-in-progress", rehearsal=busy.rehearsal.id) from None
    if dry_run:
        response.status_code = 200
    else:
        response.headers["Location"] = f"/v1/surgery/rehearsals/{rehearsal.id}"
    return rehearsal


@router.get("/rehearsals")
def rehearsals(caller: Viewer, context: ContextDep, limit: Limit = 100, offset: Offset = 0) -> RehearsalList:
    """Return the newest rehearsals, including those of the command line, and the available worker."""
    store = Rehearsals(context.state)
    part: Slice[Rehearsal] = make_slice(store.all(), offset, limit)
    return RehearsalList(**dict(part), worker=store.available_worker())


@router.get("/rehearsals/{identity}", responses=responses(_404=NONE))
def rehearsal(caller: Viewer, context: ContextDep, identity: Identity) -> Rehearsal:
    """Return one rehearsal: its progress and result."""
    return _require(Rehearsals(context.state).get(identity), identity)


@router.post("/rehearsals/{identity}/cancel", responses=responses(_404=NONE, _409="The rehearsal is over."))
def cancel_rehearsal(caller: Operator, context: ContextDep, identity: Identity, body: Reason | None = None,
                     dry_run: DryRun = False) -> Rehearsal:
    """Cancel a rehearsal: at once if it is waiting; otherwise its worker ends the fork and reports it."""
    store = Rehearsals(context.state)
    decision = OperatorDecision(who=caller.name, at=time.time(), reason=body.reason if body else "")
    before = _require(store.get(identity), identity)
    if before.is_over and before.state is not RehearsalState.CANCELLED:
        raise Problem(409,
                      f"rehearsal {identity} is {before.state.value}: only an unfinished rehearsal can be cancelled")
    return before if dry_run else _require(store.cancel(identity, decision), identity)


def _require(rehearsal: Rehearsal | None, identity: str) -> Rehearsal:
    if rehearsal is None:
        raise Problem(404, f"rehearsal {identity!r} does not exist; GET /v1/surgery/rehearsals lists all")
    return rehearsal
