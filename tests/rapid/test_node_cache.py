"""Versions that the processes of a node read once, with a real Redis and damaged, missing or partial files."""

import fcntl
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.atomic_file import PARTIAL
from rapid.config import StoreConfig
from rapid.embedded_redis import RunningRedis
from rapid.store.connection import connect
from rapid.store.node_cache import KEEP, NodeCache
from rapid.store.parameters import ParameterStore
from tests.rapid.conftest import same, tensors

SIZE = 400_000  # entries; 1.6 MB


@pytest.fixture
def readers(database: redis.Redis, redis_server: RunningRedis, tmp_path: Path) -> Callable[..., ParameterStore]:
    """Processes of the node, each with its own connection and store."""
    def make(run: str = "r") -> ParameterStore:
        config = StoreConfig(node_folder=str(tmp_path / "node"), chunk_mebibytes=0.25)
        client = connect(redis_server.url, config, "params")
        return ParameterStore(client, client, run, config)

    return make


def sent(client: redis.Redis) -> int:
    """Return the bytes that Redis has sent so far."""
    info: Any = client.info("stats")
    return int(info["total_net_output_bytes"])


def files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.suffix not in (".lock", PARTIAL))


def test_one_process_per_node_reads_a_version(readers: Callable[..., ParameterStore], database: redis.Redis
                                                  ) -> None:
    stores = [readers() for _ in range(6)]
    stores[0].publish(1, tensors(1, SIZE), {"a": 1})
    before = sent(database)
    with ThreadPoolExecutor(len(stores)) as pool:
        found = list(pool.map(lambda store: store.fetch(1), stores))
    for arrays, meta in found:
        same(arrays, tensors(1, SIZE))
        assert meta == {"a": 1}
    size = sum(a.nbytes for a in tensors(1, SIZE).values())
    assert size <= sent(database) - before < 1.2 * size


def test_damaged_cache_file_is_replaced(readers: Callable[..., ParameterStore], tmp_path: Path,
                                                  caplog: pytest.LogCaptureFixture) -> None:
    readers().publish(1, tensors(1, SIZE), {})
    readers().fetch(1)
    (file,) = files(tmp_path / "node")
    whole = file.read_bytes()
    for damage in (whole[:-1], whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:], b""):
        file.write_bytes(damage)
        same(readers().fetch(1)[0], tensors(1, SIZE))
        assert file.read_bytes() == whole
    assert "is damaged" in caplog.text


def test_old_cache_files_are_removed(readers: Callable[..., ParameterStore], tmp_path: Path) -> None:
    other = readers("another")
    other.publish(1, tensors(9), {})
    other.fetch(1)
    store = readers()
    for version in range(5):
        store.publish(version, tensors(version), {})
        store.fetch(version)
        time.sleep(0.01)  # files are distinguished by their times
    names = [path.name for path in files(tmp_path / "node")]
    assert [name.split("-")[0] for name in names] == ["another.1", *(f"r.{v}" for v in range(5 - KEEP, 5))]


def test_unusable_folder_falls_back_to_redis(
        readers: Callable[..., ParameterStore], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "node").write_text("a file, where a folder should be")
    readers().publish(1, tensors(1), {})
    same(readers().fetch(1)[0], tensors(1))
    assert "cannot be" in caplog.text


def test_slow_writer_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = NodeCache(tmp_path, "r", wait_seconds=0.1)
    data = bytearray(3)

    def read() -> bool:
        data[:] = b"abc"
        return True

    with (tmp_path / "r.1-d.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert folder.fill("1-d", memoryview(data), read, lambda: True)
    assert data == b"abc" and "is still being written after 0.1 s" in caplog.text
    # The lock of a dead process is free.
    caplog.clear()
    (tmp_path / "r.1-d").unlink()
    with caplog.at_level(logging.WARNING):
        assert folder.fill("1-d", memoryview(data), read, lambda: True)
    assert caplog.text == "" and (tmp_path / "r.1-d").read_bytes() == b"abc"


def test_version_missing_in_redis_is_not_cached(tmp_path: Path) -> None:
    assert not NodeCache(tmp_path, "r").fill("1-d", memoryview(bytearray(3)), lambda: False, lambda: True)
    assert files(tmp_path) == []


def test_partial_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    left = tmp_path / f".r.0-d.99999{PARTIAL}"
    left.write_bytes(b"half")
    folder = NodeCache(tmp_path, "r", wait_seconds=1)
    folder.fill("1-d", memoryview(bytearray(3)), lambda: True, lambda: True)
    assert left.exists(), "it may be on its way"
    os.utime(left, (time.time() - 60,) * 2)
    folder.fill("2-d", memoryview(bytearray(3)), lambda: True, lambda: True)
    assert not left.exists()
