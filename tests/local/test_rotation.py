"""Rotation of a local run's passwords on real Redis servers."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from five.local import rotation
from five.local.passwords import Passwords
from five.local.rotation import RotationFailed, rotate
from five.local.run_folder import ClusterInfo, RunFolder
from five.run.config import RunConfig
from rapid.embedded_redis import RunningRedis
from rapid.store import acl
from rapid.store.connection import Login, Role, connect

STORE = RunConfig().store


class Local:
    """A run's folder with both Redis servers."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.passwords = Passwords(folder.path)
        self.passwords.create()
        self.admins = self.passwords.login(acl.ADMIN)
        self.running: list[RunningRedis] = []
        for role in acl.ROLES:
            users = self.passwords.write_users(role, "r")
            self.running.append(folder.embedded(role, users, self.passwords.login(acl.PROBE)).start())

    def admin(self, role: Role) -> redis.Redis:
        return connect(self.folder.embedded(role).url, STORE, role, self.admins)

    def takes(self, user: str, password: str, role: Role = "state") -> bool:
        try:
            return bool(connect(self.folder.embedded(role).url, STORE, role, Login(user, password)).ping())
        except redis.AuthenticationError:
            return False

    def rotate(self, user: str, renew: Callable[[str], None]) -> None:
        rotate(self.passwords, user, "r", acl.ROLES, self.admin, renew)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    local = Local(RunFolder(tmp_path / "r"))
    yield local
    for running in local.running:
        running.stop()


def test_old_password_works_until_processes_restart(local: Local) -> None:
    (old,) = local.passwords.of("optimizer")
    connected = connect(local.folder.embedded("state").url, STORE, "state", login := Login("optimizer", old))
    assert connected.ping()
    seen: list[bool] = []

    def renew(user: str) -> None:
        new = local.passwords.login(user).password
        assert new != old
        seen.extend(local.takes(user, each, role) for each in (old, new) for role in acl.ROLES)
        assert connected.ping()  # open connections stay authenticated

    local.rotate("optimizer", renew)
    assert seen == [True] * 4
    (new,) = local.passwords.of("optimizer")
    assert all(local.takes("optimizer", new, role) and not local.takes("optimizer", old, role) for role in acl.ROLES)
    with pytest.raises(redis.AuthenticationError):
        connected.ping()  # asked to restart, and the old password is refused
    login.password = new
    assert connected.ping()
    for role in acl.ROLES:  # the tokens that a newly started server would read
        users = (local.folder.path / "redis" / f"{role}.acl").read_text()
        assert acl.hash_password(new) in users and acl.hash_password(old) not in users


def test_interrupted_rotation_is_finished(local: Local) -> None:
    (old,) = local.passwords.of("rollout")

    def fails(user: str) -> None:
        raise TimeoutError("it did not come up")

    with pytest.raises(TimeoutError):
        local.rotate("rollout", fails)
    new, still = local.passwords.of("rollout")
    assert still == old and local.takes("rollout", old) and local.takes("rollout", new)
    local.rotate("rollout", lambda user: None)
    assert local.passwords.of("rollout") == [new]
    assert local.takes("rollout", new) and not local.takes("rollout", old)


def test_admin_rotates_its_own_password(local: Local) -> None:
    (old,) = local.passwords.of("admin")

    def renew(user: str) -> None:
        local.admins.password = local.passwords.login(user).password

    local.rotate("admin", renew)
    assert not local.takes("admin", old) and local.takes("admin", local.passwords.login("admin").password)
    with pytest.raises(RotationFailed, match="'dota_env' is not a user of the run's own Redis; users are controller"):
        local.rotate("dota_env", lambda user: None)


def test_token_rotates_in_its_file(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "r")
    folder.create()
    path, old, seen = folder.path / "token", folder.token(), []

    def watch() -> None:
        while not seen or len(seen[-1]) > 1 or seen[-1] == (old,):
            tokens = tuple(path.read_text().split())
            if not seen or tokens != seen[-1]:
                seen.append(tokens)
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    rotation.rotate_token(path, pause=0.1)
    watcher.join()
    new = folder.token()
    # Taken by all before anybody sends it; the old one is taken until nobody does.
    assert new != old and seen == [(old,), (old, new), (new, old), (new,)]
    path.write_text(f"{new}\nwhat-broke-off\n")
    rotation.rotate_token(path, pause=0.0)
    assert folder.token() not in (old, new, "what-broke-off") and len(path.read_text().split()) == 1
    with pytest.raises(ValueError, match="No such file"):
        rotation.rotate_token(tmp_path / "none")


def test_rotation_request_is_completed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "r")
    folder.create()
    folder.announce(ClusterInfo(os.getpid(), "", "", "", ""))
    outcomes = iter(["", "rollout-0 did not come up"])

    def serve() -> None:
        for error in outcomes:
            while (users := rotation.pending_users(folder.path)) is None:
                time.sleep(0.01)
            assert users == ["rollout"]
            rotation.complete_request(folder.path, error)

    server = threading.Thread(target=serve)
    server.start()
    rotation.request_rotation(folder, ["rollout"])
    with pytest.raises(RotationFailed, match="rollout-0 did not come up"):
        rotation.request_rotation(folder, ["rollout"])
    server.join()
    assert not (folder.path / rotation.REQUEST).exists()
    (folder.path / rotation.REQUEST).write_text(json.dumps({"users": ["admin"]}))
    assert rotation.pending_users(folder.path) == ["admin"]
