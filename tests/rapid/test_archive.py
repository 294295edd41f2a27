"""Archived versions: reads from the blob store, and removal of temporary versions."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from rapid import tensorfile
from rapid.bfloat16 import to_bfloat16
from rapid.blobs import BlobStore, Ref
from rapid.config import StoreConfig
from rapid.embedded_redis import RunningRedis
from rapid.store import archive as archive_module
from rapid.store import functions
from rapid.store.archive import VersionArchive, VersionRecord, parse_record
from rapid.store.errors import Corrupt, VersionMissing
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from tests.rapid.conftest import same, tensors
from tests.rapid.failing_redis import Breaking, socket_path

KEYS = Keys("r")


def test_empty_params_redis_reads_from_the_archive(database: redis.Redis, store: ParameterStore) -> None:
    """The params Redis has no persistence, so after its restart the head comes from the blob store."""
    store.publish(0, tensors(0), {"v": 0})
    for key in database.scan_iter("five:r:params*"):
        database.delete(key)
    assert store.head() == 0
    same(store.fetch(0)[0], tensors(0))
    store.publish(1, tensors(1), {"v": 1})
    same(store.fetch(1)[0], tensors(1))


def test_planted_name_is_not_an_archived_version(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore
                                                 ) -> None:
    """The store reads no blob by its name: neither for a removed or unknown version nor for an archived one."""
    config = store_config.model_copy(update={"archive_every": 0, "keep_archived": 1})
    store = ParameterStore(database, database, "r", config, blobs)
    for version in range(3):
        store.publish(version, tensors(version), {"v": version})
    database.delete(*database.scan_iter("five:r:params*"))
    for version in (0, 2, 7):
        blobs.put(tensorfile.file_pieces(tensors(9), {"v": "forged"}, ()), f"r/versions/{version:010d}")
    for version in (0, 7):
        with pytest.raises(VersionMissing):
            store.fetch(version)
        with pytest.raises(VersionMissing):
            store.fetch_meta(version)


def test_archived_metadata_is_read_without_arrays(
        database: redis.Redis, store: ParameterStore, tmp_path: Path) -> None:
    store.publish(0, tensors(0), {"v": 0})
    database.delete(*database.scan_iter("five:r:params*"))
    (path,) = (p for p in (tmp_path / "blobs" / "objects").rglob("*") if p.is_file())
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    path.write_bytes(data[:begin])
    assert store.fetch_meta(0) == {"v": 0}
    path.write_bytes(b"\xff" * 8 + data[8:])
    with pytest.raises(Corrupt, match="version 0 of run r is damaged in the blob store: not a safetensors file"):
        store.fetch_meta(0)
    path.unlink()
    with pytest.raises(VersionMissing, match="version 0 of run r is not in Redis"):
        store.fetch_meta(0)


def test_only_multiples_and_pins_are_archived_permanently(
        database: redis.Redis, store_config: StoreConfig, blobs: BlobStore, tmp_path: Path) -> None:
    """The newest are archived too, so an empty params Redis loses nothing."""
    config = store_config.model_copy(update={"archive_every": 4, "keep_archived": 2})
    store = ParameterStore(database, database, "r", config, blobs)
    store.publish(0, tensors(0), {})
    store.publish(1, tensors(0), {})  # equal contents, stored separately
    store.pin(1, "a reference")
    for version in range(2, 12):
        store.publish(version, tensors(version), {"v": version})
    kept = [0, 1, 4, 8, 10, 11]
    assert [r.version for r in store.records() if r.blob] == kept
    assert blobs.refs("r/versions") == [f"r/versions/{v:010d}" for v in kept]
    assert len([p for p in (tmp_path / "blobs" / "objects").rglob("*") if p.is_file()]) == len(kept)
    assert store.pins() == {1: "a reference"}
    database.delete(*database.scan_iter("five:r:params*"))
    for version in kept[2:]:
        same(store.fetch(version)[0], tensors(version))
    same(store.fetch(1)[0], tensors(0))
    with pytest.raises(VersionMissing):
        store.fetch(5)
    with pytest.raises(VersionMissing, match="version 5 .* cannot be pinned"):
        store.pin(5, "too late")
    assert store.pins() == {1: "a reference"}


def test_archiving_can_be_disabled(database: redis.Redis, store_config: StoreConfig,
                                   blobs: BlobStore) -> None:
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"archive_every": 0}), blobs)
    for version in range(4):
        store.publish(version, tensors(version), {})
    assert blobs.refs() == []


def test_next_publish_archives_versions_of_a_dead_publisher(database: redis.Redis, store_config: StoreConfig,
                                                            blobs: BlobStore) -> None:
    ParameterStore(database, database, "r", store_config).publish(0, tensors(0), {"v": 0})
    store = ParameterStore(database, database, "r", store_config, blobs)
    store.publish(1, tensors(1), {"v": 1})
    record = store.record(0)
    assert record is not None and record.blob is not None
    database.delete(*database.scan_iter("five:r:params:0:*"))
    same(store.fetch(0)[0], tensors(0))


def test_archived_bfloat16_round_trip(store: ParameterStore, database: redis.Redis) -> None:
    bits = to_bfloat16(tensors(0)["w"])
    store.publish(0, {"w": bits}, {}, bfloat16=("w",))
    database.delete(*database.scan_iter("five:r:params:0:*"))
    arrays, meta = store.fetch(0, keep_bfloat16=True)
    np.testing.assert_array_equal(arrays["w"], bits)
    assert meta["bfloat16"] == ["w"]


# The archive itself.


def test_record_of_an_earlier_release_is_parsed() -> None:
    """It has neither a mark of a warm-up nor, before it is archived, an address."""
    row = {"digest": "d", "bytes": 8, "created_at": 1}
    assert parse_record(5, json.dumps(row).encode()) == VersionRecord(5, "d", 8, 1.0, None, False)
    archived = parse_record(5, json.dumps({**row, "blob": "a" * 64, "blob_bytes": 9, "warming": True}).encode())
    assert archived == VersionRecord(5, "d", 8, 1.0, Ref("a" * 64, 9), True)
    assert VersionRecord(5, "d", 8, 1.0, None).warming is False


def recorded(database: redis.Redis) -> list[int]:
    """Return the versions whose records name a blob."""
    rows: Any = database.hgetall(KEYS.versions)
    return sorted(int(version) for version, text in rows.items() if parse_record(int(version), text).blob)


def numbered(blobs: BlobStore) -> list[int]:
    return [int(name.rpartition("/")[2]) for name in blobs.refs("r/versions")]


def test_prune_removes_all_but_the_newest_temporary_versions(archive: VersionArchive, database: redis.Redis,
                                                             blobs: BlobStore) -> None:
    for version in (9, 3, 0, 10, 4, 2, 11):
        archive.put(version, (tensors(version), {}, ()))
    assert {int(version) for version in database.zrange(KEYS.temporary, 0, -1)} == {2, 3, 9, 10, 11}
    archive.prune(11)
    assert recorded(database) == numbered(blobs) == [0, 4, 10, 11]
    row: Any = database.hget(KEYS.versions, "3")
    assert json.loads(row)["blob_bytes"] == 0, "a record without a blob has no size"
    assert database.zrange(KEYS.temporary, 0, -1) == [b"10", b"11"]
    archive.prune(11)
    assert recorded(database) == [0, 4, 10, 11]


@pytest.mark.parametrize("kept_records", [10_000, 1])
def test_version_that_is_pinned_during_the_prune_stays(
        archive: VersionArchive, database: redis.Redis, blobs: BlobStore, store_config: StoreConfig, kept_records: int,
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "KEPT_RECORDS", kept_records)
    for version in (2, 9, 10, 11):
        archive.put(version, (tensors(version), {}, ()))
    looked, evaluator = archive._is_pinned, VersionArchive(database, "r", store_config, blobs)

    def look(version: int) -> bool:
        found = looked(version)
        if version == 2 and not evaluator.pins():
            evaluator.pin(2, "a reference")
        return found

    monkeypatch.setattr(archive, "_is_pinned", look)
    for _ in range(2):
        archive.prune(11)
        assert archive.pins() == {2: "a reference"} and archive.get(2) is not None
        assert numbered(blobs) == [2, 10, 11]
    assert database.zrange(KEYS.temporary, 0, -1) == [b"10", b"11"]


def test_unpinned_version_is_temporary_again(archive: VersionArchive, database: redis.Redis, blobs: BlobStore) -> None:
    for version in (2, 4, 9, 10, 11):
        archive.put(version, (tensors(version), {}, ()))
    archive.pin(10, "ten")
    archive.pin(2, "two")
    archive.pin(4, "four")
    assert list(archive.pins().items()) == [(2, "two"), (4, "four"), (10, "ten")]
    archive.prune(11)
    assert numbered(blobs) == [2, 4, 10, 11]
    for version in (2, 4, 3):  # the last one was never pinned
        archive.unpin(version)
    assert archive.pins() == {10: "ten"}
    assert database.zrange(KEYS.temporary, 0, -1) == [b"2", b"10", b"11"]
    archive.prune(11)
    assert recorded(database) == numbered(blobs) == [4, 10, 11]


def test_lost_reply_makes_an_unpinned_version_temporary(
        archive: VersionArchive, database: redis.Redis, redis_server: RunningRedis, store_config: StoreConfig,
        blobs: BlobStore) -> None:
    """The connection is lost before the answer to each command in turn. A version that is not temporary is archived
    permanently."""
    config = store_config.model_copy(update={"archive_every": 4})
    archive.put(2, (tensors(2), {}, ()))
    for at in range(1, 100):
        archive.pin(2, "two")
        database.delete(KEYS.temporary)
        breaking = Breaking(at, answer=True)
        client = breaking.client(socket_path(redis_server), retries=1)
        VersionArchive(client, "r", config, blobs).unpin(2)
        assert archive.pins() == {} and database.zrange(KEYS.temporary, 0, -1) == [b"2"]
        if not breaking.broken:
            break
    assert at > 3


@pytest.mark.parametrize("version", [3, 50])
def test_version_that_is_not_archived_cannot_be_pinned(archive: VersionArchive, version: int) -> None:
    with pytest.raises(VersionMissing, match=f"version {version} of run r is not archived and cannot be pinned"):
        archive.pin(version, "why")
    assert archive.pins() == {}


def test_failed_put_leaves_a_version_that_prune_removes(archive: VersionArchive, database: redis.Redis,
                                                        blobs: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A publisher dies after the blob is stored: the version is temporary already."""
    def die(*arguments: Any) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(archive, "_record_blob", die)
        with pytest.raises(OSError, match="killed"):
            archive.put(3, (tensors(3), {}, ()))
    assert numbered(blobs) == [3] and recorded(database) == []
    for version in (9, 10):
        archive.put(version, (tensors(version), {}, ()))
    archive.prune(11)
    assert numbered(blobs) == [9, 10]


