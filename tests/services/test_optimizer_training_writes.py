"""Training while versions and checkpoints are written: only a failing or slow version write blocks it."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from five.services.optimizer import metrics as page
from five.services.optimizer.__main__ import train
from five.services.optimizer.process_group import OptimizerGroup
from rapid.critical_tasks import CriticalTasks
from rapid.lifecycle import Lifecycle
from rapid.store.errors import FencedOut
from tests.services.optimizer_cases import StateInMemory, Versions, feed, training, until

MAX_ITERATIONS = 20_000


class SlowVersions(Versions):
    """Publishes version 1 and later only after ``proceed`` is set, or raises ``error``."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.proceed = threading.Event()
        self.error = error

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        if version:
            assert self.proceed.wait(30)
            if self.error is not None:
                raise self.error
        super().publish(version, tensors, meta)


class UnavailableVersions(Versions):
    """Is unavailable from version 1 on until ``available`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.available = threading.Event()

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        if version and not self.available.is_set():
            raise redis.ConnectionError("no Redis answers")
        super().publish(version, tensors, meta)


class SlowCheckpoints:
    """Saves a run's checkpoints from version 1 on only after ``proceed`` is set, or raises ``error``."""

    def __init__(self, run: Any, error: Exception | None = None) -> None:
        self.saved, self.begun, self.proceed, self.error = list[int](), list[int](), threading.Event(), error
        self._save = run.checkpoints.save
        run.checkpoints.save = self.save

    def save(self, version: int, *arguments: Any) -> None:
        self.begun.append(version)
        assert self.proceed.wait(30)
        if self.error is not None:
            raise self.error
        self._save(version, *arguments)
        self.saved.append(version)


def test_training_continues_while_a_version_is_published(tmp_path: Path) -> None:
    versions, client = SlowVersions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    feed(run, 6)
    seen: list[tuple[int, int]] = []

    def stop() -> bool:
        seen.append((run.learner.gradient_steps, len(versions.published)))
        if run.learner.gradient_steps == 3:  # two make a version
            versions.proceed.set()
            return True
        return len(seen) > 400

    weights: dict[int, bytes] = {}
    step = run.learner.train_step

    def recording_step(*args: Any) -> dict[str, float]:
        metrics = step(*args)
        weights[run.learner.gradient_steps] = b"".join(p.detach().numpy().tobytes()
                                                       for p in run.learner.policy.state_dict().values())
        return metrics

    run.learner.train_step = recording_step  # type: ignore[method-assign]
    run.run(stop)
    assert (3, 1) in seen  # a step ran while version 1 was not published
    published = b"".join(t.tobytes() for t in versions.published[1].values())
    assert published == weights[2] != weights[3]
    (record,) = client.records
    assert record["publish_seconds"] >= record["stall_seconds"] >= 0


@pytest.mark.parametrize("kind", ["version", "checkpoint"])
def test_run_is_idle_only_when_everything_is_written(tmp_path: Path, kind: str) -> None:
    versions, client = SlowVersions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    checkpoints = SlowCheckpoints(run)
    (checkpoints if kind == "version" else versions).proceed.set()
    feed(run, 4)
    idle: list[tuple[bool, int, int]] = []

    def stop() -> bool:
        if run.version == 1:
            client.playing = False
            idle.append((run.is_idle, len(versions.published), len(checkpoints.saved)))
        if len(idle) == 10:
            (versions if kind == "version" else checkpoints).proceed.set()
        return len(idle) > 10 and (run.is_idle or len(idle) > MAX_ITERATIONS)

    run.run(stop)
    assert not any(is_idle for is_idle, *_ in idle[1:10]) and idle[-1] == (True, 2, 1)


def test_requested_checkpoint_waits_for_the_running_version(tmp_path: Path) -> None:
    versions = SlowVersions()
    run = training(tmp_path, versions)
    run.start()
    feed(run, 4)
    heads: list[int | None] = []

    def request() -> None:
        run.checkpoint_now()
        heads.append(versions.head())

    requesting = threading.Thread(target=request)

    def stop() -> bool:
        if run.version == 1 and requesting.ident is None:
            requesting.start()
            threading.Timer(0.2, versions.proceed.set).start()
        return bool(heads)

    run.run(stop)
    requesting.join(10)
    assert heads == [1]


