"""Two optimizers under one agent, as a local cluster starts them: real processes, gRPC and Redis."""

import asyncio
import inspect
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
import torch

from five.agent.config import BufferConfig, LearnerConfig
from five.agent.learning.segments import Segment
from five.clients.experience import ACCEPTED, ExperienceClient
from five.local.cluster import free_ports, optimizer_group
from five.run.config import RunConfig, ServicesConfig
from five.run.config.optimizer import OptimizerConfig
from five.run.load import save
from five.services.controller.run.setup import set_up_run
from five.services.optimizer.checkpoints import Checkpoints
from five.services.optimizer.process_group import join
from five.services.rollout.sender import Sender
from rapid.blobs import BlobStore
from rapid.config import BlobConfig, LifecycleConfig, StoreConfig
from rapid.rpc.access import Caller
from rapid.rpc.callers import callers_text
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.event_merger import EventMerger
from rapid.store.fencing import publisher_name
from rapid.store.leases import Instance
from rapid.store.parameters import ParameterStore
from rapid.store.series import Series
from rapid.store.state import RunState, Status
from rapid.supervisor import ProcessState, Supervisor
from tests.services.optimizer_cases import GAME, LAYOUT, MODEL, UNROLL, segment
from tests.waiting import eventually

SECRET = "a-secret-of-the-tests"  # noqa: S105
RANKS = ("0", "1")
GRACE = 60.0


class Cluster:
    """Optimizers and a sender that pushes segments to all of them without a pause.

    Without ``starts_group`` the test starts the optimizers.
    """

    def __init__(self, folder: Path, redis_url: str, client: redis.Redis, starts_group: bool = True,
                 optimizers: int = 2, lease_seconds: float = 2.0) -> None:
        ports = free_ports(optimizers)
        self.config = RunConfig(
            name="trial", seed=3, game=GAME, model=MODEL,
            learning=LearnerConfig(lstm_unroll_length=UNROLL, samples_per_segment=2, batch_samples=4,
                                   gradient_steps_per_iteration=2, initial_hold_steps=0),
            buffer=BufferConfig(capacity_samples=32, minimum_samples=4),
            store=StoreConfig(state_url=redis_url, params_url=redis_url),
            blobs=BlobConfig(url=str(folder / "blobs")),
            lifecycle=LifecycleConfig(heartbeat_seconds=0.1, lease_seconds=lease_seconds, grace_seconds=GRACE,
                                      poll_seconds=0.1),
            services=ServicesConfig(optimizer=OptimizerConfig(
                optimizers=optimizers, addresses=[f"127.0.0.1:{p}" for p in ports], checkpoint_every_versions=5)))
        callers = folder / "callers.json"
        callers.write_text(callers_text({Caller.ROLLOUT: [SECRET]}))
        self.environment = {"FIVE_CALLERS_FILE": str(callers), "PYTHONPATH": "libs:.", "OMP_NUM_THREADS": "1"}
        self.config_path = folder / "cluster.yaml"
        save(self.config, self.config_path)
        self.state = RunState(client, "trial")
        set_up_run(self.state, self.config, "test")
        self.state.transition(Status.RUNNING, "test")
        self.series = Series(client, "trial")
        self.versions = ParameterStore(client, client, "trial", self.config.store, BlobStore(self.config.blobs.url))
        self.checkpoints = Checkpoints(BlobStore(self.config.blobs.url), self.config.name, 3,
                                       CheckpointIndex(client, "trial"))
        self.supervisor = Supervisor(folder / "logs", None)
        if starts_group:
            self.supervisor.start(optimizer_group(self.config, str(self.config_path), self.environment))
        self.accepted = [0] * optimizers
        self._ending = threading.Event()
        self._feeder = threading.Thread(target=lambda: asyncio.run(self._feed()))
        self._feeder.start()

    async def _feed(self) -> None:
        optimizer = self.config.services.optimizer
        clients = [ExperienceClient([optimizer.address(rank)], self.config.rpc, LAYOUT.hash, "trial", "rollout-0",
                                    SECRET, 2, ("shared", "private"), epoch=1) for rank in range(optimizer.optimizers)]
        sender = Sender(clients.__getitem__, 2)
        sender.assign(range(optimizer.optimizers))
        feeding = asyncio.create_task(self._put(sender))
        while not self._ending.is_set():
            assert not feeding.done(), feeding.exception()
            self.accepted = [client.verdicts[ACCEPTED] for client in clients]
            await asyncio.sleep(0.05)
        feeding.cancel()
        await sender.drain(0.0)

    async def _put(self, sender: Sender) -> None:
        for seed in itertools.count():
            version = max(await asyncio.to_thread(self.head), 0)
            sender.put(Segment(segment(2, version, seed), 2, 1.0, 2.0, 2 * UNROLL, version, version))
            await sender.wait_for_capacity()

    def wait(self, condition: Callable[[], Any], seconds: float = 100.0) -> Any:
        """Return the first true value of ``condition``; on a timeout show the optimizers' log."""
        return eventually(condition, seconds, inspect.getsource(condition).strip(), 0.05, lambda: "\n".join(
            self.supervisor.log_tail(spec.name, 60) for spec in self.supervisor.status()))

    def head(self) -> int:
        found = self.versions.head()
        return -1 if found is None else found

    def reached(self, version: int) -> Callable[[], bool]:
        return lambda: self.head() >= version

    def ranks(self) -> list[Instance]:
        return self.state.services("optimizer")

    def compared(self) -> tuple[int, str] | None:
        """Return version and fingerprint of both ranks once they report the same version."""
        return self.compared_by(2)

    def compared_by(self, ranks: int) -> tuple[int, str] | None:
        """Return version and fingerprint of so many ranks once they report the same version."""
        shown = [str(i.stats["compared"]).split(":") for i in self.ranks() if "compared" in i.stats]
        if len(shown) != ranks or len({version for version, _ in shown}) > 1:
            return None
        (fingerprint,) = {digest for _, digest in shown}
        return int(shown[0][0]), fingerprint

    def processes(self) -> dict[str, psutil.Process]:
        """Return the ranks' processes below the agent."""
        (agent,) = self.supervisor.status()
        assert agent.pid is not None
        return {p.environ()["RANK"]: p for p in psutil.Process(agent.pid).children()
                if "five.services.optimizer" in p.cmdline()}

    def events(self, what: str) -> list[dict[str, Any]]:
        """Return the details of the group's events of that kind. There is no controller, so this merges them."""
        EventMerger(self.state.redis, "trial").merge()
        return [e.details for e in self.state.events.last(100) if e.what == what]

    def records(self) -> list[dict[str, Any]]:
        return [r.values for r in self.series.read("versions")]

    def close(self) -> None:
        self._ending.set()
        self._feeder.join()
        self.supervisor.stop()


