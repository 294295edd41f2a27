"""Records that a failover of Redis lost are written again by the next publish."""

import numpy as np
import pytest
import redis

from rapid.blobs import BlobStore, Ref
from rapid.config import StoreConfig
from rapid.store.archive import Contents, VersionRecord, parse_record
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from rapid.store.prepared_version import prepare_version
from rapid.store.recent_versions import KEPT, RecentVersions
from tests.rapid.conftest import same, tensors

RECORDS = Keys("r").versions


def test_next_publish_restores_lost_records(database: redis.Redis, store: ParameterStore) -> None:
    for version in range(4):
        store.publish(version, tensors(version), {"v": version})
    before = {version: database.hget(RECORDS, version) for version in (1, 2)}
    database.hdel(RECORDS, "1", "2")
    store.publish(4, tensors(4), {"v": 4})
    assert store.head() == 4
    database.delete(*database.scan_iter("five:r:params*"))  # only archived copies are left
    for version in (1, 2):
        same(store.fetch(version)[0], tensors(version))
        record = store.record(version)
        assert record is not None and record.digest.encode() in before[version]


def test_version_lost_before_its_publish_ends_is_published_again(
        database: redis.Redis, store: ParameterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failover comes after the archiving and takes the record, its address and the contents."""
    store.publish(0, tensors(0), {})
    retire, failovers = store._retire, iter([True, False])

    def fail_over_after(version: int, contents: Contents) -> None:
        retire(version, contents)
        if next(failovers):
            database.delete(RECORDS, *database.scan_iter("five:r:params*"))

    monkeypatch.setattr(store, "_retire", fail_over_after)
    store.publish(1, tensors(1), {})
    assert store.head() == 1
    database.delete(RECORDS, *database.scan_iter("five:r:params*"))
    monkeypatch.undo()
    store.publish(2, tensors(2), {})
    for version in range(3):
        same(store.fetch(version)[0], tensors(version))


def test_restored_versions_are_removed_like_the_others(database: redis.Redis, store_config: StoreConfig,
                                                       blobs: BlobStore) -> None:
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"archive_every": 4}), blobs)
    for version in range(4):
        store.publish(version, tensors(version), {})
    database.hdel(RECORDS, "1", "2")
    database.zrem(Keys("r").temporary, "1", "2")
    store.publish(4, tensors(4), {})
    assert database.zrange(Keys("r").temporary, 0, -1) == [b"1", b"2", b"3"]


def test_the_newest_records_are_restored(database: redis.Redis, store: ParameterStore) -> None:
    """A version that was removed long ago is not brought back."""
    for version in range(KEPT + 2):
        store.publish(version, {"w": np.full(3, version, np.float32)}, {})
    database.delete(RECORDS)
    store.publish(KEPT + 2, {"w": np.zeros(3, np.float32)}, {})
    assert [record.version for record in store.records()] == list(range(2, KEPT + 3))


def test_restored_record_names_no_archived_copy_that_was_pruned(database: redis.Redis, store_config: StoreConfig,
                                                                blobs: BlobStore) -> None:
    few = store_config.model_copy(update={"archive_every": 100, "keep_archived": 2})
    store = ParameterStore(database, database, "r", few, blobs)
    for version in range(1, 7):
        store.publish(version, tensors(version), {})
    database.delete(RECORDS)
    store.publish(7, tensors(7), {})
    assert [record.version for record in store.records()] == list(range(1, 8))
    assert [record.version for record in store.records() if record.blob is not None] == [6, 7]
    same(store.fetch(6)[0], tensors(6))


def test_only_lost_versions_below_the_number_are_listed() -> None:
    recent, asked = RecentVersions(), []
    contents: Contents = ({"w": np.zeros(3, np.float32)}, {}, ())
    ready = {version: prepare_version(version, contents, StoreConfig()) for version in (3, 7, 5)}
    for version in ready.values():
        recent.add(version, VersionRecord(version.version, version.digest, 12, 1.0, None))

    def records_of(versions: list[int]) -> list[VersionRecord]:
        asked.append(versions)
        return [VersionRecord(3, "d", 1, 1.0, None)]

    assert [lost.version for lost in recent.lost(7, records_of)] == [5] and asked == [[3, 5]]
    assert [lost.version for lost in recent.lost(8, records_of)] == [5, 7]
    assert [lost.digest for lost in recent.lost(6, records_of)] == [ready[5].digest]
    assert list(recent.lost(3, lambda versions: [])) == [] == list(RecentVersions().lost(9, lambda versions: []))


def test_restored_record_has_its_archived_copy_and_mark() -> None:
    recent, ref = RecentVersions(), Ref("a" * 64, 9)
    warming = prepare_version(1, ({"w": np.zeros(3, np.float32)}, {"warming": True}, ()), StoreConfig())
    for blob in (None, ref):
        recent.add(warming, VersionRecord(1, warming.digest, 12, 1.0, blob))
        (lost,) = recent.lost(2, lambda versions: [])
        found = parse_record(1, lost.record.encode())
        assert (found.digest, found.bytes, found.blob, found.warming) == (warming.digest, 12, blob, True)


def test_another_publisher_restores_nothing(database: redis.Redis, store: ParameterStore) -> None:
    store.publish(0, tensors(0), {})
    database.hdel(RECORDS, "0")
    store.without_retries().publish(1, tensors(1), {})
    assert store.record(0) is None


def test_numbers_that_a_restored_run_uses_again_are_not_restored(database: redis.Redis, store: ParameterStore) -> None:
    for contents in (5, 6):  # two backups later
        database.delete(RECORDS, Keys("r").head)
        store.publish(1, tensors(contents), {})
        store.publish(2, tensors(contents + 2), {})
    database.delete(RECORDS, Keys("r").head)
    store.publish(2, tensors(9), {})
    assert store.head() == 2
    same(store.fetch(1)[0], tensors(6))
    same(store.fetch(2)[0], tensors(9))
