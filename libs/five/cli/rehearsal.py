"""`five surgery rehearse`: a plan on a fork of a local run, for a few versions, and a match against the version before.

The fork is a run of its own in a folder beside the run's, made of the run's newest checkpoint and the plan. It shares
nothing with the run but the machine. The version before is the fork's first one: the run's newest parameters, brought
over by the plan, since two teams in one game read one layout; how far that is from the parameters as they were, the
check says.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import redis

from five.agent.surgery import AgentSpec, Plan, migrate_learner
from five.cli.cluster import LocalCluster
from five.cli.offline.match import Contestant, Match, play
from five.cli.offline.versions import ArchivedVersions
from five.cli.rundir import RunFolder, free_name
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load, save
from five.services.optimizer.checkpoints import Checkpoints
from rapid import tensorfile
from rapid.blobs import BlobStore
from rapid.store import acl
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.connection import connect, require_reachable
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import ENDED, RunState


@dataclass(frozen=True)
class Fork:
    """A run made of another's newest checkpoint. ``first`` is the version that it begins with, ``warm`` the last of
    its warm-up."""

    folder: RunFolder
    config: RunConfig
    first: int
    warm: int


def rehearse(folder: RunFolder, plan_file: str, versions: int, games: int, minutes: float) -> int:
    """Runs the plan on a fork and plays the match. Returns 1 when the fork is worse than the version before, with 95 %
    confidence. Raises RuntimeError, TimeoutError, NoRun, ValueError."""
    plan = Plan.from_yaml(Path(plan_file).read_text())
    fork = make_fork(folder, plan)
    until = fork.warm + versions
    print(f"rehearsal of {plan.name!r} in {fork.folder.path}/: versions {fork.first} to {fork.warm} warm up, then "
          f"{versions} are learned")
    learn(fork, until, minutes)
    match = compare(fork, until, games)
    won, drawn, lost = match.counts
    low, high = match.interval()
    print(f"version {until} against {fork.first} (the one before, through the plan): won {won}, drawn {drawn}, lost "
          f"{lost} of {len(match.games)} games in pairs with sides swapped; score {100 * match.score:.0f} % "
          f"({100 * low:.0f} to {100 * high:.0f} %, 95 % confidence)")
    if high < 0.5:
        print("WORSE than before")
        return 1
    return 0


def make_fork(folder: RunFolder, plan: Plan) -> Fork:
    """The fork's folder, with its checkpoint in it. The run goes on. Raises NoRun when it is not running, ValueError
    when the plan does not fit."""
    cluster = folder.cluster()
    started = load(folder.path / "cluster.yaml")
    client = connect(cluster.state_url, started.store, "state", folder.login(acl.CONTROLLER, cluster.state_url))
    require_reachable(client, cluster.state_url, "state")
    record = RunState(client, started.name).record()
    if record is None:
        raise RuntimeError(f"run {started.name!r} has no record yet")
    now = overlay(load(folder.config), record)
    spec = AgentSpec(now.game, now.model)
    target = plan.target(spec)
    checkpoints = Checkpoints(BlobStore(started.blobs.url), started.name, started.services.optimizer.checkpoints_kept,
                              CheckpointIndex(client, started.name))
    found = checkpoints.newest()
    if found is None:
        raise RuntimeError(f"run {started.name!r} has no checkpoint yet")
    version, tensors, extra = found
    if extra.get("schema", spec.schema) != spec.schema:
        raise RuntimeError(f"the newest checkpoint (version {version}) is from before the last surgery: wait for the "
                           "next one")
    steps = now.learning.gradient_steps_per_iteration
    state, learner = migrate_learner(plan, spec, tensors, extra["learner"], steps)
    beside = RunFolder(folder.path.parent / free_name(f"{folder.name}-{plan.name}", folder.path.parent))
    config = _fork_config(now, target, beside.name)
    beside.create()
    save(config, beside.config)
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    warm = version + plan.warm_up_versions
    index = tensorfile.index_of(arrays, {**extra, "learner": learner, "schema": target.schema, "warm_up_until": warm})
    BlobStore(str(beside.path / "blobs")).put([index.header(), *tensorfile.pieces_of(index, arrays)],
                                              f"{beside.name}/checkpoints/{version:012d}")
    return Fork(beside, config, version, warm)


def _fork_config(now: RunConfig, target: AgentSpec, name: str) -> RunConfig:
    """The run's configuration for a run of its own: its own stores and ports, every version archived, no ratings."""
    record = RunRecord(**target.trees())
    mine = overlay(now, record)
    services = mine.services.model_copy(update={
        "evaluator": mine.services.evaluator.model_copy(update={"enabled": False}),
        "controller": mine.services.controller.model_copy(update={"port": 0})})
    return mine.model_copy(update={
        "name": name, "services": services,
        "store": mine.store.model_copy(update={"state_url": "", "params_url": "", "archive_every": 1}),
        "blobs": mine.blobs.model_copy(update={"url": ""})})


def learn(fork: Fork, until: int, minutes: float) -> None:
    """Lets the fork learn up to a version. Raises RuntimeError when it ends by itself, TimeoutError."""
    end = time.monotonic() + 60 * minutes
    with LocalCluster.start(fork.folder, fork.config) as cluster:
        cluster.wait_running()
        redis_state = cluster.state.redis  # the head stands there
        store = ParameterStore(redis_state, redis_state, cluster.config.name, cluster.config.store)
        while True:
            cluster.check()
            if time.monotonic() > end:
                raise TimeoutError(f"the rehearsal did not come to version {until} within {minutes:g} minutes")
            try:
                status, head = cluster.state.status(), store.head()
            except redis.RedisError:
                status, head = None, None
            if status is not None and status.status in ENDED:
                raise RuntimeError(f"the rehearsal's run is {status.status}: {status.reason}")
            if head is not None and head >= until + 1:  # what comes after it has had it archived
                break
            time.sleep(0.5)
        cluster.stop("the rehearsal is over")


def compare(fork: Fork, version: int, games: int) -> Match:
    """The match of a version of the fork against its first one, in pairs of games with sides swapped."""
    archive = ArchivedVersions(fork.folder)
    _, after, _ = archive.load(version)
    _, before, _ = archive.load(fork.first)
    return play(fork.config.game, Contestant(f"version-{version}", after),
                Contestant(f"version-{fork.first}", before), max((games + 1) // 2, 1), 0)


