"""Estimate of a drain's duration from the measured rate of checkpoint writes."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from five.agent.learning.checkpoint import checkpoint_bytes
from five.services.optimizer.__main__ import train
from five.services.optimizer.drain_time import ASSUMED_RATE, WRITES, DrainTime
from five.services.optimizer.process_group import LAST_WRITES_SECONDS, OptimizerGroup
from rapid.lifecycle import Lifecycle
from tests.services.optimizer_cases import Versions, feed, training, until
from tests.services.test_optimizer_metrics import value
from tests.waiting import eventually

PAPER_BYTES = 2_505_961_408  # a checkpoint of the rerun preset


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_estimate_follows_the_slowest_recent_write() -> None:
    estimates: list[float] = []
    clock = Clock()
    drain = DrainTime(20.0, PAPER_BYTES, estimates.append, clock)
    assert estimates == [drain.seconds] == [20 + 2.5 * PAPER_BYTES / 50e6]  # the chart assumes 50 MB/s too

    def write() -> None:
        clock.now += 100

    drain.measure(write, PAPER_BYTES)  # 25 MB/s
    assert estimates[-1] == pytest.approx(20 + 2.5 * 100)
    for slowest in (100, 100, 2):  # of the last three writes
        drain.measure(lambda: setattr(clock, "now", clock.now + 2.0), PAPER_BYTES)
        assert estimates[-1] == pytest.approx(20 + WRITES * slowest)
    drain.measure(write, PAPER_BYTES)
    assert estimates[-1] == pytest.approx(20 + WRITES * 100)


def test_estimate_is_shown_and_follows_the_checkpoints_size() -> None:
    """After a surgery that grows the model the checkpoint is larger."""
    clock = Clock()
    drain = DrainTime(20.0, 1000, lambda seconds: None, clock)
    assert value("drain_seconds") == drain.seconds
    drain.measure(lambda: setattr(clock, "now", clock.now + 2.0), 4000)
    assert drain.seconds == 20.0 + 2.5 * 2.0
    assert (value("drain_seconds"), value("checkpoint_write_rate")) == (25.0, 2000.0)
    drain.measure(lambda: None, 8000)  # faster than the clock can tell
    assert value("checkpoint_write_rate") == 8e6 and drain.seconds == 20.0 + 2.5 * 8000 / 2000


def test_checkpoint_without_moments_keeps_the_estimate() -> None:
    clock = Clock()
    drain = DrainTime(20.0, 4000, lambda seconds: None, clock)
    drain.measure(lambda: setattr(clock, "now", clock.now + 2.0), 2000)
    assert drain.seconds == 20.0 + 2.5 * 4.0


@pytest.mark.parametrize(("rank", "more"), [(0, 0.0), (1, LAST_WRITES_SECONDS)])
def test_other_ranks_outlive_the_writes_of_rank_0(rank: int, more: float) -> None:
    """They measure no write. While they start or learn their grace period stays: they may hang after a lost node."""
    life, grace = Lifecycle(20.0), list[float]()

    def run(draining: Callable[[], bool], loop_ended: Callable[[], None]) -> None:
        grace.append(life.grace_seconds)
        loop_ended()
        grace.append(life.grace_seconds)

    loop: Any = SimpleNamespace(
        group=OptimizerGroup(rank, 2), learner=SimpleNamespace(device=torch.device("cpu")), run=run)
    watchdog: Any = SimpleNamespace(stop=lambda: None)
    train(loop, watchdog, life)
    assert grace == [20.0, 20.0 + more]


def test_failed_write_is_not_measured() -> None:
    estimates: list[float] = []
    drain = DrainTime(20.0, 1000, estimates.append)

    def fail() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        drain.measure(fail, 1000)
    assert len(estimates) == 1


def test_training_measures_its_checkpoint_writes(tmp_path: Path) -> None:
    run, estimates = training(tmp_path, Versions()), list[float]()
    size = checkpoint_bytes(run.learner.policy.state_dict(), dict(run.learner.policy.named_parameters()))
    run = replace(run, drain_time=DrainTime(20.0, size, estimates.append))
    assert estimates == [20 + WRITES * size / ASSUMED_RATE]
    run.start()
    feed(run, 4)
    until(run, 1)
    assert len(estimates) >= 3 and all(seconds > 20 for seconds in estimates)  # one for each checkpoint


def test_extended_grace_period_postpones_the_exit() -> None:
    codes: list[int] = []
    life = Lifecycle(0.05, exit_process=codes.append)
    life.set_grace_seconds(3600)
    life.drain("SIGTERM")
    assert life.draining and not codes
    life.set_grace_seconds(0.05)
    eventually(lambda: codes == [1])
    life.close()
