"""How long a drain may take: what has to be written, at the pace at which it was written."""

from pathlib import Path

import pytest

from five.services.optimizer.drain_time import ASSUMED_RATE, WRITES, DrainTime
from rapid.lifecycle import Lifecycle
from tests.rapid.process_helpers import eventually
from tests.services.optimizer_cases import Versions, feed, training, until

PAPER = 2_505_961_408  # bytes of a checkpoint of the rerun preset


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_papers_checkpoint_is_given_the_time_that_it_takes() -> None:
    told: list[float] = []
    clock = Clock()
    drain = DrainTime(20.0, PAPER, told.append, clock)
    assert told == [drain.seconds] == [20 + WRITES * PAPER / ASSUMED_RATE] and told[0] > 120

    def write() -> None:
        clock.now += 100

    drain.timed(write, PAPER)  # a slow store: 25 MB/s
    assert told[-1] == pytest.approx(20 + WRITES * 100)
    for _ in range(3):
        drain.timed(lambda: setattr(clock, "now", clock.now + 2.0), PAPER)
    assert told[-1] == pytest.approx(20 + WRITES * 2)  # the slow one is long ago
    drain.timed(write, PAPER)
    assert told[-1] == pytest.approx(20 + WRITES * 100)  # the slowest of the last counts


def test_a_write_that_fails_is_no_measurement() -> None:
    told: list[float] = []
    drain = DrainTime(20.0, 1000, told.append)

    def fail() -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        drain.timed(fail, 1000)
    assert len(told) == 1


def test_the_optimizers_drain_follows_its_checkpoint(tmp_path: Path) -> None:
    run, told = training(tmp_path, Versions()), list[float]()
    run.measure_drains(20.0, told.append)
    first = told[-1]
    assert first == 20 + WRITES * sum(t.nbytes for t in run.learner.state_dict().values()) / ASSUMED_RATE
    run.start()
    feed(run, 4)
    until(run, 1)
    assert len(told) >= 3 and all(seconds > 20 for seconds in told)  # one for each checkpoint


def test_a_drain_that_is_allowed_more_time_is_not_cut_short() -> None:
    codes: list[int] = []
    life = Lifecycle(0.05, exit_process=codes.append)
    life.set_grace_seconds(3600)
    life.drain("SIGTERM")
    assert life.draining and not codes
    life.set_grace_seconds(0.05)  # what was under way is written
    eventually(lambda: codes == [1])
    life.close()
