"""Rollbacks of operations: when a cancellation counts, what a rollback restores, and how the operation then ends."""

import pytest

from five.services.controller.operations.document import (
    Operation,
    OperationKind,
    OperationState,
    OperatorDecision,
    StepState,
    new_operation,
)
from five.services.controller.operations.engine import advance
from rapid.store.jobs import JobState
from rapid.store.state import RunStatus, Status
from tests.services.controller.operations.memory_backend import (
    REQUEST,
    MemoryBackend,
    carry_on,
    surgery,
    until,
    untouched,
)

CANCELLATION = OperatorDecision(who="bob", at=1.0)


def cancelled(operation: Operation) -> Operation:
    return operation.model_copy(update={"cancel": CANCELLATION})


def test_cancellation_after_publishing_has_begun_changes_nothing() -> None:
    run = MemoryBackend()
    operation = until(surgery(run), run, "publish")
    assert operation.publishing and not operation.published
    done = carry_on(cancelled(operation), run)
    assert done.state is OperationState.DONE
    assert run.publishes == 1


def test_cancellation_during_a_rollback_leaves_a_failure() -> None:
    run = MemoryBackend(refusing={"transform"})
    operation = until(surgery(run), run, "transform")
    while operation.state is OperationState.GOING:
        run.live()
        operation = advance(operation, run)
    ended = carry_on(cancelled(operation), run)
    assert ended.state is OperationState.FAILED
    assert ended.outcome == "transform: transform cannot work out; nothing was published; the run is running, as before"
    untouched(run, ended)


def test_error_that_reads_like_a_cancellation_is_a_failure() -> None:
    run = MemoryBackend()
    operation = until(surgery(run), run, "transform")
    order = run.jobs["surgery-1/transform/1"]
    run.jobs[order.id] = run.carried_out(order).__class__(
        order.id, order.kind, order.payload, 0.0, JobState.REFUSED, error="cancelled by the driver")
    ended = carry_on(operation, run)
    assert (ended.state, ended.failed_at) == (OperationState.FAILED, "transform")
    assert ended.outcome.startswith("transform: cancelled by the driver; nothing was published")


def test_cancelled_operation_names_who_and_where() -> None:
    run = MemoryBackend()
    operation = until(surgery(run, hold=True), run, "hold")
    ended = carry_on(cancelled(operation), run)
    assert (ended.state, ended.failed_at, ended.ended_at) == (OperationState.CANCELLED, "hold", run.clock)
    assert ended.outcome == "cancelled by bob; nothing was published; the run is running, as before"
    states = {step.name: step.state for step in ended.steps}
    assert states["transform"] is StepState.DONE and states["hold"] is StepState.FAILED
    assert {states[name] for name in ("publish", "renew", "warm_up", "run")} == {StepState.SKIPPED}


def test_step_that_did_not_begin_is_skipped_by_a_cancellation() -> None:
    run = MemoryBackend()
    ended = carry_on(cancelled(surgery(run)), run)
    assert {step.state for step in ended.steps} == {StepState.SKIPPED}
    assert run.now_is == RunStatus(Status.RUNNING, 0.0, "controller", "")  # the run was never touched


def test_rollback_of_a_deleted_run_ends() -> None:
    run = MemoryBackend()
    operation = until(surgery(run, hold=True), run, "hold")
    run.missing = True
    ended = carry_on(operation, run)
    assert ended.state is OperationState.FAILED
    assert ended.outcome == "hold: the run no longer exists; nothing was published"
    assert not run.jobs and not run.staged


@pytest.mark.parametrize("busy", [["rollout-0"], []])
def test_paused_run_stays_paused_after_a_rollback(busy: list[str]) -> None:
    """Whether the rollback begins while the run pauses or later."""
    for was, after in ((Status.RUNNING, Status.RUNNING), (Status.PAUSED, Status.PAUSED)):
        run = MemoryBackend(now_is=RunStatus(was, 0.0, "ada", ""), busy=busy)
        step = "pause" if busy and was is Status.RUNNING else "hold"
        ended = carry_on(cancelled(until(surgery(run, hold=True), run, step)), run)
        assert (ended.state, run.now_is.status) == (OperationState.CANCELLED, after)


def test_run_that_is_stopped_during_a_rollback_stays_stopped() -> None:
    """An operator stops the run between the engine's read and its transition."""
    run = MemoryBackend()
    operation = advance(cancelled(until(surgery(run, hold=True), run, "hold")), run)
    assert operation.state is OperationState.ROLLING_BACK
    run.now_is, before = RunStatus(Status.STOPPING, run.clock, "bob", ""), run.now_is
    run.status = lambda: before  # type: ignore[method-assign]
    ended = advance(operation, run)
    assert (ended.state, run.now_is.status, run.now_is.who) == (OperationState.CANCELLED, Status.STOPPING, "bob")
    assert not run.jobs and not run.staged


def test_deadline_of_an_earlier_release_ends_a_step() -> None:
    """This release has no limit for the step that waits."""
    run = MemoryBackend(busy=["rollout-3"])
    operation = until(surgery(run), run, "pause").with_step("pause", deadline=run.clock)
    run.clock += 1.0
    ended = carry_on(operation, run)
    assert ended.state is OperationState.FAILED
    assert "pause: timed out, waiting for rollout-3" in ended.outcome


def test_check_that_is_cancelled_leaves_the_status_alone() -> None:
    """Somebody pauses the run meanwhile: a check has not paused it, so it does not resume it."""
    run = MemoryBackend()
    check = new_operation("check-1", OperationKind.CHECK, "ada", REQUEST, 0.0, Status.RUNNING)
    check = until(check, run, "check")
    run.now_is = RunStatus(Status.PAUSED, run.clock, "bob", "a pause of his")
    ended = carry_on(cancelled(check), run)
    assert ended.state is OperationState.CANCELLED and run.now_is.who == "bob"
    assert ended.outcome == "cancelled by bob; nothing was published"


def test_ended_operation_does_not_advance() -> None:
    run = MemoryBackend()
    done = carry_on(surgery(run), run)
    effects = run.effects
    assert advance(done, run) == done and run.effects == effects


def test_concurrent_change_of_the_status_is_waited_out() -> None:
    """An operator resumes the run between the engine's read and its transition."""
    run = MemoryBackend(now_is=RunStatus(Status.PAUSED, 0.0, "ada", ""))
    operation = until(surgery(run), run, "pause").with_step("pause", state=StepState.GOING)
    run.now_is = RunStatus(Status.RUNNING, 0.0, "bob", "")
    run.status = lambda: RunStatus(Status.PAUSED, 0.0, "ada", "")  # type: ignore[method-assign]
    after = advance(operation, run)
    step = after.step("pause")
    assert step is not None and step.state is StepState.GOING
    assert step.waiting_for == ("the run is running, it cannot go to operating",)
