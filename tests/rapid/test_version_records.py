"""Records of versions: pages of them, races of publishers, and damaged manifests."""

import json
from typing import Any

import numpy as np
import pytest
import redis

from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store import archive_policy, bulk_transfer, parameters
from rapid.store.errors import Corrupt, VersionConflict, VersionMissing
from rapid.store.fencing import PublisherLease
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState
from tests.rapid.conftest import same, tensors

KEYS = Keys("r")


@pytest.fixture
def recorded(store: ParameterStore, database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> ParameterStore:
    """Versions 0 to 10 without 4, of which 10 is the head, in pages of three."""
    monkeypatch.setattr(parameters, "PAGE", 3)
    database.hset(KEYS.versions, mapping={str(v): json.dumps({"digest": "d", "bytes": 1, "created_at": 1.0})
                                          for v in range(11) if v != 4})
    database.set(KEYS.head, "10:d")
    return store


@pytest.mark.parametrize(("first", "found"), [
    (-5, [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]), (0, [0, 1, 2, 3, 5, 6, 7, 8, 9, 10]), (4, [5, 6, 7, 8, 9, 10]),
    (9, [9, 10]), (10, [10]), (11, [])])
def test_records_from_a_number_end_at_the_head(recorded: ParameterStore, first: int, found: list[int]) -> None:
    assert [record.version for record in recorded.records_from(first)] == found


@pytest.mark.parametrize(("every", "most", "found"), [
    (1, 4, [10, 9, 8, 7]), (1, 7, [10, 9, 8, 7, 6, 5]), (3, 10, [9, 6, 3, 0]), (4, 10, [8, 0]), (5, 2, [10, 5]),
    (11, 10, [0])])
def test_newest_records_are_multiples(recorded: ParameterStore, every: int, most: int, found: list[int]) -> None:
    assert [record.version for record in recorded.newest_records(every, most)] == found
    assert len(list(recorded.newest_records())) == 10, "all of them by default"


def test_archived_records_are_the_newest_multiples_and_pins(
        database: redis.Redis, store_config: StoreConfig, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameters, "PAGE", 3)
    monkeypatch.setattr(archive_policy, "NEWEST", 8)
    config = store_config.model_copy(update={"archive_every": 4, "keep_archived": 2})
    store, few = (ParameterStore(database, database, "r", config.model_copy(update={"max_archived": limit}), blobs)
                  for limit in (0, 3))
    archived = {*range(0, 40, 4), 5, 6, 37, 38}
    database.hset(KEYS.versions, mapping={str(v): json.dumps(
        {"digest": "d", "bytes": 1, "created_at": 1.0, "blob": "a" * 64 if v in archived else "", "blob_bytes": 1})
        for v in range(40)})
    database.set(KEYS.head, "39:d")
    store.pin(5, "a reference")
    assert [record.version for record in store.archived_records()] == [38, 37, *range(36, 7, -4), 5, 4, 0]
    assert [record.version for record in few.archived_records()] == [38, 37, 36, 32, 5, 0]


def test_run_without_a_head_has_no_records(store: ParameterStore) -> None:
    assert list(store.records_from(0)) == list(store.newest_records()) == store.records() == store.records_of([]) == []
    assert store.archived_records() == []


def test_publisher_that_loses_a_race_gets_a_conflict(store: ParameterStore, database: redis.Redis,
                                                     store_config: StoreConfig, monkeypatch: pytest.MonkeyPatch
                                                     ) -> None:
    """Another process publishes the version during the upload. The token is valid, so the error names the contents."""
    RunState(database, "r").create({}, "test")
    token = PublisherLease(database, "r", "optimizer-0", 30.0).acquire()
    sent = bulk_transfer.set_values

    def overtaken(*arguments: Any) -> None:
        monkeypatch.setattr(bulk_transfer, "set_values", sent)
        sent(*arguments)
        ParameterStore(database, database, "r", store_config).publish(3, tensors(1), {})

    monkeypatch.setattr(bulk_transfer, "set_values", overtaken)
    with pytest.raises(VersionConflict, match=r"version 3 of run r exists with other contents.*\(the head is 3\)"):
        store.publish(3, tensors(2), {}, fencing_token=token)
    assert store.stored() == [3]
    same(store.fetch(3)[0], tensors(1))


@pytest.mark.parametrize("change", [{"chunk_bytes": 0}, {"chunk_bytes": -1}, {"chunks": []}, {"chunk_bytes": 1},
                                    {"chunk_bytes": 1 << 20}, {"bytes": 7}, {"header": 5}])
def test_damaged_manifest_is_named(store: ParameterStore, database: redis.Redis, change: dict[str, Any]) -> None:
    store.publish(0, tensors(0), {})
    record = store.record(0)
    assert record is not None
    name = KEYS.manifest(0, record.digest)
    database.set(name, json.dumps(json.loads(database.get(name)) | change))  # type: ignore[arg-type]
    with pytest.raises(Corrupt, match="the manifest of version 0 is damaged in Redis"):
        store.fetch(0)


@pytest.mark.parametrize("chunk_bytes", [1, 2, 64])
def test_chunks_of_any_size_are_read(store: ParameterStore, database: redis.Redis, chunk_bytes: int) -> None:
    """Another release may choose another size."""
    store.publish(0, {"x": np.ones(1, np.uint8)}, {})
    record = store.record(0)
    assert record is not None
    name = KEYS.manifest(0, record.digest)
    manifest: Any = database.get(name)
    database.set(name, json.dumps({**json.loads(manifest), "chunk_bytes": chunk_bytes}))
    assert store.fetch(0)[0]["x"] == [1]


def test_contents_of_another_digest_are_not_stored_versions(store: ParameterStore, database: redis.Redis) -> None:
    """Left by publishers that lost a race. The next publish removes them."""
    store.publish(3, tensors(3), {})
    strangers = [f"{version}:{digit * 32}" for version in (2, 3, 4) for digit in "0f"]
    database.zadd(KEYS.stored_versions, {name: int(name[0]) for name in strangers})
    assert store.stored() == [3] and database.zcard(KEYS.stored_versions) == 7
    store.publish(4, tensors(4), {})
    assert store.stored() == [3, 4] and database.zcard(KEYS.stored_versions) == 2


@pytest.mark.parametrize(("version", "accepted"), [(0, False), (4, False), (5, False), (6, True), (9, True)])
def test_only_a_version_after_the_head_is_staged(store: ParameterStore, version: int, accepted: bool) -> None:
    """Not even with the contents of the head."""
    store.publish(5, tensors(5), {})
    if accepted:
        assert store.stage(version, tensors(5), {}).head == (version, store.stage(version, tensors(5), {}).digest)
    else:
        with pytest.raises(VersionConflict, match=f"version {version} of run r exists.*the head is 5"):
            store.stage(version, tensors(5), {})
    assert store.head() == 5 and store.stored() == [5]


def test_store_without_blobs_archives_nothing(database: redis.Redis, store_config: StoreConfig) -> None:
    store = ParameterStore(database, database, "r", store_config)
    store.publish(0, tensors(0), {"v": 0})
    with pytest.raises(ValueError, match=r"no blob store to archive to: set blobs\.url"):
        store.archive(0)
    with pytest.raises(VersionMissing, match=r"no version can be pinned: set blobs\.url"):
        store.pin(0, "why")
    store.unpin(0)
    assert store.pins() == {} and store.fetch_meta(0) == {"v": 0}
    with pytest.raises(VersionMissing, match="version 1 of run r is not in Redis .it has 0. and was not archived"):
        store.fetch_meta(1)


def test_only_a_version_in_redis_can_be_archived(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore
                                                 ) -> None:
    """With its metadata, and with bfloat16 arrays as such."""
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"archive_every": 0}), blobs)
    bits = np.arange(6, dtype=np.uint16)
    store.publish(0, {"w": bits, "x": bits}, {"v": 0}, bfloat16=["w"])
    ref = store.archive(0)
    record = store.record(0)
    assert record is not None and record.blob == ref
    database.delete(*database.scan_iter("five:r:params*"))
    arrays, meta = store.fetch(0, keep_bfloat16=True)
    same(arrays, {"w": bits, "x": bits})
    assert meta == {"v": 0, "bfloat16": ["w"]} and store.pins() == {}
    for version in (0, 7):
        with pytest.raises(VersionMissing, match=f"version {version} of run r is no longer in Redis"):
            store.archive(version)


