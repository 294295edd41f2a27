"""Expiry of versions in the params Redis: a published one has none, an unfinished, refused or superseded one has."""

import time
from typing import Any

import numpy as np
import pytest
import redis

from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.embedded_redis import RunningRedis
from rapid.store import bulk_transfer
from rapid.store.errors import FencedOut, VersionConflict
from rapid.store.fencing import PublisherLease
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState
from tests.rapid.conftest import tensors
from tests.rapid.failing_redis import Breaking, socket_path
from tests.waiting import eventually

NO_EXPIRY = -1
UPLOAD_SECONDS, GRACE_SECONDS = 100.0, 30.0


@pytest.fixture
def store_config() -> StoreConfig:
    return StoreConfig(chunk_mebibytes=0.0625, keep_versions=2, grace_seconds=GRACE_SECONDS, archive_every=1,
                       upload_seconds=UPLOAD_SECONDS)


def expiries(database: redis.Redis, version: int, digest: str = "*") -> dict[str, float]:
    """Return the seconds until each key of a version expires, -1 for no expiry, by the key's last part."""
    keys = sorted(database.scan_iter(f"five:r:params:{version}:{digest}:*"))
    found: dict[str, float] = {}
    for key in keys:
        milliseconds: Any = database.pttl(key)
        found[key.decode().rsplit(":", 1)[1]] = NO_EXPIRY if milliseconds == NO_EXPIRY else milliseconds / 1000
    return found


def expire_within(found: dict[str, float], seconds: float) -> bool:
    """Return whether all parts are there and expire at the end of a period of ``seconds`` that began just now."""
    return found.keys() >= {"0", "1", "2", "3"} and all(seconds - 20 < left <= seconds for left in found.values())


def test_published_version_does_not_expire(store: ParameterStore, database: redis.Redis) -> None:
    for version in (0, 1):
        store.publish(version, tensors(version), {})
    for version in (0, 1):
        assert expiries(database, version) == dict.fromkeys(["0", "1", "2", "3", "manifest"], NO_EXPIRY), version


