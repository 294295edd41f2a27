"""Routes below /v1/operations: progress of operations, cancel, continue."""

import time
from typing import Annotated

from fastapi import APIRouter, Path

from five.services.controller.http.dependencies import ContextDep, DryRun, Operator, Viewer
from five.services.controller.http.paging import Limit, Offset, Slice, make_slice
from five.services.controller.http.problems import Problem, responses
from five.services.controller.operations.document import (
    Operation,
    OperationKind,
    OperationState,
    OperatorDecision,
    StepState,
)
from five.services.controller.operations.store import OperationStore
from five.services.controller.routes.run import Reason

router = APIRouter(tags=["operations"])

Identity = Annotated[str, Path(max_length=100, pattern=r"^[A-Za-z0-9-]+$", description="The operation's id.")]
NONE = "There is no such operation."


def _require(context: ContextDep, identity: str) -> Operation:
    operation = OperationStore(context.state).get(identity)
    if operation is None:
        raise Problem(404, f"operation {identity!r} does not exist; GET /v1/operations lists all")
    return operation


@router.get("/operations")
def operations(caller: Viewer, context: ContextDep, limit: Limit = 100, offset: Offset = 0) -> Slice[Operation]:
    """Return the operations, newest first. The active one has state `going` or `rolling_back`."""
    return make_slice(OperationStore(context.state).all(), offset, limit)


@router.get("/operations/{identity}", responses=responses(_404=NONE))
def operation(caller: Viewer, context: ContextDep, identity: Identity) -> Operation:
    """Return one operation: its steps with attempt, last error, and what they wait for."""
    return _require(context, identity)


@router.post("/operations/{identity}/cancel", responses=responses(_404=NONE,
                                                                  _409="The operation is over or publishing."))
def cancel_operation(caller: Operator, context: ContextDep, identity: Identity, body: Reason | None = None,
                     dry_run: DryRun = False) -> Operation:
    """Cancel an operation and roll the run back. Possible until publishing begins; after that only a revert goes
    back."""
    decision = OperatorDecision(who=caller.name, at=time.time(), reason=body.reason if body else "")

    def cancelled(operation: Operation) -> Operation:
        if operation.state is OperationState.CANCELLED:
            return operation
        if operation.is_over:
            raise Problem(409, f"operation {identity} is already {operation.state.value}: {operation.outcome}")
        if operation.publishing:
            progress, instead = "is publishing or published", "revert to the version before it"
            if operation.kind is OperationKind.ANNEAL:
                progress, instead = "begins its anneal", "abort the anneal"
            raise Problem(409, f"operation {identity} {progress} and can no longer be cancelled: {instead} instead")
        return operation if operation.cancel else operation.model_copy(update={"cancel": decision})

    if dry_run:
        return cancelled(_require(context, identity))
    _require(context, identity)
    return OperationStore(context.state).change(identity, cancelled)


@router.post("/operations/{identity}/continue",
             responses=responses(_404=NONE, _409="The operation is over, or has not reached its hold."))
def continue_operation(caller: Operator, context: ContextDep, identity: Identity, body: Reason | None = None,
                       dry_run: DryRun = False) -> Operation:
    """Let an operation continue past its hold; publishing comes next."""
    decision = OperatorDecision(who=caller.name, at=time.time(), reason=body.reason if body else "")

    def released(operation: Operation) -> Operation:
        step = operation.step("hold")
        if operation.cancel or operation.state is not OperationState.GOING:
            state = "cancelled" if operation.cancel else operation.state.value.replace("_", " ")
            raise Problem(409, f"operation {identity} is {state}")
        if step is None or not operation.request.hold:
            raise Problem(409, f"operation {identity} has no hold")
        if step.state is StepState.WAITING:
            now = operation.current
            raise Problem(409, f"operation {identity} has not reached its hold yet; it is at "
                               f"{now.name if now else 'its end'}. Read its check first, then continue")
        return operation if operation.go_on else operation.model_copy(update={"go_on": decision})

    if dry_run:
        return released(_require(context, identity))
    _require(context, identity)
    return OperationStore(context.state).change(identity, released)
