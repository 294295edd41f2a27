"""What is written beside learning: in order, one at a time, and nothing that fails there goes unseen."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

from five.services.optimizer import metrics as page
from five.services.optimizer.background_writer import Beside
from rapid.store.errors import FencedOut
from tests.services.optimizer_cases import StateInMemory, Versions, feed, training, until


def test_tasks_end_in_order_and_one_at_a_time() -> None:
    beside, ended, going = Beside(), [], threading.Semaphore()
    for i in range(20):

        def task(i: int = i) -> None:
            assert going.acquire(blocking=False)
            ended.append(i)
            going.release()

        beside.begin(task)
    beside.settle()
    assert ended == list(range(20)) and beside.idle


@pytest.mark.parametrize("told_by", ["begin", "settle", "look"])
def test_what_fails_is_raised_once_by_whoever_asks_next(told_by: str) -> None:
    beside, done = Beside(), threading.Event()

    def fail() -> None:
        done.set()
        raise OSError("no space left on device")

    beside.begin(fail)
    done.wait(10)
    while not beside.idle:
        pass
    calls = {"begin": lambda: beside.begin(lambda: None), "settle": beside.settle, "look": beside.look}
    with pytest.raises(OSError, match="no space left"):
        calls[told_by]()
    beside.settle()


class SlowVersions(Versions):
    """A store that takes version 1 and later only when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()
        self.refuse: Exception | None = None

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        if version:
            assert self.go.wait(30)
            if self.refuse is not None:
                raise self.refuse
        super().publish(version, tensors, meta)


def test_learning_goes_on_while_a_version_is_on_its_way_and_the_version_is_what_it_was(tmp_path: Path) -> None:
    versions, client = SlowVersions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    feed(run, 6)
    seen: list[tuple[int, int]] = []

    def stop() -> bool:
        seen.append((run.learner.gradient_steps, len(versions.published)))
        if run.learner.gradient_steps == 3:  # two make a version
            versions.go.set()
            return True
        return len(seen) > 400

    weights: dict[int, bytes] = {}
    step = run.learner.step

    def watched(*args: Any) -> dict[str, float]:
        metrics = step(*args)
        weights[run.learner.gradient_steps] = b"".join(p.detach().numpy().tobytes()
                                                       for p in run.learner.policy.state_dict().values())
        return metrics

    run.learner.step = watched  # type: ignore[method-assign]
    run.run(stop)
    assert (3, 1) in seen  # a step was taken while version 1 was not served
    published = b"".join(t.tobytes() for t in versions.published[1].values())
    assert published == weights[2] != weights[3]
    (record,) = client.records
    assert record["publish_seconds"] >= record["stall_seconds"] >= 0


def test_a_run_rests_only_when_its_last_version_is_served(tmp_path: Path) -> None:
    versions, client = SlowVersions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    feed(run, 4)
    rested: list[tuple[bool, bool]] = []

    def stop() -> bool:
        if run.version == 1:
            client.playing = False
            rested.append((run.resting, 1 in versions.published))
        if len(rested) == 10:
            versions.go.set()
        return len(rested) > 10 and run.resting

    run.run(stop)
    assert not any(resting for resting, _ in rested[1:10]) and rested[-1] == (True, True)


def test_a_checkpoint_that_is_asked_for_comes_after_the_version_on_its_way(tmp_path: Path) -> None:
    versions = SlowVersions()
    run = training(tmp_path, versions)
    run.start()
    feed(run, 4)
    found: list[int | None] = []

    def ask() -> None:
        run.checkpoint_now()
        found.append(versions.head())

    asking = threading.Thread(target=ask)

    def stop() -> bool:
        if run.version == 1 and asking.ident is None:
            asking.start()
            threading.Timer(0.2, versions.go.set).start()
        return bool(found)

    run.run(stop)
    asking.join(10)
    assert found == [1]


