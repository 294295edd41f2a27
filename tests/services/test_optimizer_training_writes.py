"""Versions go first, checkpoints take their time: nothing but a store that fails holds learning up for a checkpoint."""

import threading
from pathlib import Path
from typing import Any

import pytest

from five.services.optimizer import metrics as page
from five.services.optimizer.background_writer import Beside
from five.services.optimizer.writing import Writing
from rapid.store.errors import FencedOut
from tests.services.optimizer_cases import StateInMemory, Versions, feed, training, until


def ends(beside: Beside) -> bool:
    """Waits for a task to end without taking note of how it did."""
    under_way = beside._under_way
    return under_way is None or under_way.exception(10) is None


def assert_set(event: threading.Event) -> None:
    assert event.wait(10)


def test_a_checkpoint_comes_after_its_version_and_spans_the_next_ones() -> None:
    writing, order, go = Writing(lambda error: False), list[str](), threading.Event()

    def save() -> None:
        assert_set(go)
        order.append("checkpoint 1")

    writing.version(lambda: order.append("version 1"), save)
    assert not writing.saved and not writing.idle
    assert ends(writing._versions)
    writing.look()
    assert writing.obstacle == "" and not writing.saved
    writing.version(lambda: order.append("version 2"))
    writing.out()
    assert order == ["version 1", "version 2"] and writing.obstacle == ""
    go.set()
    writing.settle()
    assert order[2:] == ["checkpoint 1"] and writing.idle and writing.saved


def test_a_version_that_is_not_out_and_a_checkpoint_that_fails_are_obstacles() -> None:
    writing, go, tried = Writing(lambda error: isinstance(error, OSError)), threading.Event(), threading.Event()
    writing.version(lambda: assert_set(go))
    assert writing.obstacle == "the version before is not written yet"
    go.set()
    writing.out()
    full = True

    def save() -> None:
        if full:
            tried.set()
            raise OSError(28, "No space left on device")

    writing.checkpoint(save)
    assert tried.wait(10)
    while not writing.obstacle:
        pass
    assert "the checkpoint on its way is not written yet: OSError: [Errno 28] No space" in writing.obstacle
    full = False
    writing.settle()
    assert writing.obstacle == ""


def test_at_the_end_what_fails_is_tried_no_more_and_what_was_not_begun_is_left() -> None:
    writing, tried, order = Writing(lambda error: True), threading.Event(), list[str]()

    def fail() -> None:
        tried.set()
        raise ConnectionError("Redis is away")

    writing.checkpoint(fail)
    assert tried.wait(10)
    writing.version(lambda: order.append("version"))
    with pytest.raises(ConnectionError):
        writing.end()
    assert writing.idle and order == ["version"]
    writing.version(lambda: None, lambda: order.append("checkpoint"))
    writing.end()
    assert order == ["version"] and writing.idle


class SlowStore:
    """Takes a run's checkpoints from version 1 on only when it is let go."""

    def __init__(self, run: Any) -> None:
        self.saved, self.begun, self.go, self.error = list[int](), list[int](), threading.Event(), None
        self._save = run.checkpoints.save
        run.checkpoints.save = self.save

    def save(self, version: int, *arguments: Any) -> None:
        self.begun.append(version)
        assert self.go.wait(30)
        if self.error is not None:
            raise self.error
        self._save(version, *arguments)
        self.saved.append(version)


def test_learning_does_not_wait_for_a_checkpoint_and_one_that_is_due_meanwhile_follows(tmp_path: Path) -> None:
    versions, client = Versions(), StateInMemory()
    run = training(tmp_path, versions, client)  # a checkpoint is due with every version
    run.start()
    store, seen = SlowStore(run), list[tuple[int, int]]()
    turns = [0]

    def stop() -> bool:
        turns[0] += 1
        client.playing = run.version == 0 or bool(store.begun)
        if run.version == 1 and not seen and store.begun:
            feed(run, 8, first=100)
            seen.append((1, len(store.saved)))
        if run.version == 3:
            seen.append((3, len(store.saved)))
            store.go.set()
        if store.saved and run.version == 3:
            feed(run, 4, first=200)
        return run.version == 4 or turns[0] > 20_000

    feed(run, 4)
    run.run(stop)
    assert seen[:2] == [(1, 0), (3, 0)] and run.version == 4  # three versions were out while one checkpoint was written
    assert list(versions.published) == [0, 1, 2, 3, 4]
    assert store.begun[0] == 1 and 2 not in store.begun and 3 not in store.begun  # never two at once
    assert store.begun[-1] == 4 and store.saved == store.begun  # draining ends with a checkpoint of the end
    # Each as it was when it was taken: two steps a version.
    loaded = {version: run.checkpoints.load(version)[1]["learner"]["gradient_steps"]
              for version in run.checkpoints.versions()}
    assert loaded == {1: 2, 4: 8}
    assert page.CHECKPOINT_SECONDS.collect()[0].samples


@pytest.mark.parametrize("reason", ["epoch", "lease"])
def test_a_checkpoint_that_is_refused_ends_learning(tmp_path: Path, reason: str) -> None:
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    store = SlowStore(run)
    store.error = FencedOut(reason, "it is over")  # type: ignore[assignment, arg-type]
    store.go.set()
    feed(run, 4)
    if reason == "lease":
        with pytest.raises(FencedOut):
            until(run, 3)
    else:
        until(run, 3)
        assert run.left_behind
    assert store.saved == [] and store.begun


def test_a_run_rests_only_when_its_checkpoint_is_written(tmp_path: Path) -> None:
    client = StateInMemory()
    run = training(tmp_path, Versions(), client)
    run.start()
    store = SlowStore(run)
    feed(run, 4)
    rested: list[tuple[bool, int]] = []

    def stop() -> bool:
        if run.version == 1:
            client.playing = False
            rested.append((run.resting, len(store.saved)))
        if len(rested) == 10:
            store.go.set()
        return len(rested) > 10 and (run.resting or len(rested) > 20_000)

    run.run(stop)
    assert not any(resting for resting, _ in rested[1:10]) and rested[-1] == (True, 1)
