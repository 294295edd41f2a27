"""Jobs are claimed by one holder, and claimed again after its death."""

import time

import pytest
import redis

from rapid.store.jobs import OPEN, Job, JobQueue, JobState
from rapid.store.state import RunState


@pytest.fixture
def orders(database: redis.Redis) -> JobQueue:
    return JobQueue(RunState(database, "trial"))


def test_job_is_submitted_claimed_and_completed_once(orders: JobQueue) -> None:
    first = orders.submit("op/check/1", "check", {"plan": "a"})
    assert orders.submit("op/check/1", "check", {"plan": "b"}) == first
    claimed = orders.claim("optimizer-0", fence=1)
    assert claimed is not None
    assert (claimed.id, claimed.attempt, claimed.holder) == ("op/check/1", 1, "optimizer-0")
    assert orders.claim("optimizer-0", fence=1) is None
    assert orders.is_held(claimed)
    assert orders.complete(claimed, JobState.DONE, {"ok": True})
    assert not orders.is_held(claimed)
    found = orders.get("op/check/1")
    assert found is not None
    assert (found.state, found.answer) == (JobState.DONE, {"ok": True})
    assert orders.claim("optimizer-0", fence=2) is None


def test_job_of_a_dead_holder_is_claimed_again(orders: JobQueue) -> None:
    orders.submit("op/transform/1", "transform", {})
    dead = orders.claim("optimizer-0", fence=1)
    again = orders.claim("optimizer-0", fence=2)
    assert dead is not None
    assert again is not None
    assert again.attempt == 2
    assert not orders.complete(dead, JobState.DONE)
    assert orders.complete(again, JobState.FAILED, error="no room")
    found = orders.get("op/transform/1")
    assert found is not None
    assert (found.state, found.error) == (JobState.FAILED, "no room")


def test_cancelled_job_cannot_be_claimed_or_completed(orders: JobQueue) -> None:
    orders.submit("op-1/publish/1", "publish", {})
    orders.submit("op-2/check/1", "check", {})
    mine = orders.claim("optimizer-0", fence=1)
    assert mine is not None
    orders.cancel("op-1/")
    assert not orders.is_held(mine)
    assert not orders.complete(mine, JobState.DONE)
    other = orders.claim("optimizer-0", fence=2)
    assert other is not None
    assert other.id == "op-2/check/1"
    orders.remove("op-1/")
    assert orders.get("op-1/publish/1") is None
    with pytest.raises(ValueError, match="cannot be completed"):
        orders.complete(other, JobState.WAITING)


def claimed(orders: JobQueue, fence: int) -> Job:
    found = orders.claim(f"optimizer-{fence}", fence)
    assert found is not None
    return found


def test_oldest_job_is_claimed_first(orders: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    for now, identity in ((20.0, "a"), (10.0, "z"), (10.0, "y"), (30.0, "0")):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert orders.submit(identity, "check", {"n": now}).placed_at == now
    assert [claimed(orders, 1).id for _ in range(4)] == ["y", "z", "a", "0"]
    again = claimed(orders, 2)
    assert (again.id, again.attempt, again.holder, again.fence, again.state, again.payload) == (
        "y", 2, "optimizer-2", 2, JobState.CLAIMED, {"n": 10.0})
    # A claim under an older fence is possible too: the fence of the caller decides, not its order.
    assert claimed(orders, 1).id == "y"


@pytest.mark.parametrize("end", sorted(set(JobState) - OPEN))
def test_completed_job_is_final(orders: JobQueue, end: JobState, monkeypatch: pytest.MonkeyPatch) -> None:
    orders.submit("op/1", "check", {})
    mine = claimed(orders, 1)
    assert mine.open and mine.answered_at is None
    monkeypatch.setattr(time, "time", lambda: 50.0)
    assert orders.complete(mine, end, {"x": 1}, "why")
    done = orders.get("op/1")
    assert done is not None and not done.open
    assert (done.state, done.answer, done.error, done.answered_at, done.attempt) == (end, {"x": 1}, "why", 50.0, 1)
    orders.cancel("op/")
    assert orders.get("op/1") == done and orders.submit("op/1", "check", {}) == done
    assert not orders.complete(mine, JobState.FAILED) and orders.claim("optimizer-2", 2) is None
    assert orders.get("op/1") == done


@pytest.mark.parametrize("state", sorted(OPEN))
def test_job_is_not_completed_as_open(orders: JobQueue, state: JobState) -> None:
    orders.submit("op/1", "check", {})
    with pytest.raises(ValueError, match=f"cannot be completed as {state}"):
        orders.complete(claimed(orders, 1), state)


def test_cancel_and_remove_affect_their_prefix_alone(orders: JobQueue) -> None:
    for identity in ("op-1/a", "op-1/b", "op-10/a", "x/op-1/"):
        orders.submit(identity, "check", {})
    mine = claimed(orders, 1)
    assert mine.id == "op-1/a"
    orders.cancel("op-1/")

    def states() -> dict[str, JobState | None]:
        found = {i: orders.get(i) for i in ("op-1/a", "op-1/b", "op-10/a", "x/op-1/")}
        return {identity: None if job is None else job.state for identity, job in found.items()}

    cancelled, waiting = JobState.CANCELLED, JobState.WAITING
    assert states() == {"op-1/a": cancelled, "op-1/b": cancelled, "op-10/a": waiting, "x/op-1/": waiting}
    assert not orders.is_held(mine)
    orders.remove("op-1/")
    assert states() == {"op-1/a": None, "op-1/b": None, "op-10/a": waiting, "x/op-1/": waiting}
    assert not orders.is_held(mine) and not orders.complete(mine, JobState.DONE)


def test_job_is_held_under_its_own_fence_alone(orders: JobQueue) -> None:
    waiting = orders.submit("op/1", "check", {})
    assert (waiting.fence, waiting.attempt, waiting.holder) == (0, 0, "")
    assert not orders.is_held(waiting) and not orders.complete(waiting, JobState.DONE)
    first = claimed(orders, 1)
    assert orders.is_held(first)
    second = claimed(orders, 2)
    assert orders.is_held(second) and not orders.is_held(first)
