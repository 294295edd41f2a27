"""The document of an operation: its steps by kind, what it may still undo, and the events of its changes."""

import time
from typing import Any

import pytest
from pydantic import ValidationError

from five.agent.surgery.plan import Plan
from five.run.config.controller import OperationsConfig
from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import (
    EXAMPLE,
    STEPS_OF,
    Operation,
    OperationKind,
    OperationRequest,
    OperationState,
    OperatorDecision,
    StepState,
    change_event,
    new_operation,
)
from five.services.controller.operations.engine import advance
from five.services.controller.surgery.plans import surgery_request
from rapid.store.record import RunRecord
from tests.services.controller.operations.memory_backend import REQUEST, MemoryBackend

DECISION = OperatorDecision(who="bob", at=5.0, reason="too late")


def surgery(**changed: Any) -> Operation:
    made = new_operation("surgery-1", OperationKind.SURGERY, "ada", REQUEST, 3.0, "running", "more memory")
    return made.model_copy(update=changed)


@pytest.mark.parametrize("kind", OperationKind)
def test_new_operation_has_not_begun(kind: OperationKind) -> None:
    made = new_operation("op-1", kind, "ada", REQUEST, 3.0, "running", "more memory")
    assert tuple(step.name for step in made.steps) == STEPS_OF[kind]
    assert (made.state, made.changes, made.created_at, made.was, made.reason) == (
        OperationState.GOING, 0, 3.0, "running", "more memory")
    assert made.current == made.steps[0] and not made.is_over
    first = made.steps[0]
    assert (first.state, first.attempt, first.started_at, first.ended_at, first.deadline) == (
        StepState.WAITING, 0, None, None, None)


def test_documents_and_their_parts_are_immutable_and_closed() -> None:
    made = surgery(cancel=DECISION)
    for part, name in ((made, "who"), (made.steps[0], "state"), (made.request, "plan"), (DECISION, "who")):
        with pytest.raises(ValidationError, match="frozen"):
            setattr(part, name, "changed")
        with pytest.raises(ValidationError, match="extra"):
            type(part).model_validate({**part.model_dump(), "unknown": 1})


def test_request_asks_for_nothing_by_itself() -> None:
    """Such as a revert that the controller requests: no hold, no warm-up."""
    assert OperationRequest().model_dump() == {
        "plan": "", "digest": "", "name": "", "parent": "", "epoch": 0, "hold": False, "warm_up_versions": 0,
        "bounds": {}, "to_version": None, "anneal": None}


def test_example_of_the_rest_page_is_a_surgery_that_pauses() -> None:
    """The example has the request that the route makes, begun by the engine half a second later."""
    shown, given = Operation.model_validate(EXAMPLE), EXAMPLE["request"]
    assert shown.model_dump(mode="json", exclude_unset=True) == EXAMPLE
    plan = Plan.from_yaml(given["plan"])
    request = surgery_request(plan, given["plan"], RunRecord(), hold=True).model_copy(update={"digest": "4c0e2f1a" * 8})
    assert shown.request == request and len(request.digest) == len(plan.digest)
    run = MemoryBackend(busy=["rollout/3"], clock=shown.created_at,
                        limits=StepLimits(OperationsConfig().seconds()))
    made = new_operation(shown.id, OperationKind.SURGERY, "ada", request, run.clock, "running", "more memory")
    run.clock += 0.5
    while made.current and made.current.waiting_for != ("rollout/3",):
        made = advance(made, run).model_copy(update={"changes": made.changes + 1})
    assert made == shown
    assert time.strftime("%Y%m%d-%H%M%S", time.gmtime(shown.created_at)) in shown.id


@pytest.mark.parametrize("kind", OperationKind)
def test_steps_are_read_and_changed_by_name(kind: OperationKind) -> None:
    made = new_operation("op-1", kind, "ada", REQUEST, 3.0, "running")
    assert made.step("nothing") is None and made.with_step("nothing", attempt=3) == made
    for name in STEPS_OF[kind]:
        found = made.step(name)
        assert found is not None and found.name == name
        changed = made.with_step(name, attempt=3)
        assert [(step.name, step.attempt) for step in changed.steps] == [
            (each, 3 if each == name else 0) for each in STEPS_OF[kind]]
        assert made.step(name) == found  # the document itself is unchanged


