"""Measurements of learning: counters of the metrics page, sums over the ranks, and the record of each version."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from five.agent.learning.buffer import DropReason, HostBatch
from five.services.optimizer import metrics as page
from five.services.optimizer import version_records
from five.services.optimizer.learning_meter import LearningMeter, RunTotals
from five.services.optimizer.process_group import SINGLE_OPTIMIZER, OptimizerGroup
from tests.services.optimizer_cases import HYPER, LEARNING, UNROLL, Versions, feed, training

BATCH = LEARNING.batch_samples
COUNTERS = (page.STEPS, page.CONSUMED, page.RECEIVED, page.FLOP)


class Measured:
    """A meter, and the optimizer whose steps it measures; its buffer has eight samples."""

    def __init__(self, folder: Path) -> None:
        self.run = training(folder, Versions())
        self.meter = LearningMeter(self.run.intake)
        feed(self.run, 4)
        self._shown = [counter._value.get() for counter in COUNTERS]

    def step(self, flop: int = 100) -> HostBatch:
        """Take a gradient step and add it; return its batch."""
        learner = self.run.learner
        previous, submitted_ns = learner.record_event(), time.time_ns()
        batch = self.run.intake.sample(BATCH)
        assert batch is not None
        metrics = learner.train_step(learner.transfer(batch.arrays), HYPER)
        self.meter.add_step(metrics, previous, batch, submitted_ns, flop)
        return batch

    def counted(self) -> list[float]:
        """Return by how much the counters have grown."""
        return [counter._value.get() - shown for counter, shown in zip(COUNTERS, self._shown, strict=True)]


@pytest.fixture
def measured(tmp_path: Path) -> Measured:
    return Measured(tmp_path)


def test_steps_are_counted_when_they_are_submitted(measured: Measured) -> None:
    measured.step(flop=100)
    batch = measured.step(flop=200)
    meter = measured.meter
    assert (meter.submitted_steps, meter.flop) == (2, 300)
    assert measured.counted() == [2, 2 * BATCH, 0, 300]
    assert meter.learned_hero_steps == (BATCH + (batch.uses == 1).sum()) * UNROLL
    meter.read_steps(1)
    assert (meter.submitted_steps, meter.flop) == (0, 300)


def test_received_samples_are_counted_once(measured: Measured) -> None:
    for received in (8, 8, 10):
        if received == 10:
            feed(measured.run, 1, first=10)
        measured.meter.count_received()
        assert measured.counted() == [0, 0, received, 0]


def test_start_counts_only_what_follows(measured: Measured) -> None:
    measured.meter.start(5e9, SINGLE_OPTIMIZER)
    measured.meter.count_received()
    assert measured.counted() == [0, 0, 0, 0]
    assert measured.meter.totals == RunTotals(8 * UNROLL, 0, 8, 0, 5e9)
    measured.step(flop=100)
    assert measured.meter.flop == 5e9 + 100


def test_first_record_does_not_count_the_time_of_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a checkpoint takes minutes, and no step can run."""
    run, now = training(tmp_path, Versions()), [1000.0]
    monkeypatch.setattr(version_records.time, "monotonic", lambda: now[0])
    meter = LearningMeter(run.intake)
    now[0] += 600.0
    meter.start(0.0, SINGLE_OPTIMIZER)
    now[0] += 5.0
    assert meter.close_version(1, HYPER, meter.totals, 0.0)["seconds"] == 5.0


def test_totals_are_sums_over_the_ranks(measured: Measured) -> None:
    """Only steps whose metrics are read count as consumed hero-steps."""
    class TwoEqualRanks(OptimizerGroup):
        def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
            return [2.0 * value for value in values]

    measured.step(flop=100)
    assert measured.meter.sum_over_ranks(TwoEqualRanks()).consumed_hero_steps == 0
    measured.meter.read_steps(1)
    totals = measured.meter.sum_over_ranks(TwoEqualRanks())
    assert totals == RunTotals(hero_steps=16 * UNROLL, consumed_hero_steps=2 * BATCH * UNROLL, received=16,
                               consumed=2 * BATCH, flop=200.0)
    assert measured.meter.totals == RunTotals(0, 0, 0, 0, 0.0)  # those of the newest version


def test_record_has_rates_since_the_previous_version(measured: Measured) -> None:
    meter = measured.meter
    for version, steps in ((1, 2), (2, 1)):
        feed(measured.run, 4, first=10 * version)
        meter.count_received()
        for _ in range(steps):
            measured.step(flop=100)
        meter.read_steps(version)
        before, totals = meter.totals, meter.sum_over_ranks(SINGLE_OPTIMIZER)
        record = meter.close_version(version, HYPER, totals, stall_seconds=0.25)
        assert (record["version"], record["stall_seconds"], record["samples"]) == (version, 0.25, steps * BATCH)
        assert (record["hero_steps"], record["flop"]) == (totals.hero_steps, totals.flop)
        assert record["reuse"] == record["reuse_recent"] == totals.consumed / totals.received
        assert record["hero_steps_per_second"] * record["seconds"] == pytest.approx(
            totals.hero_steps - before.hero_steps)
        assert record["consumed_per_second"] * record["seconds"] == pytest.approx(steps * BATCH * UNROLL)
        statistics = measured.run.intake.buffer.statistics()
        assert (record["buffer_samples"], record["buffer_bytes"]) == (statistics.samples, statistics.nbytes) != (0, 0)
        assert set(record["dropped"]) == {str(reason) for reason in DropReason}
        assert meter.totals == totals
    assert totals == RunTotals((8 + 16) * UNROLL, BATCH * UNROLL, 24, 3 * BATCH, 300.0)


def test_record_without_received_samples_has_no_reuse(tmp_path: Path) -> None:
    run = training(tmp_path, Versions())
    meter = LearningMeter(run.intake)
    record = meter.close_version(1, HYPER, meter.sum_over_ranks(SINGLE_OPTIMIZER), 0.0)
    assert (record["reuse"], record["reuse_recent"], record["samples"]) == (0.0, None, 0)
