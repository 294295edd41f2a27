"""Rehearsal of a plan: a fork of a local run learns some versions under the plan and plays the version before it.

The fork is a run in a folder of its own, made of the run's newest checkpoint and the plan. It shares nothing with
the run but the machine. The version before is the fork's first one: the run's newest parameters, transformed by the
plan, since both teams of a game read one layout. The check of the plan measures that difference.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import redis

from five.agent.surgery import AgentSpec, Plan, migrate_learner
from five.evaluation.archived_versions import ArchivedVersions
from five.evaluation.match import Contestant, MatchGame, PairedMatch, play
from five.local.cluster import LocalCluster
from five.local.run_folder import RunFolder, current_user, free_name
from five.rehearsal.progress import RehearsalProgress, RehearsalStopped, raise_on_signals
from five.run.config import RunConfig
from five.run.effective import overlay
from five.run.load import load_stored, save
from five.services.controller.surgery.rehearsals import (
    Rehearsal,
    RehearsalInProgress,
    RehearsalResult,
    Rehearsals,
    RehearsalScope,
    RehearsalState,
    new_rehearsal,
)
from five.services.optimizer.checkpoints import Checkpoints
from rapid import tensorfile
from rapid.blobs import BlobStore
from rapid.store import acl
from rapid.store.checkpoint_index import CheckpointIndex
from rapid.store.connection import connect, require_reachable
from rapid.store.parameters import ParameterStore
from rapid.store.record import RunRecord
from rapid.store.state import ENDED, RunState

MAX_NAME = 58  # characters of a fork's name, without the number that makes it free; RunConfig.name has up to 63


@dataclass(frozen=True)
class Fork:
    """A run made of another run's newest checkpoint. ``first`` is its first version, ``warm`` the last of its
    warm-up."""

    folder: RunFolder
    config: RunConfig
    first: int
    warm: int


def rehearse(folder: RunFolder, plan_file: str, scope: RehearsalScope) -> int:
    """Rehearse the plan in this process and write the progress to the run's state.

    Return 1 if the fork is worse than the version before, with 95 % confidence. Raises RuntimeError, TimeoutError,
    RunUnavailable, OSError.
    """
    try:
        text = Path(plan_file).read_text(encoding="utf-8")
        plan = Plan.from_yaml(text)
    except ValueError as error:
        raise RuntimeError(f"{plan_file}: {error}") from None
    state = run_state(folder)
    rehearsals, record = Rehearsals(state), state.record()
    epoch = 0 if record is None else record.epoch
    rehearsal = new_rehearsal(text, plan.digest, plan.name, epoch, current_user(), scope, by="command")
    if not rehearsals.hold(rehearsal.id):
        raise RuntimeError("another rehearsal of this run is in progress: `five surgery rehearsals` lists it; wait "
                           "for it, or cancel it")
    try:
        rehearsals.begin(rehearsal.model_copy(update={"state": RehearsalState.PREPARING, "began_at": time.time()}))
    except RehearsalInProgress as busy:
        rehearsals.release(rehearsal.id)
        raise RuntimeError(str(busy)) from None
    try:
        result = run_rehearsal(folder, plan, rehearsal, rehearsals, print)
    except ValueError as error:  # the plan does not fit the run
        raise RuntimeError(str(error)) from None
    if result.worse:
        print("WORSE than before")
    return int(result.worse)


def run_rehearsal(folder: RunFolder, plan: Plan, rehearsal: Rehearsal, rehearsals: Rehearsals,
                  say: Callable[[str], None] = lambda text: None) -> RehearsalResult:
    """Run a rehearsal whose lease this process holds, and write its progress and result. Call it in the main thread.

    Raises RuntimeError, TimeoutError, RunUnavailable, ValueError; RehearsalStopped if it was cancelled or the
    process received a signal.
    """
    progress = RehearsalProgress(rehearsals, rehearsal.id)
    try:
        with raise_on_signals(), progress:
            progress.update(state=RehearsalState.PREPARING)
            result = _run_rehearsal(folder, plan, rehearsal.scope, progress, say)
    except RehearsalStopped as stopped:
        reason = progress.stop_reason or str(stopped)
        progress.end(RehearsalState.CANCELLED, error="" if progress.cancelled else reason)
        raise RehearsalStopped(reason) from None
    except BaseException as error:
        progress.end(RehearsalState.FAILED, error=str(error)[:2000] or type(error).__name__)
        raise
    progress.end(RehearsalState.DONE, result=result)
    return result


def _run_rehearsal(folder: RunFolder, plan: Plan, scope: RehearsalScope, progress: RehearsalProgress,
                   say: Callable[[str], None]) -> RehearsalResult:
    fork = create_fork(folder, plan)
    until = fork.warm + scope.versions
    say(f"rehearsal of {plan.name!r} in {fork.folder.path}/: warm-up from version {fork.first} to {fork.warm}, then "
        f"{scope.versions} versions of learning")
    progress.update(state=RehearsalState.WARMING if fork.warm > fork.first else RehearsalState.LEARNING,
                    fork=fork.folder.name, first=fork.first, warm=fork.warm, until=until, version=fork.first)

    def learned(version: int) -> None:
        progress.update(version=version,
                        state=RehearsalState.WARMING if version < fork.warm else RehearsalState.LEARNING)

    train_fork(fork, until, scope.minutes, learned)
    progress.update(state=RehearsalState.PLAYING, played=0)
    played = 0

    def ended(game: MatchGame) -> None:
        nonlocal played
        played += 1
        progress.update(played=played)

    match = compare(fork, until, scope.games, ended)
    won, drawn, lost = match.counts
    low, high = match.interval()
    say(f"version {until} against {fork.first} (the version before, migrated by the plan): won {won}, drawn {drawn}, "
        f"lost {lost} of {len(match.games)} games in pairs with sides swapped; score {100 * match.score:.0f} % "
        f"({100 * low:.0f} to {100 * high:.0f} %, 95 % confidence)")
    return RehearsalResult(won=won, drawn=drawn, lost=lost, score=match.score, low=low, high=high, worse=high < 0.5)


def run_state(folder: RunFolder) -> RunState:
    """Return the state of a run of this machine. Raises RunUnavailable if it is not running."""
    cluster = folder.cluster()
    started = load_stored(folder.path / "cluster.yaml")
    client = connect(cluster.state_url, started.store, "state", folder.login(acl.CONTROLLER, cluster.state_url))
    require_reachable(client, cluster.state_url, "state")
    return RunState(client, started.name)


def create_fork(folder: RunFolder, plan: Plan) -> Fork:
    """Create the fork's folder with its checkpoint. The run goes on.

    Raises RunUnavailable if the run is not running, ValueError if the plan does not fit.
    """
    run = run_state(folder)
    started = load_stored(folder.path / "cluster.yaml")
    record = run.record()
    if record is None:
        raise RuntimeError(f"run {started.name!r} has no record yet")
    now = overlay(load_stored(folder.config), record)
    spec = AgentSpec(now.game, now.model)
    target = plan.target(spec)
    checkpoints = Checkpoints(BlobStore(started.blobs.url), started.name, started.services.optimizer.checkpoints_kept,
                              CheckpointIndex(run.redis, started.name))
    found = checkpoints.newest()
    if found is None:
        raise RuntimeError(f"run {started.name!r} has no checkpoint yet")
    version, tensors, extra = found
    if extra.get("schema", spec.schema) != spec.schema:
        raise RuntimeError(f"the newest checkpoint (version {version}) is older than the last surgery: wait for the "
                           "next one")
    steps = now.learning.gradient_steps_per_iteration
    state, learner = migrate_learner(plan, spec, tensors, extra["learner"], steps)
    forked = RunFolder(folder.path.parent / _fork_name(folder.name, plan.name, folder.path.parent))
    config = _fork_config(now, target, forked.name)
    forked.create()
    forked.fork_of.write_text(f"{folder.name}\n", encoding="utf-8")
    save(config, forked.config)
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    warm = version + plan.warm_up_versions
    index = tensorfile.index_of(arrays, {**extra, "learner": learner, "schema": target.schema, "warm_up_until": warm})
    BlobStore(str(forked.path / "blobs")).put([index.header(), *tensorfile.pieces_of(index, arrays)],
                                              f"{forked.name}/checkpoints/{version:012d}")
    return Fork(forked, config, version, warm)


def _fork_name(run: str, plan: str, root: Path) -> str:
    """Return a free name of both names, shortened to the length that a run's name may have."""
    return free_name(f"{run}-{plan}"[:MAX_NAME].rstrip("-"), root)


