"""Archive and version records of a long run: what is removed, and that a run of months stays bounded."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import redis

from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.store import archive as archive_module
from rapid.store import archive_policy
from rapid.store.archive import VersionArchive
from rapid.store.errors import Corrupt, VersionMissing
from rapid.store.keys import Keys
from rapid.store.parameters import ParameterStore
from tests.rapid.conftest import same, tensors
from tests.rapid.test_archive import numbered, recorded

KEYS = Keys("r")


# Records.


def few_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the records of the newest 100 versions, and read few at a time."""
    for name, value in (("KEPT_RECORDS", 100), ("PAGE", 7), ("PAGES", 3)):
        monkeypatch.setattr(archive_module, name, value)


def record_numbers(database: redis.Redis) -> set[int]:
    found: Any = database.hkeys(KEYS.versions)
    return {int(version) for version in found}


@pytest.mark.runs
def test_records_of_old_versions_are_removed(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number would grow with the run. The publisher restores none of them as lost."""
    few_records(monkeypatch)
    config = store_config.model_copy(update={"archive_every": 10, "keep_archived": 2})
    store = ParameterStore(database, database, "r", config, blobs)
    for version in range(300):
        store.publish(version, {"w": np.full(3, version, np.float32)}, {})
        if version == 15:
            store.pin(15, "a reference")
    kept = {*range(0, 300, 10), 15, *range(200, 300)}
    assert record_numbers(database) == kept
    for version in (300, 301):
        store.publish(version, {"w": np.full(3, version, np.float32)}, {})
    assert record_numbers(database) == kept - {201} | {300, 301}
    same(store.fetch(15)[0], {"w": np.full(3, 15, np.float32)})


def test_records_of_earlier_releases_are_removed_page_by_page(
        archive: VersionArchive, database: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    few_records(monkeypatch)
    row, archived = {"digest": "d", "bytes": 8, "created_at": 1.0}, {"blob": "a" * 64, "blob_bytes": 1}
    database.hset(KEYS.versions, mapping={str(v): json.dumps(row | (archived if v % 4 == 0 else {}))
                                          for v in range(200)})
    database.hset(KEYS.versions, "33", "damaged")
    archive.prune(199)
    assert record_numbers(database) == {*range(0, 21, 4), *range(21, 200)}
    for _ in range(5):
        archive.prune(199)
    assert record_numbers(database) == {*range(0, 100, 4), 33, *range(100, 200)}
    archive.prune(200)
    archive.prune(202)
    assert record_numbers(database) == {*range(0, 100, 4), 33, *range(103, 200), 100}


def test_record_is_removed_with_an_old_version(archive: VersionArchive, database: redis.Redis, blobs: BlobStore,
                                               monkeypatch: pytest.MonkeyPatch) -> None:
    """A version that was pinned for long is removed after its record was examined."""
    few_records(monkeypatch)
    for version in (3, 9, 10):
        archive.put(version, (tensors(version), {}, ()))
    archive.pin(3, "a reference")
    for _ in range(5):
        archive.prune(150)
    assert record_numbers(database) == {3, 9, 10} and archive.pins() == {3: "a reference"}
    archive.unpin(3)
    archive.prune(150)
    assert record_numbers(database) == {9, 10} and numbered(blobs) == [9, 10]


# Thinning.


def thinning(store_config: StoreConfig, **changes: int) -> StoreConfig:
    """Keep 12 multiples of 10, and at least the newest 20 versions."""
    return store_config.model_copy(update={"archive_every": 10, "keep_archived": 2, "max_archived": 12} | changes)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few versions that always stay, and few records."""
    monkeypatch.setattr(archive_policy, "NEWEST", 20)
    few_records(monkeypatch)


@pytest.mark.runs
@pytest.mark.usefixtures("short")
def test_old_multiples_are_thinned(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore) -> None:
    config = thinning(store_config)
    policy = archive_policy.ArchivePolicy.of(config)
    store = ParameterStore(database, database, "r", config, blobs)
    for version in range(700):
        store.publish(version, {"w": np.full(3, version, np.float32)}, {})
        if version == 30:
            store.pin(30, "a reference")
        assert len(numbered(blobs)) <= config.max_archived + config.keep_archived + 2, "also the pin, and one too many"
    kept = {*policy.multiples(699), 30, 698, 699}
    assert set(numbered(blobs)) == set(recorded(database)) == kept
    assert policy.multiples(699) == [*range(690, 639, -10), *range(480, -1, -160)]
    assert record_numbers(database) == {*kept, *range(600, 700)}
    same(store.fetch(30)[0], {"w": np.full(3, 30, np.float32)})
    with pytest.raises(VersionMissing):
        store.fetch(10)
    store.publish(700, {"w": np.zeros(3, np.float32)}, {})
    assert 201 not in record_numbers(database) and 10 not in record_numbers(database), "no record is restored"


@pytest.fixture
def full(database: redis.Redis, store_config: StoreConfig, blobs: BlobStore) -> VersionArchive:
    """Archive of a release without a limit: all 30 multiples of 10 below 300, two of them pinned."""
    database.hset(KEYS.versions, mapping={str(version): json.dumps(
        {"digest": f"d{version}", "bytes": 8, "created_at": 1.0}) for version in range(0, 300, 10)})
    archive = VersionArchive(database, "r", thinning(store_config), blobs)
    for version in range(0, 300, 10):
        archive.put(version, (tensors(version), {}, ()))
    archive.pin(10, "ten")
    archive.pin(50, "fifty")
    return archive


KEPT_OF_FULL = [0, 10, 40, 50, 80, 120, 160, 200, *range(240, 300, 10)]  # 10 and 50 by their pins


@pytest.mark.usefixtures("short")
def test_full_archive_is_thinned_a_few_versions_a_publish(full: VersionArchive, blobs: BlobStore,
                                                          database: redis.Redis) -> None:
    left = []
    for _ in range(20):
        full.prune(299)
        left.append(len(numbered(blobs)))
    assert all(before - after <= archive_module.THINNED for before, after in pairwise([30, *left]))
    assert numbered(blobs) == recorded(database) == KEPT_OF_FULL and database.zcard(KEYS.temporary) == 0
    assert full.pins() == {10: "ten", 50: "fifty"}


@pytest.mark.usefixtures("short")
def test_damaged_name_stops_no_publish(full: VersionArchive, blobs: BlobStore, database: redis.Redis,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    remove = blobs.remove_ref

    def removed(name: str) -> None:
        if name.endswith("20"):
            raise Corrupt(f"name {name!r} is damaged")
        remove(name)

    monkeypatch.setattr(blobs, "remove_ref", removed)
    for _ in range(20):
        full.prune(299)
    assert numbered(blobs) == sorted({*KEPT_OF_FULL, 20, 120, 220}) and database.zcard(KEYS.temporary) == 0


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("step", range(0, 19, 3))
def test_interrupted_thinning_is_completed(full: VersionArchive, blobs: BlobStore, database: redis.Redis,
                                           store_config: StoreConfig, monkeypatch: pytest.MonkeyPatch, step: int
                                           ) -> None:
    """A publisher dies before or between the two steps of a removal; the next one removes the same versions."""
    steps, remove = iter(range(step)), blobs.remove_ref

    def or_die(action: Callable[..., None]) -> Callable[..., None]:
        def act(*arguments: Any) -> None:
            if next(steps, None) is None:
                raise OSError("killed")
            action(*arguments)
        return act

    monkeypatch.setattr(blobs, "remove_ref", or_die(remove))
    monkeypatch.setattr(full, "_record_blob", or_die(full._record_blob))
    with pytest.raises(OSError, match="killed"):
        for _ in range(20):
            full.prune(299)
    monkeypatch.setattr(blobs, "remove_ref", remove)
    again = VersionArchive(database, "r", thinning(store_config), blobs)
    for _ in range(20):
        again.prune(299)
    assert numbered(blobs) == recorded(database) == KEPT_OF_FULL and database.zcard(KEYS.temporary) == 0
