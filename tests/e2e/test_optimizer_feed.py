"""A run whose rollouts are too few for its optimizers, each of which needs a sender."""

from collections.abc import Iterator
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