def test_failed_removal_is_repeated(archive: VersionArchive, database: redis.Redis, blobs: BlobStore,
                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """The record loses its address first, so no reader is led to a blob that is gone."""
    for version in (3, 9, 10):
        archive.put(version, (tensors(version), {}, ()))

    def die(name: str) -> None:
        assert recorded(database) == [9, 10]
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(blobs, "remove_ref", die)
        with pytest.raises(OSError, match="killed"):
            archive.prune(11)
    assert archive.get(3) is None and numbered(blobs) == [3, 9, 10]
    archive.prune(11)
    assert numbered(blobs) == [9, 10] and database.zcard(KEYS.temporary) == 2


@pytest.mark.parametrize(("version", "adopted", "temporary"), [(3, True, [b"3"]), (4, True, []), (3, False, [])])
def test_staged_version_gets_a_number_once_it_is_adopted(
        archive: VersionArchive, database: redis.Redis, blobs: BlobStore, version: int, adopted: bool,
        temporary: list[bytes]) -> None:
    archive.finalize_staged()  # nothing is staged
    ref = archive.stage(version, (tensors(version), {"v": version}, ()))
    assert blobs.refs() == ["r/staged"] and recorded(database) == []
    address = ref if adopted else blobs.put(tensorfile.file_pieces(tensors(99), {}, ()), "another")
    functions.call(database, "record_blob", [KEYS.versions], str(version), address.digest, str(address.size))
    for _ in range(2):
        archive.finalize_staged()
        assert numbered(blobs) == ([version] if adopted else []) and blobs.refs("r/staged") == []
        assert database.zrange(KEYS.temporary, 0, -1) == temporary and not database.exists(KEYS.staged)
    if adopted:
        found = archive.get(version)
        assert found is not None
        same(found[0], tensors(version))


def test_staged_version_of_no_record_is_removed(archive: VersionArchive, blobs: BlobStore) -> None:
    archive.stage(50, (tensors(0), {}, ()))
    archive.finalize_staged()
    assert blobs.refs() == []


def test_every_version_is_temporary_without_an_interval(database: redis.Redis, store_config: StoreConfig,
                                                        blobs: BlobStore) -> None:
    config = store_config.model_copy(update={"archive_every": 0})
    archive = VersionArchive(database, "r", config, blobs)
    for version in (0, 1, 8):
        archive.put(version, (tensors(version), {}, ()))
    assert database.zrange(KEYS.temporary, 0, -1) == [b"0", b"1", b"8"]