@pytest.mark.parametrize(("state", "publishing", "published"), [
    (StepState.WAITING, False, False), (StepState.SKIPPED, False, False), (StepState.GOING, True, False),
    (StepState.FAILED, True, False), (StepState.DONE, True, True)])
def test_publish_step_decides_what_can_be_undone(state: StepState, publishing: bool, published: bool) -> None:
    made = surgery().with_step("publish", state=state)
    assert (made.publishing, made.published) == (publishing, published)


def test_operation_without_publish_step_never_publishes() -> None:
    check = new_operation("check-1", OperationKind.CHECK, "ada", REQUEST, 0.0, "running")
    assert check.step("publish") is None and not check.publishing and not check.published


def test_current_step_is_the_first_unfinished_one() -> None:
    made = surgery().with_step("pause", state=StepState.DONE).with_step("check", state=StepState.SKIPPED)
    assert made.current is not None and made.current.name == "checkpoint"
    made = made.with_step("checkpoint", state=StepState.GOING)
    assert made.current is not None and made.current.name == "checkpoint"
    for step in made.steps:
        made = made.with_step(step.name, state=StepState.DONE)
    assert made.current is None


@pytest.mark.parametrize("state", OperationState)
def test_final_states_end_an_operation(state: OperationState) -> None:
    final = {OperationState.DONE, OperationState.FAILED, OperationState.CANCELLED}
    assert surgery(state=state).is_over == (state in final)


BASE = {"operation": "surgery-1", "kind": "surgery", "plan": "wider", "digest": REQUEST.digest}


@pytest.mark.parametrize(("before", "after", "event"), [
    (None, {}, ("ada", "operation.began", BASE)),
    ({}, {"waiting_for": ("rollout-3",)}, None),
    ({}, {"cancel": DECISION}, ("bob", "operation.cancel", {**BASE, "reason": "too late"})),
    ({"cancel": DECISION}, {"cancel": DECISION}, None),
    ({}, {"go_on": DECISION}, ("bob", "operation.continue", {**BASE, "reason": "too late"})),
    ({"go_on": DECISION}, {"go_on": DECISION}, None),
    ({}, {"state": OperationState.ROLLING_BACK, "failed_at": "check", "outcome": "no room"},
     ("controller", "operation.rolling_back", {**BASE, "from": "going", "outcome": "no room", "step": "check"})),
    ({"cancel": DECISION}, {"cancel": DECISION, "state": OperationState.ROLLING_BACK},
     ("bob", "operation.rolling_back", {**BASE, "from": "going", "outcome": "", "step": ""})),
    ({"cancel": DECISION}, {"cancel": DECISION, "state": OperationState.CANCELLED},
     ("bob", "operation.cancelled", {**BASE, "from": "going", "outcome": "", "step": ""})),
    ({"cancel": DECISION}, {"cancel": DECISION, "state": OperationState.DONE},
     ("controller", "operation.done", {**BASE, "from": "going", "outcome": "", "step": ""})),
    ({"cancel": DECISION}, {"cancel": DECISION, "state": OperationState.FAILED},
     ("controller", "operation.failed", {**BASE, "from": "going", "outcome": "", "step": ""})),
], ids=["begun", "waits", "cancel", "cancelled before", "continue", "continued before", "rolls back",
        "rolls back when cancelled", "cancelled", "done although cancelled", "failed although cancelled"])
def test_change_of_an_operation_is_an_event(before: dict[str, Any] | None, after: dict[str, Any],
                                            event: tuple[str, str, dict[str, Any]] | None) -> None:
    assert change_event(None if before is None else surgery(**before), surgery(**after)) == event


def test_begin_end_and_retry_of_a_step_are_events() -> None:
    waiting = surgery()
    going = waiting.with_step("check", state=StepState.GOING, attempt=1)
    again = going.with_step("check", attempt=2, error="no room")
    done = again.with_step("check", state=StepState.DONE, result={"ok": True})

    def of_step(state: str, attempt: int, error: str = "", **result: Any) -> tuple[str, str, dict[str, Any]]:
        return "controller", "operation.step", {
            **BASE, "step": "check", "state": state, "attempt": attempt, "error": error, "result": result}

    assert change_event(waiting, going) == of_step("going", 1)
    assert change_event(going, again) == of_step("going", 2, "no room")
    assert change_event(again, done) == of_step("done", 2, "no room", ok=True)
    assert change_event(going, going.with_step("check", waiting_for=("optimizer-0",))) is None
