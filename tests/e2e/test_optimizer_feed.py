"""A run whose rollouts are too few for its optimizers, each of which needs a sender."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.running import Run, eventually


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path)
    yield run
    run.destroy()


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_two_rollouts_feed_three_optimizers(run: Run) -> None:
    run.start_new("services.optimizer.max_optimizers=3", "services.optimizer.optimizers=3",
                  "services.rollout.processes=2", "services.rollout.optimizers_per_process=1",
                  "learning.gradient_steps_per_iteration=4",
                  "services.evaluator.enabled=false", "services.play.enabled=false")
    run.wait_version(2)
    state = run.state()

    def received() -> bool:
        ranks = state.services("optimizer")
        return len(ranks) == 3 and all(rank.stats["received"] > 0 for rank in ranks)

    eventually(received, 60, "samples on every rank")
    log = (run.folder.path / "logs" / "rollout-0.log").read_text()
    assert "optimizers assigned ordinal=" in log and "cannot read the rollout's ordinal" not in log


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_rollouts_that_end_send_their_segments(run: Run) -> None:
    """Rollouts end one after the other, as in a rolling update, while the optimizer accepts at the pace of learning."""
    run.start_new("services.rollout.processes=2", "services.evaluator.enabled=false", "services.play.enabled=false")

    def replaced(pid: int) -> bool:
        now = run.pids("rollout-0")
        return pid not in now and len(now) == 2

    run.wait_version(2)
    eventually(lambda: len(run.state().services("rollout")) == 2, 60, "both rollouts have joined")
    for pid in run.pids("rollout-0"):
        os.kill(pid, signal.SIGTERM)
        eventually(partial(replaced, pid), 90, "another rollout")
    run.wait_version(run.head() + 2)
    logs = [(run.folder.path / "logs" / f"rollout-{i}.log").read_text() for i in range(2)]
    assert [log.count("draining (SIGTERM)") for log in logs] == [1, 1]
    assert not [line for log in logs for line in log.splitlines() if "segments not sent" in line]