@pytest.mark.parametrize("kind", ["version", "checkpoint"])
@pytest.mark.parametrize("reason", ["epoch", "lease"])
def test_fenced_write_ends_training(tmp_path: Path, reason: Any, kind: str) -> None:
    error = FencedOut(reason, "another holder")
    versions = SlowVersions(error if kind == "version" else None)
    versions.proceed.set()
    run = training(tmp_path, versions)
    run.start()
    checkpoints = SlowCheckpoints(run, error if kind == "checkpoint" else None)
    checkpoints.proceed.set()
    feed(run, 6)
    if reason == "lease":
        with pytest.raises(FencedOut):
            until(run, 3)
    else:
        until(run, 3, patience=400)
        assert run.is_fenced_out
    if kind == "version":
        assert list(versions.published) == [0]
    else:
        assert checkpoints.saved == [] and checkpoints.begun


def test_unavailable_store_blocks_training_without_loss(tmp_path: Path) -> None:
    versions, client = UnavailableVersions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    feed(run, 8)
    blocked: list[tuple[str, int, int]] = []
    beats = [0]

    def beat() -> None:
        beats[0] += 1

    def stop() -> bool:
        if run.blocked_reason:
            blocked.append((run.blocked_reason, run.learner.gradient_steps, beats[0]))
            if len(blocked) == 100:
                versions.available.set()
        return run.version == 2 or beats[0] > MAX_ITERATIONS

    run.beat = beat
    run.run(stop)
    # One of the two steps to version 2 is taken, and the loop keeps running.
    assert {steps for _, steps, _ in blocked} == {3}
    assert blocked[-1][2] - blocked[0][2] >= 99
    assert any("ConnectionError: no Redis answers" in reason for reason, _, _ in blocked)
    assert run.blocked_reason == "" and list(versions.published) == [0, 1, 2]
    assert [record["version"] for record in client.records] == [1, 2]
    assert page.BLOCKED_SECONDS.collect()[0].samples[0].value == 0.0


def test_full_disk_blocks_training_until_there_is_space(tmp_path: Path) -> None:
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    feed(run, 8)
    save, full, tried = run.checkpoints.save, threading.Event(), threading.Event()
    full.set()

    def save_or_fail(*arguments: Any) -> None:
        tried.set()
        if full.is_set():
            raise OSError(28, "No space left on device")
        save(*arguments)

    run.checkpoints.save = save_or_fail  # type: ignore[method-assign, assignment]
    seen: list[tuple[int, str]] = []

    def stop() -> bool:
        client.playing = run.version == 0 or tried.is_set()  # no further step before version 1's checkpoint has failed
        seen.append((run.version, run.blocked_reason))
        if "No space left" in run.blocked_reason:
            full.clear()
        return run.version == 2 or len(seen) > MAX_ITERATIONS

    run.run(stop)
    assert any(version == 1 and "checkpoint" in reason for version, reason in seen)
    assert run.version == 2 and run.checkpoints.versions() == [1, 2]


def test_training_does_not_wait_for_a_slow_checkpoint(tmp_path: Path) -> None:
    versions, client = Versions(), StateInMemory()
    run = training(tmp_path, versions, client)  # a checkpoint is due with every version
    run.start()
    checkpoints, seen = SlowCheckpoints(run), list[tuple[int, int]]()
    iterations = [0]

    def stop() -> bool:
        iterations[0] += 1
        client.playing = run.version == 0 or bool(checkpoints.begun)
        if run.version == 1 and not seen and checkpoints.begun:
            feed(run, 8, first=100)
            seen.append((1, len(checkpoints.saved)))
        if run.version == 3:
            seen.append((3, len(checkpoints.saved)))
            checkpoints.proceed.set()
        if checkpoints.saved and run.version == 3:
            feed(run, 4, first=200)
        return run.version == 4 or iterations[0] > MAX_ITERATIONS

    feed(run, 4)
    run.run(stop)
    assert seen[:2] == [(1, 0), (3, 0)] and run.version == 4  # three versions while one checkpoint was written
    assert list(versions.published) == [0, 1, 2, 3, 4]
    assert checkpoints.begun[0] == 1 and 2 not in checkpoints.begun and 3 not in checkpoints.begun
    assert checkpoints.begun[-1] == 4 and checkpoints.saved == checkpoints.begun  # the final checkpoint
    # Each holds the state at its version: two steps a version.
    loaded = {version: run.checkpoints.load(version)[1]["learner"]["gradient_steps"]
              for version in run.checkpoints.versions()}
    assert loaded == {1: 2, 4: 8}
    assert page.CHECKPOINT_SECONDS.collect()[0].samples


