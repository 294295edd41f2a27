"""Records that a failover of Redis lost are written again by the next publish."""

import redis

from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from rapid.store.recent_versions import KEPT
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


def test_restored_versions_are_removed_like_the_others(database: redis.Redis, store_config: StoreConfig,
                                                      blobs: BlobStore) -> None:
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"archive_every": 4}), blobs)
    for version in range(4):
        store.publish(version, tensors(version), {})
    database.hdel(RECORDS, "1", "2")
    database.zrem(Keys("r").temporary, "1", "2")
    store.publish(4, tensors(4), {})
    assert database.zrange(Keys("r").temporary, 0, -1) == [b"1", b"2", b"3"]


def test_records_of_earlier_versions_stay_lost(database: redis.Redis, store: ParameterStore) -> None:
    """A version that was removed long ago is not brought back."""
    for version in range(KEPT + 2):
        store.publish(version, tensors(version), {"v": version})
    database.hdel(RECORDS, "0", "1", "2")
    store.publish(KEPT + 2, tensors(KEPT + 2), {})
    assert [store.record(version) is None for version in (0, 1, 2)] == [True, True, False]


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
