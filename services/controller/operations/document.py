"""The document of an operation: what was asked, where it is, who is waited for, how it ended."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class OperationKind(StrEnum):
    """What an operation does."""

    CHECK = "check"  # measures a plan on the newest version; touches nothing
    SURGERY = "surgery"  # applies a plan
    REVERT = "revert"  # goes back to an older version
    ANNEAL = "anneal"  # keeps a checkpoint, and begins to anneal a change into games


class StepState(StrEnum):
    """Where a step is."""

    WAITING = "waiting"  # its turn has not come
    GOING = "going"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # the operation ended before


class OperationState(StrEnum):
    """Where an operation is."""

    GOING = "going"
    ROLLING_BACK = "rolling_back"  # it failed or was cancelled; the run is being put back
    DONE = "done"
    FAILED = "failed"  # the run is as it was before
    CANCELLED = "cancelled"  # the run is as it was before


OVER = frozenset({OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED})

CHECK_STEPS = ("check",)
SURGERY_STEPS = ("pause", "check", "checkpoint", "transform", "hold", "publish", "renew", "warm_up", "run")
REVERT_STEPS = ("pause", "checkpoint", "transform", "publish", "restore", "renew", "warm_up", "run")
ANNEAL_STEPS = ("keep", "begin")
STEPS_OF: dict[OperationKind, tuple[str, ...]] = {
    OperationKind.CHECK: CHECK_STEPS, OperationKind.SURGERY: SURGERY_STEPS, OperationKind.REVERT: REVERT_STEPS,
    OperationKind.ANNEAL: ANNEAL_STEPS}
PUBLISH = "publish"


class OperationStep(BaseModel):
    """One step. Times are in seconds since the epoch; ``deadline`` None: it may take as long as it takes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Its name.")
    state: StepState = Field(StepState.WAITING, description="Where it is.")
    attempt: int = Field(0, description="Which attempt this is, from 1; 0 before it began.")
    started_at: float | None = Field(None, description="When it began, in seconds since the epoch.")
    ended_at: float | None = Field(None, description="When it ended, in seconds since the epoch.")
    deadline: float | None = Field(None, description="Until when it has to end, in seconds since the epoch.")
    error: str = Field("", description="What went wrong last.")
    waiting_for: tuple[str, ...] = Field((), description="Who or what it waits for.")
    result: dict[str, Any] = Field(default_factory=dict, description="What came out of it.")


class Word(BaseModel):
    """Somebody's order to an operation: cancel it, or go on past the hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    who: str = Field(description="Who gave it.")
    at: float = Field(description="When, in seconds since the epoch.")
    reason: str = Field("", description="Why.")


class SurgeryRequest(BaseModel):
    """What was asked for: a plan, what it was checked against, and how far it may be off; or where to go back to; or
    what to anneal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    plan: str = Field("", description="The plan's text (YAML); empty for what is no surgery.")
    digest: str = Field("", description="The plan's digest.")
    name: str = Field("", description="The plan's name, or in words what it is.")
    parent: str = Field("", description="The model schema that the plan starts from.")
    epoch: int = Field(0, description="The run's epoch that the plan was checked in.")
    hold: bool = Field(False, description="Whether to stop before publishing until somebody says go on.")
    warm_up_versions: int = Field(0, description="Versions at learning rate 0 after it.")
    bounds: dict[str, Any] = Field(default_factory=dict, description="The approved bounds of the check.")
    to_version: int | None = Field(None, description="The version that a revert goes back to.")
    anneal: dict[str, Any] | None = Field(None, description="What is to be annealed; of a revert that an anneal's "
                                          "guard has ordered, its attempt.")


EXAMPLE: dict[str, Any] = {
    "id": "surgery-20260101-120500-d4e5f6", "kind": "surgery", "who": "ada", "reason": "more memory",
    "request": {"plan": "name: wider\nparent: 9f2d51c07ab3e684\nsteps:\n- kind: grow_lstm\n  to: 256\n",
                "digest": "4c0e2f1a" * 8, "name": "wider", "parent": "9f2d51c07ab3e684", "epoch": 1, "hold": True,
                "warm_up_versions": 8, "bounds": {}},
    "created_at": 1789000000.0, "ended_at": None, "state": "going", "was": "running",
    "steps": [
        {"name": "pause", "state": "going", "attempt": 1, "started_at": 1789000000.5, "ended_at": None,
         "deadline": 1789000300.5, "error": "", "waiting_for": ["rollout/3"], "result": {}},
        *({"name": name, "state": "waiting", "attempt": 0, "started_at": None, "ended_at": None, "deadline": None,
           "error": "", "waiting_for": [], "result": {}} for name in SURGERY_STEPS[1:])],
    "cancel": None, "go_on": None, "failed_at": "", "waiting_for": [], "outcome": "", "changes": 2}


