"""States of jobs in real Redis: who may change which, and what stays when nothing may."""

import time
from dataclasses import replace

import pytest
import redis

from rapid.store.jobs import OPEN, Job, JobQueue, JobState
from rapid.store.state import RunState


@pytest.fixture
def queue(database: redis.Redis) -> JobQueue:
    return JobQueue(RunState(database, "trial"))


def submitted(queue: JobQueue, *identities: str) -> None:
    for identity in identities:
        queue.submit(identity, "check", {"of": identity})


def claimed(queue: JobQueue, fence: int = 1) -> Job:
    found = queue.claim(f"optimizer-{fence}", fence)
    assert found is not None
    return found


def stored(queue: JobQueue, identity: str) -> Job:
    found = queue.get(identity)
    assert found is not None, identity
    return found


def test_submitted_job_waits_without_a_holder(queue: JobQueue) -> None:
    job = queue.submit("op/check/1", "check", {"plan": "a"})
    assert job == stored(queue, "op/check/1") and job.open
    assert (job.kind, job.payload, job.state, job.attempt, job.holder, job.fence) == (
        "check", {"plan": "a"}, JobState.WAITING, 0, "", 0)
    assert (job.answer, job.error, job.answered_at) == ({}, "", None) and abs(job.placed_at - time.time()) < 60
    assert queue.get("op/check/2") is None


def test_oldest_job_is_claimed_first(queue: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    for identity, at in (("b", 101.0), ("d", 100.0), ("a", 102.0), ("c", 100.0)):
        now[0] = at
        submitted(queue, identity)
    assert [claimed(queue).id for _ in range(4)] == ["c", "d", "b", "a"]
    assert queue.claim("optimizer-1", 1) is None


def test_claim_returns_the_job_as_stored(queue: JobQueue) -> None:
    submitted(queue, "a")
    job = claimed(queue)
    assert job == stored(queue, "a")
    assert (job.state, job.attempt, job.holder, job.fence) == (JobState.CLAIMED, 1, "optimizer-1", 1)
    assert queue.is_held(job) and job.open


def test_job_of_another_fence_is_claimed_before_younger_ones(queue: JobQueue) -> None:
    submitted(queue, "a")
    first = claimed(queue, fence=2)
    submitted(queue, "b")
    again = claimed(queue, fence=1)  # whichever fence is larger
    assert (again.id, again.attempt, again.holder) == ("a", 2, "optimizer-1")
    assert not queue.is_held(first) and queue.is_held(again)
    assert claimed(queue, fence=1).id == "b"


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.REFUSED])
def test_completed_job_has_its_answer_and_is_closed(queue: JobQueue, state: JobState) -> None:
    submitted(queue, "a", "b")
    job = claimed(queue)
    assert queue.complete(job, state, {"version": 7}, "an error")
    found = stored(queue, "a")
    assert (found.state, found.answer, found.error, found.attempt) == (state, {"version": 7}, "an error", 1)
    assert found.answered_at is not None and abs(found.answered_at - time.time()) < 60 and not found.open
    assert not queue.complete(job, JobState.DONE) and stored(queue, "a") == found
    assert not queue.is_held(job) and claimed(queue, fence=2).id == "b"
    assert queue.submit("a", "check", {}) == found  # a repeated submission returns the result


@pytest.mark.parametrize("state", sorted(OPEN))
def test_job_is_not_completed_as_open(queue: JobQueue, state: JobState) -> None:
    submitted(queue, "a")
    job = claimed(queue)
    with pytest.raises(ValueError, match=f"a job cannot be completed as {state}"):
        queue.complete(job, state)
    assert stored(queue, "a") == job


def test_only_the_holder_completes_a_job(queue: JobQueue) -> None:
    submitted(queue, "a")
    waiting = stored(queue, "a")
    assert not queue.complete(replace(waiting, fence=1), JobState.DONE)  # it was never claimed
    job = claimed(queue)
    assert not queue.complete(replace(job, fence=2), JobState.DONE)
    assert not queue.is_held(replace(job, fence=2))
    assert stored(queue, "a") == job
    queue.remove("a")
    assert not queue.complete(job, JobState.DONE) and not queue.is_held(job) and queue.get("a") is None


def test_cancel_ends_open_jobs_of_the_prefix_only(queue: JobQueue) -> None:
    submitted(queue, "op-1/a", "op-1/b", "op-1/c", "op-10/a", "op-2/op-1/")
    done, held = claimed(queue), claimed(queue)
    assert queue.complete(done, JobState.DONE)
    queue.cancel("op-1/")
    states = {i: stored(queue, i).state for i in ("op-1/a", "op-1/b", "op-1/c", "op-10/a", "op-2/op-1/")}
    assert list(states.values()) == [JobState.DONE, JobState.CANCELLED, JobState.CANCELLED, JobState.WAITING,
                                     JobState.WAITING]
    assert not queue.is_held(held) and not queue.complete(held, JobState.DONE)
    queue.cancel("nothing/")
    queue.remove("op-1/")
    left = [i for i in states if queue.get(i) is not None]
    assert left == ["op-10/a", "op-2/op-1/"]
    queue.remove("nothing/")
