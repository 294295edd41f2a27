"""State and params Redis servers with a run's users."""

from pathlib import Path
from typing import Any

import redis

from rapid.blobs import BlobStore
from rapid.config import StoreConfig
from rapid.embedded_redis import EmbeddedRedis, RunningRedis
from rapid.store import acl, functions
from rapid.store.connection import Login, connect
from rapid.store.parameters import ParameterStore
from rapid.store.state import RunState

CONFIG = StoreConfig(timeout_seconds=5, reconnect_seconds=0, chunk_mebibytes=0.0625, keep_versions=1, grace_seconds=30,
                     archive_every=2, keep_archived=1)


class Servers:
    """State and params Redis with the users of run ``r``. A user's password is its name."""

    def __init__(self, folder: Path, binary: str) -> None:
        self.servers: dict[str, EmbeddedRedis] = {}
        self.running: list[RunningRedis] = []
        self.blobs = BlobStore(str(folder / "blobs"))
        for role in acl.ROLES:
            path = folder / f"{role}.acl"
            path.write_text(acl.acl_file(role, {user: [user] for user in acl.users(role)}, "r"))
            server = EmbeddedRedis(folder / role, False, path, Login(acl.PROBE, acl.PROBE), binary)
            self.running.append(server.start())
            self.servers[role] = server
        functions.load(self.client(acl.CONTROLLER))

    def client(self, user: str, role: str = "state") -> redis.Redis:
        return connect(self.servers[role].url, CONFIG, "state", Login(user, user))

    def state(self, user: str) -> RunState:
        return RunState(self.client(user), "r", user)

    def store(self, user: str) -> ParameterStore:
        return ParameterStore(self.client(user, "params"), self.client(user), "r", CONFIG, self.blobs)

    def refusals(self) -> list[Any]:
        """Return the refusals since the last call as (user, kind, object)."""
        found = []
        for role in acl.ROLES:
            admin: Any = self.client(acl.ADMIN, role)
            found += [(row["username"], row["reason"], row["object"]) for row in admin.acl_log()]
            admin.acl_log_reset()
        return found

    def stop(self) -> None:
        for running in self.running:
            running.stop()
