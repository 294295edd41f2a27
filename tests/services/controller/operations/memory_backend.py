"""In-memory backend for the operation engine: statuses, jobs, a cut-over, and simulated process deaths."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import (
    Operation,
    OperationKind,
    OperationRequest,
    OperationState,
    new_operation,
)
from five.services.controller.operations.engine import advance
from five.services.controller.operations.jobs import job_prefix
from rapid.store.errors import IllegalTransition
from rapid.store.jobs import Job, JobState
from rapid.store.state import TRANSITIONS, RunStatus, Status

REQUEST = OperationRequest(plan="name: wider", digest="d" * 64, name="wider", parent="p" * 16, epoch=1,
                           warm_up_versions=2)
HEAD = 7


class Killed(BaseException):
    """Simulated death of the process."""


@dataclass
class MemoryBackend:
    """State of a run that outlives its processes, and the optimizer's responses to jobs.

    ``kill_after``: number of effects after which the controller dies. ``failing``: jobs that the optimizer fails, with
    how often; ``refusing``: jobs that it refuses. ``missing``: somebody deleted the run.
    """

    now_is: RunStatus = field(default_factory=lambda: RunStatus(Status.RUNNING, 0.0, "controller", ""))
    version: int = HEAD
    epoch: int = 1
    schema: str = "p" * 16
    chain: tuple[str, ...] = ()
    jobs: dict[str, Job] = field(default_factory=dict)
    staged: set[str] = field(default_factory=set)
    clock: float = 0.0
    kill_after: int | None = None
    failing: dict[str, int] = field(default_factory=dict)
    refusing: set[str] = field(default_factory=set)
    busy: list[str] = field(default_factory=list)
    behind: list[str] = field(default_factory=list)
    out_of_bounds: bool = False
    publishes: int = 0
    restored: set[str] = field(default_factory=set)
    annealed: set[str] = field(default_factory=set)
    no_anneal: str = ""
    checks: dict[str, dict[str, Any]] = field(default_factory=dict)
    missing: bool = False
    effects: int = 0
    limits: StepLimits = field(default_factory=lambda: StepLimits(attempts=2))

    # The engine's backend.

    def now(self) -> float:
        return self.clock

    def status(self) -> RunStatus | None:
        return None if self.missing else self.now_is

    def transition(self, to: Status, reason: str) -> None:
        if self.now_is.status is to:
            return
        if to not in TRANSITIONS[self.now_is.status]:
            raise IllegalTransition(f"the run is {self.now_is.status}, it cannot go to {to}")
        self.now_is = RunStatus(to, self.clock, "controller", reason)
        self._effect()

    def head(self) -> int:
        return self.version

    def not_idle(self) -> list[str]:
        return self.busy

    def stale_reason(self, operation: Operation) -> str:
        if self.schema != operation.request.parent or self.epoch != operation.request.epoch:
            return "the plan is stale"
        return ""

    def published(self, operation: Operation) -> bool:
        return operation.request.digest in self.chain

    def job(self, identity: str, kind: str, payload: dict[str, Any]) -> Job:
        if identity not in self.jobs:
            self.jobs[identity] = Job(identity, kind, payload, self.clock)
            self._effect()
        return self.jobs[identity]

    def withdraw_jobs(self, operation: Operation) -> None:
        for identity, order in self.jobs.items():
            if identity.startswith(job_prefix(operation)) and order.open:
                self.jobs[identity] = replace(order, state=JobState.CANCELLED)
        self._effect()

    def remove_jobs(self, operation: Operation) -> None:
        for identity in [i for i in self.jobs if i.startswith(job_prefix(operation))]:
            del self.jobs[identity]
        self._effect()

    def discard_staged(self, operation: Operation) -> None:
        self.staged.clear()
        self._effect()

    def remove_staged(self, operation: Operation) -> None:
        self.staged.clear()
        self._effect()

    def save_check(self, operation: Operation, answer: Mapping[str, Any]) -> None:
        self.checks[operation.id] = dict(answer)
        self._effect()

    def restore(self, operation: Operation) -> dict[str, Any]:
        self.restored.add(operation.id)
        self._effect()
        return {"schedules": [], "anneal": ""}

    def begin_anneal(self, operation: Operation) -> str:
        if self.no_anneal:
            return self.no_anneal
        self.annealed.add(operation.id)
        self._effect()
        return ""

    def not_renewed(self, operation: Operation) -> list[str]:
        return self.behind

    def _effect(self) -> None:
        self.effects += 1
        if self.kill_after is not None:
            self.kill_after -= 1
            if self.kill_after <= 0:
                self.kill_after = None
                raise Killed

    # Everybody else.

    def live(self) -> None:
        """Advance the other processes: services become idle, the optimizer executes jobs, the run learns."""
        self.clock += 1.0
        status = self.now_is.status
        if status is Status.PAUSING and not self.busy:
            self.now_is = RunStatus(Status.PAUSED, self.clock, "controller", "games and learning rest")
        if status in (Status.RUNNING, Status.WARMING):
            self.version += 1
        for identity, order in list(self.jobs.items()):
            if order.open:
                self.jobs[identity] = self.carried_out(order)

    def carried_out(self, order: Job) -> Job:
        """Return a job with its response."""
        mine = replace(order, state=JobState.CLAIMED, attempt=order.attempt + 1, holder="optimizer-0", fence=1)
        if order.kind in self.refusing:
            return replace(mine, state=JobState.REFUSED, error=f"{order.kind} cannot work out")
        if self.failing.get(order.kind, 0) > 0:
            self.failing[order.kind] -= 1
            return replace(mine, state=JobState.FAILED, error=f"{order.kind} did not work out")
        answer: dict[str, Any] = {}
        if order.kind == "check":
            answer = {"ok": not self.out_of_bounds, "why": "too far off"}
        elif order.kind == "keep":
            answer = {"head": self.version}
        elif order.kind in ("checkpoint", "transform"):
            assert self.now_is.status is Status.OPERATING, "nobody writes beside a run that learns"
            self.staged.add(order.kind)
            answer = {"version": self.version + 1}
        elif order.kind == "publish":
            if self.now_is.status is not Status.OPERATING or not self.staged:
                return replace(mine, state=JobState.FAILED, error="the run's status has moved")
            self.cut_over(order)
        return replace(mine, state=JobState.DONE, answer=answer)

    def cut_over(self, order: Job) -> None:
        """Perform the store's atomic step."""
        self.chain += (order.payload["digest"],)
        self.epoch += 1
        self.schema = "q" * 16
        self.version = order.payload["made"]["transform"]["version"]
        self.now_is = RunStatus(Status.WARMING, self.clock, "optimizer-0", "")
        self.publishes += 1


