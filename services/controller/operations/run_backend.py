"""Implementation of the engine's backend over a run's Redis and blob store."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from five.agent.config import SchedulesConfig
from five.services.controller.anneal.reconciler import begin_anneal, end_anneal
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import Operation, OperationKind
from five.services.controller.operations.jobs import job_prefix
from five.services.controller.run.reconcile import NEEDED
from five.services.controller.surgery.revert import restore_schedules
from rapid.blobs import BlobStore
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.jobs import Job, JobQueue
from rapid.store.operation_blobs import operation_folder, pin_reason, preserved_folder
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState, RunStatus, Status
from rapid.store.surgery_plans import PlanChecks


class RunBackend:
    """Implementation of operations.backend.OperationBackend.

    ``model_schema`` computes the model schema of a record without one. ``configured`` are the configuration's
    schedules, which apply until others are set.
    """

    def __init__(self, state: RunState, store: ParameterStore, blobs: BlobStore, limits: StepLimits,
                 model_schema: Callable[[RunRecord], str], configured: SchedulesConfig | None = None) -> None:
        self._configured = configured or SchedulesConfig()
        self._state = state
        self._store = store
        self._blobs = blobs
        self._jobs = JobQueue(state)
        self._checks = PlanChecks(state)
        self._model_schema = model_schema
        self.limits = limits

    def now(self) -> float:
        """Return the time in seconds since the epoch."""
        return time.time()

    def status(self) -> RunStatus | None:
        """Return the run's status."""
        return self._state.status()

    def transition(self, to: Status, reason: str) -> None:
        """Set the run's status."""
        self._state.transition(to, "controller", reason)

    def head(self) -> int:
        """Return the newest version, or -1 before the first."""
        head = self._store.head()
        return -1 if head is None else head

    def not_idle(self) -> list[str]:
        """Return the services that have not acknowledged the current pause."""
        return self._state.idle_report().waiting_for

    def stale_reason(self, operation: Operation) -> str:
        """Return why the plan no longer fits the run, or ''."""
        if operation.kind is OperationKind.REVERT:
            record = self._state.record()
            if record is not None and record.epoch == operation.request.epoch:
                return ""
            return (f"this was requested in epoch {operation.request.epoch}, but the run is in another one: check the "
                    "revert's preview again")
        return stale(self._state.record(), operation.request.parent, operation.request.epoch, self._model_schema)

    def published(self, operation: Operation) -> bool:
        """Return whether the cut-over took place.

        For a surgery, the run's record names the plan in a later epoch. For a revert, the run's lineage names the
        operation.
        """
        if operation.kind is OperationKind.REVERT:
            return any(segment.operation == operation.id for segment in self._state.lineage().segments)
        record = self._state.record()
        return (record is not None and record.epoch > operation.request.epoch
                and operation.request.digest in record.chain)

    def job(self, identity: str, kind: str, payload: dict[str, Any]) -> Job:
        """Return the job with that id; create it if it does not exist."""
        return self._jobs.submit(identity, kind, payload)

    def withdraw_jobs(self, operation: Operation) -> None:
        """Withdraw the operation's open jobs."""
        self._jobs.cancel(job_prefix(operation))

    def remove_jobs(self, operation: Operation) -> None:
        """Remove the operation's jobs."""
        self._jobs.remove(job_prefix(operation))

    def discard_staged(self, operation: Operation) -> None:
        """Remove the operation's staged blobs and the pins that it set."""
        self.remove_staged(operation)
        for version, why in self._store.pins().items():
            if why == pin_reason(operation.id):
                self._store.unpin(version)
        for name in self._blobs.refs(preserved_folder(self._state.run)):
            if name.endswith(f".{operation.id}"):
                self._blobs.remove_ref(name)

    def remove_staged(self, operation: Operation) -> None:
        """Remove the operation's staged blobs."""
        for name in self._blobs.refs(operation_folder(self._state.run, operation.id)):
            self._blobs.remove_ref(name)

    def save_check(self, operation: Operation, answer: Mapping[str, Any]) -> None:
        """Save the result of a check."""
        request = operation.request
        self._checks.put(request.digest, {
            "plan": request.plan, "name": request.name, "parent": request.parent, "epoch": request.epoch,
            "bounds": request.bounds, "operation": operation.id, "who": operation.who, "result": dict(answer)})

    def restore(self, operation: Operation) -> dict[str, Any]:
        """Restore the schedules, and end an anneal that began after the version."""
        transformed = operation.step("transform")
        made = transformed.result if transformed is not None else {}
        return {"schedules": restore_schedules(self._state, self._configured, made.get("schedules"), operation.who,
                                               operation.id),
                "anneal": end_anneal(self._state, operation)}

    def begin_anneal(self, operation: Operation) -> str:
        """Begin the requested anneal at the version whose checkpoint the optimizer has kept."""
        kept = operation.step("keep")
        return begin_anneal(self._state, operation, dict(kept.result) if kept is not None else {})

    def not_renewed(self, operation: Operation) -> list[str]:
        """Return what has not restarted under the current record: services, kinds without an instance, and the
        optimizer.

        The optimizer counts until the staged checkpoint is the run's, because staged files are removed at the end.
        """
        record = self._state.record()
        if record is None:
            return ["the run's record, which is missing"]
        live = self._state.services()
        behind = [f"{i.kind}/{i.id}" for i in live if (i.epoch, i.revision) != record.run_revision]
        absent = [f"{kind}, of which no instance is live" for kind in NEEDED if not any(i.kind == kind for i in live)]
        published = operation.step("publish")
        first = published.result.get("version") if published is not None else None
        checkpoints = CheckpointIndex(self._state.redis, self._state.run).all()
        if first is not None and not any(version >= int(first) for version in checkpoints):
            behind.append(f"the optimizer, to resume from the checkpoint of version {first}")
        return [*behind, *absent]


def stale(record: RunRecord | None, parent: str, epoch: int, model_schema: Callable[[RunRecord], str]) -> str:
    """Return why a plan checked for ``parent`` in ``epoch`` does not fit the run's record, or ''."""
    if record is None:
        return "the run has no record"
    if record.epoch != epoch:
        return (f"the plan is stale: it was checked in epoch {epoch}, the run is in epoch {record.epoch}. Check it "
                "again")
    schema = record.schema or model_schema(record)
    if schema != parent:
        return (f"the plan is stale: it starts from model schema {parent}, the run has {schema}. Derive a plan from "
                "that one")
    return ""
