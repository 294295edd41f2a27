"""Archived versions: reads from the blob store, and removal of temporary versions."""

from pathlib import Path

import numpy as np
import pytest
import redis

from rapid import tensorfile
from rapid.bfloat16 import to_bfloat16
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store.errors import Corrupt, VersionMissing
from rapid.store.parameters import ParameterStore
from tests.rapid.conftest import same, tensors


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
    """Of a version that was removed, or that the run never had; the name of an archived one is not read."""
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
