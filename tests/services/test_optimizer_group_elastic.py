"""A group with a minimum below its size goes on without a lost agent, and takes it back."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from five.services.optimizer.torchrun import AGENT_ENVIRONMENT
from rapid.child_process import SUPERVISED_VARIABLE
from tests.services.test_optimizer_group import Cluster

# A lost agent is noticed within seconds instead of the default's 15, and the others wait 2 seconds for more. The first
# agent holds the rendezvous, as the first pod does.
RENDEZVOUS = "last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3,join_timeout=120"


class Agents:
    """One agent with one optimizer for each rank, as the chart starts them with optimizer.minReplicas."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, cluster: Cluster, rank: int) -> None:
        optimizer = cluster.config.services.optimizer
        port = optimizer.addresses[rank].rpartition(":")[2]
        with (self._folder / f"agent-{rank}.log").open("ab") as log:
            self._running[rank] = subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:2", "--nproc-per-node", "1",
                 "--max-restarts", "1000", "--rdzv-backend", "c10d", "--rdzv-endpoint", optimizer.rendezvous,
                 "--rdzv-conf", f"{RENDEZVOUS},is_host={rank == 0}", "--local-addr", "127.0.0.1", "-m",
                 "five.services.optimizer", "--config", str(cluster.config_path), "--port", port],
                stdout=log, stderr=log, env={**os.environ, **cluster.environment, **AGENT_ENVIRONMENT,
                                             SUPERVISED_VARIABLE: "1"})

    def kill(self, rank: int) -> None:
        """Kill an agent as a lost machine would. Its optimizer dies with it."""
        self._running[rank].kill()
        self._running.pop(rank).wait()

    def close(self) -> None:
        for agent in self._running.values():
            agent.terminate()
        for agent in self._running.values():
            agent.wait()


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    found = Agents(tmp_path)
    yield found
    found.close()


@pytest.fixture
def cluster(tmp_path: Path, redis_url: str, redis_client: redis.Redis) -> Iterator[Cluster]:
    running = Cluster(tmp_path, redis_url, redis_client, starts_group=False)
    yield running
    running.close()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_group_goes_on_with_fewer_ranks_and_takes_the_lost_one_back(cluster: Cluster, agents: Agents) -> None:
    for rank in (0, 1):
        agents.start(cluster, rank)
    cluster.wait(cluster.reached(6))
    cluster.wait(cluster.compared)

    def resumed(optimizers: int) -> Callable[[], bool]:
        """Whether the newest start of the group has that many optimizers."""
        def found() -> bool:
            starts = [e.details for e in cluster.state.events.last(100) if e.what == "optimizer.resumed"]
            return bool(starts) and starts[0]["optimizers"] == optimizers  # newest first
        return found

    agents.kill(1)
    lost_at = cluster.head()
    cluster.wait(resumed(1), 150)
    cluster.wait(cluster.reached(lost_at + 5))
    cluster.wait(lambda: len(cluster.ranks()) == 1)
    # A version now has the batches of one rank only.
    newest = cluster.records()[-1]
    assert newest["version"] > lost_at and newest["hero_steps"] > 0

    agents.start(cluster, 1)
    cluster.wait(resumed(2), 150)
    alone_until = cluster.head()
    cluster.wait(lambda: (cluster.compared() or (0, ""))[0] > alone_until)
    versions = [r["version"] for r in cluster.records()]
    assert versions == sorted(set(versions))