@pytest.fixture
def cluster(tmp_path: Path, redis_url: str, redis_client: redis.Redis) -> Iterator[Cluster]:
    running = Cluster(tmp_path, redis_url, redis_client)
    yield running
    running.close()


@pytest.mark.runs
@pytest.mark.timeout(200)
def test_two_optimizers_train_and_drain_together(cluster: Cluster) -> None:
    cluster.wait(cluster.reached(3))
    version, fingerprint = cluster.wait(cluster.compared)
    assert version >= 1 and int(fingerprint, 16) > 0
    ranks = cluster.wait(lambda: [i.id for i in cluster.ranks()] == list(RANKS) and cluster.ranks())
    assert [i.address for i in ranks] == cluster.config.services.optimizer.addresses
    cluster.wait(lambda: min(cluster.accepted) >= 4)  # both acknowledge segments

    cluster.wait(cluster.reached(6))
    records = cluster.records()
    assert [r["version"] for r in records[:5]] == [1, 2, 3, 4, 5]  # written once, by rank 0
    newest = records[-1]
    # Totals sum both ranks: each takes 2 steps of 4 samples of 4 hero-steps per version.
    assert newest["hero_steps"] > 4 * UNROLL * 2 * newest["version"]
    assert 0.5 < newest["reuse"] <= 1.5

    # SIGTERM to the agent: the ranks drain, and rank 0 writes a checkpoint.
    pids = [p.pid for p in cluster.processes().values()]
    assert len(pids) == 2
    began = time.monotonic()
    cluster.supervisor.remove("optimizers")
    assert time.monotonic() - began < GRACE
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert cluster.ranks() == []
    assert cluster.checkpoints.versions()[-1] == cluster.head()


