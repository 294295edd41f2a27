"""A whole run on this machine, compared with its slowest stage alone."""

import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import torch

from dota.spaces import MAX_AVAILABLE, OFFSETS, Layout
from dota.vec_game import VecGame
from five.agent.compute import uses_cuda_graphs
from five.agent.learning.learner import Learner
from five.agent.model.native_actor import freeze
from five.agent.schedules import hyperparameters_at
from five.benchmarks import recorded_data
from five.benchmarks.child_process import prepare
from five.benchmarks.inference import forward
from five.benchmarks.results import BenchmarkRow, machine, median_rate, row
from five.local.cluster import LocalCluster
from five.local.run_folder import RunFolder
from five.run.config import RunConfig
from five.run.load import load

TEAMS = 2
WARM_VERSIONS = 1  # versions before the measurement
FIRST_SECONDS = 300.0  # time limit of these versions


@dataclass(frozen=True)
class TrainWorkload:
    """Workload of the benchmark ``train``: ``seconds`` of a run after its first version, and each stage alone."""

    preset: str = "laptop-1v1"
    overrides: tuple[str, ...] = ()
    seconds: float = 60.0
    alone_seconds: float = 2.0
    repeats: int = 3
    from_seconds: float = 120.0


class RunSpeed(NamedTuple):
    """Hero-steps that were played and learned from, a second of wall clock and a second of processor time of all
    services; each stage's busy share; mean seconds that learning stalled for a version."""

    hero_steps_per_second: float
    hero_steps_per_cpu_second: float
    shares: dict[str, float]
    stall_seconds: float


def run(config: RunConfig, seconds: float) -> RunSpeed:
    """Train for ``seconds`` after the first version and return the speed.

    Raises TimeoutError if no version appears within ``FIRST_SECONDS``.
    """
    shares: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as root:
        folder = RunFolder(Path(root) / config.name)
        with LocalCluster.start(folder, config) as cluster:
            cluster.wait_running()
            end = time.monotonic() + FIRST_SECONDS
            while _version(cluster) < WARM_VERSIONS:
                cluster.check()
                if time.monotonic() > end:
                    raise TimeoutError(f"no version was published within {FIRST_SECONDS:g} s")
                time.sleep(0.2)
            processor = _processor_seconds()
            began, first = _hero_steps(cluster)
            at, last = began, first
            while at < began + seconds:
                time.sleep(min(2.0, seconds / 4))
                for name, share in _shares(cluster).items():
                    shares.setdefault(name, []).append(share)
                at, last = _hero_steps(cluster)
            processor = _processor_seconds() - processor
            stalls = [float(r.values["stall_seconds"]) for r in cluster.series.read("versions")]
            cluster.stop("the benchmark is over")
    return RunSpeed((last - first) / (at - began), (last - first) / processor,
                    {name: statistics.fmean(values) for name, values in shares.items()}, statistics.fmean(stalls))


def _processor_seconds() -> float:
    """Return the processor time of this process and of its children that run."""
    this = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (this, *this.children(recursive=True)))


def _version(cluster: LocalCluster) -> int:
    last = cluster.series.last("versions")
    return int(last.values["version"]) if last else 0


def _hero_steps(cluster: LocalCluster) -> tuple[float, float]:
    """Return the time and the hero-steps that the optimizers have learned from, each counted once."""
    found = cluster.leases.live("optimizer")
    if not found:
        raise RuntimeError("the optimizer has ended; see its log")
    return max(i.beaten_at for i in found), float(sum(i.stats["learned_hero_steps"] for i in found))


def _shares(cluster: LocalCluster) -> dict[str, float]:
    """Return the busy share of each stage's processes, the mean of a kind."""
    names: Mapping[tuple[str, str], str] = {
        ("optimizer", "busy"): "optimizer", ("inference", "busy"): "inference", ("rollout", "game"): "game",
        ("rollout", "inference_wait_share"): "waiting_for_inference", ("rollout", "waiting"): "waiting_for_optimizer"}
    out: dict[str, list[float]] = {}
    for instance in cluster.leases.live():
        for name, value in instance.stats.items():
            if (instance.kind, name) in names:
                out.setdefault(names[instance.kind, name], []).append(float(value))
    return {name: statistics.fmean(values) for name, values in out.items()}


