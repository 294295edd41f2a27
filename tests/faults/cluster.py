"""A tiny run as local processes, with a proxy on each link between two of them, and volumes that can fill up."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import redis

from five.local.cluster import LocalCluster
from five.local.run_folder import RunFolder
from five.run.load import load
from rapid.embedded_redis import EmbeddedRedis
from rapid.store.leases import Instance
from rapid.store.parameters import ParameterStore
from rapid.supervisor import ProcessSpec, ProcessStatus, Supervisor
from tests.e2e.running import TINY
from tests.faults.links import Link

QUICK = [
    "rpc.deadline_seconds=4", "rpc.reconnect_seconds=20", "rpc.max_backoff_seconds=1", "rpc.keepalive_seconds=5",
    "rpc.keepalive_timeout_seconds=3", "store.timeout_seconds=2", "store.reconnect_seconds=20",
    "lifecycle.lease_seconds=3", "services.rollout.environment=remote", "schedules.scripted_fraction.initial=0.1",
    "league.past_opponent_share=0.3"]
# Links: the client's kind and the server's.
LINKS: Sequence[tuple[str, str]] = (
    ("rollout", "inference"), ("rollout", "optimizer"), ("rollout", "opponents"), ("rollout", "dota_env"),
    ("rollout", "state"), ("evaluator", "inference"), ("evaluator", "state"), ("optimizer", "state"),
    ("optimizer", "params"), ("inference", "state"), ("inference", "params"), ("opponents", "state"),
    ("controller", "evaluator"), ("controller", "state"), ("controller", "params"))
KEYS = {"state": "store.state_url", "params": "store.params_url", "opponents": "services.opponents.address",
        "evaluator": "services.evaluator.address"}
LISTS = {"inference", "optimizer", "dota_env"}  # kinds with several addresses


class FaultyCluster(LocalCluster):
    """`LocalCluster` with a `Link` for each pair of connected processes, in ``links``."""

    links: dict[tuple[str, str], Link]

    def _specs(self) -> list[ProcessSpec]:
        if not hasattr(self, "links"):
            self.links = {way: Link(self._target(way[1])) for way in LINKS}
        return [self._through_links(spec) for spec in super()._specs()]

    def _target(self, server: str) -> str:
        services = self.config.services
        if server in ("state", "params"):
            url = self.config.store.state_url if server == "state" else self.config.store.params_url
            return url.removeprefix("unix://").partition("?")[0]
        if server in LISTS:
            addresses: list[str] = getattr(services, server).addresses
            return addresses[0]
        return str(getattr(services, server).address)

    def _through_links(self, spec: ProcessSpec) -> ProcessSpec:
        kind = spec.name.rpartition("-")[0]
        sets: list[str] = []
        for (client, server), link in self.links.items():
            if client != kind:
                continue
            if server in LISTS:
                value = f"services.{server}.addresses={json.dumps([link.address])}"
            elif server in ("state", "params"):
                value = f"{KEYS[server]}=redis://{link.address}/0"
            else:
                value = f"{KEYS[server]}={link.address}"
            sets += ["--set", value]
        return replace(spec, argv=[*spec.argv, *sets], env={**spec.env, "OMP_NUM_THREADS": "1"})


@contextmanager
def running(place: Path, *overrides: str, redis_folders: dict[str, Path] | None = None) -> Iterator["Watched"]:
    """Run a tiny run that plays, with its own two Redis servers."""
    for name in [n for n in os.environ if n.startswith("FIVE_")]:
        del os.environ[name]
    folders = {"state": place / "state", "params": place / "params"} | (redis_folders or {})
    servers = {role: EmbeddedRedis(folders[role], append_only=role == "state") for role in ("state", "params")}
    # The supervisor restarts it after a kill, like every process.
    urls = {role: f"unix://{server.socket}?db=0" for role, server in servers.items()}
    config = load("laptop-1v1", [*TINY, *QUICK, "name=tiny", "seed=1", *overrides,
                                 *(f"store.{role}_url={url}" for role, url in urls.items())])
    folder = RunFolder(place / "runs" / "tiny")
    stores = Supervisor(place / "redis")
    cluster: Any = None
    try:
        for role, server in servers.items():
            folders[role].mkdir(parents=True, exist_ok=True)
            stores.start(ProcessSpec(f"redis-{role}", server.argv(), {}, server.is_ready, give_up_after=1000))
        stores.wait_ready([f"redis-{role}" for role in servers], 30)
        cluster = FaultyCluster.start(folder, config)
        watched = Watched(cluster, stores)
        watched.wait(lambda: watched.head() >= 1, "version 1", 180)
        yield watched
    finally:
        if cluster is not None:
            for link in cluster.links.values():
                link.open()
            cluster.supervisor.stop()
            for link in cluster.links.values():
                link.close()
        stores.stop()


class Watched:
    """A running cluster over connections without faults."""

    def __init__(self, cluster: FaultyCluster, stores: Supervisor) -> None:
        self.cluster = cluster
        self.stores = stores
        self.store = ParameterStore(redis.Redis.from_url(cluster.config.store.params_url), cluster.state.redis,
                                    cluster.config.name, cluster.config.store)

    def head(self) -> int:
        """Return the newest version, -1 before the first or without a response."""
        try:
            found = self.store.head()
        except redis.RedisError:
            return -1
        return -1 if found is None else found

    def wait(self, condition: Callable[[], Any], what: str, seconds: float) -> float:
        """Wait for the condition; return the seconds."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            with suppress(redis.RedisError, OSError):
                if condition():
                    return time.monotonic() - began
            self.cluster.check()
            time.sleep(0.1)
        raise AssertionError(f"not within {seconds:g} s: {what}\n{self.logs()}")

    def goes_on(self, versions: int = 2, seconds: float = 150.0) -> float:
        """Wait for that many more versions; return the seconds."""
        head = self.head()
        return self.wait(lambda: self.head() >= head + versions, f"version {head + versions}", seconds)

    def instance(self, kind: str) -> Instance | None:
        """Return the first live instance of a kind."""
        return next(iter(self.cluster.leases.live(kind)), None)

    def pid(self, name: str) -> int | None:
        """Return the process id of a supervised process."""
        return next((s.pid for s in self._status() if s.name == name), None)

    def _status(self) -> list[ProcessStatus]:
        return [*self.cluster.supervisor.status(), *self.stores.status()]

    def names(self) -> list[str]:
        """Return the names of supervised processes."""
        return [s.name for s in self._status()]

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL; the supervisor restarts it."""
        pid = self.pid(name)
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def logs(self, lines: int = 6) -> str:
        """Return the ends of all logs."""
        return "\n".join(f"--- {s.name}\n{self.cluster.supervisor.log_tail(s.name, lines)}"
                         for s in self.cluster.supervisor.status())
