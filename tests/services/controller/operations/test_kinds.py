"""Reverts and the start of an anneal through the engine: every step, every death, every refusal."""

import pytest

from five.services.controller.operations.document import (
    ANNEAL_STEPS,
    REVERT_STEPS,
    Operation,
    OperationKind,
    OperationRequest,
    OperationState,
    OperatorDecision,
    StepState,
    new_operation,
)
from rapid.store.state import RunStatus, Status
from tests.services.controller.operations.memory_backend import MemoryBackend, carry_on, until, untouched

REVERT = OperationRequest(name="to version 3", parent="p" * 16, epoch=1, to_version=3)
ANNEAL = OperationRequest(name="patch-1", parent="p" * 16, epoch=1, anneal={"id": "patch-1"})


def operation(run: MemoryBackend, kind: OperationKind) -> Operation:
    request = REVERT if kind is OperationKind.REVERT else ANNEAL
    return new_operation(f"{kind}-1", kind, "ada", request, run.clock, run.now_is.status)


def test_a_revert_goes_through_its_steps() -> None:
    run = MemoryBackend()
    done = carry_on(operation(run, OperationKind.REVERT), run)
    assert done.state is OperationState.DONE, done.outcome
    assert tuple(s.name for s in done.steps) == REVERT_STEPS and {s.state for s in done.steps} == {StepState.DONE}
    assert (run.epoch, run.publishes, run.restored, run.now_is.status) == (2, 1, {"revert-1"}, Status.RUNNING)
    published = done.step("publish")
    assert published is not None
    assert done.outcome == f"version {published.result['version']} continues from version 3; the run is learning"
    assert not run.jobs and not run.staged


@pytest.mark.parametrize("kind", [OperationKind.REVERT, OperationKind.ANNEAL])
def test_operations_continue_after_a_crash_at_any_effect(kind: OperationKind) -> None:
    for effect in range(1, 30):
        run = MemoryBackend(kill_after=effect)
        done = carry_on(operation(run, kind), run)
        assert done.state is OperationState.DONE, (effect, done.outcome)
        assert run.now_is.status is Status.RUNNING and not run.jobs
        assert run.publishes == (kind is OperationKind.REVERT)
        assert (run.restored, run.annealed) == (
            ({"revert-1"}, set()) if kind is OperationKind.REVERT else (set(), {"anneal-1"}))


@pytest.mark.parametrize("step", ["checkpoint", "transform"])
def test_impossible_revert_leaves_the_run_unchanged(step: str) -> None:
    run = MemoryBackend(refusing={step})
    done = carry_on(operation(run, OperationKind.REVERT), run)
    untouched(run, done)
    assert f"{step} cannot work out" in done.outcome


def test_a_revert_decided_in_another_epoch_is_refused() -> None:
    run = MemoryBackend(epoch=2)
    done = carry_on(operation(run, OperationKind.REVERT), run)
    assert done.state is OperationState.FAILED and run.publishes == 0 and run.now_is.status is Status.RUNNING


def test_a_revert_can_be_cancelled_until_it_publishes() -> None:
    run = MemoryBackend()
    begun = until(operation(run, OperationKind.REVERT), run, "transform")
    done = carry_on(begun.model_copy(update={"cancel": OperatorDecision(who="bob", at=1.0)}), run)
    untouched(run, done)
    assert done.state is OperationState.CANCELLED


def test_an_anneal_begins_while_the_run_goes_on_or_not_at_all() -> None:
    run = MemoryBackend()
    done = carry_on(operation(run, OperationKind.ANNEAL), run)
    assert done.state is OperationState.DONE and tuple(s.name for s in done.steps) == ANNEAL_STEPS
    assert done.outcome == "anneal patch-1 has begun"
    assert run.annealed == {"anneal-1"} and run.epoch == 1 and run.publishes == 0
    for failing in (MemoryBackend(refusing={"keep"}), MemoryBackend(no_anneal="one at a time")):
        done = carry_on(operation(failing, OperationKind.ANNEAL), failing)
        assert done.state is OperationState.FAILED and failing.now_is == RunStatus(
            Status.RUNNING, 0.0, "controller", "") and not failing.annealed
        assert "keep cannot work out" in done.outcome or "one at a time" in done.outcome


@pytest.mark.parametrize("state", [StepState.WAITING, StepState.GOING])
def test_an_anneal_that_may_have_begun_is_not_cancelled(state: StepState) -> None:
    """Its checkpoint would be removed: the controller died, or another one wrote, before the step was saved."""
    run = MemoryBackend()
    begun = operation(run, OperationKind.ANNEAL).with_step("keep", state=StepState.DONE, result={"head": 3})
    begun = begun.with_step("begin", state=state, attempt=1, started_at=0.0)
    if state is StepState.GOING:
        run.begin_anneal(begun)
    done = carry_on(begun.model_copy(update={"cancel": OperatorDecision(who="bob", at=1.0)}), run)
    assert (done.state, run.annealed) == ((OperationState.DONE, {"anneal-1"}) if state is StepState.GOING
                                          else (OperationState.CANCELLED, set()))
