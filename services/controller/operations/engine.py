"""Engine that advances an operation by one change. It keeps no state: everything is in the document and in the run.

The caller saves each returned document by compare-and-set and calls again. If the caller dies between an effect and
the save, the next one reads the same document, runs the same step again, and finds its effect. A step is marked as
begun before it first runs, so an operation that may have published is recognizable.

Before the cut-over, every failure and every cancellation rolls the run back. The rollback first takes the run out of
``operating``. The cut-over requires that status inside the store, so no optimizer can publish discarded work later.
After the cut-over a failed step is retried without limit; going back takes another operation.
"""

from five.services.controller.operations.backend import OperationBackend
from five.services.controller.operations.document import (
    PUBLISH,
    Operation,
    OperationKind,
    OperationState,
    OperationStep,
    StepState,
)
from five.services.controller.operations.step_results import Done, Failed, Refused, StepResult, Wait
from five.services.controller.operations.steps import STEPS
from rapid.store.errors import IllegalTransition
from rapid.store.state import Status


def advance(operation: Operation, backend: OperationBackend) -> Operation:
    """Return the operation after one change, or the same document if nothing is due. Raise what the backend raises."""
    if operation.is_over:
        return operation
    if operation.state is OperationState.ROLLING_BACK:
        return _continue_rollback(operation, backend)
    step = operation.current
    if step is None:
        return _finish(operation, backend)
    if operation.cancel is not None and not operation.publishing:
        return _start_rollback(operation, step, f"cancelled by {operation.cancel.who}")
    if step.state is StepState.WAITING:
        return _begin_step(operation, step, backend)
    try:
        outcome = STEPS[step.name](operation, step, backend)
    except IllegalTransition as error:
        # The status changed concurrently; the next pass decides by the new one.
        outcome = Wait((str(error),))
    return _apply(operation, step, outcome, backend)


def _deadline(step: OperationStep, backend: OperationBackend) -> float | None:
    seconds = backend.limits.seconds.get(step.name)
    return None if seconds is None else backend.now() + seconds


def _begin_step(operation: Operation, step: OperationStep, backend: OperationBackend) -> Operation:
    return operation.with_step(step.name, state=StepState.GOING, attempt=1, started_at=backend.now(),
                               deadline=_deadline(step, backend))


def _apply(operation: Operation, step: OperationStep, outcome: StepResult, backend: OperationBackend) -> Operation:
    if isinstance(outcome, Done):
        return operation.with_step(step.name, state=StepState.DONE, ended_at=backend.now(), waiting_for=(),
                                   result=outcome.result)
    if isinstance(outcome, Wait):
        if step.deadline is None or backend.now() <= step.deadline:
            return operation.with_step(step.name, waiting_for=outcome.waiting_for)
        seconds = backend.limits.seconds.get(step.name)
        after = "" if seconds is None else f" after {seconds:g} s"
        late = f"timed out{after}, waiting for {', '.join(outcome.waiting_for)}"
        # The deadline covers all attempts: what hangs once would hang again.
        outcome = Refused(late)
    if operation.published:
        return _retry(operation, step, outcome.error, backend)
    if isinstance(outcome, Failed) and step.attempt < backend.limits.attempts:
        return _retry(operation, step, outcome.error, backend, keep_deadline=True)
    return _start_rollback(operation, step, outcome.error)


def _retry(operation: Operation, step: OperationStep, error: str, backend: OperationBackend,
           keep_deadline: bool = False) -> Operation:
    deadline = step.deadline if keep_deadline else _deadline(step, backend)
    return operation.with_step(step.name, attempt=step.attempt + 1, error=error, waiting_for=(), deadline=deadline)


def _start_rollback(operation: Operation, step: OperationStep, why: str) -> Operation:
    begun = step.state is StepState.GOING
    ended = operation.with_step(step.name, error=why, waiting_for=(),
                                state=StepState.FAILED if begun else StepState.SKIPPED)
    return ended.model_copy(update={"state": OperationState.ROLLING_BACK, "failed_at": step.name, "outcome": why})


