"""Single steps of operations: when each begins, waits, is done, or is refused."""

from dataclasses import replace
from typing import Any

import pytest

from five.services.controller.operations.document import Operation, OperationKind, OperatorDecision, new_operation
from five.services.controller.operations.step_results import Done, Refused, StepResult, Wait
from five.services.controller.operations.steps import STEPS, warm_up_until
from rapid.store.jobs import Job, JobState
from rapid.store.state import RunStatus, Status
from tests.services.controller.operations.memory_backend import HEAD, REQUEST, MemoryBackend, surgery

IN_OPERATION = ("transform", "checkpoint", "hold", "publish")


def status(now: Status, who: str = "bob") -> RunStatus:
    return RunStatus(now, 0.0, who, "")


def result(name: str, run: MemoryBackend, operation: Operation | None = None, **of_step: Any) -> StepResult:
    """Run one step of an operation once."""
    found = (operation or surgery(run)).with_step(name, **of_step)
    step = found.step(name)
    assert step is not None, name
    return STEPS[name](found, step, run)


def answered(run: MemoryBackend, operation: Operation, step: str, answer: dict[str, Any]) -> None:
    """Complete the job of a step's first attempt."""
    identity = f"{operation.id}/{step}/1"
    run.jobs[identity] = replace(Job(identity, step, {}, 0.0), state=JobState.DONE, answer=answer)


@pytest.mark.parametrize("now", [Status.STARTING, Status.WARMING, Status.STOPPING, Status.STOPPED, Status.FAILED])
def test_only_a_running_or_paused_run_is_paused_for_surgery(now: Status) -> None:
    run = MemoryBackend(now_is=status(now))
    assert result("pause", run) == Refused(f"the run is {now}: surgery requires a running or paused run")
    assert run.now_is == status(now)


def test_pause_of_a_missing_run_is_refused() -> None:
    run = MemoryBackend(missing=True)
    assert result("pause", run) == Refused("the run is gone: surgery requires a running or paused run")


def test_pause_goes_from_running_to_operating_once_all_are_idle() -> None:
    run = MemoryBackend()
    assert result("pause", run) == Wait(("the run to pause",))
    assert run.now_is.status is Status.PAUSING and run.now_is.reason == "operation surgery-1"
    assert result("pause", run, waiting_for=("the run to pause",)) == Wait(("the run to pause",))
    run.busy = ["rollout-0", "play-1"]
    assert result("pause", run) == Wait(("rollout-0", "play-1"))
    run.now_is = status(Status.PAUSED)
    assert result("pause", run) == Done()
    assert run.now_is.status is Status.OPERATING
    assert result("pause", run) == Done()  # repeated after a crash
    assert run.now_is.status is Status.OPERATING


def test_resume_while_the_run_pauses_ends_the_surgery() -> None:
    run = MemoryBackend(now_is=status(Status.RUNNING))
    assert result("pause", run, waiting_for=("the run to pause",)) == Refused(
        "bob resumed the run while it was pausing")
    assert run.now_is.status is Status.RUNNING


@pytest.mark.parametrize("step", ["check", *IN_OPERATION])
@pytest.mark.parametrize(("now", "why"), [
    (status(Status.PAUSED), "the run is paused (by bob)"), (status(Status.STOPPED, ""), "the run is stopped"),
    (None, "the run no longer exists")])
def test_steps_of_a_surgery_need_the_status_operating(step: str, now: RunStatus | None, why: str) -> None:
    run = MemoryBackend(now_is=now or status(Status.RUNNING), missing=now is None)
    assert result(step, run) == Refused(why)
    assert not run.jobs


@pytest.mark.parametrize("step", ["check", "checkpoint", "transform", "publish"])
def test_steps_of_the_optimizer_wait_for_its_job(step: str) -> None:
    run = MemoryBackend(now_is=status(Status.OPERATING))
    assert result(step, run, attempt=1) == Wait((f"optimizer 0 to claim the job {step!r}",))
    assert list(run.jobs) == [f"surgery-1/{step}/1"]


@pytest.mark.parametrize("kind", [OperationKind.CHECK, OperationKind.SURGERY])
@pytest.mark.parametrize("ok", [True, False])
def test_result_of_a_check_is_saved_whatever_it_is(kind: OperationKind, ok: bool) -> None:
    run = MemoryBackend(now_is=status(Status.OPERATING))
    operation = new_operation("operation-1", kind, "ada", REQUEST, 0.0, Status.RUNNING)
    answer = {"ok": ok, **({} if ok else {"why": "mean_kl is 0.5"})}
    answered(run, operation, "check", answer)
    expected: StepResult = Done(answer)
    if kind is OperationKind.SURGERY and not ok:
        expected = Refused("the check is outside the approved bounds: mean_kl is 0.5")
    assert result("check", run, operation, attempt=1) == expected
    assert run.checks == {"operation-1": answer}


def test_check_alone_runs_beside_learning_and_needs_the_plans_schema() -> None:
    operation = new_operation("check-1", OperationKind.CHECK, "ada", REQUEST, 0.0, Status.RUNNING)
    assert isinstance(result("check", MemoryBackend(), operation, attempt=1), Wait)
    assert result("check", MemoryBackend(epoch=2), operation, attempt=1) == Refused("the plan is stale")


