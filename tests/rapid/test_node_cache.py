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
from rapid.store.node_cache import NodeCache
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
    assert [name.split("-")[0] for name in names] == ["another.1", "r.3", "r.4"]


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


@pytest.mark.parametrize("name", [f".r.0-d.99999{PARTIAL}", "r.0-d.lock"])
def test_files_of_killed_processes_are_removed_after_ten_waits(tmp_path: Path, name: str) -> None:
    """A younger file may belong to a process that still writes."""
    left, now = tmp_path / name, time.time()
    left.write_bytes(b"half")
    folder = NodeCache(tmp_path, "r", wait_seconds=20)
    for version, age, stays in ((1, 0, True), (2, 190, True), (3, 210, False)):
        os.utime(left, (now - age,) * 2)
        folder.fill(f"{version}-d", memoryview(bytearray(3)), lambda: True, lambda: True)
        assert left.exists() == stays, f"after {age} s"
        os.utime(tmp_path / f"r.{version}-d", (now - 1000 + version,) * 2)
    assert [path.name for path in files(tmp_path)] == ["r.2-d", "r.3-d"]


# One file.


class Contents:
    """Contents of a version that a process reads; ``reads`` counts its reads from Redis."""

    def __init__(self, folder: Path, contents: bytes = b"abc") -> None:
        self.cache = NodeCache(folder, "r", wait_seconds=5.0)
        self.contents = contents
        self.reads = 0
        self.found = b""

    def fill(self, size: int = 3) -> bool:
        data = memoryview(bytearray(size))

        def read() -> bool:
            self.reads += 1
            data[:] = self.contents
            return True

        filled = self.cache.fill("1-d", data, read, lambda: bytes(data) == self.contents)
        self.found = bytes(data)
        return filled


def test_second_process_reads_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = Contents(tmp_path), Contents(tmp_path)
    assert first.fill() and second.fill() and (first.reads, second.reads) == (1, 0)
    assert first.found == second.found == b"abc" and caplog.text == "", "a file that does not exist yet is not reported"
    empty = Contents(tmp_path / "new" / "folder", b"")
    assert empty.fill(0) and empty.fill(0) and empty.reads == 1


def test_file_is_readable_by_every_user_and_writable_by_its_own(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        Contents(tmp_path).fill()
    finally:
        os.umask(before)
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {
        "r.1-d": "0o644", "r.1-d.lock": "0o600"}


@pytest.mark.parametrize("contents", [b"", b"ab", b"abcd", b"abd"])
def test_file_of_another_size_or_contents_is_replaced(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "r.1-d").write_bytes(contents)
    process = Contents(tmp_path)
    assert process.fill() and process.reads == 1 and process.found == b"abc"
    assert (tmp_path / "r.1-d").read_bytes() == b"abc"


def test_unreadable_file_is_reported_and_read_from_redis(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "r.1-d").mkdir()
    process = Contents(tmp_path)
    assert process.fill() and process.reads == 1 and process.found == b"abc"
    assert "cannot be read" in caplog.text and "cannot be written" in caplog.text


def test_lock_that_is_a_link_is_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Another user of the node could lead the process to a file of its own."""
    (tmp_path / "r.1-d.lock").symlink_to(tmp_path / "target")
    process = Contents(tmp_path)
    assert process.fill() and process.reads == 1 and not (tmp_path / "target").exists()
    assert "cannot be locked" in caplog.text


def test_failed_read_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> bool:
        raise redis.ConnectionError("gone")

    with pytest.raises(redis.ConnectionError, match="gone"):
        NodeCache(tmp_path, "r").fill("1-d", memoryview(bytearray(3)), fail, lambda: True)
    process = Contents(tmp_path)
    assert files(tmp_path) == [] and process.fill() and process.reads == 1, "the lock is free again"
