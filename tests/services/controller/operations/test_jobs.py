"""Jobs of an operation's steps: identities, payloads, and what each state of a job means for the step."""

from dataclasses import replace
from typing import Any

import pytest

from five.services.controller.operations.backend import StepLimits
from five.services.controller.operations.jobs import job_id, job_payload, job_prefix, run_job
from five.services.controller.operations.step_results import Done, Failed, Refused, StepResult, Wait
from rapid.store.jobs import Job, JobState
from tests.services.controller.operations.memory_backend import REQUEST, MemoryBackend, surgery

ATTEMPTS = 2


def outcome(**changed: Any) -> StepResult:
    """Return the meaning of a job in a state."""
    run = MemoryBackend(limits=StepLimits(attempts=ATTEMPTS))
    operation = surgery(run).with_step("transform", attempt=1)
    step = operation.step("transform")
    assert step is not None
    identity = job_id(operation, step)
    run.jobs[identity] = replace(Job(identity, "transform", {}, 0.0), **changed)
    return run_job(operation, step, run, {})


def test_each_attempt_of_a_step_has_a_job_of_its_own() -> None:
    run = MemoryBackend()
    operation = surgery(run)
    for attempt in (1, 2):
        operation = operation.with_step("transform", attempt=attempt)
        step = operation.step("transform")
        assert step is not None
        for _ in range(2):  # repeated after a crash
            assert run_job(operation, step, run, {"of": attempt}) == Wait(("optimizer 0 to claim the job 'transform'",))
    assert {i: (job.kind, job.payload) for i, job in run.jobs.items()} == {
        "surgery-1/transform/1": ("transform", {"of": 1}), "surgery-1/transform/2": ("transform", {"of": 2})}
    assert all(identity.startswith(job_prefix(operation)) for identity in run.jobs)


def test_payload_has_the_plan_and_the_results_of_earlier_steps() -> None:
    run = MemoryBackend()
    operation = surgery(run, bounds={"mean_kl": 0.1}).with_step("check", result={"ok": True}).with_step(
        "checkpoint", result={"version": 7})
    assert job_payload(operation) == {
        "operation": "surgery-1", "plan": REQUEST.plan, "digest": REQUEST.digest, "parent": REQUEST.parent,
        "bounds": {"mean_kl": 0.1}, "epoch": 1, "to_version": None, "warm_up_versions": 2, "who": "ada",
        "made": {"check": {"ok": True}, "checkpoint": {"version": 7}}}


@pytest.mark.parametrize(("job", "expected"), [
    ({"state": JobState.DONE, "answer": {"version": 8}}, Done({"version": 8})),
    ({"state": JobState.REFUSED, "error": "no room"}, Refused("no room")),
    ({"state": JobState.FAILED, "error": "disk full"}, Failed("disk full")),
    ({"state": JobState.CANCELLED}, Failed("the job 'transform' was withdrawn")),
    ({"state": JobState.CLAIMED, "attempt": 1, "holder": "optimizer-0"},
     Wait(("optimizer-0, which runs the job 'transform'",))),
    ({"state": JobState.CLAIMED, "attempt": ATTEMPTS, "holder": "optimizer-0"},
     Wait(("optimizer-0, which runs the job 'transform', attempt 2",))),
    ({"state": JobState.CLAIMED, "attempt": ATTEMPTS + 1, "holder": "optimizer-0"},
     Refused("2 optimizers exited during the job 'transform': see their logs")),
], ids=["done", "refused", "failed", "withdrawn", "claimed", "claimed again", "claimed too often"])
def test_state_of_a_job_decides_the_step(job: dict[str, Any], expected: StepResult) -> None:
    assert outcome(**job) == expected