def _continue_rollback(operation: Operation, backend: OperationBackend) -> Operation:
    """Roll the run back: leave ``operating``, withdraw jobs, remove staged blobs and pins, and resume if it was
    running. Each part is idempotent.
    """
    if backend.published(operation):
        return _resume_after_cut_over(operation, backend)
    pause = operation.step("pause")
    if pause is not None:
        _leave_status(Status.OPERATING, Status.PAUSED, operation, backend)
        if backend.published(operation):
            return _resume_after_cut_over(operation, backend)
    backend.withdraw_jobs(operation)
    backend.discard_staged(operation)
    if pause is not None and pause.started_at is not None and operation.was == Status.RUNNING:
        if pause.state is not StepState.DONE:
            _leave_status(Status.PAUSING, Status.RUNNING, operation, backend)
            _leave_status(Status.PAUSED, Status.RUNNING, operation, backend)
        elif (now := backend.status()) is not None and now.reason == _rollback_reason(operation):
            # A pause with another reason was requested by an operator meanwhile, and stays.
            _leave_status(Status.PAUSED, Status.RUNNING, operation, backend)
    backend.remove_jobs(operation)
    cancelled = operation.cancel is not None and operation.outcome.startswith("cancelled")
    steps = tuple(s.model_copy(update={"state": StepState.SKIPPED}) if s.state is StepState.WAITING else s
                  for s in operation.steps)
    now = backend.status()
    left = f"; the run is {now.status}, as before" if now is not None and now.status == operation.was else ""
    at = "" if cancelled else f"{operation.failed_at}: "
    return operation.model_copy(update={
        "state": OperationState.CANCELLED if cancelled else OperationState.FAILED, "steps": steps,
        "ended_at": backend.now(), "outcome": f"{at}{operation.outcome}; nothing was published{left}"})


def _rollback_reason(operation: Operation) -> str:
    return f"operation {operation.id} was rolled back"


def _leave_status(present: Status, to: Status, operation: Operation, backend: OperationBackend) -> None:
    """Change the run from ``present`` to ``to``, if that is its status."""
    now = backend.status()
    if now is None or now.status is not present:
        return
    try:
        backend.transition(to, _rollback_reason(operation))
    except IllegalTransition:
        pass  # stopped meanwhile; it stays stopped


def _resume_after_cut_over(operation: Operation, backend: OperationBackend) -> Operation:
    """Continue an operation whose cut-over took place although it was about to be rolled back."""
    steps = []
    for step in operation.steps:
        if step.name == PUBLISH:
            transformed = operation.step("transform")
            version = transformed.result.get("version") if transformed is not None else None
            step = step.model_copy(update={"state": StepState.DONE, "ended_at": backend.now(),
                                           "result": {"version": version}})
        elif step.state is StepState.SKIPPED:
            step = step.model_copy(update={"state": StepState.WAITING})
        steps.append(step)
    return operation.model_copy(update={
        "state": OperationState.GOING, "steps": tuple(steps), "failed_at": "", "outcome": ""})


def _finish(operation: Operation, backend: OperationBackend) -> Operation:
    backend.remove_staged(operation)
    backend.remove_jobs(operation)
    return operation.model_copy(update={
        "state": OperationState.DONE, "ended_at": backend.now(), "outcome": _outcome(operation)})


def _outcome(operation: Operation) -> str:
    if operation.kind is OperationKind.CHECK:
        found = operation.step("check")
        held = found is not None and bool(found.result.get("ok"))
        return "the plan is within its bounds" if held else "the plan is outside its bounds"
    if operation.kind is OperationKind.ANNEAL:
        return f"anneal {operation.request.name} has begun"
    published = operation.step(PUBLISH)
    version = published.result.get("version") if published is not None else None
    if operation.kind is OperationKind.REVERT:
        return f"version {version} continues from version {operation.request.to_version}; the run is learning"
    return f"version {version} is the first of the new model; the run is learning"
