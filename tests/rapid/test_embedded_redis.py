"""The embedded Redis: its socket belongs to one user, its state persists, and a failed start is explained."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from rapid.embedded_redis import EmbeddedRedis


def test_the_embedded_redis_is_private_and_persistent(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "state", append_only=True)
    with server.start():
        client = redis.Redis.from_url(server.url)
        assert server.socket.stat().st_mode & 0o777 == 0o700
        assert client.config_get("port") == {"port": "0"} or client.config_get("port") == {b"port": b"0"}
        client.set("x", "1")
    assert not server.is_ready()
    with server.start():
        assert redis.Redis.from_url(server.url).get("x") == b"1"
    params = EmbeddedRedis(tmp_path / "params", append_only=False)
    with params.start():
        redis.Redis.from_url(params.url).set("x", "1")
    with params.start():
        assert redis.Redis.from_url(params.url).get("x") is None
        assert not list((tmp_path / "params").glob("*.aof")) and not list((tmp_path / "params").glob("*.rdb"))


def test_long_folder_uses_a_temporary_socket(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / ("deep" * 30), append_only=False)
    assert len(str(server.socket)) <= 100
    with server.start():
        assert server.is_ready()
        again = EmbeddedRedis(server.folder, append_only=False)
        assert again.socket == server.socket and again.is_ready()
        assert server.socket.parent.stat().st_mode & 0o777 == 0o700


def test_url_has_every_character_of_the_folder(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "C# 2?x=%41", append_only=False).start() as server:
        assert redis.Redis.from_url(server.url).ping()


def plant_link(folder: Path) -> None:
    folder.symlink_to(folder.parent)


def plant_loose(folder: Path) -> None:
    folder.mkdir(mode=0o755)


def plant_foreign(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)


@pytest.mark.parametrize("plant", [plant_link, plant_loose, plant_foreign])
def test_socket_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  plant: Callable[[Path], None]) -> None:
    """A listener at a predictable path would receive the passwords of the run's users."""
    if plant is plant_foreign and os.getuid() != 0:
        pytest.skip("only root can give a folder to another user")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    plant(tmp_path / f"five-{os.getuid()}")
    server = EmbeddedRedis(tmp_path / ("deep" * 30), append_only=False)
    for use in (lambda: server.url, server.argv, server.is_ready):
        with pytest.raises(RuntimeError, match="must be a folder of this user with mode 0700"):
            use()


def test_failed_redis_start_has_its_log(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path / "state", append_only=True)
    server.folder.mkdir()
    (server.folder / "appendonly.aof").write_bytes(b"not an append-only file\r\n")
    with pytest.raises(RuntimeError, match=r"(?s)did not start.*append only file"):
        server.start()
