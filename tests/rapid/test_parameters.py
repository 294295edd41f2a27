"""Versions of parameters: immutable, complete or absent under any failure."""

import asyncio
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from rapid.bfloat16 import from_bfloat16, to_bfloat16
from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis
from rapid.store import bulk_transfer, head_version
from rapid.store.errors import Corrupt, VersionConflict, VersionMissing
from rapid.store.parameters import ParameterStore
from tests.rapid.conftest import same, tensors
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]


def test_version_round_trip(store: ParameterStore) -> None:
    assert store.head() is None
    store.publish(0, tensors(0), {"schema": "s", "layout": "l"})
    store.publish(1, tensors(1), {"schema": "s", "layout": "l"})
    assert store.head() == 1
    for version in (0, 1):
        arrays, meta = store.fetch(version)
        same(arrays, tensors(version))
        assert meta == {"schema": "s", "layout": "l"}
        assert store.fetch_meta(version) == meta
    assert [r.version for r in store.records()] == [0, 1]


def test_version_without_or_with_empty_arrays(store: ParameterStore) -> None:
    store.publish(0, {}, {})
    assert store.fetch(0) == ({}, {})
    store.publish(1, {"e": np.zeros((0, 3), np.float32)}, {})
    assert store.fetch(1)[0]["e"].shape == (0, 3)


@pytest.mark.parametrize(("difference", "used"), [(1 << 20, True), (1, True), (0, True), (-1, False)])
def test_fetch_uses_a_buffer_that_is_large_enough(store: ParameterStore, difference: int, used: bool) -> None:
    store.publish(0, tensors(0), {})
    record = store.record(0)
    assert record is not None
    buffer = np.empty(record.bytes + difference, np.uint8)
    arrays, _ = store.fetch(0, buffer=buffer)
    assert all(np.shares_memory(a, buffer) == used for a in arrays.values())
    same(arrays, tensors(0))


def test_versions_are_immutable(store: ParameterStore) -> None:
    store.publish(3, tensors(3), {"a": 1})
    store.publish(3, tensors(3), {"a": 1})  # idempotent
    with pytest.raises(VersionConflict, match="version 3 of run r exists with other contents.*head is 3"):
        store.publish(3, tensors(4), {"a": 1})
    for other in range(8):
        with pytest.raises(VersionConflict):
            store.publish(3, tensors(3), {"a": other + 2})
    same(store.fetch(3)[0], tensors(3))


def test_archived_versions_are_immutable(store: ParameterStore) -> None:
    for version in range(5):
        store.publish(version, tensors(version), {})
    with pytest.raises(VersionConflict):
        store.publish(0, tensors(99), {})
    assert store.head() == 4


def test_head_never_moves_back(store: ParameterStore) -> None:
    store.publish(5, tensors(5), {})
    store.publish(4, tensors(4), {})
    assert store.head() == 5
    same(store.fetch(4)[0], tensors(4))


def test_concurrent_publishers_do_not_mix_chunks(database: redis.Redis, store_config: StoreConfig) -> None:
    outcomes: list[Any] = [None, None]
    gate = threading.Barrier(2)

    def publish(which: int) -> None:
        mine = ParameterStore(database, database, "r", store_config)
        gate.wait()
        try:
            mine.publish(0, tensors(which, 400_000), {})
            outcomes[which] = "won"
        except VersionConflict:
            outcomes[which] = "lost"

    threads = [threading.Thread(target=publish, args=(i,)) for i in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert outcomes.count("won") >= 1
    reader = ParameterStore(database, database, "r", store_config)
    record = reader.record(0)
    assert record is not None
    if outcomes.count("lost") == 1:
        winner = outcomes.index("won")
        try:
            same(reader.fetch(0)[0], tensors(winner, 400_000))
        except Corrupt:
            pytest.fail("a reader saw the loser's bytes")


def test_old_versions_move_from_redis_to_blobs(
        database: redis.Redis, store_config: StoreConfig, blobs: BlobStore) -> None:
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"grace_seconds": 0.05}), blobs)
    for version in range(4):
        store.publish(version, tensors(version), {"v": version})
    assert store.stored() == [2, 3]
    eventually(lambda: not list(database.scan_iter("five:r:params:1:*")))
    arrays, meta = store.fetch(1)
    same(arrays, tensors(1))
    assert meta == {"v": 1}
    assert store.fetch_meta(1) == {"v": 1}
    record = store.record(1)
    assert record is not None and record.blob is not None


def test_reader_of_a_removed_version_has_a_grace_period(store: ParameterStore, database: redis.Redis) -> None:
    for version in range(4):
        store.publish(version, tensors(version), {})
    left = [database.pttl(k) for k in database.scan_iter("five:r:params:0:*")]
    assert left and all(20_000 < ttl <= 30_000 for ttl in left)