def test_chunks_expire_until_all_are_there(store: ParameterStore, database: redis.Redis,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    sent, seen = bulk_transfer.set_values, []

    def send(client: redis.Redis, items: Any, expire_ms: int) -> None:
        sent(client, items, expire_ms)
        seen.append(expiries(database, 0))

    monkeypatch.setattr(bulk_transfer, "set_values", send)
    store.publish(0, tensors(0), {})
    (during,) = seen
    assert set(during) == {"0", "1", "2", "3"} and expire_within(during, UPLOAD_SECONDS)


def test_repeated_publish_does_not_expire(store: ParameterStore, database: redis.Redis) -> None:
    """The second one finds a part of the version gone, as after an eviction, and stores it again."""
    store.publish(0, tensors(0), {})
    database.delete(*database.scan_iter("five:r:params:0:*:manifest"), *database.scan_iter("five:r:params:0:*:2"))
    store.publish(0, tensors(0), {})
    assert expiries(database, 0) == dict.fromkeys(["0", "1", "2", "3", "manifest"], NO_EXPIRY)


def test_lost_replies_do_not_expire_a_version(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore,
                                              redis_server: RunningRedis) -> None:
    """The connection is lost before the answer to each command in turn."""
    config = store_config.model_copy(update={"reconnect_seconds": 0.0})
    for at in range(1, 100):
        breaking = Breaking(at, answer=True)
        client = breaking.client(socket_path(redis_server), retries=1)
        ParameterStore(client, client, "r", config, blobs).publish(at, tensors(at), {})
        assert expiries(database, at) == dict.fromkeys(["0", "1", "2", "3", "manifest"], NO_EXPIRY), at
        if not breaking.broken:
            break
    assert at > 9


def test_staged_version_expires_only_once_another_one_is_published(store: ParameterStore, database: redis.Redis
                                                                   ) -> None:
    store.publish(0, tensors(0), {})
    store.stage(1, tensors(1), {})
    assert set(expiries(database, 1).values()) == {NO_EXPIRY}
    store.publish(2, tensors(2), {})
    assert expire_within(expiries(database, 1), UPLOAD_SECONDS)
    assert store.stored() == [0, 2]


def test_expiry_is_exact(store: ParameterStore, database: redis.Redis) -> None:
    """A staged version is removed after the time of an upload, a superseded one after the readers' grace period."""
    store.publish(0, tensors(0), {})
    store.publish(1, tensors(1), {})
    store.stage(2, tensors(2), {})
    before = time.time()
    store.publish(3, tensors(3), {})
    after = time.time()
    for version, seconds in ((0, GRACE_SECONDS), (2, UPLOAD_SECONDS)):
        for key in database.scan_iter(f"five:r:params:{version}:*"):
            expiry: Any = database.pexpiretime(key)
            assert before + seconds <= expiry / 1000 + 0.001 and expiry / 1000 <= after + seconds, key


def test_refused_contents_are_removed_and_the_accepted_ones_stay(
        database: redis.Redis, store_config: StoreConfig, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another publisher's version becomes the head while the loser uploads its own."""
    loser, winner = (ParameterStore(database, database, "r", store_config, blobs) for _ in range(2))
    sent = bulk_transfer.set_values

    def send(client: redis.Redis, items: Any, expire_ms: int) -> None:
        sent(client, items, expire_ms)
        monkeypatch.setattr(bulk_transfer, "set_values", sent)
        winner.publish(0, tensors(1), {})

    monkeypatch.setattr(bulk_transfer, "set_values", send)
    with pytest.raises(VersionConflict, match="version 0 of run r exists with other contents"):
        loser.publish(0, tensors(0), {})
    record = winner.record(0)
    assert record is not None
    eventually(lambda: len(list(database.scan_iter("five:r:params:0:*"))) == 5)
    assert set(expiries(database, 0, record.digest).values()) == {NO_EXPIRY}
    assert winner.stored() == [0]


def test_publish_without_the_lease_leaves_nothing(store: ParameterStore, database: redis.Redis) -> None:
    RunState(database, "r").create({}, "test")
    lease = PublisherLease(database, "r", "optimizer-0", 30.0)
    lost = lease.acquire()
    lease.release()
    with pytest.raises(FencedOut, match="no longer holds the publisher's lease"):
        store.publish(0, tensors(0), {}, fencing_token=lost)
    eventually(lambda: not expiries(database, 0), 15.0)
    assert store.stored() == [] and store.head() is None


def test_refused_repetition_keeps_the_published_version(store: ParameterStore, database: redis.Redis,
                                                        store_config: StoreConfig) -> None:
    """The reply of the publish was lost, or the next holder published the same contents from the same checkpoint."""
    RunState(database, "r").create({}, "test")
    leases = [PublisherLease(database, "r", f"optimizer-{number}", 30.0) for number in range(2)]
    old = leases[0].acquire()
    store.publish(0, tensors(0), {}, fencing_token=old)
    leases[0].release()
    new = leases[1].acquire()
    successor = ParameterStore(database, database, "r", store_config)
    successor.publish(1, tensors(1), {}, fencing_token=new)
    for version in range(2):
        with pytest.raises(FencedOut, match="no longer holds the publisher's lease"):
            store.publish(version, tensors(version), {}, fencing_token=old)
        assert set(expiries(database, version).values()) == {NO_EXPIRY}
    assert store.stored() == [0, 1]


def test_superseded_versions_expire_after_the_grace_period(store: ParameterStore, database: redis.Redis) -> None:
    for version in range(4):
        store.publish(version, tensors(version), {})
    for version in (0, 1):
        found = expiries(database, version)
        assert "manifest" in found and expire_within(found, GRACE_SECONDS), (version, found)
    for version in (2, 3):
        assert set(expiries(database, version).values()) == {NO_EXPIRY}
    assert store.stored() == [2, 3]


def test_superseded_version_is_removed_at_once_without_grace_period(
        database: redis.Redis, store_config: StoreConfig) -> None:
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"grace_seconds": 0.0}))
    for version in range(3):
        store.publish(version, {"w": np.full(3, version, np.float32)}, {})
    eventually(lambda: not expiries(database, 0), 15.0)
    assert store.stored() == [1, 2]
