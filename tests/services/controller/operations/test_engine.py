"""The operation engine on an in-memory run: failures leave the run unchanged, deaths do not stop an operation."""

from dataclasses import replace

import pytest

from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.document import (
    SURGERY_STEPS,
    Operation,
    OperationKind,
    OperationState,
    OperatorDecision,
    StepState,
    change_event,
    new_operation,
)
from five.services.controller.operations.engine import advance
from rapid.store.jobs import JobState
from rapid.store.state import RunStatus, Status
from tests.services.controller.operations.memory_backend import (
    HEAD,
    REQUEST,
    Killed,
    MemoryBackend,
    carry_on,
    surgery,
    until,
    untouched,
)

ORDERED = ("check", "checkpoint", "transform", "publish")


def states(operation: Operation) -> list[str]:
    return [s.state.value for s in operation.steps]


def test_a_surgery_goes_through_its_steps_and_ends_running() -> None:
    run = MemoryBackend()
    done = carry_on(surgery(run), run)
    assert done.state is OperationState.DONE
    assert states(done) == ["done"] * len(SURGERY_STEPS)
    assert run.now_is.status is Status.RUNNING
    assert (run.epoch, run.chain, run.publishes) == (2, (REQUEST.digest,), 1)
    published, warm = done.step("publish"), done.step("warm_up")
    assert published is not None
    assert published.result["version"] > HEAD
    assert warm is not None
    assert warm.result["until"] == published.result["version"] + REQUEST.warm_up_versions
    assert run.version >= warm.result["until"]
    assert done.outcome == f"version {published.result['version']} is the first of the new model; the run is learning"
    times = [t for s in done.steps for t in (s.started_at, s.ended_at)]
    assert times == sorted(t for t in times if t is not None)
    assert not run.jobs


@pytest.mark.parametrize("was", [Status.RUNNING, Status.PAUSED])
@pytest.mark.parametrize("step", ORDERED)
def test_a_failed_step_restores_the_run(step: str, was: Status) -> None:
    run = MemoryBackend(now_is=RunStatus(was, 0.0, "ada", ""), refusing={step})
    failed = carry_on(surgery(run), run)
    untouched(run, failed, was)
    assert failed.failed_at == step
    assert f"{step} cannot work out" in failed.outcome
    assert "nothing was published" in failed.outcome
    found = failed.step(step)
    assert found is not None
    assert found.state is StepState.FAILED


@pytest.mark.parametrize("step", ORDERED)
def test_a_step_is_tried_again_a_bounded_number_of_times(step: str) -> None:
    run = MemoryBackend(failing={step: 1})
    done = carry_on(surgery(run), run)
    assert done.state is OperationState.DONE
    found = done.step(step)
    assert found is not None
    assert (found.attempt, found.error) == (2, f"{step} did not work out")

    run = MemoryBackend(failing={step: 2})
    untouched(run, carry_on(surgery(run), run))


@pytest.mark.parametrize("step", ["pause", "check", "checkpoint", "transform", "hold", "publish"])
def test_a_cancellation_is_free_until_publishing_begins(step: str) -> None:
    run = MemoryBackend(busy=["rollout-0"] if step == "pause" else [])
    operation = until(surgery(run, hold=True), run, step) if step != "publish" else surgery(run)
    operation = operation.model_copy(update={"cancel": OperatorDecision(who="ada", at=0.0)})
    ended = carry_on(operation, run)
    assert ended.state is OperationState.CANCELLED
    assert "cancelled by ada" in ended.outcome
    untouched(run, ended)


def test_the_hold_waits_for_a_person() -> None:
    run = MemoryBackend()
    operation = until(surgery(run, hold=True), run, "hold")
    for _ in range(20):
        operation = advance(operation, run)
        run.live()
    found = operation.step("hold")
    assert found is not None
    assert found.state is StepState.GOING
    assert found.waiting_for == ("an operator to continue or cancel",)
    done = carry_on(operation.model_copy(update={"go_on": OperatorDecision(who="ada", at=0.0)}), run)
    assert done.state is OperationState.DONE


def test_check_out_of_bounds_ends_surgery_but_completes_check() -> None:
    run = MemoryBackend(out_of_bounds=True)
    failed = carry_on(surgery(run), run)
    untouched(run, failed)
    assert "too far off" in failed.outcome

    checked = carry_on(new_operation("check-1", OperationKind.CHECK, "ada", REQUEST, 0.0, Status.RUNNING), run)
    assert checked.state is OperationState.DONE
    assert checked.outcome == "the plan is outside its bounds"
    assert run.now_is.status is Status.RUNNING


def test_a_check_never_touches_the_run() -> None:
    run = MemoryBackend(refusing={"check"})
    before = run.now_is
    failed = carry_on(new_operation("check-1", OperationKind.CHECK, "ada", REQUEST, 0.0, Status.RUNNING), run)
    assert failed.state is OperationState.FAILED
    assert run.now_is == before