def _fork_config(now: RunConfig, target: AgentSpec, name: str) -> RunConfig:
    """Return the fork's configuration: own stores and ports, every version archived, no ratings, no games of people.

    The archive is not thinned, because the match needs the fork's first version.
    """
    record = RunRecord(**target.trees())
    mine = overlay(now, record)
    services = mine.services.model_copy(update={
        "evaluator": mine.services.evaluator.model_copy(update={"enabled": False}),
        "play": mine.services.play.model_copy(update={"enabled": False}),
        "controller": mine.services.controller.model_copy(update={"port": 0})})
    return mine.model_copy(update={
        "name": name, "services": services,
        "store": mine.store.model_copy(update={
            "state_url": "", "params_url": "", "archive_every": 1, "max_archived": 0}),
        "blobs": mine.blobs.model_copy(update={"url": ""})})


def train_fork(fork: Fork, until: int, minutes: float, learned: Callable[[int], None]) -> None:
    """Train the fork up to version ``until``. ``learned`` receives the newest version.

    Raises TimeoutError, or RuntimeError if the fork ends by itself.
    """
    end = time.monotonic() + 60 * minutes
    with LocalCluster.start(fork.folder, fork.config) as cluster:
        cluster.wait_running()
        redis_state = cluster.state.redis  # holds the number of the newest version
        store = ParameterStore(redis_state, redis_state, cluster.config.name, cluster.config.store)
        while True:
            cluster.check()
            if time.monotonic() > end:
                raise TimeoutError(f"the rehearsal did not reach version {until} within {minutes:g} minutes")
            try:
                status, head = cluster.state.status(), store.head()
            except redis.RedisError:
                status, head = None, None
            if status is not None and status.status in ENDED:
                raise RuntimeError(f"the rehearsal's run is {status.status}: {status.reason}")
            if head is not None:
                learned(min(head, until))
                if head >= until + 1:  # version `until` is archived before the next one is published
                    break
            time.sleep(0.5)
        cluster.stop("the rehearsal is over")


def compare(fork: Fork, version: int, games: int,
            on_game: Callable[[MatchGame], None] = lambda game: None) -> PairedMatch:
    """Play a version of the fork against its first one, in pairs of games with sides swapped. ``on_game`` receives each
    finished game."""
    archive = ArchivedVersions(fork.folder)
    _, after, _ = archive.load(version)
    _, before, _ = archive.load(fork.first)
    return play(fork.config.game, Contestant(f"version-{version}", after),
                Contestant(f"version-{fork.first}", before), max((games + 1) // 2, 1), 0, on_game=on_game)
