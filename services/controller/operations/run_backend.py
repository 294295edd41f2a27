"""The engine's backend over a real run: its Redis, its blobs."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from five.agent.config import SchedulesConfig
from five.services.controller.anneal.reconciler import begin_anneal, end_anneal
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import Operation, OperationKind
from five.services.controller.operations.jobs import job_prefix
from five.services.controller.surgery.revert import restore_schedules
from rapid.blobs import BlobStore
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.jobs import Order, Orders
from rapid.store.operation_blobs import folder_of, kept_folder, reason_of
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import RunState, RunStatus, Status
from rapid.store.surgery_plans import Checks

NEEDED = ("inference", "optimizer", "rollout")


class RunBackend:
    """services.controller.operations.backend.OperationBackend over a run.

    ``model_schema`` works out the model schema of a record that does not say it; ``configured`` are the configuration's
    schedules, which hold until others are set.
    """

    def __init__(self, state: RunState, store: ParameterStore, blobs: BlobStore, limits: StepLimits,
                 model_schema: Callable[[RunRecord], str], configured: SchedulesConfig | None = None) -> None:
        self._configured = configured or SchedulesConfig()
        self._state = state
        self._store = store
        self._blobs = blobs
        self._orders = Orders(state)
        self._checks = Checks(state)
        self._schema_of = model_schema
        self.limits = limits

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def status(self) -> RunStatus | None:
        """The run's status."""
        return self._state.status()

    def transition(self, to: Status, reason: str) -> None:
        """Brings the run to a status."""
        self._state.transition(to, "controller", reason)

    def head(self) -> int:
        """The newest version; -1 before the first."""
        head = self._store.head()
        return -1 if head is None else head

    def not_idle(self) -> list[str]:
        """Who has not come to rest yet."""
        return self._state.quiet().waiting_for

    def stale_reason(self, operation: Operation) -> str:
        """Why the plan no longer fits the run; '' when it does."""
        if operation.kind is OperationKind.REVERT:
            record = self._state.record()
            if record is not None and record.epoch == operation.request.epoch:
                return ""
            return (f"the run has moved on since this was asked for, in epoch {operation.request.epoch}: look again at "
                    "what would be undone")
        return stale(self._state.record(), operation.request.parent, operation.request.epoch, self._schema_of)

    def published(self, operation: Operation) -> bool:
        """Whether the run's record names the plan, in a later epoch than the one it was checked in; of a revert,
        whether the run's history has it."""
        if operation.kind is OperationKind.REVERT:
            return any(stretch.operation == operation.id for stretch in self._state.lineage().stretches)
        record = self._state.record()
        return (record is not None and record.epoch > operation.request.epoch
                and operation.request.digest in record.chain)

    def job(self, identity: str, kind: str, payload: dict[str, Any]) -> Order:
        """The order of that identity, placed if there is none."""
        return self._orders.place(identity, kind, payload)

    def withdraw_jobs(self, operation: Operation) -> None:
        """Takes open orders back."""
        self._orders.withdraw(job_prefix(operation))

    def remove_jobs(self, operation: Operation) -> None:
        """Removes its orders."""
        self._orders.remove(job_prefix(operation))

    def discard_staged(self, operation: Operation) -> None:
        """Removes what was staged, and pins that were set for it."""
        self.remove_staged(operation)
        for version, why in self._store.pins().items():
            if why == reason_of(operation.id):
                self._store.unpin(version)
        for name in self._blobs.refs(kept_folder(self._state.run)):
            if name.endswith(f".{operation.id}"):
                self._blobs.remove_ref(name)

    def remove_staged(self, operation: Operation) -> None:
        """Removes what was staged."""
        for name in self._blobs.refs(folder_of(self._state.run, operation.id)):
            self._blobs.remove_ref(name)

    def save_check(self, operation: Operation, answer: Mapping[str, Any]) -> None:
        """Keeps the result of a check."""
        request = operation.request
        self._checks.keep(request.digest, {
            "plan": request.plan, "name": request.name, "parent": request.parent, "epoch": request.epoch,
            "bounds": request.bounds, "operation": operation.id, "who": operation.who, "result": dict(answer)})

    def restore(self, operation: Operation) -> dict[str, Any]:
        """What else a revert takes back: schedules, and an anneal that began after the version."""
        transformed = operation.step("transform")
        made = transformed.result if transformed is not None else {}
        return {"schedules": restore_schedules(self._state, self._configured, made.get("schedules"), operation.who,
                                               operation.id),
                "anneal": end_anneal(self._state, operation)}

    def begin_anneal(self, operation: Operation) -> str:
        """Begins to anneal what was asked for, from the version that the optimizer has kept."""
        kept = operation.step("keep")
        return begin_anneal(self._state, operation, dict(kept.result) if kept is not None else {})

    def not_renewed(self, operation: Operation) -> list[str]:
        """Services that have not come up under the present record, kinds of which there is none, and the optimizer
        while the checkpoint that was staged is not the run's yet: what is staged is removed when the operation ends."""
        record = self._state.record()
        if record is None:
            return ["the run's record, which is gone"]
        live = self._state.services()
        behind = [f"{i.kind}/{i.id}" for i in live if (i.epoch, i.revision) != record.stand]
        absent = [f"{kind}, of which none is up" for kind in NEEDED if not any(i.kind == kind for i in live)]
        published = operation.step("publish")
        first = published.result.get("version") if published is not None else None
        checkpoints = CheckpointIndex(self._state.redis, self._state.run).all()
        if first is not None and max(checkpoints, default=-1) < int(first):
            behind.append(f"the optimizer, to go on from the checkpoint of version {first}")
        return [*behind, *absent]


def stale(record: RunRecord | None, parent: str, epoch: int, model_schema: Callable[[RunRecord], str]) -> str:
    """Why a plan that was checked for ``parent`` in ``epoch`` does not fit the run's record; '' when it does."""
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