def stages(config: RunConfig, size: TrainWorkload) -> dict[str, float]:
    """Return the hero-steps a second of each stage alone, with the run's threads and batches."""
    layout, services = Layout(config.game), config.services
    heroes = layout.heroes
    group = max(services.rollout.games // services.rollout.groups, 1)
    torch.set_num_threads(services.inference.threads)
    seen = recorded_data.team_steps(config, 16, size.from_seconds)
    device = torch.device(services.inference.device)
    policy = recorded_data.policy_of(config).to(device).eval()
    freeze(policy)
    acting = forward(policy, seen, TEAMS * group, device)
    servers = max(len(services.inference.addresses), 1)
    inference = median_rate(acting, size.alone_seconds, size.repeats) * heroes * servers

    games = VecGame(config.game, group, seed=1, threads=services.rollout.game_threads, auto_reset=True)
    rng = np.random.default_rng(1)
    actions = rng.integers(0, [MAX_AVAILABLE, 4, layout.units, layout.units, OFFSETS, OFFSETS],
                           (64, group, TEAMS, heroes, 6)).astype(np.int16)
    turn = iter(range(1 << 62))

    def play() -> float:
        games.step(actions[next(turn) % len(actions)])
        return float(group * TEAMS * heroes)

    played = median_rate(play, size.alone_seconds, size.repeats) * services.rollout.processes

    torch.set_num_threads(services.optimizer.threads)
    learning = config.learning
    batch = recorded_data.batch_of(recorded_data.samples(config, learning.batch_samples, size.from_seconds))
    device = torch.device(services.optimizer.device)
    learner = Learner(recorded_data.policy_of(config), learning, device,
                      graphs=uses_cuda_graphs(device, config.compute, config.services.optimizer.cuda_graphs))
    hyper = hyperparameters_at(config.schedules, 0, 0)

    def learn() -> float:
        learner.train_step(batch, hyper).end.wait()
        return float(learning.batch_samples * learning.lstm_unroll_length * heroes)

    learned = median_rate(learn, size.alone_seconds, size.repeats) * services.optimizer.optimizers
    return {"game": played, "inference": inference, "optimizer": learned / config.buffer.sample_reuse}


def possible(config: RunConfig, alone: Mapping[str, float], cores: int) -> float | None:
    """Return the hero-steps a second if ``cores`` did only the work of the stages, at each stage's cost alone: cores /
    sum of the stages' core-seconds a hero-step. None if a stage runs on another device.

    In games against bots (schedules.scripted_fraction at the start) all heroes play, but only one side's are learned
    from. Past versions are not considered: hardly any play in the first minutes.
    """
    services = config.services
    if {services.inference.device, services.optimizer.device} != {"cpu"}:
        return None
    learned_from = 1 - config.schedules.scripted_fraction.initial / 2
    used = {"game": services.rollout.processes * services.rollout.game_threads / learned_from,
            "inference": max(len(services.inference.addresses), 1) * services.inference.threads,
            "optimizer": services.optimizer.optimizers * services.optimizer.threads}
    return cores / sum(used[name] / rate for name, rate in alone.items())


def measure(size: TrainWorkload | None = None) -> list[BenchmarkRow]:
    """Return the rows of a whole run.

    ``train.hero_steps``: hero-steps/s from game to gradient, without those that left the buffer unused; the
    reference is the slowest stage alone. ``train.hero_steps_per_cpu_second``: the same a second of processor time
    of all services. ``train.efficiency``: hero-steps/s over what the cores could reach
    (`possible`). ``optimizer.stall_seconds``: how long learning stalls for a version. ``train.alone.*``: each stage
    alone. ``train.share.*``: each stage's busy share.
    """
    size = size or TrainWorkload()
    prepare()
    config = load(size.preset, [*size.overrides, "name=bench-train"])
    alone = stages(config, size)
    slowest = min(alone, key=lambda name: alone[name])
    speed = run(config, size.seconds)
    conditions = machine(preset=size.preset, torch=torch.__version__, seconds=size.seconds, slowest_stage=slowest,
                         model=recorded_data.description(config), games=config.services.rollout.games,
                         threads=config.services.optimizer.threads,
                         device=recorded_data.name_of(config.services.optimizer.device))
    most = possible(config, alone, int(conditions["cores"]))
    return [
        row("train.hero_steps", speed.hero_steps_per_second, "hero-steps/s", alone[slowest], conditions),
        row("train.hero_steps_per_cpu_second", speed.hero_steps_per_cpu_second, "hero-steps a processor-second", None,
            conditions),
        *([row("train.efficiency", speed.hero_steps_per_second / most, "of what the cores could reach", 1.0,
               conditions)] if most else []),
        row("optimizer.stall_seconds", speed.stall_seconds, "s a version", None, conditions),
        *(row(f"train.alone.{name}", value, "hero-steps/s", None, conditions) for name, value in alone.items()),
        *(row(f"train.share.{name}", value, "of its time", None, conditions) for name, value in speed.shares.items()),
    ]