def test_a_plan_that_has_become_stale_is_refused() -> None:
    for changed in ({"epoch": 2}, {"schema": "r" * 16}):
        run = MemoryBackend(**changed)  # type: ignore[arg-type]
        failed = carry_on(surgery(run), run)
        assert failed.state is OperationState.FAILED
        assert "stale" in failed.outcome
        assert run.now_is.status is Status.RUNNING
        assert run.publishes == 0


def test_awaited_services_are_named_also_at_the_deadline() -> None:
    run = MemoryBackend(busy=["rollout-3"], limits=StepLimits({"pause": 10.0}))
    operation = until(surgery(run), run, "pause")
    operation = advance(operation, run)
    found = operation.step("pause")
    assert found is not None
    assert found.waiting_for == ("rollout-3",)
    failed = carry_on(operation, run)
    assert "timed out after 10 s, waiting for rollout-3" in failed.outcome
    untouched(run, failed)


def test_deadline_of_a_step_covers_all_its_attempts() -> None:
    run = MemoryBackend(limits=StepLimits({"transform": 10.0}, attempts=50), failing={"transform": 50})
    operation = until(surgery(run), run, "transform")
    first = operation.step("transform")
    assert first is not None and first.deadline == run.clock + 10.0
    attempts = set()
    while not operation.is_over:
        step = operation.step("transform")
        assert step is not None and step.deadline == first.deadline
        attempts.add(step.attempt)
        after = advance(operation, run)
        if after == operation:
            run.live()
        operation = after
    assert len(attempts) > 3
    assert "timed out after 10 s, waiting for optimizer 0 to claim the job 'transform'" in operation.outcome
    assert run.clock <= first.deadline + 2.0
    untouched(run, operation)


def test_step_may_end_at_its_deadline_but_not_later() -> None:
    for late in (0.0, 0.5):
        run = MemoryBackend(busy=["rollout-3"], limits=StepLimits({"pause": 10.0}))
        operation = until(surgery(run), run, "pause")
        step = operation.step("pause")
        assert step is not None and step.deadline is not None
        run.clock = step.deadline + late
        operation = advance(operation, run)
        assert operation.state is (OperationState.ROLLING_BACK if late else OperationState.GOING), late


def test_each_attempt_after_the_cut_over_has_a_deadline_of_its_own() -> None:
    run = MemoryBackend(behind=["rollout-1"], limits=StepLimits({"renew": 5.0}))
    operation = until(surgery(run), run, "renew")
    deadlines = []
    for _ in range(20):
        step = operation.step("renew")
        assert step is not None and step.deadline is not None
        if step.deadline not in deadlines:
            assert step.deadline == run.clock + 5.0
            deadlines.append(step.deadline)
        before, operation = operation, advance(operation, run)
        if operation == before:
            run.clock += 1.0
    assert len(deadlines) >= 3

def test_resume_or_stop_by_others_during_surgery_is_kept() -> None:
    run = MemoryBackend(busy=["rollout-0"])
    operation = until(surgery(run), run, "pause")
    run.now_is = RunStatus(Status.RUNNING, run.clock, "bob", "")
    failed = carry_on(operation, run)
    assert "bob resumed the run" in failed.outcome
    untouched(run, failed)

    for step in ("check", "transform", "hold", "publish"):
        run = MemoryBackend()
        operation = until(surgery(run, hold=True), run, step if step != "publish" else "hold")
        if step == "publish":
            operation = operation.model_copy(update={"go_on": OperatorDecision(who="ada", at=0.0)})
            operation = advance(advance(operation, run), run)
        run.now_is = RunStatus(Status.STOPPING, run.clock, "bob", "")
        failed = carry_on(operation, run)
        assert "the run is stopping (by bob)" in failed.outcome
        untouched(run, failed, Status.STOPPING)


@pytest.mark.parametrize("reason", ["games and learning rest", "to look at it"])
def test_pause_requested_during_rollback_is_kept(reason: str) -> None:
    run = MemoryBackend()
    operation = until(surgery(run, hold=True), run, "hold")
    operation = operation.model_copy(update={"cancel": OperatorDecision(who="ada", at=0.0)})
    operation = advance(operation, run)
    assert operation.state is OperationState.ROLLING_BACK
    run.kill_after = 5  # the run goes again, and the controller dies before it has written that down
    with pytest.raises(Killed):
        advance(operation, run)
    assert run.now_is.status is Status.RUNNING
    run.now_is = RunStatus(Status.PAUSED, run.clock, "controller", reason)
    ended = carry_on(operation, run)
    assert ended.state is OperationState.CANCELLED
    assert run.now_is.status is Status.PAUSED


def effects_of_a_whole_surgery(run: MemoryBackend) -> int:
    carry_on(surgery(run), run)
    return run.effects


@pytest.mark.parametrize("was", [Status.RUNNING, Status.PAUSED])
def test_the_controller_may_die_after_any_effect_of_a_surgery(was: Status) -> None:
    total = effects_of_a_whole_surgery(MemoryBackend(now_is=RunStatus(was, 0.0, "ada", "")))
    assert total >= 8
    for after in range(1, total + 1):
        run = MemoryBackend(now_is=RunStatus(was, 0.0, "ada", ""), kill_after=after)
        done = carry_on(surgery(run), run)
        assert done.state is OperationState.DONE, f"killed after effect {after}: {done.outcome}"
        assert run.now_is.status is Status.RUNNING
        assert (run.publishes, run.epoch, len(run.chain)) == (1, 2, 1)
        assert not run.jobs


