"""Contents of versions in the params Redis, without the run's record of them."""

import json

import numpy as np
import pytest
import redis

from rapid.config import StoreConfig
from rapid.store.errors import Corrupt
from rapid.store.keys import Keys
from rapid.store.prepared_version import PreparedVersion, prepare_version
from rapid.store.redis_contents import RedisContents
from tests.rapid.conftest import same, tensors
from tests.waiting import eventually


@pytest.fixture
def contents(database: redis.Redis, store_config: StoreConfig) -> RedisContents:
    return RedisContents(database, Keys("r"), store_config)


def prepared(version: int, seed: int, config: StoreConfig) -> PreparedVersion:
    return prepare_version(version, (tensors(seed), {"seed": seed}, ()), config)


def test_contents_of_one_version_differ_by_digest(contents: RedisContents, store_config: StoreConfig) -> None:
    first, second = prepared(1, 1, store_config), prepared(1, 2, store_config)
    for ready in (first, second, first):  # uploading again changes nothing
        contents.upload(ready)
    assert sorted(contents.versions()) == sorted([(1, first.digest), (1, second.digest)])
    for ready, seed in ((first, 1), (second, 2)):
        found = contents.read(1, ready.digest)
        assert found is not None
        same(found[0], tensors(seed))
        assert found[1].meta == {"seed": seed}


def test_unknown_contents_are_none(contents: RedisContents, store_config: StoreConfig) -> None:
    ready = prepared(1, 1, store_config)
    assert contents.versions() == []
    assert contents.manifest(1, ready.digest) is None and contents.read(1, ready.digest) is None
    contents.upload(ready)
    assert contents.read(2, ready.digest) is None and contents.read(1, "0" * 32) is None


def test_versions_are_in_numeric_order(contents: RedisContents, store_config: StoreConfig) -> None:
    for version in (10, 9, 100):
        contents.upload(prepared(version, version, store_config))
    assert [version for version, _ in contents.versions()] == [9, 10, 100]


def test_expired_contents_are_readable_but_not_listed(contents: RedisContents, store_config: StoreConfig) -> None:
    ready = prepared(1, 1, store_config)
    contents.upload(ready)
    contents.expire(1, ready.digest, 30.0)
    assert contents.versions() == []
    found = contents.read(1, ready.digest)
    assert found is not None
    same(found[0], tensors(1))
    contents.expire(1, ready.digest, 0)
    eventually(lambda: contents.read(1, ready.digest) is None)


def test_contents_with_a_missing_chunk_are_none(contents: RedisContents, store_config: StoreConfig,
                                                database: redis.Redis) -> None:
    ready = prepared(1, 1, store_config)
    contents.upload(ready)
    database.delete(Keys("r").chunk(1, ready.digest, 2))
    assert contents.read(1, ready.digest) is None


def test_damaged_chunks_are_detected(contents: RedisContents, store_config: StoreConfig,
                                     database: redis.Redis) -> None:
    ready = prepared(0, 0, store_config)
    contents.upload(ready)
    buffer = np.empty(ready.size, np.uint8)
    for offset in range(0, 8000, 1000):
        database.setrange(Keys("r").chunk(0, ready.digest, 1), offset, b"\xff\x00\xff")
        with pytest.raises(Corrupt, match="chunk 1 of version 0 of run r"):
            contents.read(0, ready.digest, buffer)


def test_manifest_header_is_valid_safetensors(contents: RedisContents, store_config: StoreConfig,
                                              database: redis.Redis) -> None:
    ready = prepared(0, 0, store_config)
    contents.upload(ready)
    manifest = json.loads(database.get(Keys("r").manifest(0, ready.digest)))
    header = json.loads(manifest["header"])
    assert header["w"] == {"dtype": "F32", "shape": [5000, 10], "data_offsets": [36, 200_036]}
    sizes = [database.strlen(Keys("r").chunk(0, ready.digest, i)) for i in range(len(manifest["chunks"]))]
    assert sum(sizes) == manifest["bytes"] and max(sizes) == 65536