LOST = """
import os, torch
from five.services.optimizer.process_group import join
group = join(torch.device("cpu"))
assert group.all_ranks(True, group.rank == 0) == [True, False]
assert group.sum_over_ranks([1.0, group.rank]) == [2.0, 1.0] and group.broadcast([7.0 + group.rank]) == [7.0]
gradient = torch.full((3,), float(group.rank))
group.reduce([gradient])
assert gradient.tolist() == [0.5] * 3
if group.rank == 1:
    os._exit(9)
print("goes on", flush=True)
try:
    group.reduce([gradient])
except RuntimeError:
    os._exit(3)  # gloo's threads of a broken group may abort an orderly exit
"""


def test_shared_agent_store_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    with pytest.raises(RuntimeError, match="five.services.optimizer.agent"):
        join(torch.device("cpu"))


def test_lost_rank_does_not_hang_the_other() -> None:
    (port,) = free_ports(1)
    ranks = [subprocess.Popen(
        [sys.executable, "-c", LOST], cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": "libs:.", "RANK": rank, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
             "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in RANKS]
    try:
        out, errors = ranks[0].communicate(timeout=90)
    finally:
        for rank in ranks:
            rank.kill()
    assert (ranks[0].returncode, out) == (3, "goes on\n"), errors


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("rank", RANKS)
def test_lost_rank_restarts_group_from_checkpoint(cluster: Cluster, rank: str) -> None:
    cluster.wait(cluster.reached(7))
    before = cluster.processes()
    os.kill(before[rank].pid, 9)
    killed_at = cluster.head()
    # The other rank neither waits for the lost one nor continues alone.
    cluster.wait(lambda: not any(psutil.pid_exists(p.pid) and p.is_running() for p in before.values()), 30)
    cluster.wait(cluster.reached(killed_at + 5))
    assert cluster.wait(cluster.compared)[0] > killed_at
    resumed = cluster.events("optimizer.resumed")
    assert [(e["optimizers"], e["restarts"]) for e in resumed] == [(2, 1)]
    assert 0 <= resumed[0]["version"] - resumed[0]["checkpoint"] < 5
    (agent,) = cluster.supervisor.status()
    assert agent.restarts == 0 and agent.state is ProcessState.READY
    versions = [r["version"] for r in cluster.records()]
    assert versions == sorted(set(versions))  # numbers continue without a repeat
    cluster.wait(lambda: [i.id for i in cluster.ranks()] == list(RANKS))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_lost_agent_leaves_no_rank_running(cluster: Cluster) -> None:
    cluster.wait(cluster.reached(2))
    before = cluster.processes()
    (agent,) = cluster.supervisor.status()
    assert agent.pid is not None
    os.kill(agent.pid, 9)
    killed_at = cluster.head()
    cluster.wait(lambda: not any(psutil.pid_exists(p.pid) and p.is_running() for p in before.values()), 10)
    cluster.wait(cluster.reached(killed_at + 2))
    cluster.wait(cluster.compared)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ranks_restart_in_the_next_epoch_without_agent(cluster: Cluster) -> None:
    """After a change of the record both ranks restart with their process ids, and version numbers continue."""
    cluster.wait(cluster.reached(3))
    before = cluster.processes()
    lives = {i.id: i.life for i in cluster.wait(lambda: len(cluster.ranks()) == 2 and cluster.ranks())}
    record = cluster.state.record()
    assert record is not None
    after = record.changed(new_epoch=False, game={**record.game})
    cluster.state.set_record(record, after, "test", "record.set", {})

    def renewed() -> bool:
        ranks = cluster.ranks()
        return len(ranks) == 2 and all(i.revision == after.revision and i.life != lives[i.id] for i in ranks)

    cluster.wait(renewed)
    at = cluster.head()
    cluster.wait(cluster.reached(at + 3))
    assert {rank: p.pid for rank, p in cluster.processes().items()} == {rank: p.pid for rank, p in before.items()}
    resumed = cluster.events("optimizer.resumed")
    assert [(e["optimizers"], e["restarts"]) for e in resumed] == [(2, 0)]
    assert resumed[0]["checkpoint"] == resumed[0]["version"]  # after the drain no step is lost
    assert publisher_name(cluster.state.redis, "trial") is not None
