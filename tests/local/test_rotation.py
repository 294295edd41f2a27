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
from rapid.rpc.access import Audience, Caller
from rapid.rpc.caller_secret import derive_token
from rapid.rpc.callers import CallersFile, callers_text, token_hash
from rapid.store import acl
from rapid.store.connection import Login, Role, connect

STORE = RunConfig().store


def secrets_of(folder: RunFolder) -> dict[Caller, str]:
    return {caller: folder.caller_secret(caller).read_text().strip() for caller in Caller}


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


@pytest.mark.runs
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


@pytest.mark.runs
def test_admin_rotates_its_own_password(local: Local) -> None:
    (old,) = local.passwords.of("admin")

    def renew(user: str) -> None:
        local.admins.password = local.passwords.login(user).password

    local.rotate("admin", renew)
    assert not local.takes("admin", old) and local.takes("admin", local.passwords.login("admin").password)
    with pytest.raises(RotationFailed, match="'dota_env' is not a user of the run's own Redis; users are controller"):
        local.rotate("dota_env", lambda user: None)


def test_secrets_rotate_while_both_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "r")
    folder.create()
    path = folder.caller_secret(Caller.ROLLOUT)
    seen: list[tuple[str, tuple[str, ...]]] = []
    pauses: list[float] = []
    old, others = secrets_of(folder), set(Caller) - {Caller.ROLLOUT}

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        seen.append((path.read_text().strip(), tuple(json.loads(folder.callers.read_text())["inference"]["rollout"])))

    pause(0.1)
    monkeypatch.setattr(rotation.time, "sleep", pause)
    rotation.rotate_secrets(folder, [Caller.ROLLOUT], pause=0.1)
    monkeypatch.undo()
    new = secrets_of(folder)
    before, after = (token_hash(held[Caller.ROLLOUT], Audience.INFERENCE) for held in (old, new))
    # Servers accept the new secret before a client sends it, and the old one until none does.
    assert before != after and pauses == [0.1] * 4 and seen == [
        (old[Caller.ROLLOUT], (before,)), (old[Caller.ROLLOUT], (before, after)),
        (new[Caller.ROLLOUT], (before, after)), (new[Caller.ROLLOUT], (after,))]
    assert {caller: old[caller] for caller in others} == {caller: new[caller] for caller in others}
    assert path.stat().st_mode & 0o077 == folder.callers.stat().st_mode & 0o077 == 0


def test_interrupted_secret_rotation_refuses_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "r")
    folder.create()
    sent = [secrets_of(folder)[Caller.PLAY]]
    accepted: list[list[bool]] = []

    def pause(_: float) -> None:
        known = CallersFile(str(folder.callers), Audience.INFERENCE)
        accepted.append([known.find(derive_token(secret, Audience.INFERENCE)) is Caller.PLAY for secret in sent])
        if (now := secrets_of(folder)[Caller.PLAY]) not in sent:
            sent.append(now)
            raise KeyboardInterrupt

    monkeypatch.setattr(rotation.time, "sleep", pause)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            rotation.rotate_secrets(folder, list(Caller), pause=0)
    assert len(sent) == 3 and all(all(row) for row in accepted), "each that a process may still send is accepted"
    monkeypatch.undo()
    rotation.rotate_secrets(folder, list(Caller), pause=0)
    assert folder.callers.read_text() == callers_text({c: [secret] for c, secret in secrets_of(folder).items()})


def test_words_name_the_callers_of_a_rotation() -> None:
    assert rotation.callers_of("rollout") is None and rotation.callers_of("token") == list(Caller)
    assert rotation.callers_of("token:play") == [Caller.PLAY]
    with pytest.raises(RotationFailed, match="'dota_env' is not a caller; callers are controller, evaluator"):
        rotation.callers_of("token:dota_env")


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
