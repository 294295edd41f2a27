"""deploy/compose/rotate.sh against real Redis servers and a fake engine; clients read the files of containers."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.rpc.access import Audience, Caller
from rapid.rpc.callers import callers_text, token_hash
from rapid.store import acl
from rapid.store.connection import Login, connect
from rapid.store.password_file import FileLogin
from tests.containers.engine import ROOT

# exec: one connection to a Redis, a line a command, as redis-cli has it. FAILS: of which commands the engine dies.
STAND_IN = """
import json, os, sys
import redis
place = json.load(open(os.environ["STAND_IN"]))
arguments = sys.argv[1:]
assert "exec" in arguments, "no container is replaced"
client = redis.Redis.from_url(place["urls"][arguments[arguments.index("-T") + 1]], single_connection_client=False,
                              protocol=2, driver_info=None)
connection = client.connection_pool.connection_class(**client.connection_pool.connection_kwargs)
for line in sys.stdin.read().splitlines():
    if os.environ.get("FAILS", "nothing") in line:
        sys.exit("the engine is gone")
    connection.send_command(*line.split())
    try:
        answer = connection.read_response()
        print(answer.decode() if isinstance(answer, bytes) else answer)
    except redis.RedisError as error:
        print("ERR", error)
"""


CALLERS = [caller for caller in Caller if caller is not Caller.CLI]  # the command is of a laptop's runs


class Host:
    """Folder with .env and the containers' mounts, and both Redis servers."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.env_file = place / "env"
        subprocess.run([ROOT / "deploy/compose/make-env.sh", self.env_file], check=True, capture_output=True)
        self.urls: dict[str, str] = {}
        self.running: list[RunningRedis] = []
        for role in acl.ROLES:
            # The embedded server does not know what `make env` writes for Redis 7: its own rules, the same passwords.
            users = place / f"{role}.acl"
            passwords = {user: [self.secret(user)] for user in acl.users(role)}
            users.write_text(acl.acl_file(role, passwords, "five"))
            server = EmbeddedRedis(place / role, False, users, Login(acl.PROBE, self.secret(acl.PROBE)))
            self.running.append(server.start())
            self.urls[f"redis-{role}"] = server.url
        (place / "place.json").write_text(json.dumps({"urls": self.urls}))
        (place / "compose.py").write_text(STAND_IN)

    def values(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.env_file.read_text().splitlines())

    def secret(self, user: str) -> str:
        return self.values()[f"FIVE_{user.upper()}_PASSWORD"]

    def rotate(self, *what: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / "deploy/compose/rotate.sh", *what], capture_output=True, text=True, check=False, timeout=240,
            env={**os.environ, "PYTHONPATH": "", "PAUSE": "0", "ENV_FILE": str(self.env_file), **environment,
                 "STAND_IN": str(self.place / "place.json"), "COMPOSE": f"{sys.executable} {self.place}/compose.py"})

    def password_file(self, user: str) -> Path:
        """Return the password file that a user's containers mount."""
        return Path(self.values()["FIVE_SECRETS"]) / "private" / "redis" / user / "password"

    def caller_file(self, caller: Caller) -> Path:
        """Return the file with a caller's secret that its containers mount."""
        return Path(self.values()["FIVE_SECRETS"]) / "private" / "callers" / caller / "secret"

    @property
    def callers(self) -> Path:
        """Return the file of hashes that the servers' containers mount."""
        return Path(self.values()["FIVE_SECRETS"]) / "callers" / "callers.json"

    def caller_secrets(self) -> dict[Caller, str]:
        """Return the secrets that the callers send."""
        return {caller: self.caller_file(caller).read_text().strip() for caller in CALLERS}

    def rotate_watched(self, *what: str) -> tuple[subprocess.CompletedProcess[str], list[tuple[str, str]]]:
        """Rotate secrets. Return also the rollout's secret and the servers' file as they were in each pause."""
        tools, log = self.place / "tools", self.place / "pauses"
        tools.mkdir()
        (tools / "sleep").write_text(f"#!/bin/sh\ncat {self.caller_file(Caller.ROLLOUT)} {self.callers} >>{log}\n"
                                     f"echo >>{log}\n")
        (tools / "sleep").chmod(0o755)
        done = self.rotate(*what, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
        lines = log.read_text().splitlines()
        return done, list(zip(lines[::2], lines[1::2], strict=True))

    def takes(self, user: str, password: str, role: str = "state") -> bool:
        """Return whether a Redis server accepts the user."""
        try:
            return bool(connect(self.urls[f"redis-{role}"], StoreConfig(), "state", Login(user, password)).ping())
        except redis.AuthenticationError:
            return False


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    yield host
    for running in host.running:
        running.stop()


@pytest.mark.runs
def test_clients_stay_connected_through_a_rotation(host: Host) -> None:
    old = host.secret("rollout")
    login = FileLogin("rollout", host.password_file("rollout"))
    assert login.password() == old
    connected = connect(host.urls["redis-state"], StoreConfig(), "state", login)
    stale = connect(host.urls["redis-state"], StoreConfig(), "state", Login("rollout", old))
    assert connected.ping() and stale.ping()
    done = host.rotate("rollout")
    assert done.returncode == 0, done.stderr
    new = host.secret("rollout")
    assert new != old and host.takes("rollout", new) and not host.takes("rollout", old)
    # A client that knows the old password alone is disconnected. The file's reader continues.
    with pytest.raises(redis.AuthenticationError):
        stale.ping()
    assert connected.ping() and login.password() == new
    users = (Path(host.values()["FIVE_SECRETS"]) / "redis-state" / "users.acl").read_text()
    assert acl.hash_password(new) in users and acl.hash_password(old) not in users
    assert stat.S_IMODE(host.env_file.stat().st_mode) == 0o600 and "_OLD" not in host.env_file.read_text()
    assert host.takes("optimizer", host.secret("optimizer"))
    assert new not in done.stdout + done.stderr and old not in done.stdout + done.stderr


@pytest.mark.runs
def test_an_interrupted_rotation_is_finished_by_a_repeat(host: Host) -> None:
    old = host.secret("optimizer")
    broken = host.rotate("optimizer", FAILS="resetpass")
    assert broken.returncode != 0 and "the engine is gone" in broken.stderr
    new = host.secret("optimizer")
    # Nothing is lost in between: both are taken, in both servers.
    assert all(host.takes("optimizer", each, role) for each in (old, new) for role in acl.ROLES)
    again = host.rotate("optimizer")
    assert again.returncode == 0 and "goes on with the change" in again.stdout
    assert host.secret("optimizer") == new
    for role in acl.ROLES:
        assert host.takes("optimizer", new, role) and not host.takes("optimizer", old, role)


def test_others_cannot_read_the_copies_of_the_file(host: Host) -> None:
    """The script filters a copy with grep."""
    tools, log = host.place / "tools", host.place / "modes"
    tools.mkdir()
    (tools / "grep").write_text(f'#!/bin/sh\nstat -c %a {host.env_file}.new.* >>{log} 2>/dev/null\n'
                                f'exec {shutil.which("grep")} "$@"\n')
    (tools / "grep").chmod(0o755)
    before = os.umask(0o022)
    try:
        done = host.rotate("rollout", PATH=f"{tools}{os.pathsep}{os.environ['PATH']}")
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    assert set(log.read_text().split()) == {"600"}


@pytest.mark.runs
def test_admin_and_probe_passwords_rotate(host: Host) -> None:
    before = host.values()
    assert host.rotate("admin", "probe").returncode == 0
    assert host.password_file("probe").read_text().strip() == host.secret("probe") != before["FIVE_PROBE_PASSWORD"]
    for role in acl.ROLES:
        assert host.takes("admin", host.secret("admin"), role)
        assert not host.takes("admin", before["FIVE_ADMIN_PASSWORD"], role)


@pytest.mark.runs
def test_callers_secrets_rotate_by_way_of_two(host: Host) -> None:
    old = host.caller_secrets()
    done, pauses = host.rotate_watched("token")
    assert done.returncode == 0, done.stderr
    new = host.caller_secrets()
    assert not set(old.values()) & set(new.values()) and "_ALSO" not in host.env_file.read_text()
    assert new == {caller: host.values()[f"FIVE_{caller.upper()}_SECRET"] for caller in CALLERS}
    assert not [secret for secret in (*old.values(), *new.values()) if secret in done.stdout + done.stderr]
    # Servers accept a secret before clients send it and until they stop.
    rollout = Caller.ROLLOUT
    assert pauses == [
        (old[rollout], callers_text({caller: [old[caller], new[caller]] for caller in CALLERS})),
        (new[rollout], callers_text({caller: [new[caller], old[caller]] for caller in CALLERS})),
        (new[rollout], callers_text({caller: [new[caller]] for caller in CALLERS}))]
    path = host.caller_file(rollout)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644, "containers read it as another user"
    assert stat.S_IMODE(path.parents[2].stat().st_mode) == 0o700, "others of the machine do not"
    assert path.parents[2].name == "private"


@pytest.mark.runs
def test_broken_rotation_of_one_caller_is_repeated(host: Host) -> None:
    first = host.caller_secrets()
    # It broke off after clients were given the secret before the present one.
    host.env_file.write_text(host.env_file.read_text() + "FIVE_ROLLOUT_SECRET_ALSO=a-secret-that-is-still-sent\n")
    done, pauses = host.rotate_watched("token:rollout")
    assert done.returncode == 0 and "a new one begins" in done.stdout, done.stderr
    second, accepted = host.caller_secrets(), token_hash("a-secret-that-is-still-sent", Audience.OPTIMIZER)
    assert [caller for caller in CALLERS if first[caller] != second[caller]] == [Caller.ROLLOUT]
    assert [accepted in text for _, text in pauses] == [True, True, False]


def test_users_without_a_secret_are_refused(host: Host) -> None:
    for name in ("dota-env", "default", "nobody", "token:dota-env"):
        done = host.rotate(name)
        assert done.returncode == 2 and "has no secret" in done.stderr
    assert host.rotate().returncode == 2
    # The script reports a server that refuses the admin, and changes nothing.
    before = host.env_file.read_text()
    host.env_file.write_text(before.replace(host.secret("admin"), "0" * 48))
    done = host.rotate("rollout")
    assert done.returncode == 1 and "redis-state refuses" in done.stderr
    assert host.env_file.read_text() == before.replace(before.partition("FIVE_ADMIN_PASSWORD=")[2][:48], "0" * 48)