@pytest.mark.parametrize("reason", ["epoch", "lease"])
def test_a_refusal_beside_ends_learning(tmp_path: Path, reason: str) -> None:
    versions = SlowVersions()
    versions.refuse = FencedOut(reason, "it is over")  # type: ignore[arg-type]
    versions.go.set()
    run = training(tmp_path, versions)
    run.start()
    feed(run, 6)
    if reason == "lease":
        with pytest.raises(FencedOut):
            until(run, 3)
    else:
        until(run, 3)
        assert run.left_behind
    assert list(versions.published) == [0]


def test_a_task_is_begun_again_while_a_store_is_away() -> None:
    beside, tries = Beside(lambda error: isinstance(error, OSError)), []

    def write() -> None:
        tries.append(beside.trouble)
        if len(tries) < 3:
            raise ConnectionError("Redis is away")

    beside.begin(write)
    beside.settle()
    assert tries == ["", "ConnectionError: Redis is away", "ConnectionError: Redis is away"] and beside.trouble == ""

    def wrong() -> None:
        tries.append("once")
        raise ValueError("a bug")

    beside.begin(wrong)
    with pytest.raises(ValueError, match="a bug"):
        beside.settle()
    assert tries.count("once") == 1


def test_the_last_try_of_a_process_that_ends_is_its_last() -> None:
    beside, tried = Beside(lambda error: True), threading.Event()

    def write() -> None:
        tried.set()
        raise ConnectionError("Redis is away")

    beside.begin(write)
    assert tried.wait(10)
    beside.last_try()
    with pytest.raises(ConnectionError):
        beside.settle()
    assert beside.idle


class AwayVersions(Versions):
    """A store that is away from version 1 on until it is back; what is published then is there."""

    def __init__(self) -> None:
        super().__init__()
        self.back = threading.Event()

    def publish(self, version: int, tensors: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
        if version and not self.back.is_set():
            raise redis.ConnectionError("no Redis answers")
        super().publish(version, tensors, meta)


def test_learning_holds_while_a_store_is_away_and_goes_on_with_nothing_lost(tmp_path: Path) -> None:
    versions, client = AwayVersions(), StateInMemory()
    run = training(tmp_path, versions, client)
    run.start()
    feed(run, 8)
    held: list[tuple[str, int, int]] = []
    turns = [0]

    def turned() -> None:
        turns[0] += 1

    def stop() -> bool:
        if run.holding:
            held.append((run.holding, run.learner.gradient_steps, turns[0]))
            if len(held) == 100:
                versions.back.set()
        return run.version == 2 or turns[0] > 20_000

    run.turned = turned
    run.run(stop)
    # Version 1 cannot be written: of the two steps to version 2 one is taken, and the loop turns all the while.
    assert {steps for _, steps, _ in held} == {3}
    assert held[-1][2] - held[0][2] >= 99
    assert any("version before is not written yet: ConnectionError: no Redis answers" in why for why, _, _ in held)
    assert run.holding == "" and list(versions.published) == [0, 1, 2]
    assert [record["version"] for record in client.records] == [1, 2]
    assert page.HOLDING.collect()[0].samples[0].value == 0.0


def test_a_full_disk_holds_learning_and_the_checkpoint_is_written_when_there_is_room(tmp_path: Path) -> None:
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    feed(run, 8)
    save, full, tried = run.checkpoints.save, threading.Event(), threading.Event()
    full.set()

    def no_room(*arguments: Any) -> None:
        tried.set()
        if full.is_set():
            raise OSError(28, "No space left on device")
        save(*arguments)

    run.checkpoints.save = no_room  # type: ignore[method-assign, assignment]
    seen: list[tuple[int, str]] = []

    def stop() -> bool:
        client.playing = run.version == 0 or tried.is_set()  # no further step before version 1's checkpoint has failed
        seen.append((run.version, run.holding))
        if "No space left" in run.holding:
            full.clear()
        return run.version == 2 or len(seen) > 20_000

    run.run(stop)
    assert any(version == 1 and "checkpoint" in why and "No space left" in why for version, why in seen)
    assert run.version == 2 and run.checkpoints.versions() == [1, 2]
