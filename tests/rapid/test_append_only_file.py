"""A real server's append-only file, damaged, is detected and cut off at the damage."""

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid import append_only_file
from rapid.append_only_file import Unrepairable
from rapid.embedded_redis import EmbeddedRedis, server_binary


def written(folder: Path, values: int = 400) -> EmbeddedRedis:
    """Return an ended server whose file has ``values`` writes."""
    server = EmbeddedRedis(folder, append_only=True)
    with server.start():
        client = redis.Redis.from_url(server.url)
        for i in range(values):
            client.set(f"key-{i}", "x" * 50)
        client.close()
    return server


def damage(folder: Path, part: float = 0.5, kind: str = "incr") -> Path:
    """Overwrite 64 bytes of the file with zeros."""
    (path,) = (folder / "appendonlydir").glob(f"*.{kind}.*")
    with path.open("r+b") as file:
        file.seek(int(path.stat().st_size * part))
        file.write(bytes(64))
    return path


def test_damaged_file_is_cut_off_at_the_damage(tmp_path: Path) -> None:
    server = written(tmp_path)
    assert append_only_file.check(server_binary(), tmp_path) == ""
    path = damage(tmp_path)
    bad = path.read_bytes()
    with pytest.raises(RuntimeError) as caught:
        server.start()
    assert append_only_file.is_damage(str(caught.value))
    assert append_only_file.check(server_binary(), tmp_path)
    done = append_only_file.repair(server_binary(), tmp_path)
    assert append_only_file.check(server_binary(), tmp_path) == ""
    assert (done.copy / path.name).read_bytes() == bad and done.copy.parent == tmp_path
    assert 0.4 * done.before < done.after < 0.6 * done.before
    with server.start():
        client = redis.Redis.from_url(server.url)
        kept = client.dbsize()
        assert 150 < kept < 250
        assert all(client.get(f"key-{i}") == b"x" * 50 for i in range(kept))
        client.close()


@pytest.mark.parametrize("part", [0.0, 0.2, 0.5, 0.8])
def test_damaged_base_cannot_be_repaired(tmp_path: Path, part: float) -> None:
    """Redis refuses the file, or crashes while it loads it."""
    server = EmbeddedRedis(tmp_path, append_only=True)
    with server.start():
        client = redis.Redis.from_url(server.url)
        for i in range(200):
            client.set(f"key-{i}", f"{i:050d}")
        client.bgrewriteaof()
        while client.info("persistence")["aof_rewrite_in_progress"] or client.info("persistence")[
                "aof_rewrite_scheduled"]:
            pass
        client.close()
    path = damage(tmp_path, part, kind="base")
    bad = path.read_bytes()
    before = (tmp_path / "redis.log").stat().st_size
    with pytest.raises(RuntimeError):
        server.start()
    assert append_only_file.is_damage((tmp_path / "redis.log").read_text()[before:])
    with pytest.raises(Unrepairable):
        append_only_file.repair(server_binary(), tmp_path)
    assert path.read_bytes() == bad


def test_full_disk_leaves_no_partial_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "appendonlydir").mkdir()
    (tmp_path / "appendonlydir/appendonly.aof.1.incr.aof").write_bytes(b"damaged")

    def copyfile(_: Any, target: str, **__: Any) -> None:
        Path(target).write_bytes(b"dam")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    monkeypatch.setattr(shutil, "copyfile", copyfile)
    with pytest.raises(OSError, match=r"cannot be copied to .*: \[Errno 28\] No space left on device"):
        append_only_file.repair("/nowhere/redis-server", tmp_path)
    assert os.listdir(tmp_path) == ["appendonlydir"]


def test_missing_end_is_not_damage(tmp_path: Path) -> None:
    server = written(tmp_path)
    (path,) = (tmp_path / "appendonlydir").glob("*.incr.*")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    with server.start():
        client = redis.Redis.from_url(server.url)
        assert client.dbsize() == 399
        client.close()
    assert not append_only_file.is_damage((tmp_path / "redis.log").read_text())


def test_folder_without_a_file_is_whole(tmp_path: Path) -> None:
    assert append_only_file.check(server_binary(), tmp_path) == ""
