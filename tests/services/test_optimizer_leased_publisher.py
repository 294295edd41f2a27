"""The publisher of rank 0 under its lease in real Redis: waiting, renewal, loss, and the writes that follow."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from five.services.optimizer.leased_publisher import LeasedPublisher
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.critical_tasks import CriticalTasks
from rapid.store.errors import FencedOut
from rapid.store.fencing import PublisherLease
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState
from tests.waiting import eventually

TENSORS = {"w": np.ones(3, np.float32)}
NEVER = 3600.0


class Rank:
    """Publisher of a run's rank 0, in an epoch."""

    def __init__(self, client: redis.Redis, folder: Path, who: str = "optimizer-0", epoch: int = 1,
                 critical_tasks: CriticalTasks | None = None) -> None:
        store = ParameterStore(client, client, "trial", StoreConfig(), BlobStore(str(folder)))
        self.lease = PublisherLease(client, "trial", who, 60.0)
        self.lost: list[str] = []
        self.waited: list[str] = []
        self.publisher = LeasedPublisher(store, self.lease, epoch, self.lost.append, critical_tasks)

    def acquire(self, seconds: float = NEVER, patience: int = 0) -> bool:
        def wait(why: str) -> bool:
            self.waited.append(why)
            return len(self.waited) > patience

        return self.publisher.acquire(wait, seconds)

    def publish(self, version: int) -> None:
        self.publisher.publish(version, TENSORS, {})


@pytest.fixture
def client(redis_client: redis.Redis) -> redis.Redis:
    RunState(redis_client, "trial").create({}, "test")
    return redis_client


@pytest.fixture
def rank(client: redis.Redis, tmp_path: Path) -> Any:
    made = Rank(client, tmp_path)
    yield made
    made.publisher.release()


def counted(rank: Rank, monkeypatch: pytest.MonkeyPatch, failures: list[Exception]) -> list[str]:
    """Count renewals; the first ones fail."""
    renewals: list[str] = []
    renew = rank.lease.renew

    def renewing(token: Any) -> None:
        renewals.append(token.holder)
        if failures:
            raise failures.pop(0)
        renew(token)

    monkeypatch.setattr(rank.lease, "renew", renewing)
    return renewals


def renewals_running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "publisher-lease"]


@pytest.fixture
def others() -> list[threading.Thread]:
    """Renewals that earlier tests have left running."""
    return renewals_running()


def test_nothing_is_published_before_the_lease_is_held(rank: Rank) -> None:
    assert rank.publisher.fencing_token is None and rank.publisher.head() is None
    with pytest.raises(FencedOut, match="version 0 is not published: this optimizer has lost the publisher's lease"):
        rank.publish(0)
    assert rank.acquire() and rank.waited == []
    token = rank.publisher.fencing_token
    assert token is not None and token.epoch == 1
    rank.publish(0)
    assert rank.publisher.head() == 0


def test_waits_are_repeated_until_the_lease_is_free_or_given_up(rank: Rank, client: redis.Redis, tmp_path: Path,
                                                                monkeypatch: pytest.MonkeyPatch) -> None:
    other = Rank(client, tmp_path, "optimizer-0 of another group")
    assert other.acquire()
    assert not rank.acquire(patience=2)
    assert len(rank.waited) == 3 and all("another group" in why for why in rank.waited)
    other.publisher.release()
    rank.waited.clear()
    acquire, failures = rank.lease.acquire, [redis.ConnectionError("the store is down")]

    def failing() -> Any:
        if failures:
            raise failures.pop()
        return acquire()

    monkeypatch.setattr(rank.lease, "acquire", failing)
    assert rank.acquire(patience=2) and rank.waited == ["the store is down"]


def test_lease_of_another_epoch_is_not_used(client: redis.Redis, tmp_path: Path) -> None:
    rank = Rank(client, tmp_path, epoch=2)
    with pytest.raises(FencedOut, match="the run is in epoch 1, this optimizer in epoch 2") as refused:
        rank.acquire()
    assert refused.value.reason == "epoch" and rank.publisher.fencing_token is None


def test_lease_is_renewed_until_it_is_released(rank: Rank, monkeypatch: pytest.MonkeyPatch) -> None:
    renewals = counted(rank, monkeypatch, [redis.ConnectionError("the store is down")])
    rank.acquire(seconds=0.01)
    eventually(lambda: len(renewals) >= 4)  # also after a failure
    rank.publisher.release()
    assert rank.publisher.fencing_token is None and rank.lost == []
    ended = len(renewals)
    time.sleep(0.1)
    assert len(renewals) <= ended + 1  # one may have been under way
    with pytest.raises(FencedOut, match="has lost the publisher's lease"):
        rank.publish(0)


