"""Long calls: where they are, who is waited for, cancel, go on."""

import time
from typing import Annotated

from fastapi import APIRouter, Path

from five.services.controller.http.dependencies import DryRun, Here, Operator, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, cut
from five.services.controller.http.problems import Problem, responses
from five.services.controller.operations.document import Operation, StepState, Word
from five.services.controller.operations.store import OperationStore
from five.services.controller.routes.run import Reason

router = APIRouter(tags=["operations"])

Identity = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9-]+$", description="The operation's id.")]
NONE = "There is no such operation."


def _found(here: Here, identity: str) -> Operation:
    operation = OperationStore(here.state).get(identity)
    if operation is None:
        raise Problem(404, f"there is no operation {identity!r}; GET /v1/operations lists them")
    return operation


@router.get("/operations")
def operations(caller: Viewer, here: Here, limit: Limit = 100, offset: Offset = 0) -> Slice[Operation]:
    """Operations, newest first; the one under way has state ``going`` or ``rolling_back``."""
    return cut(OperationStore(here.state).all(), offset, limit)


@router.get("/operations/{identity}", responses=responses(_404=NONE))
def operation(caller: Viewer, here: Here, identity: Identity) -> Operation:
    """One operation: its steps with attempt, last error and who is waited for."""
    return _found(here, identity)


@router.post("/operations/{identity}/cancel", responses=responses(_404=NONE, _409="It is over, or being published."))
def cancel_operation(caller: Operator, here: Here, identity: Identity, body: Reason | None = None,
           dry_run: DryRun = False) -> Operation:
    """Gives an operation up and puts the run back where it was. Free until publishing begins; after it there is no way
    back but a revert."""
    word = Word(who=caller.name, at=time.time(), reason=body.reason if body else "")

    def cancelled(operation: Operation) -> Operation:
        if operation.over:
            raise Problem(409, f"operation {identity} is {operation.state.value} already: {operation.outcome}")
        if operation.publishing:
            raise Problem(409, f"operation {identity} is being published, or is: it only goes forward from here. A "
                               "revert goes back to the version before it")
        return operation if operation.cancel else operation.model_copy(update={"cancel": word})

    if dry_run:
        return cancelled(_found(here, identity))
    _found(here, identity)
    return OperationStore(here.state).change(identity, cancelled)


@router.post("/operations/{identity}/continue",
             responses=responses(_404=NONE, _409="It is over, or has not come to its hold."))
def continue_operation(caller: Operator, here: Here, identity: Identity, body: Reason | None = None,
          dry_run: DryRun = False) -> Operation:
    """Lets an operation go on past its hold: what comes next is the publishing."""
    word = Word(who=caller.name, at=time.time(), reason=body.reason if body else "")

    def released(operation: Operation) -> Operation:
        step = operation.step("hold")
        if operation.over or operation.cancel:
            raise Problem(409, f"operation {identity} is {'cancelled' if operation.cancel else operation.state.value}")
        if step is None or not operation.request.hold:
            raise Problem(409, f"operation {identity} holds nowhere")
        if step.state is StepState.WAITING:
            now = operation.current
            raise Problem(409, f"operation {identity} has not come to its hold yet; it is at "
                               f"{now.name if now else 'its end'}. Look at its check first, then continue")
        return operation if operation.go_on else operation.model_copy(update={"go_on": word})

    if dry_run:
        return released(_found(here, identity))
    _found(here, identity)
    return OperationStore(here.state).change(identity, released)