def test_upload_ends_in_one_transaction(store: ParameterStore, database: redis.Redis) -> None:
    """Otherwise a publisher that dies between the commands leaves chunks that never expire."""
    listener: Any = database.monitor()
    with listener:
        store.publish(0, tensors(0), {})
        database.echo("end")
        commands: list[str] = []
        for found in listener.listen():
            commands.append(found["command"].split(" ")[0])
            if commands[-1] == "ECHO":
                break
    begin, end = commands.index("MULTI"), commands.index("EXEC")
    assert commands[begin + 1:end] == [*["EXISTS"] * 4, *["PERSIST"] * 4, "SET", "ZADD"]
    assert "PERSIST" not in commands[end:]


def test_version_removed_during_the_read_comes_from_the_archive(store: ParameterStore, database: redis.Redis,
                                                                store_config: StoreConfig) -> None:
    """Its manifest was read before a chunk expired."""
    store.publish(0, tensors(0), {"v": 0})
    database.delete(next(database.scan_iter("five:r:params:0:*:1")))
    arrays, meta = store.fetch(0)
    same(arrays, tensors(0))
    assert meta == {"v": 0}
    with pytest.raises(VersionMissing, match="version 0 of run r is not in Redis"):
        ParameterStore(database, database, "r", store_config).fetch(0)


def test_version_is_archived_once(store: ParameterStore, blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put, names = blobs.put, []

    def counted(data: Any, name: str) -> Any:
        names.append(name)
        return put(data, name)

    monkeypatch.setattr(blobs, "put", counted)
    for version in (0, 1, 2):
        store.publish(version, tensors(version), {})
    store.publish(2, tensors(2), {})
    assert names == [f"r/versions/{version:010d}" for version in range(3)]