def surgery(run: MemoryBackend, **request: Any) -> Operation:
    """Return a new surgery."""
    return new_operation("surgery-1", OperationKind.SURGERY, "ada", REQUEST.model_copy(update=request), run.clock,
                         run.now_is.status)


def carry_on(operation: Operation, run: MemoryBackend, rounds: int = 400) -> Operation:
    """Run the operation to its end; a controller that dies is restarted from the saved document."""
    for _ in range(rounds):
        try:
            after = advance(operation, run)
        except Killed:
            continue
        if after == operation:
            run.live()
        operation = after
        if operation.is_over:
            return operation
    raise AssertionError(f"it does not end: {operation.model_dump_json(indent=1)}")


def until(operation: Operation, run: MemoryBackend, step: str, rounds: int = 200) -> Operation:
    """Run until a step has begun and was polled once."""
    for _ in range(rounds):
        found = operation.step(step)
        after = advance(operation, run)
        if found is not None and found.started_at is not None:
            return after
        if after == operation:
            run.live()
        operation = after
    raise AssertionError(f"it does not get to {step}: {operation.model_dump_json(indent=1)}")


def untouched(run: MemoryBackend, operation: Operation, was: Status = Status.RUNNING) -> None:
    """Fail unless the run is unchanged."""
    assert operation.state in (OperationState.FAILED, OperationState.CANCELLED)
    assert run.now_is.status is was
    assert (run.epoch, run.schema, run.chain, run.publishes) == (1, "p" * 16, (), 0)
    assert not run.staged
    assert not run.jobs
