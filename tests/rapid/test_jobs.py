"""Jobs are claimed by one holder, and claimed again after its death."""

import pytest
import redis

from rapid.store.jobs import JobQueue, JobState
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
