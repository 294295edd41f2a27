"""The script that makes Redis reload its certificates, with a real TLS redis-server and a connected client."""

import inspect
import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from five.local.cluster import free_ports
from rapid.store import acl
from tests.charts.rendering import CHART, ROOT, Values, find
from tests.rapid.test_tls import Authority
from tests.waiting import eventually

START = CHART / "files" / "redis-start.sh"
SCRIPT = CHART / "files" / "redis-certificates.sh"
UNPACKED = ROOT / "build" / "redis-tls" / "usr"
LIBRARIES = UNPACKED / "lib" / "x86_64-linux-gnu"
PASSWORDS = {user: [f"password-of-{user}"] for user in acl.users("state")}


@pytest.fixture(scope="session")
def programs() -> dict[str, str]:
    """Return an environment with redis-server and redis-cli on its path. Skips when no server supports TLS."""
    for server in (str(UNPACKED / "bin" / "redis-server"), shutil.which("redis-server")):
        if server and Path(server).exists():
            env = {"REDIS_SERVER": server, "LD_LIBRARY_PATH": str(LIBRARIES)}
            said = subprocess.run(
                [server, "--version"], capture_output=True, text=True, check=False, env={**os.environ, **env}
            ).stdout
            cli = Path(server).with_name("redis-cli")
            if "Redis server" in said and cli.exists() and speaks_tls(server, env):
                return {**env, "REDIS_CLI": str(cli)}
    pytest.skip("no redis-server that speaks TLS is here: `make test-rotation` gets one")


def speaks_tls(server: str, env: dict[str, str]) -> bool:
    """Return whether the server was built with TLS."""
    done = subprocess.run(
        [server, "--port", "0", "--tls-port", "0", "--tls-cert-file", "/nowhere", "--dir", "/nowhere"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **env},
    )
    return "Bad directive" not in done.stdout + done.stderr and "TLS support" not in done.stdout + done.stderr


class Server:
    """Redis pod of the chart as a local process."""

    def __init__(self, place: Path, programs: dict[str, str]) -> None:
        self.authority = Authority(place / "authority")
        self.place, self.tls = place, place / "tls"
        for name in ("conf", "users", "run", "data"):
            (place / name).mkdir()
        self.renew()
        (place / "users" / "users.acl").write_text(acl.acl_file("state", PASSWORDS, "five"))
        (self.port,) = free_ports(1)
        text = find(
            Values("tls redis", sets=("tls.redis.enabled=true", "tls.redis.existingSecret=ours")),
            "ConfigMap",
            "redis-state",
        )["data"]["redis.conf"]
        for ours, here in (
            ("/etc/five-redis/tls", self.tls),
            ("/run/five-redis", place / "run"),
            ("dir /data", f"dir {place}/data"),
            ("tls-port 6379", f"tls-port {self.port}"),
        ):
            assert str(ours) in text, ours
            text = text.replace(ours, str(here))
        (place / "conf" / "redis.conf").write_text(text)
        (place / "conf" / "rules.acl").write_text(acl.template("state").replace("@run@", "five"))
        self.env = {
            **os.environ,
            **programs,
            "CONF": f"{place}/conf",
            "USERS": f"{place}/users",
            "TLS": str(self.tls),
            "RUN": f"{place}/run",
            "SECONDS_BETWEEN": "0.1",
        }
        self.processes = [self._start("serve", START)]
        self.wait(lambda: self.client().ping())
        self.processes.append(self._start("watch", SCRIPT, "watch"))

    def _start(self, what: str, *command: str | Path) -> "subprocess.Popen[bytes]":
        with (self.place / f"{what}.log").open("wb") as log:
            return subprocess.Popen(["sh", *command], env=self.env, stdout=log, stderr=subprocess.STDOUT)

    def said(self) -> str:
        return (self.place / "watch.log").read_text()

    def renew(self) -> None:
        self.authority.issue(self.tls, "IP:127.0.0.1")

    def client(self, **options: Any) -> redis.Redis:
        return redis.Redis(
            "127.0.0.1",
            self.port,
            ssl=True,
            ssl_ca_certs=str(self.tls / "ca.crt"),
            retry=Retry(NoBackoff(), 0),
            driver_info=None,
            socket_timeout=30,
            **{"username": "admin", "password": PASSWORDS["admin"][0], **options},
        )

    def shown(self) -> str:
        return ssl.get_server_certificate(("127.0.0.1", self.port))

    def wait(self, condition: Callable[[], Any]) -> None:
        def holds() -> Any:
            try:
                return condition()
            except (redis.RedisError, OSError) as error:
                errors[:] = [error]
                return False

        errors: list[Exception] = []
        eventually(holds, 60, inspect.getsource(condition).strip(), details=lambda: "\n".join(
            [*map(repr, errors), *(p.read_text() for p in self.place.glob("*.log"))]))

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
            process.wait(60)


