"""Advances an operation by one change. It remembers nothing: all there is lies in the document and in the world.

Whoever calls it saves what it returns by compare-and-set, and calls again. When the caller dies between an effect and
the saving, the next one finds the same document, asks the same step again, and the step finds its effect there. A step
is marked as begun before it is first asked, so that an operation that may have published says so.

Before the cut-over every failure, and a cancellation, puts the run back where it was. The first thing that does is to
take the run out of ``operating``: the cut-over requires that status, inside the store, so from then on no optimizer,
however late, can publish what is being discarded. After the cut-over there is no way back but another operation:
what fails is tried again, and says so.
"""

from five.services.controller.operations.backend import World
from five.services.controller.operations.document import (
    PUBLISH,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    StepState,
)
from five.services.controller.operations.step_results import Done, Failed, Outcome, Refused, Wait
from five.services.controller.operations.steps import STEPS
from rapid.store.errors import IllegalTransition
from rapid.store.state import Status


def advance(operation: Operation, world: World) -> Operation:
    """The operation after one change, or the same when nothing is due. Raises what the world raises."""
    if operation.over:
        return operation
    if operation.state is OperationState.ROLLING_BACK:
        return _roll_back(operation, world)
    step = operation.current
    if step is None:
        return _finish(operation, world)
    if operation.cancel is not None and not operation.publishing:
        return _give_up(operation, step, f"cancelled by {operation.cancel.who}")
    if step.state is StepState.WAITING:
        return _begin(operation, step, world)
    try:
        outcome = STEPS[step.name](operation, step, world)
    except IllegalTransition as error:
        # Somebody was faster; what the run is now decides at the next look.
        outcome = Wait((str(error),))
    return _apply(operation, step, outcome, world)


def _deadline(step: OperationStep, world: World) -> float | None:
    seconds = world.limits.seconds.get(step.name)
    return None if seconds is None else world.now() + seconds


def _begin(operation: Operation, step: OperationStep, world: World) -> Operation:
    return operation.with_step(step.name, state=StepState.GOING, attempt=1, started_at=world.now(),
                               deadline=_deadline(step, world))


def _apply(operation: Operation, step: OperationStep, outcome: Outcome, world: World) -> Operation:
    if isinstance(outcome, Done):
        return operation.with_step(step.name, state=StepState.DONE, ended_at=world.now(), waiting_for=(),
                                   result=outcome.result)
    if isinstance(outcome, Wait):
        if step.deadline is None or world.now() <= step.deadline:
            return operation.with_step(step.name, waiting_for=outcome.waiting_for)
        late = f"not within {world.limits.seconds.get(step.name, 0.0):g} s; waited for {', '.join(outcome.waiting_for)}"
        # The deadline is the step's, whatever its attempts: what hangs would hang again.
        outcome = Refused(late)
    if operation.published:
        return _again(operation, step, outcome.error, world)
    if isinstance(outcome, Failed) and step.attempt < world.limits.attempts:
        return _again(operation, step, outcome.error, world, keep_deadline=True)
    return _give_up(operation, step, outcome.error)


def _again(operation: Operation, step: OperationStep, error: str, world: World,
           keep_deadline: bool = False) -> Operation:
    deadline = step.deadline if keep_deadline else _deadline(step, world)
    return operation.with_step(step.name, attempt=step.attempt + 1, error=error, waiting_for=(), deadline=deadline)


def _give_up(operation: Operation, step: OperationStep, why: str) -> Operation:
    begun = step.state is StepState.GOING
    ended = operation.with_step(step.name, error=why, waiting_for=(),
                                state=StepState.FAILED if begun else StepState.SKIPPED)
    return ended.model_copy(update={"state": OperationState.ROLLING_BACK, "failed_at": step.name, "outcome": why})


def _roll_back(operation: Operation, world: World) -> Operation:
    """Puts the run back: out of ``operating``, orders withdrawn, staged blobs and pins removed, running again if it
    was. Each part finds what an earlier attempt has done."""
    if world.published(operation):
        return _forward(operation, world)
    pause = operation.step("pause")
    if pause is not None:
        _leave(Status.OPERATING, Status.PAUSED, operation, world)
        if world.published(operation):
            return _forward(operation, world)
    world.withdraw(operation)
    world.discard(operation)
    if pause is not None and pause.started_at is not None and operation.was == Status.RUNNING:
        if pause.state is not StepState.DONE:
            _leave(Status.PAUSING, Status.RUNNING, operation, world)
            _leave(Status.PAUSED, Status.RUNNING, operation, world)
        elif (now := world.status()) is not None and now.reason == _given_up(operation):
            # Any other pause is somebody's who was faster than the rest of a rolling back that was cut short.
            _leave(Status.PAUSED, Status.RUNNING, operation, world)
    world.forget_orders(operation)
    cancelled = operation.cancel is not None and operation.outcome.startswith("cancelled")
    steps = tuple(s.model_copy(update={"state": StepState.SKIPPED}) if s.state is StepState.WAITING else s
                  for s in operation.steps)
    now = world.status()
    left = f"; the run is {now.status}, as it was" if now is not None and now.status == operation.was else ""
    at = "" if cancelled else f"{operation.failed_at}: "
    return operation.model_copy(update={
        "state": OperationState.CANCELLED if cancelled else OperationState.FAILED, "steps": steps,
        "ended_at": world.now(), "outcome": f"{at}{operation.outcome}; nothing was published{left}"})


def _given_up(operation: Operation) -> str:
    return f"operation {operation.id} was given up"


def _leave(present: Status, to: Status, operation: Operation, world: World) -> None:
    """Brings the run from ``present`` to ``to`` if it is there because of this operation."""
    now = world.status()
    if now is None or now.status is not present:
        return
    try:
        world.transition(to, _given_up(operation))
    except IllegalTransition:
        pass  # somebody stopped the run meanwhile: it stays stopped


def _forward(operation: Operation, world: World) -> Operation:
    """The cut-over took place after all: what was about to be undone goes on."""
    steps = []
    for step in operation.steps:
        if step.name == PUBLISH:
            transformed = operation.step("transform")
            version = transformed.result.get("version") if transformed is not None else None
            step = step.model_copy(update={"state": StepState.DONE, "ended_at": world.now(),
                                           "result": {"version": version}})
        elif step.state is StepState.SKIPPED:
            step = step.model_copy(update={"state": StepState.WAITING})
        steps.append(step)
    return operation.model_copy(update={
        "state": OperationState.GOING, "steps": tuple(steps), "failed_at": "", "outcome": ""})


def _finish(operation: Operation, world: World) -> Operation:
    world.tidy(operation)
    world.forget_orders(operation)
    return operation.model_copy(update={
        "state": OperationState.DONE, "ended_at": world.now(), "outcome": _outcome(operation)})


def _outcome(operation: Operation) -> str:
    if operation.kind is OperationKind.CHECK:
        found = operation.step("check")
        held = found is not None and bool(found.result.get("ok"))
        return "the plan holds its bounds" if held else "the plan is outside its bounds"
    if operation.kind is OperationKind.ANNEAL:
        return f"{operation.request.name} begins to be annealed into games"
    published = operation.step(PUBLISH)
    version = published.result.get("version") if published is not None else None
    if operation.kind is OperationKind.REVERT:
        return f"version {version} goes on from version {operation.request.to_version}; the run learns"
    return f"version {version} is the first of the new model; the run learns"
