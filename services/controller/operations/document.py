"""The document of an operation: its request, steps, what it waits for, and its outcome."""

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class OperationKind(StrEnum):
    """The kind of an operation."""

    CHECK = "check"  # measures a plan on the newest version without changing anything
    SURGERY = "surgery"  # applies a plan
    REVERT = "revert"  # reverts to an older version
    ANNEAL = "anneal"  # keeps a checkpoint and begins an anneal


class StepState(StrEnum):
    """State of a step."""

    WAITING = "waiting"  # not begun
    GOING = "going"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"  # the operation ended before it


class OperationState(StrEnum):
    """State of an operation."""

    GOING = "going"
    ROLLING_BACK = "rolling_back"  # failed or cancelled; the run is being rolled back
    DONE = "done"
    FAILED = "failed"  # the run was rolled back
    CANCELLED = "cancelled"  # the run was rolled back


FINAL_STATES = frozenset({OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED})

CHECK_STEPS = ("check",)
SURGERY_STEPS = ("pause", "check", "checkpoint", "transform", "hold", "publish", "renew", "warm_up", "run")
REVERT_STEPS = ("pause", "checkpoint", "transform", "publish", "restore", "renew", "warm_up", "run")
ANNEAL_STEPS = ("keep", "begin")
STEPS_OF: dict[OperationKind, tuple[str, ...]] = {
    OperationKind.CHECK: CHECK_STEPS, OperationKind.SURGERY: SURGERY_STEPS, OperationKind.REVERT: REVERT_STEPS,
    OperationKind.ANNEAL: ANNEAL_STEPS}
PUBLISH, BEGIN = "publish", "begin"


class OperationStep(BaseModel):
    """A step of an operation. Times are seconds since the epoch; ``deadline`` None means no limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(description="Its name.")
    state: StepState = Field(StepState.WAITING, description="Its state.")
    attempt: int = Field(0, description="Number of the attempt, from 1; 0 before it begins.")
    started_at: float | None = Field(None, description="When it began, in seconds since the epoch.")
    ended_at: float | None = Field(None, description="When it ended, in seconds since the epoch.")
    deadline: float | None = Field(None, description="Deadline, in seconds since the epoch; null: none.")
    error: str = Field("", description="Last error.")
    waiting_for: tuple[str, ...] = Field((), description="Services or tasks that must finish first.")
    result: dict[str, Any] = Field(default_factory=dict, description="Its result.")


class OperatorDecision(BaseModel):
    """An operator's decision about an operation: cancel it, or continue past the hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    who: str = Field(description="Name of the operator's token.")
    at: float = Field(description="When, in seconds since the epoch.")
    reason: str = Field("", description="Why.")


