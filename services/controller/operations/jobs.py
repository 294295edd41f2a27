"""Steps that need the model: jobs for the optimizer's rank 0, and the meaning of their results."""

from typing import Any

from five.services.controller.operations.backend import OperationBackend
from five.services.controller.operations.document import Operation, OperationStep
from five.services.controller.operations.step_results import Done, Failed, Refused, StepResult, Wait
from rapid.store.jobs import JobState


def job_prefix(operation: Operation) -> str:
    """Return the prefix of the ids of an operation's jobs."""
    return f"{operation.id}/"


def job_id(operation: Operation, step: OperationStep) -> str:
    """Return the id of the job of a step's current attempt."""
    return f"{job_prefix(operation)}{step.name}/{step.attempt}"


def job_payload(operation: Operation) -> dict[str, Any]:
    """Return the job's payload: the plan and the results of the previous steps."""
    request = operation.request
    return {"operation": operation.id, "plan": request.plan, "digest": request.digest, "parent": request.parent,
            "bounds": request.bounds, "epoch": request.epoch, "to_version": request.to_version,
            "warm_up_versions": request.warm_up_versions,
            "who": operation.who, "made": {s.name: s.result for s in operation.steps if s.result}}


def run_job(operation: Operation, step: OperationStep, backend: OperationBackend,
            payload: dict[str, Any]) -> StepResult:
    """Create the job of this attempt, or return its progress."""
    job = backend.job(job_id(operation, step), step.name, payload)
    if job.state is JobState.WAITING:
        return Wait((f"optimizer 0 to claim the job {step.name!r}",))
    if job.state is JobState.CLAIMED:
        if job.attempt > backend.limits.attempts:
            return Refused(f"{job.attempt - 1} optimizers exited during the job {step.name!r}: see their "
                           "logs")
        again = f", attempt {job.attempt}" if job.attempt > 1 else ""
        return Wait((f"{job.holder}, which runs the job {step.name!r}{again}",))
    if job.state is JobState.DONE:
        return Done(dict(job.answer))
    if job.state is JobState.REFUSED:
        return Refused(job.error)
    return Failed(job.error or f"the job {step.name!r} was withdrawn")
