"""The scripts that start and stop the chart's Redis, with a real server."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError

from rapid.embedded_redis import server_binary
from rapid.store import acl
from tests.charts.rendering import CHART

FILES = CHART / "files"
PASSWORDS = {user: [f"password-of-{user}"] for user in acl.users("state")}
# redis-cli's part in stop.sh, for machines without it.
CLI = """#!{python}
import os, sys, redis
client = redis.Redis(unix_socket_path={socket!r}, username="probe", password=os.environ["REDISCLI_AUTH"])
assert sys.argv[1:] == ["--user", "probe", "--no-auth-warning", "info", "clients"], sys.argv
print("".join(f"{{name}}:{{value}}\\r\\n" for name, value in client.info("clients").items()))
"""


class Pod:
    """The folders of a Redis pod and its server."""

    def __init__(self, folder: Path, users: str) -> None:
        for name in ("conf", "users", "run"):
            (folder / name).mkdir()
        self.run, self.socket = folder / "run", folder / "run" / "redis.sock"
        (folder / "conf" / "rules.acl").write_text(acl.template("state").replace("@run@", "five"))
        (folder / "conf" / "redis.conf").write_text(
            f"port 0\nunixsocket {self.socket}\naclfile {self.run}/users.acl\nsave \"\"\n")
        (folder / "users" / "users.acl").write_text(users)
        self.cli = folder / "redis-cli"
        self.cli.write_text(CLI.format(python=sys.executable, socket=str(self.socket)))
        self.cli.chmod(0o755)
        self.environment = {
            **os.environ, "CONF": f"{folder}/conf", "USERS": f"{folder}/users", "TLS": f"{folder}/no-tls",
            "RUN": str(self.run), "REDIS_SERVER": server_binary(), "REDIS_CLI": str(self.cli),
            "PROBE": str(folder)}
        (folder / "password").write_text(f"{PASSWORDS['probe'][0]}\n")
        self.process = subprocess.Popen(["sh", FILES / "redis-start.sh"], env=self.environment,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def client(self, user: str, password: str = "") -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket), username=user,
                           password=password or PASSWORDS[user][0])

    def wait(self) -> None:
        until = time.monotonic() + 60
        while True:
            try:
                self.client("probe").ping()
                return
            except redis.ConnectionError:
                assert time.monotonic() < until and self.process.poll() is None
                time.sleep(0.02)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()


@pytest.fixture
def pod(tmp_path: Path) -> Iterator[Pod]:
    """A pod whose Secret was made by an earlier release: rollouts may do everything, and play has no user yet."""
    lines = acl.acl_file("state", PASSWORDS, "five").splitlines()
    older = [f"user rollout on {acl.hash_password(PASSWORDS['rollout'][0])} {acl.hash_password('new')} ~* &* +@all"
             if line.startswith("user rollout ") else line for line in lines if not line.startswith("user play ")]
    made = Pod(tmp_path, "\n".join([*older, f"user exporter on {acl.hash_password('own')} -@all +info +ping"]) + "\n")
    made.wait()
    yield made
    made.stop()


def test_acl_rules_come_from_the_chart_passwords_from_secrets(pod: Pod) -> None:
    for password in (PASSWORDS["rollout"][0], "new"):
        rollout = pod.client("rollout", password)
        assert rollout.get("five:five:record") is None
        with pytest.raises(NoPermissionError):
            rollout.get("another key")
    with pytest.raises(redis.AuthenticationError):
        pod.client("rollout", "another").ping()


def test_users_of_one_side_only(pod: Pod) -> None:
    """A user that the Secret does not know is off; one that only the Secret knows keeps its line."""
    with pytest.raises(redis.AuthenticationError):
        pod.client("play").ping()
    exporter = pod.client("exporter", "own")
    assert exporter.ping()
    with pytest.raises(NoPermissionError):
        exporter.get("five:five:record")
    assert (pod.run / "users.acl").stat().st_mode & 0o077 == 0


def test_a_secret_without_users_is_refused(tmp_path: Path) -> None:
    refused = Pod(tmp_path, "")
    assert "users.acl has no users" in refused.process.communicate(timeout=60)[1]
    assert refused.process.returncode == 1


def stopping(pod: Pod, seconds: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(["sh", FILES / "redis-stop.sh", str(seconds)], env=pod.environment, text=True)


def test_the_server_waits_for_its_clients(pod: Pod) -> None:
    client = pod.client("optimizer")
    client.ping()
    waiting = stopping(pod, 600)
    time.sleep(3)
    assert waiting.poll() is None
    client.close()
    assert waiting.wait(60) == 0


def test_the_wait_for_clients_has_a_limit(pod: Pod) -> None:
    client = pod.client("optimizer")
    client.ping()
    assert stopping(pod, 2).wait(60) == 0  # it would wait for ever
    client.close()


def test_a_dead_server_is_not_waited_for(pod: Pod) -> None:
    pod.stop()
    assert stopping(pod, 600).wait(60) == 0
