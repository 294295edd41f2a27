"""The steps of operations: each reads the run's state, does the next work, and returns its progress.

A step may run any number of times, on any controller, before and after a crash.
"""

from collections.abc import Callable

from five.services.controller.operations.backend import OperationBackend
from five.services.controller.operations.document import Operation, OperationStep
from five.services.controller.operations.jobs import job_payload, run_job
from five.services.controller.operations.step_results import Done, Refused, StepResult, Wait
from rapid.store.state import ENDED, Status

StepFunction = Callable[[Operation, OperationStep, OperationBackend], StepResult]


def _interruption_reason(backend: OperationBackend) -> str:
    """Return why the run is no longer in status operating, or ''."""
    now = backend.status()
    if now is None:
        return "the run no longer exists"
    if now.status is Status.OPERATING:
        return ""
    return f"the run is {now.status}{f' (by {now.who})' if now.who else ''}"


def pause(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Pause the run until all services are idle, then set it to operating."""
    now = backend.status()
    if now is None or now.status in ENDED or now.status in (Status.STARTING, Status.WARMING):
        return Refused(f"the run is {now.status if now else 'gone'}: surgery requires a running or paused run")
    if now.status is Status.RUNNING:
        if step.waiting_for:
            return Refused(f"{now.who} resumed the run while it was pausing")
        backend.transition(Status.PAUSING, f"operation {operation.id}")
        return Wait(("the run to pause",))
    if now.status is Status.PAUSING:
        return Wait(tuple(backend.not_idle()) or ("the run to pause",))
    if now.status is Status.PAUSED:
        backend.transition(Status.OPERATING, f"operation {operation.id}")
    return Done()


def check(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Measure the plan on the newest version against the approved bounds."""
    if stale := backend.stale_reason(operation):
        return Refused(stale)
    if operation.step("pause") is not None and (why := _interruption_reason(backend)):
        return Refused(why)
    outcome = run_job(operation, step, backend, job_payload(operation))
    if isinstance(outcome, Done):
        backend.save_check(operation, outcome.result)
        if operation.step("publish") is not None and not outcome.result.get("ok"):
            return Refused(f"the check is outside the approved bounds: {outcome.result.get('why', 'see its report')}")
    return outcome


def _run_job_while_operating(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    if why := _interruption_reason(backend):
        return Refused(why)
    return run_job(operation, step, backend, job_payload(operation))


def checkpoint(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Write a checkpoint of everything learned so far (optimizer)."""
    return _run_job_while_operating(operation, step, backend)


def transform(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Build the new checkpoint and version in staging (optimizer)."""
    return _run_job_while_operating(operation, step, backend)


def hold(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Wait for an operator's decision, if requested. This is the last point at which cancelling costs nothing."""
    if why := _interruption_reason(backend):
        return Refused(why)
    if operation.request.hold and operation.go_on is None:
        return Wait(("an operator to continue or cancel",))
    return Done()


def publish(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Cut over: head, record, epoch and status change in one atomic step, or not at all."""
    if not backend.published(operation):
        if stale := backend.stale_reason(operation):
            return Refused(stale)
        if why := _interruption_reason(backend):
            # It may have been cut over between the two reads.
            return _published(operation) if backend.published(operation) else Refused(why)
        outcome = run_job(operation, step, backend, job_payload(operation))
        if not backend.published(operation):
            # A result without a cut-over is invalid.
            return Refused("the optimizer's job ended, but the run was not cut over") if isinstance(outcome, Done) \
                else outcome
    return _published(operation)


def _published(operation: Operation) -> Done:
    transformed = operation.step("transform")
    return Done({"version": transformed.result.get("version") if transformed else None})


def restore(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Restore schedules and end a later anneal after a revert."""
    return Done(backend.restore(operation))


def keep(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Write a checkpoint that is kept while the run goes on (optimizer)."""
    return run_job(operation, step, backend, job_payload(operation))


def begin(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Begin the anneal at the kept checkpoint."""
    if why := backend.begin_anneal(operation):
        return Refused(why)
    return Done()


def renew(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Wait until every service has restarted under the new record."""
    if why := _blocking_status(backend):
        return Wait((why,))
    missing = backend.not_renewed(operation)
    return Wait(tuple(missing)) if missing else Done()


def warm_up_until(operation: Operation) -> int:
    """Return the version at which the warm-up ends."""
    published = operation.step("publish")
    first = int(published.result.get("version") or 0) if published is not None else 0
    return first + operation.request.warm_up_versions


def warm_up(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Wait while the learning rate is 0 and moments and normalizers settle."""
    until, head = warm_up_until(operation), backend.head()
    if head >= until:
        return Done({"until": until})
    if why := _blocking_status(backend):
        return Wait((why,))
    return Wait((f"version {until}; the newest is {head}",))


def _blocking_status(backend: OperationBackend) -> str:
    """Return why the run makes no progress after the cut-over, or ''."""
    now = backend.status()
    if now is None:
        return "the run, which no longer exists"
    if now.status in ENDED or now.status in (Status.PAUSING, Status.PAUSED):
        return f"an operator to resume the run, which is {now.status} (by {now.who})"
    return ""


def run(operation: Operation, step: OperationStep, backend: OperationBackend) -> StepResult:
    """Set the run to running."""
    now = backend.status()
    if now is not None and now.status is Status.WARMING:
        backend.transition(Status.RUNNING, f"operation {operation.id}: warm-up finished")
    elif now is not None and now.status is Status.OPERATING:
        return Wait(("the run to warm up",))
    return Done()


STEPS: dict[str, StepFunction] = {
    "pause": pause, "check": check, "checkpoint": checkpoint, "transform": transform, "hold": hold,
    "publish": publish, "restore": restore, "renew": renew, "warm_up": warm_up, "run": run, "keep": keep,
    "begin": begin}