def test_missing_version_raises(database: redis.Redis, store_config: StoreConfig) -> None:
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"grace_seconds": 0.0}))
    for version in range(4):
        store.publish(version, tensors(version), {})
    eventually(lambda: not list(database.scan_iter("five:r:params:0:*")))
    with pytest.raises(VersionMissing, match="version 0 of run r is not in Redis .it has 2, 3. and was not archived"):
        store.fetch(0)
    with pytest.raises(VersionMissing):
        store.fetch(77)
    with pytest.raises(ValueError, match="count from 0"):
        store.fetch(-1)


def test_bfloat16_carried_and_converted(store: ParameterStore, database: redis.Redis,
                                        store_config: StoreConfig) -> None:
    values = tensors(0)
    bits = to_bfloat16(values["w"])
    store.publish(0, {"w": bits, "ids": values["ids"]}, {"v": 0}, bfloat16=("w",))
    arrays, meta = store.fetch(0)
    np.testing.assert_array_equal(arrays["w"], from_bfloat16(bits))
    assert arrays["ids"].dtype == np.uint16 and meta == {"v": 0}
    arrays, meta = store.fetch(0, keep_bfloat16=True)
    np.testing.assert_array_equal(arrays["w"], bits)
    assert meta["bfloat16"] == ["w"]

    half = ParameterStore(database, database, "h", store_config.model_copy(update={"publish_dtype": "bfloat16"}))
    half.publish(0, values, {})
    arrays, _ = half.fetch(0)
    np.testing.assert_array_equal(arrays["w"], from_bfloat16(to_bfloat16(values["w"])))
    np.testing.assert_array_equal(arrays["bias"], values["bias"])  # vectors stay exact
    record = half.record(0)
    assert record is not None and record.bytes < values["w"].nbytes


PUBLISHER = """
    import sys, numpy as np, redis
    from rapid.config import StoreConfig
    from rapid.store import parameters
    from rapid.store import bulk_transfer
    from rapid.store.parameters import ParameterStore
    url, stage = sys.argv[1:]
    client = redis.Redis.from_url(url)
    store = ParameterStore(client, client, "r", StoreConfig(chunk_mebibytes=0.0625, upload_seconds=60.0))
    def hang(*_):
        print("there", flush=True)
        sys.stdin.read()
    whole = bulk_transfer.set_values
    if stage == "chunks":
        bulk_transfer.set_values = lambda c, items, ms: (whole(c, items[:len(items) // 2], ms), hang())
    elif stage == "manifest":
        bulk_transfer.set_values = lambda c, items, ms: (whole(c, items, ms), hang())
    elif stage == "flip":
        store._flip = hang
    store.publish(1, {"w": np.ones(500_000, np.float32)}, {})
"""


@pytest.mark.parametrize("stage", ["chunks", "manifest", "flip"])
def test_killed_publisher_leaves_the_old_head(stage: str, store: ParameterStore, database: redis.Redis,
                                              redis_server: Any) -> None:
    store.publish(0, tensors(0), {"v": 0})
    publisher = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PUBLISHER), redis_server.url, stage], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, cwd=ROOT, env={"PYTHONPATH": "libs:."})
    assert publisher.stdout is not None and publisher.stdout.readline() == b"there\n"
    assert list(database.scan_iter("five:r:params:1:*"))
    publisher.kill()
    publisher.wait()
    assert store.head() == 0
    assert store.record(1) is None
    same(store.fetch(0)[0], tensors(0))
    assert store.stored() == [0]
    left = set(database.scan_iter("five:r:params:1:*"))
    if stage != "flip":
        assert left and all(0 < database.pttl(name) <= 60_000 for name in left)
    # The next publisher succeeds with other contents of version 1.
    store.publish(1, tensors(1), {"v": 1})
    assert store.head() == 1
    same(store.fetch(1)[0], tensors(1))
    assert all(database.pttl(name) > 0 for name in left)  # the dead publisher's chunks expire
    assert store.stored() == [0, 1]