def test_checkpoint_due_during_another_one_follows_it(tmp_path: Path) -> None:
    """Due with versions 2 and 4. The one of 4 is due while that of 2 is written: version 5 gets it."""
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.checkpoint_every = 2
    run.start()
    checkpoints, fed, iterations = SlowCheckpoints(run), [-1], [0]

    def stop() -> bool:
        iterations[0] += 1
        if fed[0] < run.version:
            fed[0] = run.version
            feed(run, 4, first=100 * run.version)
        if run.version == 4:
            client.playing = bool(checkpoints.saved) and (client.playing or run.is_idle)
            checkpoints.proceed.set()
        elif run.version == 5:
            client.playing = False
        return 5 in checkpoints.begun or iterations[0] > 4000

    run.run(stop)
    assert run.version == 5 and checkpoints.begun[:2] == [2, 5] and iterations[0] <= 4000


def test_drain_without_redis_stores_the_last_checkpoint(tmp_path: Path) -> None:
    """In a node's drain Redis may end first: the last version cannot be published, nor the checkpoint indexed."""
    versions = UnavailableVersions()
    run = training(tmp_path, versions)
    run.start()
    feed(run, 4)
    saved = run.checkpoints.save

    def save_without_index(version: int, *arguments: Any) -> None:
        saved(version, *arguments)
        raise redis.ConnectionError("no Redis answers")

    run.checkpoints.save = save_without_index  # type: ignore[method-assign]
    until(run, 1)
    assert run.version == 1 and versions.head() == 0
    versions.available.set()
    again = training(tmp_path, versions)
    again.start()
    assert again.version == 1


def test_failed_checkpoint_does_not_prevent_the_final_one(tmp_path: Path) -> None:
    """The blob store refuses the checkpoint of version 1 until the drain begins."""
    run, thread = training(tmp_path, Versions()), threading.current_thread()
    run.start()
    feed(run, 4)
    save, refused, iterations = run.checkpoints.save, threading.Event(), [0]

    def save_at_the_end(*arguments: Any) -> None:
        if threading.current_thread() is not thread:  # in the background
            refused.set()
            raise OSError(28, "No space left on device")
        save(*arguments)

    def stop() -> bool:
        iterations[0] += 1
        return refused.is_set() or iterations[0] > MAX_ITERATIONS

    run.checkpoints.save = save_at_the_end  # type: ignore[method-assign, assignment]
    run.run(stop)
    assert refused.is_set() and run.checkpoints.versions() == [0, 1]


def test_refused_final_checkpoint_is_an_error(tmp_path: Path) -> None:
    run = training(tmp_path, Versions())
    run.start()

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    run.checkpoints.save = refuse  # type: ignore[method-assign, assignment]
    with pytest.raises(OSError, match="No space left"):
        run.run(lambda: True)


def test_other_ranks_do_not_wait_for_the_last_writes(tmp_path: Path) -> None:
    """The sums are agreed on before rank 0 waits for its writer."""
    versions = SlowVersions()
    run = training(tmp_path, versions)
    run.start()
    feed(run, 4)

    class Group(OptimizerGroup):
        def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
            sums.append(len(versions.published))
            if stopped:
                versions.proceed.set()
            return super().sum_over_ranks(values)

    def stop() -> bool:
        stopped.extend([True] if run.version == 1 else [])
        return bool(stopped)

    sums, stopped = list[int](), list[bool]()
    run.group = Group()
    run.run(stop)
    assert sums == [1, 1] and list(versions.published) == [0, 1]


def test_watchdog_does_not_interrupt_the_last_checkpoint(tmp_path: Path) -> None:
    now, exits = [0.0], list[int]()
    tasks = CriticalTasks(lambda reason: None, lambda: True, 5.0, exits.append, lambda: now[0])
    run = training(tmp_path, Versions())
    run.start()
    save, watchdog = run.checkpoints.save, tasks.watchdog("training")

    def slow_save(*arguments: Any) -> None:
        now[0] += 60.0
        tasks.check()
        save(*arguments)

    run.beat, run.checkpoints.save = watchdog.beat, slow_save  # type: ignore[method-assign, assignment]
    feed(run, 4)
    run.checkpoint_every = 100

    class UntilVersionOne(Lifecycle):
        @property
        def draining(self) -> bool:
            return run.version == 1

    train(run, watchdog, UntilVersionOne(20.0))
    tasks.close()
    assert not exits and now == [60.0] and run.checkpoints.versions() == [0, 1]
