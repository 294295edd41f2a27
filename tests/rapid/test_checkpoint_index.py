"""Index of checkpoints: who may write it, what replaces what, and damaged rows."""

import json
import time
from typing import Any

import pytest
import redis

from rapid.blobs import Ref
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.errors import Corrupt, FencedOut
from rapid.store.fencing import FencingToken, PublisherLease
from rapid.store.keys import Keys
from rapid.store.state import RunState

KEYS = Keys("r")
REFS = [Ref(digit * 64, size) for digit, size in (("a", 10), ("b", 20), ("c", 30))]


@pytest.fixture
def index(database: redis.Redis) -> CheckpointIndex:
    RunState(database, "r").create({}, "test")
    return CheckpointIndex(database, "r")


@pytest.fixture
def token(index: CheckpointIndex, database: redis.Redis) -> FencingToken:
    return PublisherLease(database, "r", "optimizer-0", 30.0).acquire()


def test_checkpoints_are_listed_by_number(index: CheckpointIndex, token: FencingToken) -> None:
    before = time.time()
    for version, ref in zip((10, 9, 100), REFS, strict=True):
        index.commit(token, version, f"name-{version}", ref)
    found = index.all()
    assert [(version, *entry[:4]) for version, entry in found.items()] == [
        (9, "name-9", REFS[1], 1, 1), (10, "name-10", REFS[0], 1, 1), (100, "name-100", REFS[2], 1, 1)]
    assert all(before <= entry.at <= time.time() for entry in found.values())


def test_commit_replaces_its_version_and_drops_named_ones(index: CheckpointIndex, token: FencingToken) -> None:
    for version in (1, 2, 3):
        index.commit(token, version, f"name-{version}", REFS[0])
    index.commit(token, 3, "again", REFS[1], dropped=(1, 7))
    assert {version: (entry.name, entry.ref) for version, entry in index.all().items()} == {
        2: ("name-2", REFS[0]), 3: ("again", REFS[1])}


def test_writer_without_a_lease_is_recorded_with_fence_0(index: CheckpointIndex) -> None:
    index.commit(FencingToken("repair", 1, None), 5, "name", REFS[0])
    assert index.all()[5].fence == 0 and index.all()[5].epoch == 1


def test_old_writer_changes_nothing(index: CheckpointIndex, token: FencingToken, database: redis.Redis) -> None:
    index.commit(token, 1, "name-1", REFS[0])
    index.preserve(token, "kept", REFS[0])
    keys = (KEYS.checkpoints, KEYS.preserved, KEYS.checkpoint_key)
    before = [database.dump(key) for key in keys]
    old = FencingToken("optimizer-1", 1, 1)
    for write, match in ((lambda: index.commit(old, 2, "name-2", REFS[1], dropped=[1]), "checkpoint of version 2"),
                         (lambda: index.preserve(old, "other", REFS[1], dropped=["kept"]), "preserved checkpoint oth"),
                         (lambda: index.signing_key(old), "the key of checkpoints")):
        with pytest.raises(FencedOut, match=match) as caught:
            write()
        assert caught.value.reason == "lease"
    assert [database.dump(key) for key in keys] == before


def test_preserved_checkpoints_are_listed_and_dropped_by_name(index: CheckpointIndex, token: FencingToken) -> None:
    for name, ref in zip("bca", REFS, strict=True):
        index.preserve(token, name, ref)
    assert list(index.preserved().items()) == [("a", REFS[2]), ("b", REFS[0]), ("c", REFS[1])]
    index.preserve(token, "a", REFS[0], dropped=("b", "unknown"))
    assert index.preserved() == {"a": REFS[0], "c": REFS[1]} and index.all() == {}


def test_signing_key_is_created_once(index: CheckpointIndex, token: FencingToken, database: redis.Redis) -> None:
    key = index.signing_key(token)
    assert len(key) == 32 and CheckpointIndex(database, "r").signing_key(token) == key
    assert database.get(KEYS.checkpoint_key) == key.hex().encode()
    # A reader of the key needs no lease.
    assert index.signing_key(FencingToken("reader", 1, None)) == key


def test_faster_creator_of_the_signing_key_wins(index: CheckpointIndex, token: FencingToken, database: redis.Redis,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    get = database.get

    def overtaken(name: Any) -> Any:
        found = get(name)
        database.set(name, "ab" * 32, nx=True)
        return found

    monkeypatch.setattr(database, "get", overtaken)
    assert index.signing_key(token) == bytes.fromhex("ab" * 32)


@pytest.mark.parametrize("change", [
    {"ref": {"digest": "a" * 63, "size": 1}}, {"ref": {"digest": "a" * 64, "size": -1}}, {"ref": None}, {"epoch": "x"},
    {"fence": None}, {"at": []}])
def test_damaged_checkpoint_is_named(index: CheckpointIndex, token: FencingToken, database: redis.Redis,
                                     change: dict[str, Any]) -> None:
    index.commit(token, 7, "name", REFS[0])
    row = json.loads(database.hget(KEYS.checkpoints, "7"))  # type: ignore[arg-type]
    database.hset(KEYS.checkpoints, "7", json.dumps(row | change))
    with pytest.raises(Corrupt, match="checkpoint 7 is damaged in Redis|reference to a blob is damaged"):
        index.all()