def test_expired_chunks_fail_the_publish(store: ParameterStore, database: redis.Redis,
                                         monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bulk_transfer.set_values

    def lose_one(client: redis.Redis, items: Any, ms: int) -> None:
        whole(client, items, ms)
        client.delete(items[0][0])

    store.publish(0, tensors(0), {})
    monkeypatch.setattr(bulk_transfer, "set_values", lose_one)
    with pytest.raises(redis.RedisError, match="1 of 4 chunks of version 1 were gone"):
        store.publish(1, tensors(1), {})
    assert store.head() == 0 and store.stored() == [0]


def test_largest_chunk_fits_into_a_redis_value() -> None:
    assert StoreConfig(chunk_mebibytes=64).chunk_bytes <= 512 << 20
    with pytest.raises(ValueError, match="less than or equal to 64"):
        StoreConfig(chunk_mebibytes=64.1)


def test_waiting_for_a_newer_head(store: ParameterStore, database: redis.Redis, store_config: StoreConfig,
                                  monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_version, "POLL_SECONDS", 30.0)
    assert store.wait_newer(None, 0.05) is None
    store.publish(0, tensors(0), {})
    assert store.wait_newer(None, 0.0) == 0
    assert store.wait_newer(0, 0.05) is None and store.wait_newer(5, 0.0) is None
    other = ParameterStore(database, database, "r", store_config)
    timer = threading.Timer(0.3, other.publish, (1, tensors(1), {}))
    timer.start()
    started = time.monotonic()
    assert store.wait_newer(0, 25) == 1
    assert time.monotonic() - started < 20  # the notification, not the poll
    timer.join()


async def test_watch_yields_each_new_head(store: ParameterStore) -> None:
    seen: list[int] = []

    async def follow() -> None:
        async for head in store.watch(poll_seconds=0.1):
            seen.append(head)

    task = asyncio.create_task(follow())
    for version in (0, 1, 2):
        await asyncio.to_thread(store.publish, version, tensors(version), {})
        while version not in seen:
            await asyncio.sleep(0.01)
    task.cancel()
    assert seen == [0, 1, 2]


def test_publish_and_fetch_survive_a_redis_restart(tmp_path: Path, store_config: StoreConfig) -> None:
    params, state = EmbeddedRedis(tmp_path / "p", False), EmbeddedRedis(tmp_path / "s", True)
    with state.start():
        running = params.start()
        store = ParameterStore(redis.Redis.from_url(params.url, retry=Retry(NoBackoff(), 0)),
                               redis.Redis.from_url(state.url), "r", store_config, BlobStore(str(tmp_path / "b")))
        store.publish(0, tensors(0), {})
        running.kill()
        publishing = threading.Thread(target=store.publish, args=(1, tensors(1), {}))
        publishing.start()
        time.sleep(0.3)
        assert publishing.is_alive() and store.head() == 0
        with params.start():
            publishing.join(timeout=50)
            assert not publishing.is_alive() and store.head() == 1
            assert store.stored() == [1]
            for version in (0, 1):  # the first from the blob store
                same(store.fetch(version)[0], tensors(version))
        hasty = ParameterStore(redis.Redis.from_url(params.url, retry=Retry(NoBackoff(), 0)),
                               redis.Redis.from_url(state.url), "r",
                               store_config.model_copy(update={"reconnect_seconds": 0.2}))
        with pytest.raises(redis.ConnectionError):
            hasty.publish(2, tensors(2), {})
        assert hasty.head() == 1


def interrupt(monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Make the first uploads of chunks fail as without a server. Return a list of one entry for each upload."""
    sent, uploads = bulk_transfer.set_values, list[int]()

    def send(*arguments: Any) -> None:
        uploads.append(len(uploads))
        if len(uploads) <= times:
            raise (redis.ConnectionError if len(uploads) % 2 else redis.TimeoutError)("gone")
        sent(*arguments)

    monkeypatch.setattr(bulk_transfer, "set_values", send)
    return uploads


def test_short_interruption_is_waited_for(database: redis.Redis, store_config: StoreConfig,
                                          monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempts follow each other quickly."""
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"reconnect_seconds": 60.0}))
    uploads = interrupt(monkeypatch, 2)
    store.publish(0, tensors(0), {})
    assert store.head() == 0 and len(uploads) == 3


def test_contents_lost_before_the_record_are_uploaded_again(store: ParameterStore, database: redis.Redis,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """The replica that takes over has not received the contents when the record is written."""
    flip, lost = store._flip, []

    def fail_over(version: int, *arguments: Any) -> None:
        if not lost:
            lost.append(version)
            database.flushall()
        flip(version, *arguments)

    monkeypatch.setattr(store, "_flip", fail_over)
    store.publish(1, tensors(1), {})
    assert lost == [1]
    same(store.fetch(1)[0], tensors(1))


def test_pauses_between_attempts_grow_to_two_seconds(database: redis.Redis, store_config: StoreConfig,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    now, pauses = [0.0], []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr("rapid.store.parameters.time.monotonic", lambda: now[0])
    monkeypatch.setattr("rapid.store.parameters.time.sleep", sleep)
    interrupt(monkeypatch, 1000)
    store = ParameterStore(database, database, "r", store_config.model_copy(update={"reconnect_seconds": 10.0}))
    with pytest.raises(redis.RedisError, match="gone"):
        store.publish(0, tensors(0), {})
    assert pauses == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]) and now[0] < 10.0


def test_store_without_retries_fails_at_once(store: ParameterStore, monkeypatch: pytest.MonkeyPatch) -> None:
    uploads = interrupt(monkeypatch, 1)
    with pytest.raises(redis.ConnectionError, match="gone"):
        store.without_retries().publish(0, tensors(0), {})
    assert len(uploads) == 1 and store.head() is None
    store.without_retries().publish(0, tensors(0), {})
    record = store.record(0)
    assert record is not None and record.blob is not None, "it archives to the same blob store"


def test_runs_are_isolated(database: redis.Redis, store_config: StoreConfig) -> None:
    one = ParameterStore(database, database, "one", store_config)
    other = ParameterStore(database, database, "other", store_config)
    one.publish(7, tensors(7), {})
    assert other.head() is None and other.records() == []
    for name in ("", "a:b", "a b", "*", "x" * 200, "../x"):
        with pytest.raises(ValueError, match="run name"):
            ParameterStore(database, database, name, store_config)
