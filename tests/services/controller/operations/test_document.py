"""The document of an operation: its steps by kind, what it may still undo, and the events of its changes."""

from typing import Any

import pytest
from pydantic import ValidationError

from five.services.controller.operations.document import (
    EXAMPLE,
    STEPS_OF,
    Operation,
    OperationKind,
    OperationState,
    OperatorDecision,
    StepState,
    change_event,
    new_operation,
)
from tests.services.controller.operations.memory_backend import REQUEST

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


def test_example_of_the_rest_page_is_a_surgery_that_has_begun() -> None:
    shown = Operation.model_validate(EXAMPLE)
    assert shown.model_dump(mode="json", exclude_unset=True) == EXAMPLE
    assert tuple(step.name for step in shown.steps) == STEPS_OF[shown.kind]
    assert shown.current is not None and shown.current.name == "pause" and not shown.publishing
    begun = shown.current
    assert shown.created_at < (begun.started_at or 0.0) < (begun.deadline or 0.0)


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