class OperationRequest(BaseModel):
    """The request of an operation: a plan and its approved bounds, a version to revert to, or a change to anneal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    plan: str = Field("", description="The plan's text (YAML); empty unless it is a surgery or check.")
    digest: str = Field("", description="The plan's digest.")
    name: str = Field("", description="The plan's name, or a description.")
    parent: str = Field("", description="The model schema that the plan starts from.")
    epoch: int = Field(0, description="The run's epoch in which the plan was checked.")
    hold: bool = Field(False, description="Whether to wait for an operator before publishing.")
    warm_up_versions: int = Field(0, description="Versions with learning rate 0 after it.")
    bounds: dict[str, Any] = Field(default_factory=dict, description="The approved bounds of the check.")
    to_version: int | None = Field(None, description="The target version of a revert.")
    anneal: dict[str, Any] | None = Field(None, description="The change to anneal; for a revert requested by an "
                                          "anneal's guard, the attempt.")


EXAMPLE: dict[str, Any] = {
    "id": "surgery-20260101-120500-d4e5f6", "kind": "surgery", "who": "ada", "reason": "more memory",
    "request": {"plan": "name: wider\nparent: 9f2d51c07ab3e684\nsteps:\n- kind: grow_lstm\n  to: 256\n",
                "digest": "4c0e2f1a" * 8, "name": "wider", "parent": "9f2d51c07ab3e684", "epoch": 1, "hold": True,
                "warm_up_versions": 8, "bounds": {}},
    "created_at": 1767269100.0, "ended_at": None, "state": "going", "was": "running",
    "steps": [
        {"name": "pause", "state": "going", "attempt": 1, "started_at": 1767269100.5, "ended_at": None,
         "deadline": 1767269400.5, "error": "", "waiting_for": ["rollout/3"], "result": {}},
        *({"name": name, "state": "waiting", "attempt": 0, "started_at": None, "ended_at": None, "deadline": None,
           "error": "", "waiting_for": [], "result": {}} for name in SURGERY_STEPS[1:])],
    "cancel": None, "go_on": None, "failed_at": "", "waiting_for": [], "outcome": "", "changes": 3}


class Operation(BaseModel):
    """An operation of the run. Documents are immutable; ``changes`` counts the revisions."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra={"examples": [EXAMPLE]})

    id: str = Field(description="Its id, for /v1/operations/{id}.")
    kind: OperationKind = Field(description="Kind of the operation.")
    who: str = Field(description="Name of the requesting token, or controller.")
    reason: str = Field("", description="Why.")
    request: OperationRequest = Field(description="The request.")
    created_at: float = Field(description="When, in seconds since the epoch.")
    ended_at: float | None = Field(None, description="When it ended, in seconds since the epoch.")
    state: OperationState = Field(OperationState.GOING, description="Its state.")
    was: str = Field("", description="The run's status before; restored if the operation fails.")
    steps: tuple[OperationStep, ...] = Field(description="Its steps in order.")
    cancel: OperatorDecision | None = Field(None, description="The decision to cancel; null: none.")
    go_on: OperatorDecision | None = Field(None, description="The decision to continue past the hold; null: none.")
    failed_at: str = Field("", description="The step at which it failed or was cancelled.")
    waiting_for: tuple[str, ...] = Field((), description="Services or tasks that must finish first in a rollback.")
    outcome: str = Field("", description="How it ended.")
    changes: int = Field(0, description="Revision of this document.")

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self.state in FINAL_STATES

    @property
    def current(self) -> OperationStep | None:
        """Return the first unfinished step, or None."""
        return next((s for s in self.steps if s.state in (StepState.WAITING, StepState.GOING)), None)

    def step(self, name: str) -> OperationStep | None:
        """Return the step with that name, or None if this kind has none."""
        return next((s for s in self.steps if s.name == name), None)

    @property
    def publishing(self) -> bool:
        """Return whether the step that publishes, or that begins the anneal, has begun. From then on it cannot be
        cancelled."""
        step = self.step(PUBLISH) or self.step(BEGIN)
        return step is not None and step.state is not StepState.WAITING and step.state is not StepState.SKIPPED

    @property
    def published(self) -> bool:
        """Return whether the run was cut over. From then on there is no rollback."""
        step = self.step(PUBLISH)
        return step is not None and step.state is StepState.DONE

    def with_step(self, name: str, **changed: Any) -> "Operation":
        """Return a copy with one step changed."""
        steps = tuple(s.model_copy(update=changed) if s.name == name else s for s in self.steps)
        return self.model_copy(update={"steps": steps})


def new_operation(identity: str, kind: OperationKind, who: str, request: OperationRequest, at: float, was: str,
                  reason: str = "") -> Operation:
    """Return an operation that has not begun."""
    return Operation(id=identity, kind=kind, who=who, reason=reason, request=request, created_at=at, was=was,
                     steps=tuple(OperationStep(name=name) for name in STEPS_OF[kind]))


def change_event(before: Operation | None, after: Operation) -> tuple[str, str, dict[str, Any]] | None:
    """Return the event of a change as (who, what, details), or None if only ``waiting_for`` has changed."""
    base = {"operation": after.id, "kind": after.kind.value, "plan": after.request.name,
            "digest": after.request.digest}
    if before is None:
        return after.who, "operation.began", base
    if after.state is not before.state:
        details = {**base, "from": before.state.value, "outcome": after.outcome, "step": after.failed_at}
        return _author(after), f"operation.{after.state.value}", details
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


def _author(operation: Operation) -> str:
    if operation.state in (OperationState.ROLLING_BACK, OperationState.CANCELLED) and operation.cancel is not None:
        return operation.cancel.who
    return "controller"
