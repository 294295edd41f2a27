"""Two optimizer groups on one run: one publishes, the other waits, and writes of a replaced group are refused."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
import torch

from five.agent.config import SchedulesConfig
from five.local.cluster import free_ports
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.leased_publisher import LeasedPublisher
from five.services.optimizer.run_state_client import RunStateClient
from rapid.blobs import BlobMissing, BlobStore
from rapid.config import StoreConfig
from rapid.lifecycle import Lifecycle
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.errors import Corrupt, FencedOut
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.parameters import ParameterStore
from rapid.store.series import Series
from rapid.store.state import RunState
from tests.services.optimizer_cases import feed, training, until
from tests.waiting import eventually

RUN = "trial"


@pytest.fixture
def state(redis_client: redis.Redis) -> RunState:
    run = RunState(redis_client, RUN)
    run.create({}, "test")
    return run


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(str(tmp_path / "blobs"))


class Group:
    """The writers of one optimizer group: publisher, checkpoints and state client."""

    def __init__(self, state: RunState, blobs: BlobStore, who: str, ttl: float = 30.0) -> None:
        store = ParameterStore(state.redis, state.redis, RUN, StoreConfig(archive_every=0))
        self.lost: list[str] = []
        self.waited: list[str] = []
        self.publisher = LeasedPublisher(store, PublisherLease(state.redis, RUN, who, ttl), 1, self.lost.append)
        self.checkpoints = Checkpoints(blobs, RUN, 2, CheckpointIndex(state.redis, RUN),
                                       lambda: self.publisher.fencing_token)
        self.client = RunStateClient(state, Series(state.redis, RUN), Lifecycle(1.0), SchedulesConfig(), who,
                                     lambda: self.publisher.fencing_token)

    def join(self, seconds: float = 60.0, give_up: bool = False) -> bool:
        def wait(why: str) -> bool:
            self.waited.append(why)
            return give_up

        return self.publisher.acquire(wait, seconds)

    def save(self, version: int, value: float) -> None:
        self.checkpoints.save(version, {"w": torch.full((3,), value)}, {"v": version})


@pytest.fixture
def groups(state: RunState, blobs: BlobStore) -> Iterator[list[Group]]:
    made = [Group(state, blobs, "optimizer 0", ttl=0.05), Group(state, blobs, "optimizer 0 of another")]
    yield made
    for group in made:
        group.publisher.release()


def test_second_group_waits_and_reports_the_lease_holder(state: RunState, blobs: BlobStore) -> None:
    first, second = Group(state, blobs, "optimizer 0"), Group(state, blobs, "optimizer 0 of another")
    assert first.join()
    assert not second.join(give_up=True)
    assert second.publisher.fencing_token is None and "optimizer 0 on " in second.waited[0]
    with pytest.raises(FencedOut):
        second.publisher.publish(0, {"w": np.ones(3, np.float32)}, {})
    assert first.publisher.head() is None
    joining = threading.Thread(target=second.join)
    joining.start()
    first.publisher.release()
    joining.join(10)
    second.publisher.publish(0, {"w": np.ones(3, np.float32)}, {})
    second.publisher.release()


def test_writes_of_a_replaced_group_are_refused(groups: list[Group], state: RunState, blobs: BlobStore) -> None:
    old, new = groups
    old.join()
    old.publisher.publish(0, {"w": np.zeros(3, np.float32)}, {})
    old.save(0, 0.0)
    old.client.record({"version": 0})
    while not new.join():  # until the old lease expires
        pass
    new.publisher.publish(1, {"w": np.ones(3, np.float32)}, {})
    new.save(1, 1.0)

    events = len(state.events.read())
    with pytest.raises(FencedOut):
        old.publisher.publish(2, {"w": np.full(3, 9, np.float32)}, {})
    for version in (1, 2):  # also a version that the new group has written
        with pytest.raises(FencedOut):
            old.save(version, 9.0)
    old.client.record({"version": 2})
    old.client.event("optimizer.resumed", {})
    assert new.publisher.head() == 1 and new.checkpoints.versions() == [0, 1]
    found = new.checkpoints.newest()
    assert found is not None and found[0] == 1 and found[1]["w"].tolist() == [1.0] * 3
    assert [r.values["version"] for r in Series(state.redis, RUN).read("versions")] == [0]
    assert len(state.events.read()) == events
    assert len(blobs.refs(f"{RUN}/checkpoints/")) == 2  # no file of the refused saves remains


def test_lost_lease_is_reported_once(groups: list[Group]) -> None:
    old, new = groups
    old.join(seconds=0.3)
    new.join()
    eventually(lambda: old.lost)
    assert len(old.lost) == 1 and "no longer holds the publisher's lease" in old.lost[0]
    assert old.publisher.fencing_token is None


def test_lease_lost_by_redis_is_restored(state: RunState, blobs: BlobStore) -> None:
    group = Group(state, blobs, "optimizer 0")
    group.join()
    state.redis.delete(state.keys.publisher)
    group.publisher.publish(0, {"w": np.ones(3, np.float32)}, {})
    assert group.publisher.head() == 0


def test_lease_of_another_epoch_is_refused(state: RunState, blobs: BlobStore) -> None:
    record = state.record()
    assert record is not None
    state.redis.set(state.keys.record, record.changed(new_epoch=True).to_json())
    with pytest.raises(FencedOut, match="epoch 2, this optimizer in epoch 1") as caught:
        Group(state, blobs, "optimizer 0").join()
    assert caught.value.reason == "epoch"


# Checkpoints and their index.

def held(state: RunState, blobs: BlobStore) -> tuple[Checkpoints, FencingToken]:
    fencing_token = PublisherLease(state.redis, RUN, "optimizer 0", 30.0).acquire()
    return Checkpoints(blobs, RUN, 2, CheckpointIndex(state.redis, RUN), lambda: fencing_token), fencing_token


def put(checkpoints: Checkpoints, *versions: int) -> None:
    for version in versions:
        checkpoints.save(version, {"w": torch.full((3,), float(version))}, {"v": version})


def newest(checkpoints: Checkpoints) -> int:
    found = checkpoints.newest()
    assert found is not None and found[1]["w"].tolist() == [float(found[0])] * 3
    return found[0]


def test_old_checkpoints_leave_index_and_store(state: RunState, blobs: BlobStore) -> None:
    checkpoints, _ = held(state, blobs)
    put(checkpoints, 0, 1, 2, 3)
    assert checkpoints.versions() == [2, 3] and len(blobs.refs(f"{RUN}/checkpoints/")) == 2


def test_uncommitted_file_is_ignored(state: RunState, blobs: BlobStore) -> None:
    """A process was killed or fenced out between writing and committing."""
    checkpoints, _ = held(state, blobs)
    put(checkpoints, 1)
    stray = Checkpoints(blobs, RUN, 2)
    stray.save(7, {"w": torch.full((3,), 9.0)}, {})
    assert checkpoints.versions() == [1] and newest(checkpoints) == 1
    put(checkpoints, 2)
    assert [r.rpartition("/")[2][:12] for r in blobs.refs(f"{RUN}/checkpoints/")] == [f"{v:012d}" for v in (1, 2)]


class IndexWithTakeover(CheckpointIndex):
    """An index that calls ``then`` after the first commit."""

    then: Callable[[], None] | None = None

    def commit(self, *arguments: Any, **more: Any) -> None:
        super().commit(*arguments, **more)
        then, self.then = self.then, None
        if then is not None:
            then()


def test_cleanup_spares_the_file_of_a_later_writer(state: RunState, blobs: BlobStore) -> None:
    """The lease moves between the commit of the older writer and its cleanup."""
    _, fencing_token = held(state, blobs)
    index = IndexWithTakeover(state.redis, RUN)
    older = Checkpoints(blobs, RUN, 2, index, lambda: fencing_token)
    client = redis.Redis(connection_pool=state.redis.connection_pool)
    newer: list[Checkpoints] = []

    def take_over() -> None:
        lease = state.keys.publisher
        state.redis.set(lease, state.redis.get(lease).replace(b'"released":false', b'"released":true'))  # type: ignore[union-attr]
        _, token = held(state, blobs)
        checkpoints = Checkpoints(blobs, RUN, 2, CheckpointIndex(client, RUN), lambda: token)
        checkpoints.commit_unindexed()
        client.connection_pool = redis.ConnectionPool(port=free_ports(1)[0], retry=None)
        with pytest.raises(redis.ConnectionError):
            put(checkpoints, 2)
        newer.append(checkpoints)

    index.then = take_over
    put(older, 1)
    assert [name.rpartition("/")[2][:12] for name in blobs.refs(f"{RUN}/checkpoints/")] == [
        "000000000001", "000000000002"]
    client.connection_pool = state.redis.connection_pool
    put(newer[0], 2)
    assert newest(newer[0]) == 2


@pytest.mark.parametrize(("later_holders", "found"), [(1, 3), (2, 2)])
def test_checkpoint_that_redis_missed_is_found(state: RunState, blobs: BlobStore, later_holders: int, found: int
                                               ) -> None:
    """Redis ended before the optimizer's last checkpoint. Its successor continues from the file, unless another
    optimizer held the lease between them."""
    _, fencing_token = held(state, blobs)
    client = redis.Redis(connection_pool=state.redis.connection_pool)
    checkpoints = Checkpoints(blobs, RUN, 2, CheckpointIndex(client, RUN), lambda: fencing_token)
    put(checkpoints, 1, 2)
    client.connection_pool = redis.ConnectionPool(port=free_ports(1)[0], retry=None)
    with pytest.raises(redis.ConnectionError):
        put(checkpoints, 3)
    for _ in range(later_holders):
        lease = state.keys.publisher
        state.redis.set(lease, state.redis.get(lease).replace(b'"released":false', b'"released":true'))  # type: ignore[union-attr]
        checkpoints, _ = held(state, blobs)
    checkpoints.commit_unindexed()
    assert newest(checkpoints) == found


@pytest.mark.parametrize("lost", ["the index", "an earlier release"])
def test_files_replace_a_lost_index(state: RunState, blobs: BlobStore, lost: str) -> None:
    if lost == "the index":
        put(held(state, blobs)[0], 4, 5)
        state.redis.flushall()
        state.create({}, "test")
    else:
        put(Checkpoints(blobs, RUN, 2), 4, 5)
    checkpoints, _ = held(state, blobs)
    assert newest(checkpoints) == 5
    checkpoints.commit_unindexed()
    assert list(CheckpointIndex(state.redis, RUN).all()) == [4, 5]
    put(checkpoints, 6)
    assert checkpoints.versions() == [5, 6] and newest(checkpoints) == 6


def test_restored_index_ignores_files_that_it_lacks(state: RunState, blobs: BlobStore) -> None:
    checkpoints, _ = held(state, blobs)
    put(checkpoints, 1, 2)
    before = state.redis.dump(state.keys.checkpoints)
    put(checkpoints, 3, 4)
    state.redis.restore(state.keys.checkpoints, 0, before, replace=True)  # type: ignore[arg-type]
    assert checkpoints.versions() == [1, 2]
    with pytest.raises(Corrupt, match=r"recover_checkpoint continues from .*: 000000000003\S+, 000000000004"):
        checkpoints.newest()
    for version in (2, 4):
        with pytest.raises(BlobMissing):
            checkpoints.load(version)


def test_damaged_indexed_checkpoint_is_skipped(state: RunState, blobs: BlobStore) -> None:
    checkpoints, _ = held(state, blobs)
    put(checkpoints, 1, 2)
    digest = checkpoints.ref(2).digest
    path = Path(blobs.url) / "objects" / digest[:2] / digest
    path.write_bytes(path.read_bytes()[:-1])
    assert newest(checkpoints) == 1
    with pytest.raises(Corrupt):
        checkpoints.load(2)


def test_adopt_commits_an_existing_blob(state: RunState, blobs: BlobStore) -> None:
    checkpoints, _ = held(state, blobs)
    put(checkpoints, 1)
    ref = checkpoints.ref(1)
    for _ in range(2):
        checkpoints.adopt(3, ref)
    assert checkpoints.versions() == [1, 3] and checkpoints.ref(3) == ref
    with pytest.raises(BlobMissing):
        checkpoints.adopt(4, ref._replace(digest="0" * 64))


@pytest.mark.parametrize("noticed", ["at the next version", "by its reconciler"])
def test_training_ends_when_the_run_is_cut_over(state: RunState, blobs: BlobStore, tmp_path: Path,
                                                noticed: str) -> None:
    """The process of the previous epoch ends training without an error and is about to restart."""
    group = Group(state, blobs, "optimizer 0")
    group.join(seconds=60 if noticed == "at the next version" else 0.02)
    run = replace(training(tmp_path, group.publisher, group.client),  # type: ignore[arg-type]
                  checkpoints=group.checkpoints)
    run.start()
    feed(run, 4)
    until(run, 1)
    kept = group.checkpoints.versions()
    record = state.record()
    assert record is not None
    state.redis.set(state.keys.record, record.changed(new_epoch=True).to_json())
    threading.Event().wait(0.3)
    feed(run, 8, first=4)
    run.run(lambda: noticed == "by its reconciler")
    assert run.is_fenced_out and group.lost == []
    assert group.publisher.head() == 1 and group.checkpoints.versions() == kept
    group.publisher.release()