class Operation(BaseModel):
    """One operation. A new one is made at each change; ``changes`` counts them."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [EXAMPLE]})

    id: str = Field(description="Its name, as /v1/operations/{id} takes it.")
    kind: OperationKind = Field(description="What it does.")
    who: str = Field(description="Who asked for it.")
    reason: str = Field("", description="Why.")
    request: SurgeryRequest = Field(description="What was asked for.")
    created_at: float = Field(description="When, in seconds since the epoch.")
    ended_at: float | None = Field(None, description="When it ended, in seconds since the epoch.")
    state: OperationState = Field(OperationState.GOING, description="Where it is.")
    was: str = Field("", description="The run's status before: it goes back there when the operation fails.")
    steps: tuple[OperationStep, ...] = Field(description="Its steps in order.")
    cancel: Word | None = Field(None, description="Who cancelled it.")
    go_on: Word | None = Field(None, description="Who let it go on past the hold.")
    failed_at: str = Field("", description="The step at which it failed or was cancelled.")
    waiting_for: tuple[str, ...] = Field((), description="Who putting the run back waits for.")
    outcome: str = Field("", description="How it ended, in a sentence.")
    changes: int = Field(0, description="How often this document has changed.")

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state in OVER

    @property
    def current(self) -> OperationStep | None:
        """The first step that is not done; None when all are."""
        return next((s for s in self.steps if s.state in (StepState.WAITING, StepState.GOING)), None)

    def step(self, name: str) -> OperationStep | None:
        """The step of that name; None when this kind has none."""
        return next((s for s in self.steps if s.name == name), None)

    @property
    def publishing(self) -> bool:
        """Whether publishing has begun: from here on it cannot be cancelled."""
        step = self.step(PUBLISH)
        return step is not None and step.state is not StepState.WAITING and step.state is not StepState.SKIPPED

    @property
    def published(self) -> bool:
        """Whether the run was cut over: from here on it only goes forward."""
        step = self.step(PUBLISH)
        return step is not None and step.state is StepState.DONE

    def with_step(self, name: str, **changed: Any) -> "Operation":
        """The same with a step changed."""
        steps = tuple(s.model_copy(update=changed) if s.name == name else s for s in self.steps)
        return self.model_copy(update={"steps": steps})


def new(identity: str, kind: OperationKind, who: str, request: SurgeryRequest, at: float, was: str,
        reason: str = "") -> Operation:
    """An operation that has not begun."""
    return Operation(id=identity, kind=kind, who=who, reason=reason, request=request, created_at=at, was=was,
                     steps=tuple(OperationStep(name=name) for name in STEPS_OF[kind]))


def event_of(before: Operation | None, after: Operation) -> tuple[str, str, dict[str, Any]] | None:
    """What to note of a change as an event, (who, what, details); None for one that is not worth it (who is waited
    for)."""
    base = {"operation": after.id, "kind": after.kind.value, "plan": after.request.name,
            "digest": after.request.digest}
    if before is None:
        return after.who, "operation.began", base
    if after.state is not before.state:
        details = {**base, "from": before.state.value, "outcome": after.outcome, "step": after.failed_at}
        return _mover(after), f"operation.{after.state.value}", details
    if after.cancel is not None and before.cancel is None:
        return after.cancel.who, "operation.cancel", {**base, "reason": after.cancel.reason}
    if after.go_on is not None and before.go_on is None:
        return after.go_on.who, "operation.continue", {**base, "reason": after.go_on.reason}
    for old, now in zip(before.steps, after.steps, strict=True):
        if (old.state, old.attempt) != (now.state, now.attempt):
            return "controller", "operation.step", {
                **base, "step": now.name, "state": now.state.value, "attempt": now.attempt, "error": now.error,
                "result": now.result}
    return None


def _mover(operation: Operation) -> str:
    if operation.state in (OperationState.ROLLING_BACK, OperationState.CANCELLED) and operation.cancel is not None:
        return operation.cancel.who
    return "controller"
