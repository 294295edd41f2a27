"""A group under load goes on without any of its nodes, the first one included, and takes them back."""

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from five.services.optimizer.agent import MODULE
from rapid.child_process import SUPERVISED_VARIABLE
from rapid.store.fencing import publisher_name
from tests.services.optimizer_cases import UNROLL
from tests.services.test_optimizer_group import Cluster

LEASE = 5.0
IN_FLIGHT = 2  # segments that a sender's window and its queue hold, each
SEGMENT_HERO_STEPS = 2 * UNROLL


class Nodes:
    """Nodes of a group, each an agent with one optimizer, as the chart starts them with optimizer.minReplicas 1."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        self._folder = folder
        self._cluster = cluster
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def count(self) -> int:
        """Number of running agents."""
        return len(self._running)

    def start(self, node: int) -> None:
        """Start a node's agent, whose optimizer listens at the node's address."""
        optimizer = self._cluster.config.services.optimizer
        command = [sys.executable, "-m", f"{MODULE}.agent", "--nodes", f"1:{optimizer.optimizers}", "--ranks", "1",
                   "--node", f"node-{node}", "--", "--config", str(self._cluster.config_path), "--id", f"node-{node}",
                   "--port", optimizer.addresses[node].rpartition(":")[2]]
        with (self._folder / f"node-{node}.log").open("ab") as log:
            self._running[node] = subprocess.Popen(command, stdout=log, stderr=log, env={
                **os.environ, **self._cluster.environment, SUPERVISED_VARIABLE: "1"})

    def kill(self, node: int) -> None:
        """Kill an agent as a lost machine would. Its optimizer dies with it."""
        self._running[node].kill()
        self._running.pop(node).wait()

    def remove(self, node: int) -> None:
        """End an agent as Kubernetes ends a pod, and wait for it."""
        self._running[node].terminate()
        assert self._running.pop(node).wait(120) == 0

    def check(self) -> None:
        """Fail when an agent has ended by itself: its pod would restart with a delay."""
        for node, agent in self._running.items():
            assert agent.poll() is None, self.logs(node)

    def logs(self, *nodes: int) -> str:
        """Return the ends of the logs of these nodes, or of all."""
        return "\n".join(f"--- node {node}\n" + (self._folder / f"node-{node}.log").read_text()[-3000:]
                         for node in nodes or self._running)

    def close(self) -> None:
        for agent in self._running.values():
            agent.terminate()
        for agent in self._running.values():
            agent.wait()


class Heads:
    """Times at which new versions were seen."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: list[tuple[float, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            head = self._cluster.head()
            if not self._seen or head != self._seen[-1][1]:
                self._seen.append((time.monotonic(), head))

    def longest_gap(self, since: float) -> float:
        """Return the longest time between two versions, the later of which came after ``since``."""
        times = [at for at, _ in self._seen]
        return max(b - a for a, b in itertools.pairwise(times) if b > since)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()


@pytest.fixture(params=[2, 4, 8])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, redis_url: str, redis_client: redis.Redis
            ) -> Iterator[Cluster]:
    running = Cluster(tmp_path, redis_url, redis_client, False, request.param, LEASE)
    yield running
    running.close()


@pytest.fixture
def nodes(cluster: Cluster, tmp_path: Path) -> Iterator[Nodes]:
    found = Nodes(tmp_path, cluster)
    yield found
    found.close()


@pytest.fixture
def heads(cluster: Cluster) -> Iterator[Heads]:
    found = Heads(cluster)
    yield found
    found.close()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_group_learns_on_while_nodes_come_and_go(cluster: Cluster, nodes: Nodes, heads: Heads,
                                                 record_property: Callable[[str, object], None]) -> None:
    size = cluster.config.services.optimizer.optimizers

    def starts() -> list[dict[str, Any]]:
        """Return the group's starts from a checkpoint, newest first."""
        return cluster.events("optimizer.resumed")

    def resumed(since: int) -> Callable[[], bool]:
        """Whether the group has started again, with all running nodes."""
        def found() -> bool:
            nodes.check()
            now = starts()
            return len(now) > since and now[0]["optimizers"] == nodes.count
        return found

    def publisher() -> str:
        """Return the id of the optimizer that holds the publisher's lease."""
        return str(publisher_name(cluster.state.redis, "trial")).partition(" on ")[0]

    def wait(condition: Callable[[], Any]) -> Any:
        try:
            return cluster.wait(condition, 240)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{nodes.logs()}") from None

    def check_versions() -> None:
        """Every rank has the same parameters, each version was written once, and the counts are those of the feed."""
        if nodes.count > 1:
            at = cluster.head()
            wait(lambda: (cluster.compared_by(nodes.count) or (0, ""))[0] > at)
        wait(lambda: len(cluster.ranks()) == nodes.count)
        records = cluster.records()
        versions = [r["version"] for r in records]
        assert versions == sorted(set(versions))
        newest = records[-1]
        # A segment that a lost rank did not acknowledge is sent again, and counts once.
        sent = sum(cluster.accepted) + size * 2 * IN_FLIGHT
        assert 0 < newest["hero_steps"] <= sent * SEGMENT_HERO_STEPS
        assert 0.3 < newest["reuse"] <= 1.5
        assert newest["staleness_mean"] <= cluster.config.buffer.max_age_versions

    def change(what: str, act: Callable[[], None], planned: bool) -> None:
        """Change the group, wait until it learns again, and measure the time without a version."""
        since, before, began = len(starts()), cluster.records()[-1], time.monotonic()
        act()
        wait(resumed(since))
        at = cluster.head()
        assert at >= before["version"]
        wait(cluster.reached(at + 3))
        gap = heads.longest_gap(began)
        print(f"\n{size} ranks, {what}: {gap:.1f} s without a version, then {nodes.count} ranks")
        record_property(f"{size} ranks, {what}", round(gap, 1))
        if planned:  # all ranks save together: no step is learned again
            newest = starts()[0]
            assert newest["checkpoint"] == newest["version"]
            assert cluster.records()[-1]["hero_steps"] >= before["hero_steps"]
        check_versions()

    for node in range(size):
        nodes.start(node)
    wait(cluster.reached(6))
    check_versions()
    assert publisher() == "optimizer node-0"

    change("the last killed", lambda: nodes.kill(size - 1), planned=False)
    change("it is back", lambda: nodes.start(size - 1), planned=True)
    change("the first killed", lambda: nodes.kill(0), planned=False)
    assert publisher() == "optimizer node-1"
    change("the first is back", lambda: nodes.start(0), planned=True)
    assert publisher() == "optimizer node-0"
    change("the first removed", lambda: nodes.remove(0), planned=True)
    change("the first added", lambda: nodes.start(0), planned=True)
