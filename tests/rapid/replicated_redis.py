"""Redis servers on loopback that replicate, and a Sentinel that watches them."""

import subprocess
import threading
from pathlib import Path
from typing import Any

import redis

from rapid.embedded_redis import server_binary
from tests.tcp_forwarder import free_port
from tests.waiting import eventually


class Node:
    """A server, or a Sentinel with ``sentinel``. ``password`` is required of clients, and used for replication."""

    def __init__(self, folder: Path, password: str = "", lines: tuple[str, ...] = (), sentinel: bool = False) -> None:
        folder.mkdir(parents=True)
        self.port = free_port()
        settings = [f"port {self.port}", "bind 127.0.0.1", f"dir {folder}", *lines]
        if password:
            settings.append(f"requirepass {password}")
        if not sentinel:
            settings += ["save ''", "repl-diskless-sync-delay 0", *([f"masterauth {password}"] if password else [])]
        (folder / "redis.conf").write_text("\n".join(settings) + "\n")
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen([server_binary(), str(folder / "redis.conf"),
                                             *(["--sentinel"] if sentinel else [])], stdout=log, stderr=log)
        self.admin: Any = redis.Redis(port=self.port, password=password or None)
        eventually(self._answers)

    def _answers(self) -> bool:
        try:
            return bool(self.admin.ping())
        except redis.RedisError:
            return False

    def follow(self, primary: "Node") -> None:
        """Become a replica, and wait until it is in step."""
        self.admin.replicaof("127.0.0.1", primary.port)
        eventually(lambda: self.info()["master_link_status"] == "up")

    def promote(self) -> None:
        """Become a primary."""
        self.admin.replicaof("NO", "ONE")

    def info(self) -> dict[str, Any]:
        found: Any = self.admin.info("replication")
        return dict(found)

    def close(self) -> None:
        self.admin.close()
        self.process.kill()
        self.process.wait()


class Writer:
    """A thread that writes numbered keys and waits for a replica after each.

    ``replicated`` are the keys whose write was acknowledged and reached a replica, ``errors`` what failed.
    """

    def __init__(self, client: redis.Redis, name: str) -> None:
        self.replicated: list[str] = []
        self.errors: list[Exception] = []
        self.count = 0
        self._client = client
        self._name = name
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._over.is_set():
            key = f"{self._name}:{self.count}"
            pipeline: Any = self._client.pipeline(transaction=False)
            try:
                _, replicas = pipeline.set(key, self.count).wait(1, 200).execute()
            except redis.RedisError as error:
                self.errors.append(error)
                continue
            if replicas:
                self.replicated.append(key)
            self.count += 1

    def stop(self) -> None:
        self._over.set()
        self._thread.join(timeout=30)
        assert not self._thread.is_alive()
