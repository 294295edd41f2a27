"""ACL users during a server's recovery from a kill, and during a password rotation."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from rapid.store import acl
from rapid.store.connection import Login, connect
from rapid.store.state import RunState
from tests.rapid.acl_servers import CONFIG, Servers


def test_killed_server_recovers_everything(servers: Servers, tmp_path: Path) -> None:
    """Transactions too: the server replays its file as the user ``default``, which nobody can log in as."""
    server = replace(servers.servers["state"], folder=tmp_path / "kept", append_only=True)

    def client() -> Any:
        return connect(server.url, CONFIG, "state", Login("controller", "controller"))

    running = server.start()
    RunState(client(), "r").create({"name": "r"}, "controller")
    before = connect(server.url, CONFIG, "state", Login(acl.ADMIN, acl.ADMIN)).dbsize()
    running.kill()
    with server.start():
        assert connect(server.url, CONFIG, "state", Login(acl.ADMIN, acl.ADMIN)).dbsize() == before > 0
        assert RunState(client(), "r").exists()
        for login in (None, Login("default", "default")):
            with pytest.raises(redis.AuthenticationError):
                connect(server.url, CONFIG, "state", login, retries=0).ping()


def test_rotation_accepts_two_passwords(servers: Servers, tmp_path: Path) -> None:
    """A second password is added and the first removed under open connections."""
    server = replace(servers.servers["state"], folder=tmp_path / "another")
    with server.start() as running:
        admin = connect(running.url, CONFIG, "state", Login(acl.ADMIN, acl.ADMIN))
        login = Login("rollout", "rollout")
        client = connect(running.url, CONFIG, "state", login)
        assert client.ping()
        admin.execute_command("ACL", "SETUSER", "rollout", acl.hash_password("another-one"))
        assert client.ping() and connect(running.url, CONFIG, "state", Login("rollout", "another-one")).ping()
        login.password = "another-one"  # noqa: S105
        admin.execute_command("ACL", "SETUSER", "rollout", "!" + acl.hash_password("rollout")[1:])
        admin.execute_command("CLIENT", "KILL", "USER", "rollout")
        assert client.ping()  # reconnects with the new password
        with pytest.raises(redis.AuthenticationError):
            connect(running.url, CONFIG, "state", Login("rollout", "rollout")).ping()