@pytest.fixture
def server(tmp_path: Path, programs: dict[str, str]) -> Iterator[Server]:
    server = Server(tmp_path, programs)
    yield server
    server.stop()


def test_certificates_are_read_again_and_no_connection_is_lost(server: Server) -> None:
    client, first = server.client(), server.shown()
    number = client.client_id()
    server.wait(lambda: "have" in server.said() or "has read them" in server.said())
    server.renew()
    server.wait(lambda: server.shown() != first)
    assert client.client_id() == number, "the connection is the same"
    # From another authority, which clients trust by then.
    server.authority = Authority(server.place / "other")
    second = server.shown()
    server.renew()
    server.wait(lambda: server.shown() != second)
    assert client.client_id() == number and server.client().ping()


def test_a_key_that_does_not_fit_changes_nothing_until_it_does(server: Server) -> None:
    first, key = server.shown(), (server.tls / "tls.key").read_bytes()
    server.renew()
    new = (server.tls / "tls.key").read_bytes()
    (server.tls / "tls.key").write_bytes(key)
    server.wait(lambda: "keeps the previous files; retrying" in server.said())
    assert server.client().ping()
    (server.tls / "tls.key").write_bytes(new)
    server.wait(lambda: server.shown() != first and server.said().endswith("Redis has read them\n"))


def test_the_watch_is_alive_while_it_looks(tmp_path: Path) -> None:
    def alive() -> int:
        return subprocess.run(["sh", SCRIPT, "alive"], env={**os.environ, "RUN": str(tmp_path)}, check=False).returncode

    assert alive() != 0, "it has not looked yet"
    looked = tmp_path / "looked"
    looked.touch()
    assert alive() == 0
    os.utime(looked, (time.time() - 180,) * 2)
    assert alive() != 0


def test_a_watch_that_has_looked_says_so(server: Server) -> None:
    server.wait(lambda: (server.place / "run" / "looked").exists())


def test_the_certificate_user_has_no_other_rights(server: Server) -> None:
    password = (server.place / "run" / "password").read_text()
    assert (server.place / "run" / "password").stat().st_mode & 0o777 == 0o600
    socket_path = str(server.place / "run" / "redis.sock")
    client = redis.Redis(unix_socket_path=socket_path, username="certificates", password=password, driver_info=None)
    assert client.execute_command("CONFIG", "SET", "tls-cert-file", str(server.tls / "tls.crt"))
    for command in (("CONFIG", "GET", "*"), ("GET", "x"), ("ACL", "LIST"), ("SHUTDOWN",), ("DEBUG", "SLEEP", "0")):
        with pytest.raises(redis.RedisError, match="no permissions|NOPERM|not allowed"):
            client.execute_command(*command)
    # The others are those of the users' file.
    with pytest.raises(redis.AuthenticationError):
        server.client(password="another").ping()
    assert password not in server.said()