@pytest.mark.parametrize("reason", ["lease", "epoch"])
def test_only_a_lost_lease_is_reported(rank: Rank, monkeypatch: pytest.MonkeyPatch, reason: Any) -> None:
    """In another epoch the process restarts anyway, and its writes are refused."""
    renewals = counted(rank, monkeypatch, [FencedOut(reason, "another holder")])
    rank.acquire(seconds=0.01)
    if reason == "lease":
        eventually(lambda: rank.lost)
        assert rank.lost == ["another holder"] and rank.publisher.fencing_token is None
    else:
        eventually(lambda: renewals)
        assert rank.lost == [] and rank.publisher.fencing_token is not None
    assert len(renewals) == 1  # it is not renewed any more


@pytest.mark.parametrize("reason", ["lease", "epoch"])
def test_refused_renewal_ends_the_thread_and_not_the_process(others: list[threading.Thread], client: redis.Redis,
                                                             tmp_path: Path, reason: Any,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    drained: list[str] = []
    critical_tasks = CriticalTasks(drained.append, lambda: bool(drained), 3600.0, lambda code: None)
    rank = Rank(client, tmp_path, critical_tasks=critical_tasks)
    counted(rank, monkeypatch, [FencedOut(reason, "another holder")])
    rank.acquire(seconds=0.01)
    eventually(lambda: not set(renewals_running()) - set(others))
    assert drained == [] and not critical_tasks.failure
    assert rank.lost == (["another holder"] if reason == "lease" else []), "the owner of the lost lease decides"


def test_renewal_does_not_keep_the_process_alive(others: list[threading.Thread], rank: Rank) -> None:
    rank.acquire()
    assert [thread.daemon for thread in renewals_running() if thread not in others] == [True]


def test_death_of_the_renewal_ends_the_process(client: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                               ) -> None:
    drained: list[str] = []
    critical_tasks = CriticalTasks(drained.append, lambda: bool(drained), 3600.0, lambda code: None)
    rank = Rank(client, tmp_path, critical_tasks=critical_tasks)
    counted(rank, monkeypatch, [ValueError("a fault")])
    rank.acquire(seconds=0.01)
    eventually(lambda: drained)
    assert drained == ["publisher-lease died: ValueError: a fault"]


def test_lease_that_redis_lost_is_restored_for_a_publish(rank: Rank, client: redis.Redis) -> None:
    rank.acquire()
    client.delete(rank.lease._keys.publisher)
    rank.publish(0)
    assert rank.publisher.head() == 0 and client.exists(rank.lease._keys.publisher)


def test_publish_of_a_replaced_optimizer_is_refused(rank: Rank, client: redis.Redis, tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    rank.acquire()
    client.delete(rank.lease._keys.publisher)
    other = Rank(client, tmp_path, "optimizer-0 of another group")
    other.acquire()
    with pytest.raises(FencedOut) as refused:
        rank.publish(0)
    assert refused.value.reason == "lease" and other.publisher.head() is None
    other.publish(0)
    other.publisher.release()


@pytest.mark.parametrize("reason", ["epoch", "moved"])
def test_publish_refused_for_another_reason_is_not_repeated(rank: Rank, reason: Any, monkeypatch: pytest.MonkeyPatch
                                                            ) -> None:
    """Only a lease that Redis lost can be restored."""
    rank.acquire()
    attempts: list[int] = []

    def refuse(version: int, *_: Any, **__: Any) -> None:
        attempts.append(version)
        raise FencedOut(reason, "the run is in epoch 2")

    monkeypatch.setattr(rank.publisher._store, "publish", refuse)
    with pytest.raises(FencedOut, match="epoch 2"):
        rank.publish(0)
    assert attempts == [0]


def test_release_ends_quietly_without_redis(rank: Rank, monkeypatch: pytest.MonkeyPatch) -> None:
    rank.acquire()

    def fail() -> None:
        raise redis.ConnectionError("the store is down")

    with monkeypatch.context() as outage:
        outage.setattr(rank.lease, "release", fail)
        rank.publisher.release()
    assert rank.publisher.fencing_token is None