def test_hold_is_only_for_operations_that_ask_for_it() -> None:
    run = MemoryBackend(now_is=status(Status.OPERATING))
    assert result("hold", run) == Done()
    held = surgery(run, hold=True)
    assert result("hold", run, held) == Wait(("an operator to continue or cancel",))
    assert result("hold", run, held.model_copy(update={"go_on": OperatorDecision(who="ada", at=1.0)})) == Done()


def transformed(run: MemoryBackend, version: int = HEAD + 1) -> Operation:
    return surgery(run).with_step("transform", result={"version": version})


def test_publish_after_the_cut_over_submits_no_job() -> None:
    """The controller died after the optimizer's cut-over, before it saved the step."""
    run = MemoryBackend(now_is=status(Status.WARMING), epoch=2, schema="q" * 16, chain=(REQUEST.digest,))
    assert result("publish", run, transformed(run), attempt=1) == Done({"version": HEAD + 1})
    assert not run.jobs
    assert result("publish", run, surgery(run), attempt=1) == Done({"version": None})


def test_publish_of_a_stale_plan_is_refused() -> None:
    run = MemoryBackend(now_is=status(Status.OPERATING), epoch=2)
    assert result("publish", run, transformed(run), attempt=1) == Refused("the plan is stale")
    assert not run.jobs


@pytest.mark.parametrize("read", [1, 2])
def test_cut_over_between_two_reads_of_the_status_counts(read: int) -> None:
    """The run leaves ``operating`` because the optimizer publishes, not because somebody interrupts."""
    run = MemoryBackend(now_is=status(Status.OPERATING))
    operation = transformed(run)
    answers = [False] * read + [True] * 5
    run.published = lambda operation: answers.pop(0)  # type: ignore[method-assign]
    if read == 1:
        run.now_is = status(Status.WARMING)
    else:
        result("publish", run, operation, attempt=1)
        answers[:] = [False, True]
    assert result("publish", run, operation, attempt=1) == Done({"version": HEAD + 1})


def test_job_that_published_nothing_is_refused() -> None:
    run = MemoryBackend(now_is=status(Status.OPERATING))
    operation = transformed(run)
    answered(run, operation, "publish", {})
    assert result("publish", run, operation, attempt=1) == Refused(
        "the optimizer's job ended, but the run was not cut over")


@pytest.mark.parametrize("now", [Status.PAUSING, Status.PAUSED, Status.STOPPING, Status.STOPPED, Status.FAILED])
@pytest.mark.parametrize("step", ["renew", "warm_up"])
def test_halted_run_is_named_after_the_cut_over(step: str, now: Status) -> None:
    run = MemoryBackend(now_is=status(now), behind=["rollout-1"])
    operation = surgery(run).with_step("publish", result={"version": HEAD + 1})
    assert result(step, run, operation) == Wait((f"an operator to resume the run, which is {now} (by bob)",))
    run.missing = True
    assert result(step, run, operation) == Wait(("the run, which no longer exists",))


def test_renewal_waits_for_every_service_by_name() -> None:
    run = MemoryBackend(now_is=status(Status.WARMING), behind=["rollout-1", "play-0"])
    assert result("renew", run) == Wait(("rollout-1", "play-0"))
    run.behind = []
    assert result("renew", run) == Done()


def test_warm_up_lasts_the_requested_versions() -> None:
    run = MemoryBackend(now_is=status(Status.WARMING))
    operation = surgery(run, warm_up_versions=3).with_step("publish", result={"version": HEAD})
    assert warm_up_until(operation) == HEAD + 3
    run.version = HEAD + 2
    assert result("warm_up", run, operation) == Wait((f"version {HEAD + 3}; the newest is {HEAD + 2}",))
    run.version = HEAD + 3
    assert result("warm_up", run, operation) == Done({"until": HEAD + 3})
    run.now_is = status(Status.PAUSED)
    assert result("warm_up", run, operation) == Done({"until": HEAD + 3})


def test_warm_up_of_an_operation_without_a_version_counts_from_zero() -> None:
    anneal = new_operation("anneal-1", OperationKind.ANNEAL, "ada", REQUEST, 0.0, Status.RUNNING)
    unknown = surgery(MemoryBackend()).with_step("publish", result={"version": None})
    assert warm_up_until(anneal) == warm_up_until(unknown) == REQUEST.warm_up_versions


@pytest.mark.parametrize(("now", "after", "expected"), [
    (Status.WARMING, Status.RUNNING, Done()), (Status.RUNNING, Status.RUNNING, Done()),
    (Status.PAUSED, Status.PAUSED, Done()), (Status.OPERATING, Status.OPERATING, Wait(("the run to warm up",)))])
def test_run_step_only_ends_the_warm_up(now: Status, after: Status, expected: StepResult) -> None:
    run = MemoryBackend(now_is=status(now))
    assert result("run", run) == expected
    assert run.now_is.status is after
    if now is Status.WARMING:
        assert run.now_is.reason == "operation surgery-1: warm-up finished"


def test_run_step_of_a_missing_run_is_done() -> None:
    run = MemoryBackend(missing=True)
    assert result("run", run) == Done()


def test_anneal_begins_after_its_checkpoint_or_says_why_not() -> None:
    run = MemoryBackend()
    operation = new_operation("anneal-1", OperationKind.ANNEAL, "ada", REQUEST, 0.0, Status.RUNNING)
    assert result("keep", run, operation, attempt=1) == Wait(("optimizer 0 to claim the job 'keep'",))
    assert result("begin", run, operation) == Done() and run.annealed == {"anneal-1"}
    assert result("begin", MemoryBackend(no_anneal="one at a time"), operation) == Refused("one at a time")