@pytest.mark.parametrize("was", [Status.RUNNING, Status.PAUSED])
@pytest.mark.parametrize("step", ORDERED)
def test_failed_surgery_survives_controller_death_anywhere(step: str, was: Status) -> None:
    def a_run(kill_after: int | None) -> MemoryBackend:
        return MemoryBackend(now_is=RunStatus(was, 0.0, "ada", ""), refusing={step}, kill_after=kill_after)

    total = effects_of_a_whole_surgery(a_run(None))
    for after in range(1, total + 1):
        run = a_run(after)
        failed = carry_on(surgery(run), run)
        untouched(run, failed, was)
        assert failed.failed_at == step


def test_engine_continues_after_a_crash_before_saving() -> None:
    """Each change of the document is discarded once: the next controller finds the old document."""
    run = MemoryBackend()
    operation = surgery(run)
    for _ in range(400):
        advance(operation, run)
        run.live()
        operation = advance(operation, run)
        if operation.is_over:
            break
    assert operation.state is OperationState.DONE
    assert run.publishes == 1


def test_job_published_just_before_cancellation_continues() -> None:
    run = MemoryBackend(limits=StepLimits({"publish": 5.0}))
    operation = until(surgery(run), run, "publish")
    order = next(o for o in run.jobs.values() if o.kind == "publish")
    run.clock += 60.0  # the optimizer hangs in the middle of it
    operation = advance(operation, run)
    assert operation.state is OperationState.ROLLING_BACK
    run.cut_over(order)
    done = carry_on(operation, run)
    assert done.state is OperationState.DONE
    published = done.step("publish")
    assert published is not None
    assert published.result == {"version": order.payload["made"]["transform"]["version"]}
    assert run.publishes == 1
    assert run.now_is.status is Status.RUNNING


def test_an_optimizer_that_comes_too_late_cannot_publish() -> None:
    run = MemoryBackend(limits=StepLimits({"publish": 5.0}))
    operation = until(surgery(run), run, "publish")
    late = next(o for o in run.jobs.values() if o.kind == "publish")
    run.clock += 60.0
    operation = advance(operation, run)
    operation = advance(operation, run)
    assert operation.is_over
    assert run.carried_out(late).state is JobState.FAILED
    untouched(run, operation)


def test_after_cut_over_surgery_only_moves_forward() -> None:
    run = MemoryBackend(behind=["rollout-1"], limits=StepLimits({"renew": 5.0}))
    operation = until(surgery(run), run, "renew")
    assert operation.published
    for _ in range(30):
        operation = advance(operation, run)
        run.clock += 1.0
    found = operation.step("renew")
    assert found is not None
    assert found.state is StepState.GOING
    assert found.attempt > 2
    assert "rollout-1" in found.error
    run.behind = []
    assert carry_on(operation, run).state is OperationState.DONE


def test_a_pause_during_the_warm_up_is_waited_out() -> None:
    run = MemoryBackend()
    operation = until(surgery(run, warm_up_versions=5), run, "warm_up")
    run.now_is = RunStatus(Status.PAUSED, run.clock, "bob", "")
    operation = advance(operation, run)
    found = operation.step("warm_up")
    assert found is not None
    assert found.waiting_for == ("an operator to resume the run, which is paused (by bob)",)
    run.now_is = RunStatus(Status.RUNNING, run.clock, "bob", "")
    assert carry_on(operation, run).state is OperationState.DONE


def test_job_that_kills_optimizers_repeatedly_is_abandoned() -> None:
    run = MemoryBackend(limits=StepLimits(attempts=2))
    operation = until(surgery(run), run, "transform")
    identity, order = next((i, o) for i, o in run.jobs.items() if o.kind == "transform")
    run.jobs[identity] = replace(order, state=JobState.CLAIMED, attempt=3, holder="optimizer-0", fence=3)
    operation = advance(operation, run)
    failed = carry_on(operation, run)
    assert "2 optimizers exited during the job 'transform'" in failed.outcome
    untouched(run, failed)


def test_every_change_of_a_step_is_an_event() -> None:
    run = MemoryBackend()
    operation = surgery(run)
    seen = [change_event(None, operation)]
    for _ in range(400):
        after = advance(operation, run)
        if after == operation:
            run.live()
        seen.append(change_event(operation, after))
        operation = after
        if operation.is_over:
            break
    told = [(e[1], e[2].get("step"), e[2].get("state")) for e in seen if e is not None]
    assert told[0] == ("operation.began", None, None)
    assert told[-1][0] == "operation.done"
    steps = [(step, state) for what, step, state in told if what == "operation.step"]
    assert steps == [(s, state) for s in SURGERY_STEPS for state in ("going", "done")]
