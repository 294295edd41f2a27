"""What is written beside learning: in order, one at a time, and nothing that fails there goes unseen."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rapid.store.errors import FencedOut
from services.optimizer.beside import Beside
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
